/*
 * templates_look: what templates there are, and whether a box would begin with them today.
 * `sbx-worker image`; changes no template, but unpacks a kernel that has changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/image/root.h"
#include "drivers/qemu/image.h"
#include "drivers/qemu/probe.h"
#include "drivers/qemu/qemu.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/template_about.h"
#include "drivers/qemu/template_note.h"
#include "drivers/qemu/templates.h"
#include "lib/clock.h"
#include "lib/fd.h"

/* What boxes would be made of now. */
struct today {
	const struct driver_site *site;
	struct found found;    /* without QEMU's version */
	struct qemu_plan plan; /* its parts are those that do not depend on an image */
	char why[256];	       /* no box can be made at all; "" */
	char image[128];       /* the one that was looked at last */
	uint8_t part[DIGEST_LEN];
	char image_why[256]; /* of that image none can; "" */
};

static void today_look(struct today *t, int guest, int helper)
{
	uint64_t deadline_ns = clock_now_ns() + PREPARE_NS;
	struct err err = {0};
	int rc = probe_look(t->site, &t->plan, &t->found, deadline_ns, &err);

	if (rc == 0)
		rc = kernel_pack_modules(t->site, &t->found.files, &t->plan, deadline_ns, &err);
	if (rc == 0)
		rc = template_part_set_agent(t->plan.parts[PART_AGENT], guest, helper);
	if (rc < 0)
		(void)snprintf(t->why, sizeof(t->why), "%s",
		    err.text[0] ? err.text : "QEMU could not be looked at");
}

/* QEMU is not asked for its version each time: while its file is the one that a template was made
 * with, it says what it said then. */
static int today_as_of(struct today *t, const char *version)
{
	(void)snprintf(t->found.version, sizeof(t->found.version), "%s", version);
	return qemu_plan_parts(&t->plan, &t->found);
}

/* The disk that the image has now. Templates of one image come one after the other, mostly. */
static void today_look_at(struct today *t, const char *image)
{
	char root[STORE_PATH];
	char disk[QEMU_PATH];
	struct err err = {0};
	int rc;

	if (!strcmp(t->image, image))
		return;
	(void)snprintf(t->image, sizeof(t->image), "%s", image);
	t->image_why[0] = '\0';
	rc = image_root_peek(t->site->state_dir, image, root, &err);
	if (rc == 0)
		rc = image_disk_path(t->site, root, disk, &err);
	if (rc == 0)
		rc = template_part_set(t->part, disk, strlen(disk));
	if (rc < 0)
		(void)snprintf(t->image_why, sizeof(t->image_why), "%s",
		    err.text[0] ? err.text : "the image could not be looked at");
}

/* ---- one ---- */

static int open_in(const char *dir, const char *name)
{
	char path[QEMU_PATH];
	int rc = qemu_path_join(path, dir, name, "");
	int fd = rc < 0 ? rc : open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return rc == 0 && fd < 0 ? -errno : fd;
}

/* 0, -ESTALE: time ran at another speed; or -errno: it is damaged. */
static int check_note(const char *dir, const char *key, const struct template_parts *parts,
    const struct qemu_plan *plan)
{
	FD_SCOPED int fd = open_in(dir, TEMPLATE_NOTE);
	FD_SCOPED int memory = open_in(dir, STORE_TEMPLATE_MEMORY);
	FD_SCOPED int state = open_in(dir, TEMPLATE_STATE);
	struct template_note note;
	uint8_t digest[DIGEST_LEN];
	char own[STORE_KEY];
	int rc = template_parts_digest(parts, digest);

	if (rc < 0)
		return rc;
	store_key(digest, own);
	if (strcmp(own, key) != 0 || fd < 0 || memory < 0 || state < 0 ||
	    pread(fd, &note, sizeof(note), 0) != (ssize_t)sizeof(note))
		return -EBADMSG;
	return template_note_check(&note, plan, digest, memory, state);
}

static void add_reason(struct driver_template *out, const char *text)
{
	size_t len = strlen(out->why);

	out->state = DRIVER_TEMPLATE_STALE;
	(void)snprintf(out->why + len, sizeof(out->why) - len, "%s%s", len ? ", " : "", text);
}

/* Everything that is another one today. */
static void compare(
    struct today *t, const struct template_about *about, struct driver_template *out)
{
	char text[80];

	if (t->why[0]) {
		add_reason(out, t->why);
		return;
	}
	today_look_at(t, about->image);
	if (today_as_of(t, about->version) < 0) {
		add_reason(out, "QEMU could not be looked at");
		return;
	}
	for (size_t i = 0; i < TEMPLATE_PARTS; i++) {
		const uint8_t *now = i == PART_IMAGE ? t->part : t->plan.parts[i];

		if (i == PART_IMAGE && t->image_why[0]) {
			add_reason(out, t->image_why);
		} else if (memcmp(now, about->parts.of[i], DIGEST_LEN) != 0) {
			(void)snprintf(text, sizeof(text), "%s changed",
			    template_part_name((enum template_part)i));
			add_reason(out, text);
		}
	}
	if (out->state == DRIVER_TEMPLATE_CURRENT && !(t->plan.flags & QEMU_F_TEMPLATES))
		add_reason(out, "qemu.templates is false: each box boots");
}

static void fill_about(const struct template_about *about, struct driver_template *out)
{
	(void)snprintf(out->image, sizeof(out->image), "%s", about->image);
	(void)snprintf(out->accelerator, sizeof(out->accelerator), "%s", about->accelerator);
	(void)snprintf(out->cpu_model, sizeof(out->cpu_model), "%s", about->cpu);
	(void)snprintf(out->version, sizeof(out->version), "%s", about->version);
	(void)snprintf(out->kernel, sizeof(out->kernel), "%s", about->release);
	out->memory_mib = about->parts.memory_mib;
	out->cpus = about->parts.cpus;
}

static void look_at(struct today *t, const char *dir, struct driver_template *out)
{
	FD_SCOPED int fd = open_in(dir, TEMPLATE_ABOUT);
	struct template_about about;
	struct stat st;
	int rc = fd < 0 ? fd : template_about_read(fd, &about);

	if (rc == 0 && fstat(fd, &st) == 0)
		out->made_wall_ms = (uint64_t)st.st_mtim.tv_sec * 1000;
	if (rc == 0) {
		fill_about(&about, out);
		rc = check_note(dir, out->key, &about.parts, &t->plan);
	}
	if (rc == 0 || rc == -ESTALE)
		compare(t, &about, out);
	if (rc == -ESTALE && !t->why[0])
		add_reason(out, "the speed of the host's clock changed");
	if (rc == 0 || rc == -ESTALE)
		return;
	out->state = DRIVER_TEMPLATE_DAMAGED;
	(void)snprintf(
	    out->why, sizeof(out->why), "it is damaged: a box that wants it has it made anew");
}

int templates_each(const struct driver_site *site, int guest, int helper, driver_template_fn *fn,
    void *ctx, struct err *err)
{
	struct today *t = calloc(1, sizeof(*t));
	struct store_census c = {0};
	char dir[QEMU_PATH];
	char path[QEMU_PATH];
	bool looked = false;
	int rc = t ? qemu_store_path(site, dir) : -ENOMEM;

	if (rc == 0)
		rc = store_census_take(site, &c);
	if (rc < 0)
		(void)err_sys(err, -rc, "look through the templates");
	for (size_t i = c.count; rc == 0 && t && i > 0; i--) { /* the last used first */
		const struct store_item *item = &c.items[i - 1];
		struct driver_template out = {
		    .boxes = item->holders,
		    .bytes = item->bytes,
		    .used_wall_ms = item->used_wall_ns / NS_PER_MS,
		};

		if (!item->is_template || qemu_path_join(path, dir, item->name, "") < 0)
			continue;
		t->site = site;
		if (!looked)
			today_look(t, guest, helper);
		looked = true;
		(void)snprintf(out.key, sizeof(out.key), "%s", item->name + strlen("template-"));
		look_at(t, path, &out);
		rc = fn(ctx, &out);
	}
	store_census_free(&c);
	free(t);
	return rc;
}
