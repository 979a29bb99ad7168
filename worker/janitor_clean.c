/*
 * janitor_clean: what is left of boxes goes: of one, of all that nobody knows, and what drivers
 * keep for the whole instance. If the janitor dies meanwhile, it is asked again: all of it can be
 * done twice.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/fault.h"
#include "lib/log.h"
#include "worker/janitor_int.h"

/* Who made it is not known: a place was reserved for it, and perhaps no more. */
static int janitor_cleanup_any(
    const struct driver_site *site, const struct ctl_cleanup *c, struct err *err)
{
	const struct driver *driver;
	int rc = 0;

	for (unsigned int n = 0; rc == 0 && (driver = driver_at(n)); n++)
		rc = driver->cleanup(site, c->name, c->box_pid, c->box_start, err);
	return rc;
}

int janitor_cleanup(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	const struct ctl_cleanup *c = &body->cleanup;
	const struct driver *driver = NULL;
	int rc;

	(void)answer;
	if (!strcmp(c->site.driver, DRIVER_AUTO))
		return janitor_cleanup_any(site, c, err);
	rc = janitor_driver(&c->site, &driver, err);
	return rc == 0 ? driver->cleanup(site, c->name, c->box_pid, c->box_start, err) : rc;
}

/* Names are collected first: cleaning up changes what is being listed. */
struct janitor_names {
	const char *kept; /* each after its CTL_KEEP_* and ended by a NUL */
	size_t kept_len;
	char (*names)[DRIVER_NAME_LEN];
	size_t count;
};

/* The first entry for at == NULL, else the one after it; NULL past the last. */
static const char *janitor_next_kept(const struct janitor_names *n, const char *at)
{
	at = at ? at + strlen(at) + 1 : n->kept;
	return at < n->kept + n->kept_len ? at : NULL;
}

static bool janitor_is_kept(const struct janitor_names *n, const char *name)
{
	for (const char *at = janitor_next_kept(n, NULL); at; at = janitor_next_kept(n, at)) {
		if (*at && !strcmp(at + 1, name))
			return true;
	}
	return false;
}

static int janitor_collect(void *ctx, const char *name)
{
	struct janitor_names *n = ctx;
	void *grown;

	if (janitor_is_kept(n, name))
		return 0;
	grown = realloc(n->names, (n->count + 1) * sizeof(*n->names));
	if (!grown)
		return -ENOMEM;
	n->names = grown;
	(void)snprintf(n->names[n->count++], DRIVER_NAME_LEN, "%s", name);
	return 0;
}

/* Maps the names that are to stay. */
static int janitor_read_kept(int fd, struct janitor_names *n)
{
	struct stat st;
	char *text;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return -errno;
	n->kept = text;
	n->kept_len = (size_t)st.st_size;
	return text[n->kept_len - 1] == '\0' ? 0 : -EBADMSG;
}

/* Which driver made it is not known here: the one that has something of that name. */
static int janitor_adopt_one(const struct driver_site *site, const char *name, struct err *err)
{
	const struct driver *driver;
	int rc = -ESRCH;

	for (unsigned int n = 0; rc == -ESRCH && (driver = driver_at(n)); n++)
		rc = driver->adopt(site, name, err);
	return rc;
}

/* What is not there is no failure of ours: its worker lives, and will find out. */
static uint32_t janitor_adopt(const struct driver_site *site, const struct janitor_names *n)
{
	uint32_t missing = 0;

	for (const char *at = janitor_next_kept(n, NULL); at; at = janitor_next_kept(n, at)) {
		struct err one = {0};

		if (*at != CTL_KEEP_LIVE || janitor_adopt_one(site, at + 1, &one) == 0)
			continue;
		log_error("%s", one.text);
		missing++;
	}
	return missing;
}

/* The first of several failures is the one that is told; all are logged. */
static void janitor_note(int *rc, struct err *err, const struct err *one)
{
	log_error("%s", one->text);
	if (*rc == 0)
		*rc = err_set(err, one->code, "%s", one->text);
}

/* One that resists must not keep the others. 0, or the first failure. */
static int janitor_clean_all(const struct driver *driver, const struct driver_site *site,
    struct janitor_names *n, uint32_t *cleaned, struct err *err)
{
	struct err one = {0};
	int rc = driver->list(site, janitor_collect, n);

	if (rc < 0)
		return err_sys(err, -rc, "list the boxes of driver %s", driver->name);
	FAULT_POINT("janitor.sweep.listed");
	for (size_t i = 0; i < n->count; i++) {
		if (driver->cleanup(site, n->names[i], 0, 0, &one) == 0)
			++*cleaned;
		else
			janitor_note(&rc, err, &one);
	}
	n->count = 0;
	return rc;
}

int janitor_sweep(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	struct ctl_done *done = &answer->done;
	const struct driver *driver;
	struct janitor_names n = {0};
	int rc = janitor_read_kept(site->prepared, &n);

	(void)body;
	if (rc < 0) {
		(void)err_sys(err, -rc, "read the boxes to keep");
	} else {
		done->missing = janitor_adopt(site, &n);
		FAULT_POINT("janitor.sweep.adopted");
		for (unsigned int i = 0; (driver = driver_at(i)); i++) {
			struct err one = {0};

			if (janitor_clean_all(driver, site, &n, &done->count, &one) < 0)
				janitor_note(&rc, err, &one);
		}
	}
	free(n.names);
	if (n.kept_len)
		(void)munmap((void *)(uintptr_t)n.kept, n.kept_len); /* our own mapping */
	return rc;
}

int janitor_finish(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	const struct driver *driver;
	int rc = 0;

	(void)body;
	(void)answer;
	for (unsigned int i = 0; (driver = driver_at(i)); i++) {
		struct err one = {0};

		if (driver->finish(site, &one) < 0)
			janitor_note(&rc, err, &one);
	}
	return rc;
}
