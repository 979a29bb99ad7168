/* shell_run: a channel's command, as an execution of BoxLite's. sbx-boxlite. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/shell.h"

/* What the callbacks of one execution know. The last of them, on_exit, frees it. */
struct run_ctx {
	struct inbox *inbox;
	uint64_t ticket;
};

/* ---- drain thread ---- */

static void put_output(struct run_ctx *x, const uint8_t *bytes, size_t n, int stream)
{
	struct note *note = n ? note_new(NOTE_OUTPUT, x->ticket, bytes, n) : NULL;

	if (note)
		note->code = stream;
	if (n)
		inbox_put(x->inbox, note);
}

static void on_output(const uint8_t *bytes, size_t n, void *ctx)
{
	put_output(ctx, bytes, n, AGENT_STDOUT);
}

static void on_errors(const uint8_t *bytes, size_t n, void *ctx)
{
	put_output(ctx, bytes, n, AGENT_STDERR);
}

static void on_exit_code(int code, void *ctx)
{
	struct run_ctx *x = ctx;
	struct note *n = note_new(NOTE_EXIT, x->ticket, NULL, 0);

	if (n)
		n->code = code;
	inbox_put(x->inbox, n);
	free(x);
}

/* ---- call thread ---- */

/* "K=V" into K and V, each a string of its own in `copy`. */
static char **env_pairs(char *const *env, size_t count, char **copy)
{
	size_t size = 0;
	char **pairs = calloc(2 * count + 1, sizeof(*pairs));
	char *at;

	for (size_t i = 0; i < count; i++)
		size += strlen(env[i]) + 1;
	*copy = at = malloc(size + 1);
	if (!pairs || !at)
		return pairs;
	for (size_t i = 0; i < count; i++) {
		char *eq;

		pairs[2 * i] = at;
		memcpy(at, env[i], strlen(env[i]) + 1);
		eq = strchr(at, '=');
		at += strlen(at) + 1;
		if (eq)
			*eq++ = '\0';
		pairs[2 * i + 1] = eq ? eq : at - 1;
	}
	return pairs;
}

static int run_command(struct shell_chan *c, struct blx_error *error)
{
	static char *shell_line[] = {"/bin/sh", "-c", NULL, NULL};
	const struct agent_exec_request *r = c->exec;
	bool line = r && (r->head.flags & AGENT_EXEC_SHELL);
	char *script[SHELL_ARGS + 5] = {"/bin/sh", "-c", NULL, "sh"};
	char *lines[4];
	char **argv = script;
	char *copy = NULL;
	char **pairs = r ? env_pairs(r->envp, r->head.envc, &copy) : NULL;
	struct blx_command cmd = {.user = "0:0", .workdir = "/"};
	int code;

	if (line) {
		memcpy(lines, shell_line, sizeof(lines));
		lines[2] = r->argv[0];
		argv = lines;
	} else if (r) {
		argv = r->argv;
	} else {
		script[2] = (char *)(uintptr_t)c->script->text; /* only read */
		memcpy(script + 4, c->args, sizeof(c->args));
	}
	cmd.command = argv[0];
	cmd.args = (const char *const *)(argv + 1);
	while (argv[cmd.argc + 1])
		cmd.argc++;
	if (r) {
		cmd.env_pairs = r->head.envc ? (const char *const *)pairs : NULL;
		cmd.env_count = pairs ? (int)(2 * r->head.envc) : 0;
		cmd.workdir = *r->cwd ? r->cwd : c->s->p->workspace ? SHELL_WORKSPACE : "/";
		cmd.user = *r->user ? r->user : "0:0";
		cmd.tty = (r->head.flags & AGENT_EXEC_TTY) != 0;
	}
	code = c->s->p->api.exec(c->s->p->box, &cmd, &c->made, error);
	free(pairs);
	free(copy);
	return code;
}

static int run_register(struct shell_chan *c, struct blx_error *error)
{
	const struct blx_api *api = &c->s->p->api;
	struct run_ctx *x = malloc(sizeof(*x));
	int code;

	if (!x)
		return 1; /* Internal */
	*x = (struct run_ctx){.inbox = c->s->p->inbox, .ticket = c->ticket};
	code = api->on_stdout(c->made, on_output, x, error);
	if (code == BLX_OK && api->on_stderr)
		code = api->on_stderr(c->made, on_errors, x, error);
	if (code == BLX_OK)
		code = api->on_exit(c->made, on_exit_code, x, error);
	if (code != BLX_OK)
		c->why[0] = '\0'; /* x stays: a callback may still come */
	return code;
}

static void start_run(struct call *call)
{
	struct shell_chan *c = LOOP_OWNER(call, struct shell_chan, start);
	struct blx_error error = {0};

	c->code = run_command(c, &error);
	if (c->code == BLX_OK)
		c->code = run_register(c, &error);
	blx_error_text(c->code, error.message, c->why, sizeof(c->why));
	if (error.message)
		c->s->p->api.error_free(&error);
}

static void write_run(struct call *call)
{
	struct shell_chan *c = LOOP_OWNER(call, struct shell_chan, write);
	const struct blx_api *api = &c->s->p->api;
	struct blx_error error = {0};

	/* That nobody reads it is no error of the command's: it may have ended. */
	if (c->chunk.len)
		(void)api->stdin_write(c->x, buf_head(&c->chunk), c->chunk.len, &error);
	else
		(void)api->stdin_close(c->x, &error);
	if (error.message)
		api->error_free(&error);
}

static void drop_run(struct call *call)
{
	struct shell_chan *c = LOOP_OWNER(call, struct shell_chan, drop);

	c->s->p->api.exec_free(c->x);
}

/* ---- the loop ---- */

static void run_started(struct call *call)
{
	struct shell_chan *c = LOOP_OWNER(call, struct shell_chan, start);
	const uint32_t nobody_knows = 0;

	c->starting = false;
	c->x = c->made;
	if (c->code != BLX_OK && !c->ended) {
		shell_chan_fail(c, AGENT_E_EXEC, c->why);
		return;
	}
	if (c->closing || c->ended) {
		shell_run_drop(c);
		return;
	}
	if (c->type == AGENT_EXEC)
		shell_send(c->s, AGENT_STARTED, 0, c->id, &nobody_knows, sizeof(nobody_knows));
	shell_run_input(c);
}

void shell_run_start(struct shell_chan *c)
{
	c->ticket = ++c->s->tickets;
	c->start.fn = start_run;
	c->start.then = run_started;
	c->starting = true;
	caller_post(c->s->p->caller, &c->start);
}

static void run_written(struct call *call)
{
	struct shell_chan *c = LOOP_OWNER(call, struct shell_chan, write);
	uint32_t n = (uint32_t)c->chunk.len;

	c->writing = false;
	buf_consume(&c->input, n);
	c->bytes += c->script ? n : 0;
	if (n && !c->ended)
		shell_send(c->s, AGENT_CREDIT, AGENT_STDIN, c->id, &n, sizeof(n));
	if (c->closing || c->ended)
		shell_run_drop(c);
	else
		shell_run_input(c);
}

static bool takes_input(const struct shell_chan *c)
{
	return c->script ? c->script->input : !(c->exec->head.flags & AGENT_EXEC_NO_STDIN);
}

void shell_run_input(struct shell_chan *c)
{
	size_t n = c->input.len < AGENT_PAYLOAD_MAX ? c->input.len : AGENT_PAYLOAD_MAX;

	if (!c->x || c->writing || c->dropping || c->input_ended)
		return;
	if (n == 0 && takes_input(c) && !c->input_end)
		return;
	buf_clear(&c->chunk);
	if (n && buf_append(&c->chunk, buf_head(&c->input), n) < 0)
		return; /* no memory: with the next frame, then */
	c->input_ended = n == 0;
	c->write.fn = write_run;
	c->write.then = run_written;
	c->writing = true;
	caller_post(c->s->p->caller, &c->write);
}

static void run_dropped(struct call *call)
{
	struct shell_chan *c = LOOP_OWNER(call, struct shell_chan, drop);

	c->dropping = false;
	c->x = NULL;
	c->exited = true;
	if (c->ended)
		shell_chan_settle(c);
	else
		shell_chan_pump(c); /* says the end, and forgets it */
}

void shell_run_drop(struct shell_chan *c)
{
	if (!c->x || c->writing || c->dropping)
		return; /* when that is done, then */
	c->drop.fn = drop_run;
	c->drop.then = run_dropped;
	c->dropping = true;
	caller_post(c->s->p->caller, &c->drop);
}

/* ---- signals and sizes: nobody waits for their answers ---- */

struct poke {
	struct call call; /* first */
	struct program *p;
	struct blx_exec *x;
	bool resize;
	int a;
	int b;
};

static void poke_run(struct call *call)
{
	struct poke *k = (struct poke *)(void *)call;
	struct ask a = {.p = k->p};
	void *ticket = ask_ticket(&a);
	struct blx_error error = {0};
	int code;

	if (!ticket)
		return;
	code = k->resize ? k->p->api.exec_resize(k->x, k->a, k->b, ask_on_done, ticket, &error)
			 : k->p->api.exec_signal(k->x, k->a, ask_on_done, ticket, &error);
	if (code != BLX_OK)
		free(ticket);
	if (error.message)
		k->p->api.error_free(&error);
}

static void poke_done(struct call *call)
{
	free(call); /* the poke begins with it */
}

static void poke(struct shell_chan *c, bool resize, int a, int b)
{
	struct poke *k;

	if (!c->x || c->starting || c->dropping)
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	*k = (struct poke){
	    .call = {.fn = poke_run, .then = poke_done},
	    .p = c->s->p,
	    .x = c->x,
	    .resize = resize,
	    .a = a,
	    .b = b,
	};
	caller_post(c->s->p->caller, &k->call);
}

void shell_run_signal(struct shell_chan *c, int sig)
{
	if (c->s->p->api.exec_signal)
		poke(c, false, sig, 0);
}

void shell_run_resize(struct shell_chan *c, uint16_t cols, uint16_t rows)
{
	if (c->s->p->api.exec_resize)
		poke(c, true, rows, cols);
}
