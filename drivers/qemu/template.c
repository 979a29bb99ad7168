/*
 * template: finding and making templates. Worker. If it dies while it makes one, QEMU is killed,
 * and the next to make it removes what was written.
 */
#include "drivers/qemu/template.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "drivers/qemu/qemu.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/template_make.h"
#include "lib/fd.h"
#include "lib/log.h"

#define TRIES 3 /* a damaged one is made anew, and so is one that was just removed */

static int open_part(const struct store_entry *e, const char *name)
{
	char path[QEMU_PATH];
	int rc = qemu_path_join(path, e->path, name, "");
	int fd;

	if (rc < 0)
		return rc;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opens and checks it. 0, -EIDRM: it was removed meanwhile; or -errno: it is damaged, made for
 * another clock, or, with -ENOENT, was removed before it was open. */
static int template_open(const struct qemu_plan *plan, const uint8_t digest[DIGEST_LEN],
    uint64_t deadline_ns, struct template *t)
{
	struct template_note note;
	char path[QEMU_PATH];
	int rc = qemu_path_join(path, t->entry.path, TEMPLATE_MEMORY, "");
	FD_SCOPED int fd = open_part(&t->entry, TEMPLATE_NOTE);

	if (fd < 0)
		return fd;
	if (pread(fd, &note, sizeof(note), 0) != (ssize_t)sizeof(note))
		return -EBADMSG;
	t->memory = open_part(&t->entry, TEMPLATE_MEMORY);
	t->state = open_part(&t->entry, TEMPLATE_STATE);
	if (rc < 0 || t->memory < 0 || t->state < 0)
		return rc < 0 ? rc : -ENOENT;
	rc = store_hold(t->memory, path, deadline_ns);
	if (rc < 0)
		return rc;
	return template_note_check(&note, plan, digest, t->memory, t->state);
}

static int template_try(const struct driver_site *site, const struct qemu_plan *plan,
    const struct driver_spec *spec, const struct template_parts *parts, uid_t base,
    struct template *t, struct err *err)
{
	uint8_t digest[DIGEST_LEN];
	int rc = template_parts_digest(parts, digest);

	if (rc < 0)
		return err_sys(err, -rc, "make a digest");
	driver_progress(spec, "waiting", 0, 0);
	rc = store_get(site, "template", digest, spec->deadline_ns, &t->entry, err);
	if (rc == 0) {
		t->made = true;
		rc = template_make(site, plan, parts, digest, spec, base, &t->entry, err);
	}
	if (rc < 0)
		return rc;
	rc = template_open(plan, digest, spec->deadline_ns, t);
	if (rc == 0)
		return 0;
	template_close(t);
	if (rc == -ETIMEDOUT)
		return err_sys(err, ETIMEDOUT, "wait for %s", t->entry.path);
	if (rc == -EIDRM || (rc == -ENOENT && access(t->entry.path, F_OK) < 0)) {
		log_info("%s was removed meanwhile, and is made anew", t->entry.path);
		return -EAGAIN;
	}
	log_warn("%s is damaged or stale (%s), and is made anew", t->entry.path, strerror(-rc));
	store_discard(t->entry.path);
	return -EAGAIN;
}

int template_get(const struct driver_site *site, const struct qemu_plan *plan,
    const struct driver_spec *spec, uid_t base, struct template *t, struct err *err)
{
	struct template_parts parts;
	int rc = template_parts_fill(plan, spec, &parts);

	*t = (struct template){.memory = -1, .state = -1, .entry.lock = -1};
	if (rc < 0)
		return err_sys(err, -rc, "read sbx-guest");
	rc = -EAGAIN;
	for (int i = 0; rc == -EAGAIN && i < TRIES; i++)
		rc = template_try(site, plan, spec, &parts, base, t, err);
	if (rc == -EAGAIN)
		return err_set(err, EIO, "%s does not stay whole", t->entry.path);
	return rc;
}

void template_close(struct template *t)
{
	if (t->memory >= 0)
		fd_close(&t->memory);
	if (t->state >= 0)
		fd_close(&t->state);
	t->memory = -1;
	t->state = -1;
}
