/* info: what is known of boxes. A list that lies has entries that no box has, and none of ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/drivers/fake_boxlite/fake.h"

static void info_fill(struct blx_info *i, const struct record *r)
{
	memset(i, 0, sizeof(*i));
	i->id = strdup(r->id);
	i->name = r->name[0] ? strdup(r->name) : NULL;
	i->image = strdup(r->image);
	i->status = strdup(r->status);
	i->running = r->pid != 0;
	i->pid = r->pid;
	i->cpus = r->cpus;
	i->memory_mib = r->memory_mib;
	i->created_at = r->created_at;
#if FAKE_INFO >= 1
	i->auto_resume = 1;
#endif
#if FAKE_INFO >= 2
	/* Nobody who knows an older struct may look here. */
	memset(i->labels, 0xa5, sizeof(i->labels));
	memset(i->reserved, 0xa5, sizeof(i->reserved));
#endif
}

static void info_clear(struct blx_info *i)
{
	free(i->id);
	free(i->name);
	free(i->image);
	free(i->status);
}

void boxlite_free_box_info(struct blx_info *info)
{
	if (!info)
		return;
	info_clear(info);
	free(info);
}

void boxlite_free_box_info_list(struct blx_info_list *list)
{
	if (!list)
		return;
	for (int i = 0; i < list->count; i++)
		info_clear(&list->items[i]);
	free(list->items);
	free(list);
}

static void free_info(struct event *e)
{
	boxlite_free_box_info(e->object);
}

static void free_list(struct event *e)
{
	boxlite_free_box_info_list(e->object);
}

static void call_info(struct event *e)
{
	struct blx_info *info = e->object;

	e->object = NULL;
	((blx_info_fn *)e->cb)(info, &e->err, e->user);
}

static void call_list(struct event *e)
{
	struct blx_info_list *list = e->object;

	e->object = NULL;
	((blx_list_fn *)e->cb)(list, &e->err, e->user);
}

/* ---- one ---- */

static enum blx_code work_info(struct job *j)
{
	struct record r;
	struct blx_info *info;
	enum blx_code code = record_find(j->rt, j->box ? j->box->id : j->a, &r, &j->event->err);

	if (code != BLX_OK)
		return code;
	info = calloc(1, sizeof(*info));
	if (!info)
		abort();
	if (j->lie) { /* another's box, and one that does not run */
		(void)snprintf(r.name, sizeof(r.name), "somebody-else");
		(void)snprintf(r.status, sizeof(r.status), "paused?");
		r.pid = 0;
	}
	info_fill(info, &r);
	j->event->object = info;
	return BLX_OK;
}

enum blx_code boxlite_box_info(struct box *box, blx_info_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(box, "handle", (const void *)cb, true, err);
	struct job *j;

	if (code != BLX_OK)
		return code;
	j = job_new(box->rt, KNOB_INFO, call_info, (void *)cb, user, work_info);
	j->event->free_fn = free_info;
	j->box = box_new(box->rt, box->id);
	return job_post(j, err);
}

enum blx_code boxlite_get_info(
    struct runtime *rt, const char *id, blx_info_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", (const void *)cb, true, err);
	struct job *j;

	if (code == BLX_OK)
		code = call_check(id, "id_or_name", NULL, false, err);
	if (code != BLX_OK)
		return code;
	j = job_new(rt, KNOB_INFO, call_info, (void *)cb, user, work_info);
	j->event->free_fn = free_info;
	j->a = strdup(id);
	return job_post(j, err);
}

/* ---- all ---- */

static enum blx_code list_add(void *ctx, const struct record *r)
{
	struct blx_info_list *list = ctx;
	struct blx_info *items =
	    realloc(list->items, (size_t)(list->count + 1) * sizeof(*list->items));

	if (!items)
		abort();
	list->items = items;
	info_fill(&items[list->count++], r);
	return BLX_OK;
}

static void list_lies(struct blx_info_list *list)
{
	static const char *const names[] = {
	    "", "sbxd-", "sbxd-other-1-1", "../../etc", "sbxd-x-1-"};
	struct record r = {.id = "nobody", .image = "none", .status = "unknown"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(r.name, sizeof(r.name), "%s", names[i]);
		(void)list_add(list, &r);
	}
	/* An item of which nothing is known at all. */
	info_clear(&list->items[0]);
	memset(&list->items[0], 0, sizeof(list->items[0]));
}

static enum blx_code work_list(struct job *j)
{
	struct blx_info_list *list = calloc(1, sizeof(*list));
	enum blx_code code = BLX_OK;

	if (!list)
		abort();
	if (j->lie)
		list_lies(list);
	else
		code = record_each(j->rt, list_add, list, &j->event->err);
	if (code != BLX_OK)
		boxlite_free_box_info_list(list);
	else
		j->event->object = list;
	return code;
}

enum blx_code boxlite_list_info(
    struct runtime *rt, blx_list_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", (const void *)cb, true, err);
	struct job *j;

	if (code != BLX_OK)
		return code;
	j = job_new(rt, KNOB_LIST, call_list, (void *)cb, user, work_list);
	j->event->free_fn = free_list;
	return job_post(j, err);
}

/* ---- metrics ---- */

static void free_metrics(struct event *e)
{
	free(e->object);
}

/* Valid only during the call. */
static void call_metrics(struct event *e)
{
	((blx_metrics_fn *)e->cb)(e->object, &e->err, e->user);
}

static enum blx_code work_metrics(struct job *j)
{
	struct record r;
	struct blx_metrics *m;
	enum blx_code code = record_find(j->rt, j->box->id, &r, &j->event->err);

	if (code != BLX_OK)
		return code;
	if (!r.pid)
		return error_set(&j->event->err, BLX_STOPPED, "stopped: %s", r.id);
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	m->cpu_percent = j->lie ? -1e300 : 12.5;
	m->memory_bytes = j->lie ? INT64_MIN : 64 << 20;
	m->commands_executed = 1;
	j->event->object = m;
	return BLX_OK;
}

enum blx_code boxlite_box_metrics(
    struct box *box, blx_metrics_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(box, "handle", (const void *)cb, true, err);
	struct job *j;

	if (code != BLX_OK)
		return code;
	j = job_new(box->rt, KNOB_METRICS, call_metrics, (void *)cb, user, work_metrics);
	j->event->free_fn = free_metrics;
	j->box = box_new(box->rt, box->id);
	return job_post(j, err);
}
