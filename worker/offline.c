/*
 * offline: drivers' work without sbxd. A process of its own, started by sbxctl; all that it does
 * can be done again after it died half-way.
 */
#include "worker/offline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "drivers/driver.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "wire/json.h"

#define LINE_MAX 4096U
#define OPTIONS_MAX 65536U

/* Each prints its result and returns 0, or -errno with *err. */
typedef int offline_fn(const struct driver *driver, const struct driver_site *site,
    const char *image, struct err *err);

static int probe(
    const struct driver *driver, const struct driver_site *site, const char *image, struct err *err)
{
	struct driver_facts facts = {.isolation = ""};
	struct err why = {0};
	struct json_out j;
	struct buf line;
	int rc = driver->probe(site, &facts, &why);

	buf_init(&line, LINE_MAX);
	json_out_init(&j, &line);
	json_object_begin(&j, NULL);
	json_put_string(&j, "driver", driver->name);
	json_put_string(&j, "isolation", rc == 0 ? facts.isolation : NULL);
	json_put_string(&j, "warning", rc == 0 && facts.warning[0] ? facts.warning : NULL);
	json_put_string(&j, "error", rc < 0 ? why.text : NULL);
	json_put_bool(&j, "only_if_asked", rc == 0 && facts.only_if_asked);
	json_put_string(&j, "why_asked", rc == 0 && facts.why_asked[0] ? facts.why_asked : NULL);
	if (image)
		json_put_bool(&j, "takes", driver->takes(image));
	json_object_end(&j);
	rc = json_out_error(&j);
	if (rc == 0)
		(void)printf("%.*s\n", (int)line.len, buf_head(&line)); /* the end flushes */
	buf_free(&line);
	return rc < 0 ? err_sys(err, -rc, "driver %s", driver->name) : 0;
}

static int put_name(void *ctx, const char *name)
{
	(void)ctx;
	(void)printf("%s\n", name); /* the end flushes */
	return 0;
}

static int list(
    const struct driver *driver, const struct driver_site *site, const char *image, struct err *err)
{
	(void)image;

	int rc = driver->list(site, put_name, NULL);

	return rc < 0 ? err_sys(err, -rc, "list the boxes of driver %s", driver->name) : 0;
}

/* One name at a time: cleaning up changes what is being listed. */
struct first {
	char name[64];
};

static int take_first(void *ctx, const char *name)
{
	struct first *f = ctx;

	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	return 1;
}

static int sweep(
    const struct driver *driver, const struct driver_site *site, const char *image, struct err *err)
{
	struct first f = {.name = ""};
	char last[sizeof(f.name)] = "";
	int rc;

	(void)image;
	while ((rc = driver->list(site, take_first, &f)) > 0) {
		if (!strcmp(f.name, last))
			return err_set(err, EBUSY, "box %s does not go", f.name);
		(void)snprintf(last, sizeof(last), "%s", f.name);
		rc = driver->cleanup(site, f.name, 0, 0, err);
		if (rc < 0)
			return rc;
		(void)put_name(NULL, f.name);
	}
	if (rc < 0)
		return err_sys(err, -rc, "list the boxes of driver %s", driver->name);
	return driver->finish(site, err);
}

static const struct {
	const char *word;
	offline_fn *fn;
} verbs[] = {
    {"probe", probe},
    {"list", list},
    {"sweep", sweep},
};

static offline_fn *find_verb(const char *word)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!strcmp(verbs[i].word, word))
			return verbs[i].fn;
	}
	return NULL;
}

/* Two janitors of one runtime directory take turns, and so do we: the lock is held for life. */
static int take_turn(const struct driver_site *site, struct err *err)
{
	int lock = open(site->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock < 0)
		return err_sys(err, errno, "open %s", site->runtime_dir);
	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	(void)err_set(err, EBUSY, "%s: the janitor of an sbxd is at work there", site->runtime_dir);
	fd_close(&lock);
	return -EBUSY;
}

/* "KEY=VALUE" words as drivers take them. 0 or -errno. */
static int take_options(int argc, char **argv, struct buf *out)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < argc; i++)
		rc = strchr(argv[i], '=') ? buf_append(out, argv[i], strlen(argv[i]) + 1) : -EINVAL;
	return rc;
}

int offline_main(int argc, char **argv)
{
	offline_fn *fn = argc >= 6 ? find_verb(argv[1]) : NULL;
	const char *image = argc > 6 ? argv[6] : NULL;
	struct buf options;
	struct driver_site site = {.prepared = -1};
	const struct driver *driver;
	struct err err = {0};
	int failed = 0;
	char *end;

	if (!fn || (argc > 6 && fn != probe))
		return -1;
	site.instance = argv[2];
	site.runtime_dir = argv[3];
	site.state_dir = argv[4];
	site.uid_base = (uint32_t)strtoul(argv[5], &end, 10);
	if (argv[5][0] < '0' || argv[5][0] > '9' || *end)
		return -1;
	buf_init(&options, OPTIONS_MAX);
	if (argc > 7 && take_options(argc - 7, argv + 7, &options) < 0) {
		buf_free(&options);
		return -1;
	}
	site.options = (struct driver_options){(const char *)buf_head(&options), options.len};
	if (take_turn(&site, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		buf_free(&options);
		return 1;
	}
	for (unsigned int n = 0; (driver = driver_at(n)); n++) {
		if (fn(driver, &site, image, &err) == 0)
			continue;
		(void)fprintf(stderr, "%s\n", err.text);
		failed = 1;
	}
	buf_free(&options);
	return fflush(stdout) == 0 ? failed : 1;
}
