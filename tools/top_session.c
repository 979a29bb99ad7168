/* top_session: one run of sbxtop, without its terminal. Dying here disturbs nobody. */
#include "tools/top_session.h"

#include <errno.h>
#include <stdio.h>

#include "lib/clock.h"
#include "lib/paths.h"

static void apply_options(
    struct top_session *s, const struct top_options *o, const struct top_settings *set)
{
	top_rows_init(&s->rows);
	s->shows_all = o->json;
	s->layout = o->layout_given ? o->layout : set->layout;
	s->interval = o->interval > 0 ? o->interval : set->interval;
	s->rows.sort = set->sort;
	s->rows.descending = set->descending;
	if (o->sort >= 0) {
		top_rows_sort_by(&s->rows, o->sort);
		s->rows.descending ^= o->inverted;
	}
	(void)snprintf(s->rows.filter, sizeof(s->rows.filter), "%s", o->filter ? o->filter : "");
}

static int relist(struct top_session *s, struct err *err)
{
	if (top_rows_update(&s->rows, s->model) < 0)
		return err_sys(err, ENOMEM, "list of boxes");
	return 0;
}

/* Is the one column that costs much looked at? */
static bool shows_conns(const struct top_session *s)
{
	int conns = top_column_find("conns");

	return s->shows_all || s->rows.sort == conns || top_layout_has(&s->layout, conns);
}

int top_session_refresh(struct top_session *s, struct err *err)
{
	int rc = 0;

	if (s->replaying) {
		(void)top_replay_play(&s->replay, s->model, clock_seconds_to_ns(s->interval));
		return relist(s, err);
	}
	s->model->counts_conns = shows_conns(s);
	if (top_table_replaced(&s->table))
		rc = top_table_attach(&s->table, s->model, err);
	if (s->table.attached)
		rc = top_table_look(&s->table, s->model, clock_now_ns());
	if (rc == -EBUSY)
		(void)err_set(err, EBUSY, "%s", s->table.trouble);
	return relist(s, err) < 0 ? -ENOMEM : rc;
}

int top_session_step(struct top_session *s, long by, struct err *err)
{
	size_t back = s->model->events.hidden;
	size_t n = (size_t)(by < 0 ? -by : by);

	if (by < 0)
		back += n;
	else
		back = back > n ? back - n : 0;
	top_replay_seek(&s->replay, s->model, back);
	return relist(s, err);
}

static int open_replay(struct top_session *s, const char *path, struct err *err)
{
	int rc;

	s->model->counts_conns = true;
	rc = top_table_load(&s->table, path, s->model, err);
	if (rc < 0)
		return rc;
	if (top_replay_begin(&s->replay, s->model) < 0)
		return err_sys(err, ENOMEM, "replay");
	s->replaying = true;
	return relist(s, err);
}

int top_session_open(struct top_session *s, const struct top_options *o,
    const struct top_settings *set, struct err *err)
{
	int rc;

	*s = (struct top_session){0};
	top_table_init(&s->table, o->instance);
	apply_options(s, o, set);
	s->model = top_model_create();
	if (!s->model)
		return err_sys(err, ENOMEM, "model");
	(void)snprintf(s->model->instance, sizeof(s->model->instance), "%s",
	    o->instance ? o->instance : PATHS_INSTANCE_DEFAULT);
	if (o->replay)
		return open_replay(s, o->replay_file, err);
	rc = top_table_attach(&s->table, s->model, err);
	return rc < 0 ? rc : top_session_refresh(s, err);
}

void top_session_close(struct top_session *s)
{
	top_replay_end(&s->replay);
	top_rows_free(&s->rows);
	top_model_free(s->model);
	top_table_close(&s->table);
}
