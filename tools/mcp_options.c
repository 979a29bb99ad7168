/* mcp_options: the command line of sbx-mcp, and its environment. Holds no state. */
#include "tools/mcp_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/env.h"

#define OUTPUT_MIN 1000
#define OUTPUT_MAX 1000000

static const char help[] =
    "usage: sbx-mcp [OPTION...]\n"
    "Serves the Model Context Protocol on stdin and stdout: tools that run in a sandbox of "
    "sbxd.\n\n"
    "  --user NAME            whose sandbox it is (or SBX_MCP_USER)\n"
    "  --thread NAME          which of them (or SBX_MCP_THREAD); without one the client's first\n"
    "                         root, or a sandbox for this session alone\n"
    "  --image REF            another image than the configured one\n"
    "  --host-dir DIR         upload and download may use this directory of the host; may be "
    "given\n"
    "                         again\n"
    "  --command-timeout S    of a command that brings none (120)\n"
    "  --max-output BYTES     of one result, 1000 to 1000000 (30000)\n"
    "  --wait S               for room for the sandbox (30)\n"
    "  --answer-timeout S     for an answer of sbxd (60)\n"
    "  --socket PATH          of sbxd (or SBXD_SOCKET)\n"
    "  --instance NAME        of sbxd (default)\n"
    "  --help\n"
    "  --version\n";

const char *mcp_options_help(void)
{
	return help;
}

typedef int option_fn(const char *name, const char *arg, void *out, struct err *err);

static int take_text(const char *name, const char *arg, void *out, struct err *err)
{
	size_t n = strlen(arg);

	if (n == 0 || utf8_valid_prefix((const uint8_t *)arg, n, NULL) != n)
		return err_set(err, EINVAL, "%s: the value is empty or no UTF-8 text", name);
	*(const char **)out = arg;
	return 0;
}

static int take_number(
    const char *name, const char *arg, double min, double max, double *out, struct err *err)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(arg, &end);
	if (end == arg || *end || errno || !isfinite(value) || value < min || value > max)
		return err_set(err, EINVAL,
		    "%s: '%.60s' is not allowed; give a number from %g to %.0f", name, arg, min,
		    max);
	*out = value;
	return 0;
}

static int take_seconds(const char *name, const char *arg, void *out, struct err *err)
{
	return take_number(name, arg, 0.1, 86400, out, err);
}

static int take_bytes(const char *name, const char *arg, void *out, struct err *err)
{
	double value = 0;
	int rc = take_number(name, arg, OUTPUT_MIN, OUTPUT_MAX, &value, err);

	if (rc == 0)
		*(size_t *)out = (size_t)value;
	return rc;
}

static int take_instance(const char *name, const char *arg, void *out, struct err *err)
{
	if (!paths_instance_valid(arg))
		return err_set(err, EINVAL,
		    "%s: '%.60s' is not allowed; give 1 to 31 of a-z, 0-9 and -, no - first", name,
		    arg);
	*(const char **)out = arg;
	return 0;
}

static int take_host_dir(const char *name, const char *arg, void *out, struct err *err)
{
	struct mcp_options *o = out;
	size_t n = strlen(arg);

	if (arg[0] != '/' || utf8_valid_prefix((const uint8_t *)arg, n, NULL) != n)
		return err_set(err, EINVAL, "%s: '%.100s' is no absolute path", name, arg);
	if (o->host_dir_count == MCP_HOST_DIRS_MAX)
		return err_set(
		    err, EINVAL, "%s: given more than %d times", name, MCP_HOST_DIRS_MAX);
	o->host_dirs[o->host_dir_count++] = arg;
	return 0;
}

static const struct {
	const char *name;
	const char *variable; /* of the environment; NULL */
	option_fn *take;
	size_t at;
} options[] = {
    {"--user", "SBX_MCP_USER", take_text, offsetof(struct mcp_options, user)},
    {"--thread", "SBX_MCP_THREAD", take_text, offsetof(struct mcp_options, thread)},
    {"--image", NULL, take_text, offsetof(struct mcp_options, image)},
    {"--host-dir", NULL, take_host_dir, 0},
    {"--command-timeout", NULL, take_seconds, offsetof(struct mcp_options, command_s)},
    {"--max-output", NULL, take_bytes, offsetof(struct mcp_options, output_bytes)},
    {"--wait", NULL, take_seconds, offsetof(struct mcp_options, wait_s)},
    {"--answer-timeout", NULL, take_seconds, offsetof(struct mcp_options, answer_s)},
    {"--socket", "SBXD_SOCKET", take_text, offsetof(struct mcp_options, where.socket)},
    {"--instance", NULL, take_instance, offsetof(struct mcp_options, where.instance)},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static int read_environment(struct mcp_options *o, char *const *env, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < OPTIONS && rc == 0; i++) {
		const char *name = options[i].variable;
		const char *value = name ? env_get(env, name, strlen(name)) : NULL;

		if (value && *value)
			rc = options[i].take(name, value, (char *)o + options[i].at, err);
	}
	return rc;
}

/* "--name value" and "--name=value". The index after it, or -errno with *err. */
static int read_option(struct mcp_options *o, int at, int argc, char **argv, struct err *err)
{
	const char *equals = strchr(argv[at], '=');
	size_t len = equals ? (size_t)(equals - argv[at]) : strlen(argv[at]);
	size_t i = 0;
	int rc;

	while (i < OPTIONS &&
	       (strlen(options[i].name) != len || strncmp(options[i].name, argv[at], len) != 0))
		i++;
	if (i == OPTIONS)
		return err_set(err, EINVAL, "unknown option or argument '%.100s'", argv[at]);
	if (!equals && at + 1 == argc)
		return err_set(err, EINVAL, "%s needs a value", options[i].name);
	rc = options[i].take(
	    options[i].name, equals ? equals + 1 : argv[at + 1], (char *)o + options[i].at, err);
	if (rc < 0)
		return rc;
	return equals ? at + 1 : at + 2;
}

enum mcp_options_result mcp_options_read(
    struct mcp_options *o, int argc, char **argv, char *const *env, struct err *err)
{
	*o = (struct mcp_options){.where.env = env,
	    .wait_s = 30,
	    .answer_s = 60,
	    .command_s = 120,
	    .output_bytes = 30000};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0)
			return MCP_OPTIONS_HELP;
		if (strcmp(argv[i], "--version") == 0)
			return MCP_OPTIONS_VERSION;
	}
	if (read_environment(o, env, err) < 0)
		return MCP_OPTIONS_BAD;
	for (int at = 1; at < argc;) {
		at = read_option(o, at, argc, argv, err);
		if (at < 0)
			return MCP_OPTIONS_BAD;
	}
	return MCP_OPTIONS_RUN;
}
