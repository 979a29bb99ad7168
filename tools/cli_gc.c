/* cli_gc: sbxctl gc: removes what dead instances left. If it dies in between, it is run again. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli.h"
#include "tools/cli_grid.h"
#include "tools/cli_view.h"
#include "tools/gc.h"
#include "tools/host_program.h"

#define REPORT_MAX (1U << 20)
#define REMOVE_NS (300 * NS_PER_S) /* that user may stop it, or have it wait */

struct gc_options {
	bool dry;
	const char *runtime_dir;
	const char *state_dir;
};

/* ---- results ---- */

static void put_result(void *ctx, const char *kind, const char *what, const char *failed)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "kind", cli_text_json(kind)); /* o may be NULL, too */
	(void)json_object_set_new(o, "what", cli_text_json(what));
	(void)json_object_set_new(o, "error", failed ? cli_text_json(failed) : json_null());
	(void)json_array_append_new(ctx, o);
}

static void put_error(json_t *results, const struct gc_instance *i, const char *text)
{
	put_result(results, "instance", i->name, text);
}

struct removal_as {
	struct gc_instance *i;
	bool dry;
};

/* In a process that becomes the instance's user: its results as one line for us. */
static int remove_and_tell(void *ctx, int fd)
{
	const struct removal_as *r = ctx;
	json_t *results;
	struct err err;
	int rc = host_program_become(r->i->uid);

	if (rc < 0)
		return rc;
	results = json_array();
	if (gc_remove(r->i, r->dry, put_result, results, &err) < 0)
		put_error(results, r->i, err.text);
	rc = json_dumpfd(results, fd, JSON_COMPACT);
	json_decref(results);
	return rc;
}

/* Of what it leaves root's rights are no part: what another user has put there is that one's word.
 */
static json_t *remove_as(struct gc_instance *i, bool dry)
{
	struct removal_as r = {i, dry};
	json_t *results = NULL;
	struct buf text;

	buf_init(&text, REPORT_MAX);
	if (host_program_call(remove_and_tell, &r, clock_now_ns() + REMOVE_NS, &text) == 0)
		results = json_loadb((const char *)buf_head(&text), text.len, 0, NULL);
	buf_free(&text);
	return results;
}

static json_t *remove_one(struct gc_instance *i, bool dry)
{
	json_t *results;
	struct err err;

	if (i->uid != geteuid()) {
		results = remove_as(i, dry);
		if (json_is_array(results))
			return results;
		json_decref(results);
		results = json_array();
		put_error(results, i, "the process that was to do it failed");
		return results;
	}
	results = json_array();
	if (gc_remove(i, dry, put_result, results, &err) < 0)
		put_error(results, i, err.text);
	return results;
}

static json_t *collect_one(struct gc_instance *i, bool dry)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "instance", cli_text_json(i->name)); /* o may be NULL, too */
	(void)json_object_set_new(o, "uid", json_integer(i->uid));
	(void)json_object_set_new(o, "verdict", json_string(gc_verdict_name(i->verdict)));
	(void)json_object_set_new(o, "why", cli_text_json(i->why));
	(void)json_object_set_new(
	    o, "removed", i->verdict == GC_DEAD ? remove_one(i, dry) : json_array());
	return o;
}

/* ---- what people see ---- */

static void put_instance(const struct cli_screen *s, const json_t *o, bool dry)
{
	static const char dead[] = "dead";
	bool is_dead = !strcmp(cli_text_at(o, "verdict"), dead);
	json_t *r;
	size_t n;

	cli_put_styled(stdout, s, CLI_HEADING, cli_text_at(o, "instance"));
	(void)printf(" (uid %lld): ", cli_int_at(o, "uid"));
	cli_put_styled(stdout, s, is_dead ? CLI_WARN : CLI_GOOD, cli_text_at(o, "verdict"));
	(void)printf(": ");
	cli_put_text(stdout, cli_text_at(o, "why"));
	(void)fputc('\n', stdout);
	json_array_foreach(cli_walk(json_object_get(o, "removed")), n, r)
	{
		const char *error = json_string_value(json_object_get(r, "error"));
		const char *done = dry ? "would remove" : "removed";

		(void)printf("  ");
		cli_put_styled(stdout, s, error ? CLI_BAD : CLI_PLAIN, error ? "stays" : done);
		(void)printf(" %s ", cli_text_at(r, "kind"));
		cli_put_text(stdout, cli_text_at(r, "what"));
		if (error) {
			(void)printf(": ");
			cli_put_text(stdout, error);
		}
		(void)fputc('\n', stdout);
	}
}

static bool has_failed(const json_t *instances)
{
	json_t *o;
	json_t *r;
	size_t i;
	size_t n;

	json_array_foreach(cli_walk(instances), i, o)
	{
		json_array_foreach(cli_walk(json_object_get(o, "removed")), n, r)
		{
			if (json_is_string(json_object_get(r, "error")))
				return true;
		}
	}
	return false;
}

static void put_all(const struct cli *cli, const json_t *instances, bool dry)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	json_t *all;
	json_t *o;
	size_t i;

	if (cli->json) {
		all = json_pack("{s:b, s:O}", "dry_run", dry, "instances", instances);
		(void)cli_put_json(all); /* cli_finish() looks for errors */
		json_decref(all);
		return;
	}
	json_array_foreach(cli_walk(instances), i, o)
	{
		put_instance(&screen, o, dry);
	}
	if (json_array_size(instances) == 0)
		(void)printf("nothing of sbxd is here\n");
}

static int gc_run(struct cli *cli, int argc, char **argv)
{
	struct gc_options o = {.dry = false};
	int status = cli_parse_all(cli, &o, argc, argv);
	struct gc_query q = {.uid = geteuid(), .env = cli->env};
	const struct err no_memory = {.code = ENOMEM, .text = "no memory"};
	struct gc_list list;
	json_t *instances;

	if (status != CLI_OK)
		return status;
	if ((o.runtime_dir || o.state_dir) && !cli->instance)
		return cli_usage(cli, "of which instance the directories are, --instance must say");
	q.instance = cli->instance;
	q.runtime_dir = o.runtime_dir;
	q.state_dir = o.state_dir;
	if (gc_find(&q, &list) < 0)
		return cli_fail("gc", &no_memory);
	instances = json_array();
	for (size_t i = 0; i < list.count; i++)
		(void)json_array_append_new(instances, collect_one(&list.items[i], o.dry));
	gc_free(&list);
	put_all(cli, instances, o.dry);
	status = has_failed(instances) ? CLI_FAILED : CLI_OK;
	json_decref(instances);
	return cli_finish(status);
}

#define AT(member) offsetof(struct gc_options, member)

static const struct cli_option gc_options[] = {
    {"dry-run", 'n', CLI_OPTION_FLAG, AT(dry), NULL, "only tell what would be removed",
	CLI_WORD_OTHER},
    {"runtime-dir", 0, CLI_OPTION_TEXT, AT(runtime_dir), "DIR",
	"where the instance had its socket, if not at the usual place", CLI_WORD_FILE},
    {"state-dir", 0, CLI_OPTION_TEXT, AT(state_dir), "DIR",
	"where it had what outlives the host's restart, likewise", CLI_WORD_FILE},
};

const struct cli_command cli_gc = {
    .name = "gc",
    .args = "",
    .help = "remove what dead instances of sbxd left on this host",
    CLI_OPTIONS(gc_options),
    .run = gc_run,
};
