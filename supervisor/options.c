/* options: the command line of sbxd. sbxd, at start; holds no state. */
#include "supervisor/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "lib/paths.h"

enum { OPTION_FIRST = 256 }; /* past every character: there are no short options */

static int set_config(const char *arg, struct options *o);
static int set_runtime_dir(const char *arg, struct options *o);
static int set_state_dir(const char *arg, struct options *o);
static int set_instance(const char *arg, struct options *o);
static int set_log_format(const char *arg, struct options *o);
static int set_log_level(const char *arg, struct options *o);
static int set_check_config(const char *arg, struct options *o);
static int set_version(const char *arg, struct options *o);
static int set_help(const char *arg, struct options *o);

/* One option: either it sets something here, or it is the override of a configuration key. */
static const struct option_row {
	const char *flag; /* with its dashes */
	const char *arg;  /* NULL: takes none */
	const char *key;
	int (*set)(const char *arg, struct options *o);
	const char *help;
} rows[] = {
    {"--config", "FILE", NULL, set_config, "configuration (SBXD_CONFIG)"},
    {"--runtime-dir", "DIR", NULL, set_runtime_dir, "socket and files of this run"},
    {"--state-dir", "DIR", NULL, set_state_dir, "what outlives the host's restart"},
    {"--instance", "NAME", NULL, set_instance, "1 to 31 of a-z, 0-9 and -, no - first (default)"},
    {"--driver", "NAME", "driver", NULL, "auto, boxlite, qemu, namespace"},
    {"--image", "REF", "image", NULL, "what boxes are made of"},
    {"--listen-tcp", "ADDR:PORT", "listen_tcp", NULL, "serve TCP too, with --token-file"},
    {"--token-file", "FILE", "token_file", NULL, "bearer token of TCP clients"},
    {"--log-format", "FORMAT", NULL, set_log_format, "text or json (text)"},
    {"--log-level", "LEVEL", NULL, set_log_level, "debug, info, warn or error (info)"},
    {"--check-config", NULL, NULL, set_check_config, "print the effective settings and exit"},
    {"--version", NULL, NULL, set_version, "print the version and exit"},
    {"--help", NULL, NULL, set_help, "print this and exit"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const log_formats[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};
static const char *const log_levels[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error", NULL};

static int find_name(const char *const *names, const char *arg)
{
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], arg) == 0)
			return i;
	}
	return -EINVAL;
}

static int set_config(const char *arg, struct options *o)
{
	o->config_path = arg;
	return *arg ? 0 : -EINVAL;
}

static int set_runtime_dir(const char *arg, struct options *o)
{
	o->runtime_dir = arg;
	return *arg ? 0 : -EINVAL;
}

static int set_state_dir(const char *arg, struct options *o)
{
	o->state_dir = arg;
	return *arg ? 0 : -EINVAL;
}

static int set_instance(const char *arg, struct options *o)
{
	o->instance = arg;
	return paths_instance_valid(arg) ? 0 : -EINVAL;
}

static int set_log_format(const char *arg, struct options *o)
{
	int i = find_name(log_formats, arg);

	if (i < 0)
		return i;
	o->log_format = (enum log_format)i;
	return 0;
}

static int set_log_level(const char *arg, struct options *o)
{
	int i = find_name(log_levels, arg);

	if (i < 0)
		return i;
	o->log_level = (enum log_level)i;
	return 0;
}

static int set_check_config(const char *arg, struct options *o)
{
	(void)arg;
	o->check_config = true;
	return 0;
}

static int set_version(const char *arg, struct options *o)
{
	(void)arg;
	o->version = true;
	return 0;
}

static int set_help(const char *arg, struct options *o)
{
	(void)arg;
	o->help = true;
	return 0;
}

/* The last of several counts, as everywhere on a command line. */
static void set_override(const struct option_row *row, const char *arg, struct options *o)
{
	size_t i = 0;

	while (i < o->override_count && strcmp(o->overrides[i].key, row->key) != 0)
		i++;
	o->overrides[i] =
	    (struct config_override){.flag = row->flag, .key = row->key, .value = arg};
	if (i == o->override_count)
		o->override_count++;
}

static int set_row(
    const struct option_row *row, const char *arg, struct options *o, struct err *err)
{
	if (row->key)
		set_override(row, arg, o);
	else if (row->set(arg, o) < 0)
		return err_set(err, EINVAL, "%s: '%.60s' is not allowed; give %s: %s", row->flag,
		    arg, row->arg, row->help);
	return 0;
}

int options_parse(int argc, char *const *argv, struct options *out, struct err *err)
{
	struct options o = {.instance = PATHS_INSTANCE_DEFAULT, .log_level = LOG_INFO};
	struct option longs[ROWS + 1] = {0};
	int rc = 0;
	int c;

	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){.name = rows[i].flag + 2,
		    .has_arg = rows[i].arg ? required_argument : no_argument,
		    .val = OPTION_FIRST + (int)i};
	opterr = 0;
	optind = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
		if (c == ':')
			rc = err_set(err, EINVAL, "%.60s needs a value", argv[optind - 1]);
		else if (c == '?' && optopt >= OPTION_FIRST)
			rc = err_set(
			    err, EINVAL, "%s takes no value", rows[optopt - OPTION_FIRST].flag);
		else if (c < OPTION_FIRST)
			rc = err_set(err, EINVAL, "unknown option %.60s", argv[optind - 1]);
		else
			rc = set_row(&rows[c - OPTION_FIRST], optarg, &o, err);
	}
	if (rc == 0 && optind < argc)
		rc = err_set(err, EINVAL, "unexpected argument '%.60s'", argv[optind]);
	if (rc == 0)
		*out = o;
	return rc;
}

int options_usage(struct buf *out)
{
	int rc = buf_puts(out, "usage: sbxd [OPTION...]\n"
			       "Runs in the foreground and logs to stderr.\n\n");

	for (size_t i = 0; i < ROWS && rc == 0; i++) {
		char left[40];

		(void)snprintf(left, sizeof(left), "%s%s%s", rows[i].flag, rows[i].arg ? " " : "",
		    rows[i].arg ? rows[i].arg : "");
		rc = buf_printf(out, "  %-24s %s\n", left, rows[i].help);
	}
	return rc;
}
