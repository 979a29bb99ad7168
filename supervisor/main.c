/*
 * main: sbxd. Reads its options and its configuration, then serves (service.c). One thread around
 * one loop.
 *
 * If it dies: workers and their boxes live on and serve the connections they have; the next sbxd
 * finds the shared segment and everything it names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/fault.h"
#include "lib/log.h"
#include "supervisor/activation.h"
#include "supervisor/options.h"
#include "supervisor/rundir.h"
#include "supervisor/service.h"

#define PRINT_MAX (1U << 20)

extern char **environ;

static int usage_error(const struct err *err)
{
	char text[4 * sizeof(err->text)]; /* it may repeat what stands in a file */

	log_escape(err->text, text, sizeof(text));
	(void)fprintf(stderr, "sbxd: %s\nTry 'sbxd --help'.\n", text);
	return OPTIONS_EXIT_USAGE;
}

/* Prints what was written into `out` with result rc; the exit status. */
static int print(struct buf *out, int rc)
{
	if (rc == 0)
		rc = fwrite(buf_head(out), 1, out->len, stdout) == out->len ? 0 : -EIO;
	buf_free(out);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct options o;
	struct paths paths;
	struct config config;
	struct err err = {0};
	struct config_sources sources = {.env = environ};
	struct buf out;
	int listening = -1;
	int status;

	FAULT_ROLE("sbxd");
	buf_init(&out, PRINT_MAX);
	if (options_parse(argc, argv, &o, &err) < 0)
		return usage_error(&err);
	if (o.help)
		return print(&out, options_usage(&out));
	if (o.version)
		return printf("sbxd %s\n", SBX_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	log_init("sbxd", o.log_format, o.log_level);
	if (paths_resolve(
		&(struct paths_query){
		    .uid = geteuid(),
		    .instance = o.instance,
		    .runtime_dir = o.runtime_dir,
		    .state_dir = o.state_dir,
		    .env = environ,
		},
		&paths, &err) < 0)
		return usage_error(&err);
	sources.path = o.config_path;
	sources.default_path = paths.config_file;
	sources.overrides = o.overrides;
	sources.override_count = o.override_count;
	if (config_load(&sources, &config, &err) < 0)
		return usage_error(&err);
	if (o.check_config) {
		status = print(&out, config_print(&config, &out));
		config_free(&config);
		return status;
	}
	if (activation_take(paths.socket, &listening, &err) < 0) {
		config_free(&config);
		return usage_error(&err);
	}
	if (rundir_create(&paths, geteuid(), &err) < 0) {
		log_error("%s", err.text);
		config_free(&config);
		return EXIT_FAILURE;
	}
	status = service_run(&o, &paths, &sources, &config, listening);
	rundir_tidy(&paths);
	return status;
}
