/* top_options: the command line of sbxtop. Holds no state. */
#include "tools/top_options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/paths.h"

static const char help[] =
    "usage: sbxtop [OPTION...]\n"
    "Shows the pool of sbxd, live, from its shared table.\n\n"
    "  -b, --batch            print snapshots instead of filling the terminal\n"
    "      --json             print snapshots as JSON, one a line; one, unless -b or -n is given\n"
    "  -n, --count N          end after N snapshots\n"
    "  -d, --delay SECONDS    between snapshots, 0.1 to 3600 (1)\n"
    "  -s, --sort COLUMN      sort by that column; -COLUMN: the other way round\n"
    "  -o, --columns A,B,...  show these columns; --columns help lists them\n"
    "  -f, --filter TEXT      only boxes with TEXT in them; A|B: either; COLUMN:TEXT\n"
    "      --instance NAME    of sbxd (default)\n"
    "      --socket PATH      of sbxd, for release and kill (or SBXD_SOCKET)\n"
    "      --replay [FILE]    what a dead sbxd left, or a copy of it\n"
    "  -C, --no-color         no colours, as with NO_COLOR\n"
    "  -h, --help\n"
    "  -V, --version\n\n"
    "Keys: h in sbxtop shows them.\n";

const char *top_options_help(void)
{
	return help;
}

typedef int option_fn(struct top_options *o, const char *arg, struct err *err);

static int take_count(struct top_options *o, const char *arg, struct err *err)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(arg, &end, 10);
	if (end == arg || *end || errno || n < 1)
		return err_set(err, EINVAL, "-n: '%.60s' is not allowed; give 1 or more", arg);
	o->count = n;
	return 0;
}

static int take_delay(struct top_options *o, const char *arg, struct err *err)
{
	if (top_parse_interval(arg, &o->interval) < 0)
		return err_set(
		    err, EINVAL, "-d: '%.60s' is not allowed; give seconds from 0.1 to 3600", arg);
	return 0;
}

static int take_sort(struct top_options *o, const char *arg, struct err *err)
{
	o->inverted = *arg == '-';
	o->sort = top_column_find(arg + o->inverted);
	if (o->sort < 0)
		return err_set(
		    err, EINVAL, "-s: no column '%.60s'; --columns help lists them", arg);
	return 0;
}

static int take_columns(struct top_options *o, const char *arg, struct err *err)
{
	char bad[32];

	o->layout_given = true;
	if (strcmp(arg, "help") == 0)
		o->layout.count = 0;
	else if (top_layout_parse(arg, &o->layout, bad, sizeof(bad)) < 0)
		return err_set(err, EINVAL,
		    "--columns: '%s' is no column, or there twice; --columns help lists them", bad);
	return 0;
}

static int take_filter(struct top_options *o, const char *arg, struct err *err)
{
	(void)err;
	o->filter = arg;
	return 0;
}

static int take_instance(struct top_options *o, const char *arg, struct err *err)
{
	if (!paths_instance_valid(arg))
		return err_set(err, EINVAL,
		    "--instance: '%.60s' is not allowed; give 1 to 31 of a-z, 0-9 and -, no - "
		    "first",
		    arg);
	o->instance = arg;
	return 0;
}

static int take_socket(struct top_options *o, const char *arg, struct err *err)
{
	(void)err;
	o->socket = arg;
	return 0;
}

static int take_replay(struct top_options *o, const char *arg, struct err *err)
{
	(void)err;
	o->replay = true;
	o->replay_file = arg;
	return 0;
}

#define FLAG(member) NULL, offsetof(struct top_options, member)

static const struct {
	const char *name;
	char letter; /* 0: none */
	int arg;
	option_fn *take; /* NULL: it makes the bool at `flag` true */
	size_t flag;
} options[] = {
    {"batch", 'b', no_argument, FLAG(batch)},
    {"json", 0, no_argument, FLAG(json)},
    {"count", 'n', required_argument, take_count, 0},
    {"delay", 'd', required_argument, take_delay, 0},
    {"sort", 's', required_argument, take_sort, 0},
    {"columns", 'o', required_argument, take_columns, 0},
    {"filter", 'f', required_argument, take_filter, 0},
    {"instance", 0, required_argument, take_instance, 0},
    {"socket", 0, required_argument, take_socket, 0},
    {"replay", 0, optional_argument, take_replay, 0},
    {"no-color", 'C', no_argument, FLAG(no_color)},
    {"help", 'h', no_argument, FLAG(help)},
    {"version", 'V', no_argument, FLAG(version)},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))
#define LONG_BASE 256

static void fill_getopt(struct option longs[OPTIONS + 1], char shorts[2 * OPTIONS + 2])
{
	size_t n = 0;

	shorts[n++] = ':';
	for (size_t i = 0; i < OPTIONS; i++) {
		longs[i] = (struct option){
		    .name = options[i].name, .has_arg = options[i].arg, .val = LONG_BASE + (int)i};
		if (options[i].letter == 0)
			continue;
		shorts[n++] = options[i].letter;
		if (options[i].arg == required_argument)
			shorts[n++] = ':';
	}
	shorts[n] = '\0';
}

/* Index of the option that getopt_long() has found. */
static size_t find_option(int c)
{
	size_t i = 0;

	if (c >= LONG_BASE)
		return (size_t)(c - LONG_BASE);
	while (options[i].letter != c)
		i++;
	return i;
}

static int take(struct top_options *o, size_t i, const char *arg, struct err *err)
{
	if (options[i].take)
		return options[i].take(o, arg, err);
	*(bool *)((char *)o + options[i].flag) = true;
	return 0;
}

static int refuse(int c, char **argv, struct err *err)
{
	if (c == ':')
		return err_set(err, EINVAL, "%.60s needs a value", argv[optind - 1]);
	if (optopt >= LONG_BASE)
		return err_set(
		    err, EINVAL, "--%s takes no value", options[optopt - LONG_BASE].name);
	if (optopt)
		return err_set(err, EINVAL, "unknown option -%c", optopt);
	return err_set(err, EINVAL, "unknown option %.60s", argv[optind - 1]);
}

int top_options_parse(struct top_options *o, int argc, char **argv, struct err *err)
{
	struct option longs[OPTIONS + 1] = {0};
	char shorts[2 * OPTIONS + 2];
	struct top_options got = {.sort = -1};
	int rc = 0;
	int c;

	fill_getopt(longs, shorts);
	opterr = 0;
	optind = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		rc = c == ':' || c == '?' ? refuse(c, argv, err)
					  : take(&got, find_option(c), optarg, err);
	/* "--replay FILE", too: an option whose value may be absent takes only "--replay=FILE". */
	if (rc == 0 && got.replay && !got.replay_file && optind < argc)
		got.replay_file = argv[optind++];
	if (rc == 0 && optind < argc)
		rc = err_set(err, EINVAL, "unexpected argument '%.60s'", argv[optind]);
	if (rc < 0)
		return rc;
	if (got.json && !got.batch && got.count == 0)
		got.count = 1;
	got.batch = got.batch || got.json;
	if (got.batch && got.replay)
		got.count = 1; /* it does not change */
	*o = got;
	return 0;
}
