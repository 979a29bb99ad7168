/*
 * sbxtop: the pool of sbxd, live. Reads the shared table through a read-only mapping and takes no
 * lock, so that it costs the pool nothing, works when sbxd hangs or is dead, and may die any time.
 */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/top_app.h"
#include "tools/top_batch.h"

enum top_exit {
	TOP_OK = 0,
	TOP_FAILED = 1,
	TOP_USAGE = 2,
};

static int fail(const struct err *err)
{
	(void)fprintf(stderr, "sbxtop: %s\n", err->text);
	return TOP_FAILED;
}

static int put_columns(void)
{
	for (size_t i = 0; i < top_columns_count(); i++) {
		const struct top_column *c = top_column_at(i);

		(void)printf("%-12s %-12s %s%s\n", c->key, c->title, c->help,
		    c->hidden ? " (not shown unless asked for)" : "");
	}
	return fflush(stdout) == 0 ? TOP_OK : TOP_FAILED;
}

/* A file has no locale: names are written as they are, and their width is counted all the same. */
static void take_locale(bool batch)
{
	(void)setlocale(LC_CTYPE, ""); /* one that is not there leaves "C" */
	if (batch && strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
}

static int run_batch(const struct top_options *o, struct top_settings *set, struct err *err)
{
	struct top_session s;
	int rc = top_session_open(&s, o, set, err);

	if (rc == 0)
		rc = top_batch_run(&s, o, err);
	top_session_close(&s);
	return rc;
}

/* What was changed on the screen is kept; a home that cannot be written to is no failure. */
static void save_settings(struct top_settings *set, const char *path)
{
	int rc = set->changed && *path ? top_settings_save(set, path) : 0;

	if (rc < 0)
		(void)fprintf(stderr, "sbxtop: settings in %s: %s\n", path, strerror(-rc));
}

static int run_screen(const struct top_options *o, struct top_settings *set, struct err *err)
{
	struct top_app *a;
	char path[PATH_MAX] = "";
	int rc;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(err, ENOTTY, "this is no terminal; -b prints to anything");
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_sys(err, ENOMEM, "start");
	if (top_settings_path(environ, path, sizeof(path)) == 0 &&
	    (rc = top_settings_load(set, path)) < 0)
		(void)fprintf(stderr, "sbxtop: settings in %s: %s\n", path, strerror(-rc));
	a->options = o;
	a->set = set;
	rc = top_session_open(&a->s, o, set, err);
	/* A table that is not there yet, or is just being made, is waited for. */
	if (rc == 0 || rc == -ENOENT || rc == -EBUSY || rc == -EAGAIN)
		rc = top_app_run(a, err);
	top_session_close(&a->s);
	free(a);
	save_settings(set, path);
	return rc;
}

static int run(struct top_options *o)
{
	struct top_settings set;
	struct err err = {0};
	int rc;

	top_settings_default(&set);
	rc = o->batch ? run_batch(o, &set, &err) : run_screen(o, &set, &err);
	return rc < 0 ? fail(&err) : TOP_OK;
}

int main(int argc, char **argv)
{
	struct top_options o;
	struct err err = {0};

	if (top_options_parse(&o, argc, argv, &err) < 0) {
		(void)fprintf(
		    stderr, "sbxtop: %s\n%s", err.text, "sbxtop --help shows how it is used\n");
		return TOP_USAGE;
	}
	if (o.help || o.version) {
		(void)printf("%s", o.help ? top_options_help() : "sbxtop " SBX_VERSION "\n");
		return fflush(stdout) == 0 ? TOP_OK : TOP_FAILED;
	}
	if (o.layout_given && o.layout.count == 0)
		return put_columns();
	if (!o.socket)
		o.socket = getenv("SBXD_SOCKET");
	if (o.socket && *o.socket == '\0')
		o.socket = NULL;
	(void)signal(SIGPIPE, SIG_IGN); /* fails only for numbers that are no signals */
	take_locale(o.batch);
	return run(&o);
}
