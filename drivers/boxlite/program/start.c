/*
 * start: from a name to a box whose agent has said HELLO. sbx-boxlite; the loop.
 *
 * A box that is there already under that name is another's leftover: it is removed, never used,
 * unless it is what was asked for (take.c). If we die in between, what is there of the box is
 * removed by its name.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/boxlite/program/program.h"
#include "drivers/boxlite/program/shell.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"

#define GUEST_PATH "/.sbx-guest" /* in the box; there is always a root directory */
#define HELPER_PATH "/.sbx-files"
#define MIB_PER_GIB 1024U
#define MILLI 1000U
#define CPUS_MAX 255U /* BoxLite keeps a byte */

/* ---- call thread ---- */

/* Keeps an image whose own command ends at once, as a shell without input, from ending the box. */
static void options_keep_alive(const struct blx_api *api, struct blx_options *o)
{
	static const char *const entry[] = {"/bin/sh"};
	static const char *const cmd[] = {
	    "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"};

	if (!api->options_set_entrypoint || !api->options_set_cmd)
		return;
	api->options_set_entrypoint(o, entry, 1);
	api->options_set_cmd(o, cmd, 2);
}

static uint32_t whole(uint32_t n, uint32_t unit)
{
	return n / unit + (n % unit != 0);
}

static void options_fill(struct program *p, const struct eng_start *s, struct blx_options *o)
{
	const struct blx_api *api = &p->api;
	const char *network = driver_option(&p->options, "boxlite.network");
	uint32_t cpus = whole(s->cpus_milli, MILLI);

	api->options_set_name(o, s->name);
	if (cpus)
		api->options_set_cpus(o, (int)(cpus < CPUS_MAX ? cpus : CPUS_MAX));
	api->options_set_memory(o, (int)s->memory_mib);
	if (api->options_set_disk_gb)
		api->options_set_disk_gb(o, (int)whole(s->disk_mib, MIB_PER_GIB));
	if (network && !strcmp(network, "enabled"))
		api->options_network_on(o);
	else
		api->options_network_off(o);
	if (api->options_inbound_off)
		api->options_inbound_off(o);
	/* It is removed by us, after it was seen to have ended, and not by itself. */
	if (api->options_set_auto_remove)
		api->options_set_auto_remove(o, 0);
	api->options_set_detach(o, p->detach);
	if (s->image[0] == '/' && api->options_set_rootfs)
		api->options_set_rootfs(o, s->image);
	if (!p->plain)
		options_keep_alive(api, o);
}

static int post_create(struct ask *a, struct blx_error *error)
{
	const struct eng_start *s = a->arg;
	struct program *p = a->p;
	struct blx_options *o = NULL;
	int code = p->api.options_new(s->image, &o, error);

	if (code != BLX_OK)
		return code;
	options_fill(p, s, o);
	if (!p->api.get_or_create)
		return p->api.create(p->runtime, o, ask_on_box, ask_ticket(a), error);
	return p->api.get_or_create(p->runtime, o, ask_on_got, ask_ticket(a), error);
}

static int post_start(struct ask *a, struct blx_error *error)
{
	return a->p->api.start(a->p->box, ask_on_done, ask_ticket(a), error);
}

static int post_copy(struct ask *a, struct blx_error *error)
{
	return a->p->api.copy_into(a->p->box, a->arg, a->text, ask_on_done, ask_ticket(a), error);
}

/* ---- the agent's command: drain thread ---- */

static void on_output(const uint8_t *bytes, size_t n, void *ctx)
{
	if (n)
		inbox_put(ctx, note_new(NOTE_OUTPUT, 0, bytes, n));
}

static void on_errors(const uint8_t *bytes, size_t n, void *ctx)
{
	if (n)
		inbox_put(
		    ctx, note_new(NOTE_ERRORS, 0, bytes, n < INBOX_TEXT ? n : INBOX_TEXT - 1));
}

static void on_exit_code(int code, void *ctx)
{
	struct note *n = note_new(NOTE_EXIT, 0, NULL, 0);

	if (n)
		n->code = code;
	inbox_put(ctx, n);
}

/* Call thread. From the first of them on the callbacks come. */
static int post_exec(struct ask *a, struct blx_error *error)
{
	const struct eng_start *s = a->arg;
	const char *const with_helper[] = {
	    s->flags & ENG_START_TAKE_OVER ? "relay-alone" : "relay", HELPER_PATH};
	const struct blx_command cmd = {
	    .command = GUEST_PATH,
	    .args = with_helper,
	    .argc = s->flags & ENG_START_HELPER ? 2 : 1,
	    .workdir = "/",
	    .user = "0:0",
	};
	struct program *p = a->p;
	int code = p->api.exec(p->box, &cmd, &p->exec, error);

	if (code == BLX_OK)
		code = p->api.on_stdout(p->exec, on_output, p->inbox, error);
	if (code == BLX_OK && p->api.on_stderr)
		code = p->api.on_stderr(p->exec, on_errors, p->inbox, error);
	if (code == BLX_OK)
		code = p->api.on_exit(p->exec, on_exit_code, p->inbox, error);
	return code;
}

/* ---- the loop ---- */

static int create(struct program *p, const struct eng_start *s, struct answer *got, struct err *err)
{
	struct ask a = {.what = "create the box", .post = post_create, .later = true, .arg = s};
	struct eng_done ignored = {0};
	int rc = ask(p, &a, got, err);

	/* A server whose boxes have no command of their own; they do not end with it, either. */
	if (got->code == BLX_UNSUPPORTED && p->remote) {
		p->plain = true;
		rc = ask(p, &a, got, err);
	}
	if (got->code == BLX_ALREADY_EXISTS || (rc == 0 && got->handle && !got->flag)) {
		log_warn("box %s: one of that name was there, and is removed", s->name);
		if (got->handle)
			p->api.box_free(got->handle);
		got->handle = NULL;
		rc = order_remove_box(p, s->name, &ignored, err);
		if (rc == 0)
			rc = ask(p, &a, got, err);
	}
	if (rc == 0 && (!got->handle || !got->flag))
		rc = err_set(err, EEXIST, "create the box: one of that name is there again");
	if (rc == 0)
		p->box = got->handle;
	return rc;
}

/* The programs stand beside ours. */
static int program_path(const char *name, char out[PATH_MAX], struct err *err)
{
	char self[PATH_MAX] = "";
	int n;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return err_sys(err, errno, "find the path of sbx-boxlite itself in /proc");
	n = snprintf(out, PATH_MAX, "%s/%s", dirname(self), name);
	return n < 0 || n >= PATH_MAX ? err_set(err, ENAMETOOLONG, "find %s", name) : 0;
}

static int copy_in(
    struct program *p, const char *name, const char *to, struct answer *got, struct err *err)
{
	char from[PATH_MAX];
	struct ask a = {
	    .what = "copy the agent into the box",
	    .post = post_copy,
	    .later = true,
	    .text = to,
	    .arg = from,
	};
	int rc = program_path(name, from, err);

	return rc == 0 ? ask(p, &a, got, err) : rc;
}

static int run_agent(
    struct program *p, const struct eng_start *s, struct answer *got, struct err *err)
{
	struct ask a = {.what = "start the agent in the box", .post = post_exec, .arg = s};
	int rc = ask(p, &a, got, err);

	if (rc < 0)
		return rc;
	relay_run(&p->relay);
	while (!p->relay.greeted && !p->relay.broken && !p->ran && program_turn(p) == 0)
		continue;
	if (p->relay.greeted)
		return 0;
	if (p->ran)
		return err_set(err, ENOEXEC, "the agent ended at once, with status %d: %s",
		    p->exit_code, p->errors[0] ? p->errors : "it said nothing");
	if (!p->relay.broken)
		return err_set(err, ETIMEDOUT, "the agent did not answer in time");
	return err_set(err, EPROTO, "%s",
	    p->relay.why[0] ? p->relay.why : "the agent does not say what it should");
}

static int bring_agent(
    struct program *p, const struct eng_start *s, struct answer *got, struct err *err)
{
	int rc = copy_in(p, "sbx-guest", GUEST_PATH, got, err);

	if (rc == 0 && (s->flags & ENG_START_HELPER))
		rc = copy_in(p, "sbx-files", HELPER_PATH, got, err);
	FAULT_POINT("boxlite.start.copied");
	if (rc == 0)
		rc = run_agent(p, s, got, err);
	return rc;
}

/* A box that is gone, or a time that is over, is no reason to try it in another way. */
static bool may_use_shell(const struct program *p, const struct answer *got, int rc)
{
	return rc < 0 && rc != -ETIMEDOUT && p->started && !blx_meaning(got->code)->gone &&
	       !p->hung_up && p->relay.stream >= 0;
}

static int make_box(
    struct program *p, const struct eng_start *s, struct answer *got, struct err *err)
{
	struct ask starting = {.what = "start the box", .post = post_start, .later = true};
	int rc = create(p, s, got, err);

	FAULT_POINT("boxlite.start.created");
	if (rc == 0)
		rc = ask(p, &starting, got, err);
	FAULT_POINT("boxlite.start.started");
	return rc;
}

/* The box, with its agent or with what serves in its place. One that is taken over has the programs
 * in it that it was given first: they may be running, and are not to be written over. */
static int bring_box(struct program *p, const struct eng_start *s, struct answer *got,
    struct eng_done *done, struct err *err)
{
	bool there = (s->flags & ENG_START_TAKE_OVER) != 0;
	int rc = there ? take_box(p, s->name, got, err) : make_box(p, s, got, err);

	p->started = rc == 0;
	if (rc == 0)
		rc = there ? run_agent(p, s, got, err) : bring_agent(p, s, got, err);
	if (rc == 0 && p->detach && p->api.get)
		done->flags |= ENG_DONE_OUTLIVES;
	if (there || !may_use_shell(p, got, rc))
		return rc;
	log_warn("box %s: %s; the box's own shell serves instead", p->name, err->text);
	rc = shell_begin(p, err);
	if (rc == 0)
		done->flags |= ENG_DONE_SHELL;
	return rc;
}

int order_start(struct program *p, struct eng_done *done, struct err *err)
{
	const struct eng_start *s = &p->order.body.start;
	struct eng_done ignored = {0};
	struct err undo = {0};
	struct answer got = {0};
	int rc;

	if (p->box)
		return err_set(err, EBUSY, "there is a box already");
	memcpy(p->name, s->name, sizeof(p->name));
	rc = relay_begin(&p->relay, p, fd_take(&p->order.fd));
	if (rc < 0)
		return err_sys(err, -rc, "watch the stream");
	rc = bring_box(p, s, &got, done, err);
	if (rc == 0)
		return 0;
	ask_fail(&got, err, done);
	relay_close(&p->relay);
	if (p->box && order_remove_box(p, p->name, &ignored, &undo) == 0)
		program_spend_box(p);
	return rc;
}
