/* box: making, finding, starting, stopping and removing boxes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/drivers/fake_boxlite/fake.h"

struct box *box_new(struct runtime *rt, const char *id)
{
	struct box *box = calloc(1, sizeof(*box));

	if (!box)
		abort();
	box->rt = runtime_ref(rt);
	(void)snprintf(box->id, sizeof(box->id), "%s", id);
	return box;
}

void boxlite_box_free(struct box *box)
{
	if (!box)
		return;
	runtime_unref(box->rt);
	free(box);
}

char *boxlite_box_id(struct box *box)
{
	return box ? strdup(box->id) : NULL;
}

enum blx_code box_running(struct box *box, struct record *r, struct blx_error *err)
{
	int lock = record_lock(box->rt);
	enum blx_code code = record_find(box->rt, box->id, r, err);

	if (code == BLX_OK)
		code = boot_start(box->rt, r, err);
	record_unlock(lock);
	return code;
}

static void free_box_event(struct event *e)
{
	boxlite_box_free(e->object);
}

static void call_box(struct event *e)
{
	struct box *box = e->object;

	e->object = NULL;
	((blx_box_fn *)e->cb)(box, &e->err, e->user);
}

static void call_made(struct event *e)
{
	struct box *box = e->object;

	e->object = NULL;
	((blx_box_made_fn *)e->cb)(box, e->number != 0, &e->err, e->user);
}

/* ---- making ---- */

static enum blx_code check_options(
    struct runtime *rt, const struct options *o, struct blx_error *err)
{
	char commands[16];

	if (o->command && rt->remote &&
	    !strcmp(knob_text("commands", "yes", commands, sizeof(commands)), "no"))
		return error_set(err, BLX_UNSUPPORTED,
		    "unsupported: \"entrypoint\": what it asks for cannot be had here");
	if (o->detach && o->auto_remove && !rt->remote)
		return error_set(err, BLX_CONFIG,
		    "configuration error: auto_remove and detach exclude each other");
	if (!o->image[0] || strpbrk(o->image, " \n"))
		return error_set(err, BLX_IMAGE, "image error: not a reference: \"%s\"", o->image);
	return BLX_OK;
}

static enum blx_code make_box(struct job *j, bool reuse)
{
	struct event *e = j->event;
	struct options *o = j->options;
	struct record r;
	enum blx_code code = check_options(j->rt, o, &e->err);
	bool there;

	if (code != BLX_OK || j->lie)
		return code; /* the lie: Ok, and no box */
	there = o->name[0] && record_find(j->rt, o->name, &r, NULL) == BLX_OK &&
		!strcmp(r.name, o->name);
	if (there && !reuse)
		return error_set(
		    &e->err, BLX_ALREADY_EXISTS, "already exists: box with name '%s'", o->name);
	if (!there)
		code = record_make(j->rt, o, &r, &e->err);
	if (code == BLX_OK) {
		e->object = box_new(j->rt, r.id);
		e->number = !there;
	}
	return code;
}

static enum blx_code work_make(struct job *j)
{
	int lock = record_lock(j->rt);
	enum blx_code code = make_box(j, j->op == KNOB_GET_OR_CREATE);

	record_unlock(lock);
	return code;
}

/* Takes o once its arguments are not null. */
static enum blx_code post_make(struct runtime *rt, struct options *o, enum knob_op op,
    void (*call)(struct event *e), void *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", cb, true, err);
	struct job *j;

	if (code == BLX_OK)
		code = call_check(o, "opts", NULL, false, err);
	if (code != BLX_OK)
		return code;
	j = job_new(rt, op, call, cb, user, work_make);
	j->event->free_fn = free_box_event;
	j->options = o;
	return job_post(j, err);
}

enum blx_code boxlite_create_box(
    struct runtime *rt, struct options *o, blx_box_fn *cb, void *user, struct blx_error *err)
{
	return post_make(rt, o, KNOB_CREATE, call_box, (void *)cb, user, err);
}

enum blx_code boxlite_get_or_create_box(
    struct runtime *rt, struct options *o, blx_box_made_fn *cb, void *user, struct blx_error *err)
{
	return post_make(rt, o, KNOB_GET_OR_CREATE, call_made, (void *)cb, user, err);
}

/* ---- finding ---- */

static enum blx_code work_get(struct job *j)
{
	struct record r;
	enum blx_code code = record_find(j->rt, j->a, &r, &j->event->err);

	if (code == BLX_OK && !j->lie)
		j->event->object = box_new(j->rt, r.id);
	return code;
}

enum blx_code boxlite_get(
    struct runtime *rt, const char *id, blx_box_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", (const void *)cb, true, err);
	struct job *j;

	if (code == BLX_OK)
		code = call_check(id, "id_or_name", NULL, false, err);
	if (code != BLX_OK)
		return code;
	j = job_new(rt, KNOB_GET, call_box, (void *)cb, user, work_get);
	j->event->free_fn = free_box_event;
	j->a = strdup(id);
	return job_post(j, err);
}

/* ---- life ---- */

static enum blx_code work_start(struct job *j)
{
	struct record r;

	return j->lie ? BLX_OK : box_running(j->box, &r, &j->event->err);
}

static enum blx_code work_stop(struct job *j)
{
	struct blx_error *err = &j->event->err;
	struct record r;
	enum blx_code code;
	int lock;

	if (j->lie)
		return BLX_OK;
	lock = record_lock(j->rt);
	code = record_find(j->rt, j->box->id, &r, err);
	if (code == BLX_OK && r.pid)
		code = boot_stop(j->rt, &r, err);
	if (code == BLX_OK && r.auto_remove)
		code = record_remove(j->rt, &r, err);
	record_unlock(lock);
	return code;
}

static enum blx_code post_box(struct box *box, enum knob_op op, blx_done_fn *cb, void *user,
    enum blx_code (*work)(struct job *j), struct blx_error *err)
{
	enum blx_code code = call_check(box, "handle", (const void *)cb, true, err);
	struct job *j;

	if (code != BLX_OK)
		return code;
	j = job_new(box->rt, op, call_done, (void *)cb, user, work);
	j->box = box_new(box->rt, box->id);
	return job_post(j, err);
}

enum blx_code boxlite_start_box(struct box *box, blx_done_fn *cb, void *user, struct blx_error *err)
{
	return post_box(box, KNOB_START, cb, user, work_start, err);
}

enum blx_code boxlite_stop_box(struct box *box, blx_done_fn *cb, void *user, struct blx_error *err)
{
	return post_box(box, KNOB_STOP, cb, user, work_stop, err);
}

static enum blx_code work_remove(struct job *j)
{
	struct blx_error *err = &j->event->err;
	struct record r;
	enum blx_code code;
	int lock;

	if (j->lie)
		return BLX_OK;
	lock = record_lock(j->rt);
	code = record_find(j->rt, j->a, &r, err);
	if (code == BLX_OK && r.pid && !j->number)
		code = error_set(err, BLX_INVALID_STATE,
		    "invalid state: cannot remove a running box without force");
	if (code == BLX_OK && r.pid)
		code = boot_stop(j->rt, &r, err);
	if (code == BLX_OK)
		code = record_remove(j->rt, &r, err);
	record_unlock(lock);
	return code;
}

enum blx_code boxlite_remove(struct runtime *rt, const char *id, int force, blx_done_fn *cb,
    void *user, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", (const void *)cb, true, err);
	struct job *j;

	if (code == BLX_OK)
		code = call_check(id, "id_or_name", NULL, false, err);
	if (code != BLX_OK)
		return code;
	j = job_new(rt, KNOB_REMOVE, call_done, (void *)cb, user, work_remove);
	j->a = strdup(id);
	j->number = force;
	return job_post(j, err);
}
