/*
 * options: the command line of sbxd.
 */
#ifndef SBXD_SUPERVISOR_OPTIONS_H
#define SBXD_SUPERVISOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/log.h"
#include "supervisor/config.h"

#define OPTIONS_OVERRIDES 4
#define OPTIONS_EXIT_USAGE 2 /* exit status when options_parse() fails */

/* Texts point into argv. */
struct options {
	const char *config_path; /* NULL: not given; likewise below */
	const char *runtime_dir;
	const char *state_dir;
	const char *instance; /* never NULL */
	bool check_config;
	bool version;
	bool help;
	enum log_format log_format;
	enum log_level log_level;
	struct config_override overrides[OPTIONS_OVERRIDES];
	size_t override_count;
};

/*
 * Reads the command line. 0, or -EINVAL with *err naming the option, the value and what is allowed;
 * *out is then untouched. The values of overrides are checked by config_load().
 */
int options_parse(int argc, char *const *argv, struct options *out, struct err *err);

/* Appends what --help prints. 0, -ENOBUFS, -ENOMEM. */
int options_usage(struct buf *out) __attribute__((warn_unused_result));

#endif
