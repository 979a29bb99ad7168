/*
 * template: finding and making templates. Worker. If it dies while it makes one, QEMU is killed,
 * and the next to make it removes what was written.
 */
#include "drivers/qemu/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/qemu.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/template_make.h"
#include "lib/fd.h"
#include "lib/log.h"

#define TRIES 2 /* a damaged one is made anew once */

/* sbxd may have made a copy in memory: what is in a program counts, not where it lies. */
static int digest_file(int fd, uint8_t out[DIGEST_LEN])
{
	struct digest_part part = {0};
	struct stat st;
	void *data;
	int rc;

	memset(out, 0, DIGEST_LEN);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	part = (struct digest_part){data, (size_t)st.st_size};
	rc = digest_sha256(&part, 1, out);
	(void)munmap(data, (size_t)st.st_size);
	return rc;
}

static int template_digest(
    const struct qemu_plan *plan, const struct driver_spec *spec, uint8_t out[DIGEST_LEN])
{
	uint8_t programs[2][DIGEST_LEN];
	const uint32_t size[] = {machine_memory_mib(spec), machine_cpus(spec)};
	const struct digest_part parts[] = {
	    {plan->digest, DIGEST_LEN}, {size, sizeof(size)}, {programs, sizeof(programs)}};
	int rc = digest_file(spec->guest, programs[0]);

	if (rc == 0)
		rc = digest_file(spec->helper, programs[1]);
	return rc == 0 ? digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), out) : rc;
}

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

/* Opens and checks it. 0, or -errno: it is damaged, or made for another clock. */
static int template_open(
    const struct qemu_plan *plan, const uint8_t digest[DIGEST_LEN], struct template *t)
{
	struct template_note note;
	FD_SCOPED int fd = open_part(&t->entry, TEMPLATE_NOTE);

	if (fd < 0)
		return fd;
	if (pread(fd, &note, sizeof(note), 0) != (ssize_t)sizeof(note))
		return -EBADMSG;
	t->memory = open_part(&t->entry, TEMPLATE_MEMORY);
	t->state = open_part(&t->entry, TEMPLATE_STATE);
	if (t->memory < 0 || t->state < 0)
		return -ENOENT;
	return template_note_check(&note, plan, digest, t->memory, t->state);
}

int template_get(const struct driver_site *site, const struct qemu_plan *plan,
    const struct driver_spec *spec, uid_t base, struct template *t, struct err *err)
{
	uint8_t digest[DIGEST_LEN];
	int rc = template_digest(plan, spec, digest);

	*t = (struct template){.memory = -1, .state = -1, .entry.lock = -1};
	if (rc < 0)
		return err_sys(err, -rc, "read sbx-guest");
	for (int i = 0; i < TRIES; i++) {
		rc = store_get(site, "template", digest, spec->deadline_ns, &t->entry, err);
		if (rc == 0)
			rc = template_make(plan, digest, spec, base, &t->entry, err);
		if (rc < 0)
			return rc;
		rc = template_open(plan, digest, t);
		if (rc == 0)
			return 0;
		log_warn(
		    "%s is damaged or stale (%s), and is made anew", t->entry.path, strerror(-rc));
		template_close(t);
		store_discard(&t->entry);
	}
	return err_sys(err, -rc, "use %s", t->entry.path);
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
