/* top_batch: snapshots on stdout. sbxtop; dying here disturbs nobody. */
#include "tools/top_batch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/httpc.h"
#include "tools/top_json.h"
#include "tools/top_summary.h"

#define SUMMARY_COLUMNS 80
#define EVENTS 10

static void put_line(const struct top_line *l)
{
	size_t n = l->len;

	while (n > 0 && l->text[n - 1] == ' ')
		n--;
	(void)fwrite(l->text, 1, n, stdout); /* the stream remembers errors */
	(void)fputc('\n', stdout);
}

static void put_summary(const struct top_session *s)
{
	struct top_line lines[TOP_SUMMARY_LONG];
	struct top_notice notice = {.table = s->table.trouble};

	top_summary_lines(s->model, &notice, TOP_SUMMARY_LONG, SUMMARY_COLUMNS, lines);
	for (size_t i = 0; i < TOP_SUMMARY_LONG; i++)
		put_line(&lines[i]);
}

static void put_boxes(const struct top_session *s)
{
	struct top_widths w;
	struct top_line line;

	top_layout_fit(&s->layout, 0, TOP_LINE_COLUMNS, &w);
	top_layout_titles(&s->layout, &w, -1, false, &line);
	(void)fputc('\n', stdout);
	put_line(&line);
	for (size_t i = 0; i < s->rows.count; i++) {
		top_layout_line(&s->layout, &w, s->rows.row[i], &line);
		put_line(&line);
	}
}

static void put_events(const struct top_session *s)
{
	struct top_line line;

	(void)printf("\nEVENTS\n");
	for (size_t i = EVENTS; i-- > 0;) {
		const struct shm_event *ev = top_events_back(&s->model->events, i);

		if (!ev)
			continue;
		top_event_line(ev, &line);
		put_line(&line);
	}
}

static void put_json(const struct top_session *s)
{
	json_t *o = top_json(s->model, &s->rows, s->table.trouble, EVENTS);

	(void)json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
	(void)fputc('\n', stdout);
	json_decref(o);
}

static int put_snapshot(const struct top_session *s, bool json, bool first, struct err *err)
{
	if (json) {
		put_json(s);
	} else {
		if (!first)
			(void)fputc('\n', stdout);
		put_summary(s);
		put_boxes(s);
		put_events(s);
	}
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return errno == EPIPE ? -EPIPE : err_sys(err, errno, "cannot write to stdout");
}

/* Until the next snapshot is due, or nobody reads any more. */
static int pause_batch(const struct top_session *s, uint64_t due)
{
	int rc = httpc_wait(STDOUT_FILENO, 0, -1, due);

	(void)s;
	return rc == -ETIMEDOUT ? 0 : -EPIPE;
}

int top_batch_run(struct top_session *s, const struct top_options *o, struct err *err)
{
	uint64_t due = clock_now_ns();
	int rc = put_snapshot(s, o->json, true, err);

	for (long n = 1; rc == 0 && (o->count == 0 || n < o->count); n++) {
		due += clock_seconds_to_ns(s->interval);
		rc = pause_batch(s, due);
		if (rc == 0)
			rc = top_session_refresh(s, err);
		if (rc == 0)
			rc = put_snapshot(s, o->json, false, err);
	}
	return rc == -EPIPE ? 0 : rc;
}
