/* cli_run: sbxctl run and exec. When it dies in the middle of run, the service sees its connection
 * close and takes the box back. */
#include <errno.h>
#include <string.h>

#include "lib/fd.h"
#include "tools/cli_command.h"
#include "wire/json.h"

#define ACQUIRE_S 600 /* a queue and a slow boot; the service has its own, shorter limits */
#define RELEASE_S 15

/* An argument "--" between BOX and the command is the user's way to say where it begins. */
static char **skip_dashes(char **argv)
{
	return argv[0] && strcmp(argv[0], "--") == 0 ? argv + 1 : argv;
}

/* From a command line to the body of its request, which is the caller's on CLI_OK. */
static int make_request(struct cli *cli, struct cli_command_line *line, struct buf *body)
{
	int status = cli_command_check(cli, line);

	if (status == CLI_OK)
		status = cli_prepare(cli);
	if (status == CLI_OK)
		status = cli_command_body(cli, line, body);
	return status;
}

struct exec_options {
	struct cli_command_line line;
};

static int exec_run(struct cli *cli, int argc, char **argv)
{
	struct exec_options o = {.line = {.dir = NULL}};
	int at = cli_parse(cli, &o, argc, argv);
	struct buf body;
	int status;

	if (at < 0)
		return -at;
	if (at == argc)
		return cli_usage(cli, "no box is given");
	if (argv[at + 1] && argv[at + 1][0] == '-' && strcmp(argv[at + 1], "--") != 0)
		return cli_usage(cli, "options stand before BOX, the command after --");
	o.line.argv = skip_dashes(argv + at + 1);
	status = make_request(cli, &o.line, &body);
	if (status != CLI_OK)
		return status;
	status = cli_command_run(cli, &o.line, &(struct cli_box){.id = argv[at]}, &body);
	buf_free(&body);
	return status;
}

static const struct cli_option exec_options[] = {CLI_COMMAND_OPTIONS(struct exec_options)};

const struct cli_command cli_exec = {
    .name = "exec",
    .args = "BOX -- CMD...",
    .help = "run a command in a box",
    CLI_OPTIONS(exec_options),
    .command_line = true,
    .words = {CLI_WORD_BOX, CLI_WORD_OTHER},
    .run = exec_run,
};

/* The box is taken on a connection that stays open: if we are killed, the service has it back. */
static int acquire(
    const struct cli *cli, struct httpc *c, const char *user, const char *thread, json_t **box)
{
	struct json_out j;
	struct buf body;
	int status;

	buf_init(&body, 65536);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	json_put_string(&j, "user_id", user);
	json_put_string(&j, "thread_id", thread);
	json_put_bool(&j, "release_on_disconnect", true);
	json_object_end(&j);
	if (json_out_error(&j)) {
		buf_free(&body);
		return cli_usage(cli, "-u or -t is too long");
	}
	status = cli_call_on(c, "acquire", "POST", "/v1/acquire", &body, ACQUIRE_S, box);
	buf_free(&body);
	return status;
}

/* A box without a thread is nobody's afterwards: it is removed instead of parked. */
static int give_back(struct cli *cli, const char *id, const char *lease, bool anonymous)
{
	struct json_out j;
	struct buf body;
	struct buf path;
	int status = CLI_FAILED;

	fd_close(&cli->signal_fd); /* giving back is not to be interrupted */
	buf_init(&body, 4096);
	buf_init(&path, 4096);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	json_put_string(&j, "lease_id", lease);
	json_object_end(&j);
	if (json_out_error(&j) == 0 &&
	    cli_put_box_path(&path, id, anonymous ? "?force=true" : "/release") == 0)
		status = cli_call(cli, "release", anonymous ? "DELETE" : "POST",
		    (const char *)buf_head(&path), anonymous ? NULL : &body, RELEASE_S, NULL);
	buf_free(&body);
	buf_free(&path);
	return status;
}

static int run_in(struct cli *cli, struct httpc *c, const struct cli_command_line *line,
    const char *user, const char *thread, const struct buf *body)
{
	json_t *answer = NULL;
	struct cli_box box;
	int status = acquire(cli, c, user, thread, &answer);
	int sig = cli_caught_signal(cli);
	int released;

	if (status != CLI_OK)
		return sig ? CLI_SIGNAL + sig : status;
	box.id = json_string_value(json_object_get(answer, "box_id"));
	box.generation = (uint64_t)json_integer_value(json_object_get(answer, "generation"));
	if (!box.id) {
		const struct err err = {.code = EBADMSG, .text = "the answer names no box"};

		json_decref(answer);
		return cli_fail("acquire", &err);
	}
	status = cli_command_run(cli, line, &box, body);
	released = give_back(
	    cli, box.id, json_string_value(json_object_get(answer, "lease_id")), thread == NULL);
	json_decref(answer);
	return status == CLI_OK ? released : status;
}

struct run_options {
	const char *user;
	const char *thread;
	struct cli_command_line line;
};

static int run_run(struct cli *cli, int argc, char **argv)
{
	struct run_options o = {.user = NULL};
	int at = cli_parse(cli, &o, argc, argv);
	struct httpc *c = NULL;
	struct buf body;
	struct err err;
	int status;

	if (at < 0)
		return -at;
	o.line.argv = skip_dashes(argv + at);
	status = make_request(cli, &o.line, &body);
	if (status != CLI_OK)
		return status;
	if (cli_connect(cli, &c, &err) < 0)
		status = cli_fail("connect", &err);
	else
		status = run_in(cli, c, &o.line, o.user, o.thread, &body);
	httpc_close(c);
	buf_free(&body);
	return status;
}

#define AT(member) offsetof(struct run_options, member)

static const struct cli_option run_options[] = {
    {"user", 'u', CLI_OPTION_TEXT, AT(user), "USER", "whose box", CLI_WORD_OTHER},
    {"thread", 't', CLI_OPTION_TEXT, AT(thread), "THREAD",
	"of which of the user's threads; without it a new box, removed afterwards", CLI_WORD_OTHER},
    CLI_COMMAND_OPTIONS(struct run_options),
};

const struct cli_command cli_run = {
    .name = "run",
    .args = "-- CMD...",
    .help = "take a box, run a command in it, give it back",
    CLI_OPTIONS(run_options),
    .command_line = true,
    .run = run_run,
};
