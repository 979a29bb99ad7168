/* ask: a call of the library, from the loop, with its answer. sbx-boxlite. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/program.h"
#include "lib/clock.h"

#define ASK_AGAIN_NS (250 * NS_PER_MS)

/* What a callback needs: never the program itself, which is the loop's. */
struct ticket {
	struct inbox *inbox;
	const struct blx_api *api; /* constant once anything is asked */
	uint64_t number;
};

/* ---- call thread ---- */

static void ask_run(struct call *c)
{
	struct ask *a = (struct ask *)(void *)c;
	struct blx_error error = {0};

	a->code = a->post(a, &error);
	(void)snprintf(a->why, sizeof(a->why), "%s", error.message ? error.message : "");
	if (error.message)
		a->p->api.error_free(&error);
}

void *ask_ticket(struct ask *a)
{
	struct ticket *t = malloc(sizeof(*t));

	if (t)
		*t = (struct ticket){.inbox = a->p->inbox, .api = &a->p->api, .number = a->ticket};
	return t;
}

/* ---- callbacks: drain thread ---- */

/* The error is the library's, for the time of the callback. */
static struct note *answer_new(
    const struct ticket *t, const struct blx_error *error, const void *bytes, size_t n)
{
	struct note *note = note_new(NOTE_ANSWER, t->number, bytes, n);

	if (note && error) {
		note->code = error->code;
		(void)snprintf(
		    note->text, sizeof(note->text), "%s", error->message ? error->message : "");
	}
	return note;
}

static void answer_put(struct ticket *t, struct note *n)
{
	inbox_put(t->inbox, n);
	free(t);
}

void ask_on_done(struct blx_error *error, void *ctx)
{
	answer_put(ctx, answer_new(ctx, error, NULL, 0));
}

void ask_on_got(struct blx_box *box, bool created, struct blx_error *error, void *ctx)
{
	struct note *n = answer_new(ctx, error, NULL, 0);

	if (n) {
		n->handle = box;
		n->flag = created;
	}
	answer_put(ctx, n);
}

void ask_on_box(struct blx_box *box, struct blx_error *error, void *ctx)
{
	ask_on_got(box, box != NULL, error, ctx);
}

void ask_on_exit(int code, void *ctx)
{
	struct note *n = answer_new(ctx, NULL, NULL, 0);

	if (n)
		n->number = code;
	answer_put(ctx, n);
}

void ask_on_info(struct blx_info *info, struct blx_error *error, void *ctx)
{
	struct ticket *t = ctx;
	struct note *n = answer_new(t, error, NULL, 0);

	if (n && info)
		n->flag = info->running != 0;
	if (info)
		t->api->info_free(info);
	answer_put(t, n);
}

/* The names, each ended by a NUL; `flag` when there are more that cannot be found in the list. */
void ask_on_list(struct blx_info_list *list, struct blx_error *error, void *ctx)
{
	struct ticket *t = ctx;
	const struct blx_info *info = NULL;
	struct buf names;
	struct note *n;
	int count = list ? list->count : 0;
	bool cut = false;

	buf_init(&names, 1U << 20);
	for (int i = 0; i < count && !cut; i++) {
		info = info_next(list, info);
		cut = !info || (info->name && (buf_puts(&names, info->name) < 0 ||
						  buf_append(&names, "", 1) < 0));
	}
	n = answer_new(t, error, buf_head(&names), names.len);
	if (n)
		n->flag = cut;
	buf_free(&names);
	if (list)
		t->api->info_list_free(list);
	answer_put(t, n);
}

/* The metrics are the library's. */
void ask_on_metrics(struct blx_metrics *metrics, struct blx_error *error, void *ctx)
{
	struct note *n = answer_new(ctx, error, NULL, 0);

	if (n && metrics)
		n->number = metrics->memory_bytes;
	answer_put(ctx, n);
}

void ask_on_pulled(struct blx_pulled *pulled, struct blx_error *error, void *ctx)
{
	struct ticket *t = ctx;

	if (pulled && t->api->pulled_free)
		t->api->pulled_free(pulled);
	answer_put(t, answer_new(t, error, NULL, 0));
}

/* ---- the loop ---- */

static void ask_take_answer(struct program *p, struct answer *out)
{
	struct note *n = p->answer;

	p->answer = NULL;
	out->code = n->code;
	out->flag = n->flag;
	out->handle = n->handle;
	out->number = n->number;
	memcpy(out->text, n->text, sizeof(out->text));
	out->note = n->len ? n : NULL;
	if (!out->note)
		free(n);
}

/* `before`: what came of it when it was asked before. */
static void ask_once(struct program *p, struct ask *a, const char *before, struct answer *out)
{
	*out = (struct answer){0};
	a->ticket = ++p->tickets;
	p->answered = false;
	a->call.fn = ask_run;
	caller_post(p->caller, &a->call);
	if (program_await(p, &a->call.done) < 0)
		program_stuck(p, a->what, before);
	out->code = a->code;
	memcpy(out->text, a->why, sizeof(out->text));
	if (a->code != BLX_OK || !a->later)
		return;
	if (program_await(p, &p->answered) < 0)
		program_stuck(p, a->what, before);
	ask_take_answer(p, out);
}

int ask(struct program *p, struct ask *a, struct answer *out, struct err *err)
{
	char text[INBOX_TEXT] = "";

	a->p = p;
	ask_once(p, a, text, out);
	while (blx_meaning(out->code)->again && !p->hung_up &&
	       clock_now_ns() + ASK_AGAIN_NS < p->deadline_ns) {
		free(out->note);
		blx_error_text(out->code, out->text, text, sizeof(text));
		program_pause(p, ASK_AGAIN_NS);
		ask_once(p, a, text, out);
	}
	if (out->code == BLX_OK)
		return 0;
	blx_error_text(out->code, out->text, text, sizeof(text));
	return err_set(err, blx_meaning(out->code)->error, "%s: %s", a->what, text);
}

void ask_fail(const struct answer *a, const struct err *err, struct eng_done *done)
{
	done->code = err->code;
	done->library = a ? a->code : 0;
	if (a && blx_meaning(a->code)->gone)
		done->flags |= ENG_DONE_GONE;
	(void)snprintf(
	    done->text, sizeof(done->text), "%.*s", (int)sizeof(done->text) - 1, err->text);
}
