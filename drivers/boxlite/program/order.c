/* order: what the driver orders, one function for each. sbx-boxlite; the loop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/program.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"

/* How often a box that was removed is looked for: 1.3 s in all. */
#define GONE_FIRST_NS (10 * NS_PER_MS)
#define GONE_LAST_NS (640 * NS_PER_MS)

/* ---- call thread ---- */

static int post_remove(struct ask *a, struct blx_error *error)
{
	return a->p->api.remove(a->p->runtime, a->text, 1, ask_on_done, ask_ticket(a), error);
}

static int post_info(struct ask *a, struct blx_error *error)
{
	return a->p->api.get_info(a->p->runtime, a->text, ask_on_info, ask_ticket(a), error);
}

static int post_list(struct ask *a, struct blx_error *error)
{
	return a->p->api.list_info(a->p->runtime, ask_on_list, ask_ticket(a), error);
}

static int post_metrics(struct ask *a, struct blx_error *error)
{
	return a->p->api.metrics(a->p->box, ask_on_metrics, ask_ticket(a), error);
}

static int post_pull(struct ask *a, struct blx_error *error)
{
	const struct blx_api *api = &a->p->api;
	struct blx_images *images = NULL;
	int code = api->images(a->p->runtime, &images, error);

	if (code == BLX_OK)
		code = api->pull(images, a->text, ask_on_pulled, ask_ticket(a), error);
	if (images)
		api->images_free(images); /* it stays alive in what it was asked for */
	return code;
}

/* ---- the loop ---- */

static int order_pull(struct program *p, struct eng_done *done, struct err *err)
{
	struct ask a = {.what = "pull the image", .post = post_pull, .later = true};
	struct answer got = {0};
	int rc;

	a.text = p->order.body.image.image;
	if (!p->api.images || !p->api.pull || !p->api.images_free)
		return 0; /* it is pulled with the first box, then */
	rc = ask(p, &a, &got, err);
	if (rc < 0)
		ask_fail(&got, err, done);
	return rc;
}

/* 0: there is no such box. Only that answer proves it: a removal that was accepted may be one
   that a server has yet to do, or one that never happens. */
static int prove_removed(struct program *p, const char *name, struct answer *got, struct err *err)
{
	struct ask a = {.what = "look for the removed box", .post = post_info, .later = true};

	a.text = name;
	for (uint64_t pause = GONE_FIRST_NS;; pause *= 2) {
		struct err why = {0};
		int rc;

		*got = (struct answer){0};
		rc = ask(p, &a, got, &why);
		if (got->code == BLX_NOT_FOUND)
			return 0;
		if (rc < 0)
			return err_set(err, why.code, "%s", why.text);
		if (pause > GONE_LAST_NS || p->hung_up || clock_now_ns() + pause > p->deadline_ns)
			return err_set(
			    err, EBUSY, "remove the box: BoxLite says it did, and has it still");
		program_pause(p, pause);
	}
}

int order_remove_box(struct program *p, const char *name, struct eng_done *done, struct err *err)
{
	struct ask a = {.what = "remove the box", .post = post_remove, .later = true, .text = name};
	struct answer got = {0};
	struct err why = {0};
	int rc;

	FAULT_POINT("boxlite.remove");
	rc = ask(p, &a, &got, &why);
	if (rc == 0)
		rc = prove_removed(p, name, &got, &why);
	if (rc == 0 || got.code == BLX_NOT_FOUND)
		return 0;
	ask_fail(&got, &why, done);
	return err_set(err, why.code, "%s", why.text);
}

static int order_remove(struct program *p, struct eng_done *done, struct err *err)
{
	return order_remove_box(p, p->order.body.name.name, done, err);
}

void program_spend_box(struct program *p)
{
	p->spent = p->box;
	p->box = NULL;
}

static int order_stop(struct program *p, struct eng_done *done, struct err *err)
{
	int rc;

	if (!p->box)
		return 0;
	relay_close(&p->relay);
	rc = order_remove_box(p, p->name, done, err);
	if (rc == 0)
		program_spend_box(p);
	return rc;
}

static int order_look(struct program *p, struct eng_done *done, struct err *err)
{
	struct ask a = {.what = "look for the box", .post = post_info, .later = true};
	struct answer got = {0};
	int rc;

	a.text = p->order.body.name.name;
	rc = ask(p, &a, &got, err);
	if (rc < 0)
		ask_fail(&got, err, done);
	else if (got.flag)
		done->flags |= ENG_DONE_RUNNING;
	return rc;
}

/* The driver reads while we send: its queue is short. */
static int send_name(struct program *p, const char *name)
{
	struct eng_name out = {.time_ms = 0};
	int rc;

	(void)snprintf(out.name, sizeof(out.name), "%s", name);
	do {
		rc = eng_send(p->control.fd, ENG_NAME, p->order.head.seq, &out, NULL, 0, -1);
		if (rc == -EAGAIN)
			program_pause(p, NS_PER_MS);
	} while (rc == -EAGAIN && !p->hung_up && clock_now_ns() < p->deadline_ns);
	return rc;
}

static int order_list(struct program *p, struct eng_done *done, struct err *err)
{
	struct ask a = {.what = "list the boxes", .post = post_list, .later = true};
	const char *prefix = p->order.body.name.name;
	struct answer got = {0};
	int rc;

	if (!p->remote)
		return 0; /* a home directory has one box, whose name the driver knows */
	rc = ask(p, &a, &got, err);
	if (rc < 0)
		ask_fail(&got, err, done);
	if (got.flag)
		done->flags |= ENG_DONE_CUT;
	for (size_t at = 0; rc == 0 && got.note && at < got.note->len;) {
		const char *name = (const char *)got.note->bytes + at;

		at += strlen(name) + 1;
		if (!strncmp(name, prefix, strlen(prefix)) &&
		    strlen(name) < sizeof(p->order.body.name.name))
			rc = send_name(p, name);
	}
	free(got.note);
	return rc < 0 && !err->code ? err_sys(err, -rc, "send the boxes' names") : rc;
}

static int order_stats(struct program *p, struct eng_done *done, struct err *err)
{
	struct ask a = {.what = "ask what the box uses", .post = post_metrics, .later = true};
	struct answer got = {0};
	int rc;

	if (!p->box || !p->api.metrics)
		return 0;
	rc = ask(p, &a, &got, err);
	if (rc < 0)
		ask_fail(&got, err, done);
	else if (got.number > 0)
		done->memory_bytes = (uint64_t)got.number;
	return rc;
}

static const struct {
	int (*fn)(struct program *p, struct eng_done *done, struct err *err);
	size_t time;  /* where time_ms is in the order */
	bool closed;  /* comes before the library is open */
	bool serving; /* may come when a box was asked for: who asks has no privileges any more */
} orders[ENG_TYPES] = {
    [ENG_OPEN] = {order_open, offsetof(struct eng_open, time_ms), true, false},
    [ENG_PULL] = {order_pull, offsetof(struct eng_image, time_ms), false, false},
    [ENG_START] = {order_start, offsetof(struct eng_start, time_ms), false, false},
    [ENG_STATS] = {order_stats, offsetof(struct eng_name, time_ms), false, true},
    [ENG_STOP] = {order_stop, offsetof(struct eng_name, time_ms), false, true},
    [ENG_REMOVE] = {order_remove, offsetof(struct eng_name, time_ms), false, false},
    [ENG_LOOK] = {order_look, offsetof(struct eng_name, time_ms), false, false},
    [ENG_LIST] = {order_list, offsetof(struct eng_name, time_ms), false, false},
};

static int order_run(struct program *p, struct eng_done *done, struct err *err)
{
	uint16_t type = p->order.head.type;
	uint32_t ms;

	if (!orders[type].fn)
		return err_set(err, EBADMSG, "%s is no order", eng_type_name(type));
	if (!orders[type].closed && !p->runtime)
		return err_set(err, EINVAL, "%s: the library is not open", eng_type_name(type));
	if (p->name[0] && !orders[type].serving)
		return err_set(
		    err, EPERM, "%s: there is a box, and nothing else", eng_type_name(type));
	memcpy(&ms, (const char *)&p->order.body + orders[type].time, sizeof(ms));
	p->deadline_ns = clock_now_ns() + ms * NS_PER_MS;
	return orders[type].fn(p, done, err);
}

void order_serve(struct program *p)
{
	struct eng_done done = {0};
	struct err err = {0};
	uint64_t seq = p->order.head.seq;
	int rc = order_run(p, &done, &err);

	p->ordered = false;
	fd_close(&p->order.fd);
	explicit_bzero(p->packet, sizeof(p->packet)); /* a secret may have come with it */
	if (rc < 0) {
		done.code = -rc;
		(void)snprintf(
		    done.text, sizeof(done.text), "%.*s", (int)sizeof(done.text) - 1, err.text);
	}
	rc = eng_send(p->control.fd, ENG_DONE, seq, &done, NULL, 0, -1);
	if (rc < 0 && rc != -EPIPE) /* it asks one thing at a time, so there is room */
		log_warn("answer to %s: %s", eng_type_name(p->order.head.type), strerror(-rc));
}
