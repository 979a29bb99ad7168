/* qmp: QEMU's monitor. Worker; a stream that has broken the rules stays broken, and the box is
 * ended for it. */
#include "drivers/qemu/qmp.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/fd.h"

#define QMP_EVENTS_MAX 1000 /* before an answer */

static int qmp_fill(struct qmp *q, uint64_t deadline_ns)
{
	ssize_t n;
	int rc;

	if (q->len == sizeof(q->line))
		return -EBADMSG;
	rc = machine_wait(q->m, q->m->qmp, POLLIN, deadline_ns);
	if (rc < 0)
		return rc;
	n = recv(q->m->qmp, q->line + q->len, sizeof(q->line) - q->len, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	q->len += (size_t)n;
	return 0;
}

/* The next object; the caller's. NULL with *rc. */
static json_t *qmp_next(struct qmp *q, uint64_t deadline_ns, int *rc)
{
	char *end;
	json_t *o;
	size_t n;

	while (!(end = memchr(q->line, '\n', q->len))) {
		*rc = qmp_fill(q, deadline_ns);
		if (*rc < 0)
			return NULL;
	}
	n = (size_t)(end - q->line) + 1;
	o = json_loadb(q->line, n, 0, NULL);
	q->len -= n;
	memmove(q->line, end + 1, q->len);
	if (!json_is_object(o)) {
		json_decref(o);
		*rc = -EBADMSG;
		return NULL;
	}
	return o;
}

static int qmp_send(struct qmp *q, const char *text, uint64_t deadline_ns)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = send(q->m->qmp, text, left, MSG_NOSIGNAL);
		int rc;

		if (n > 0) {
			text += n;
			left -= (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		rc = machine_wait(q->m, q->m->qmp, POLLOUT, deadline_ns);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int qmp_fail(int rc, const char *what, struct err *err)
{
	static const struct {
		int code;
		const char *why;
	} known[] = {
	    {ETIMEDOUT, "did not answer in time"},
	    {EPIPE, "ended"},
	    {EBADMSG, "does not keep to the rules of its monitor"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].code == -rc)
			return err_set(err, -rc, "QEMU %s: %s", known[i].why, what);
	}
	return err_sys(err, -rc, "ask QEMU: %s", what);
}

/* What was ordered, for messages: the name in {"execute":"NAME"... */
static void qmp_name(const char *order, char out[48])
{
	const char *at = strchr(order, ':');

	at = at ? at + 2 : order;
	(void)snprintf(out, 48, "%.*s", (int)strcspn(at, "\""), at);
}

/* The answer to what was sent with result rc. */
static int qmp_answer(struct qmp *q, int rc, const char *order, const char *key, char *out,
    size_t size, uint64_t deadline_ns, struct err *err)
{
	const char *text;
	char name[48];
	json_t *o = NULL;

	qmp_name(order, name);
	if (rc == 0)
		rc = qmp_send(q, "\n", deadline_ns);
	for (int i = 0; rc == 0; i++) {
		o = qmp_next(q, deadline_ns, &rc);
		if (!o || json_object_get(o, "return") || json_object_get(o, "error"))
			break;
		json_decref(o);
		o = NULL;
		if (i == QMP_EVENTS_MAX)
			rc = -EBADMSG;
	}
	if (!o)
		return qmp_fail(rc, name, err);
	if (json_object_get(o, "error")) {
		text = json_string_value(json_object_get(json_object_get(o, "error"), "desc"));
		rc = err_set(
		    err, EREMOTEIO, "QEMU refuses %s: %.120s", name, text ? text : "says not why");
	} else if (key) {
		text = json_string_value(json_object_get(json_object_get(o, "return"), key));
		(void)snprintf(out, size, "%s", text ? text : "");
	}
	json_decref(o);
	return rc;
}

int qmp_ask(struct qmp *q, const char *order, const char *key, char *out, size_t size,
    uint64_t deadline_ns, struct err *err)
{
	int rc = qmp_send(q, order, deadline_ns);

	return qmp_answer(q, rc, order, key, out, size, deadline_ns, err);
}

int qmp_give(struct qmp *q, const char *order, int fd, uint64_t deadline_ns, struct err *err)
{
	/* The queue is empty: every order before was answered. */
	ssize_t n = fd_send_msg(q->m->qmp, order, strlen(order), &fd, 1);
	int rc = n == (ssize_t)strlen(order) ? 0 : n < 0 ? (int)n : -EIO;

	return qmp_answer(q, rc, order, NULL, NULL, 0, deadline_ns, err);
}

int qmp_order(struct qmp *q, const char *order, uint64_t deadline_ns, struct err *err)
{
	return qmp_ask(q, order, NULL, NULL, 0, deadline_ns, err);
}

int qmp_begin(struct qmp *q, const struct machine *m, uint64_t deadline_ns, struct err *err)
{
	json_t *greeting;
	int rc = 0;

	q->m = m;
	q->len = 0;
	greeting = qmp_next(q, deadline_ns, &rc);
	if (!greeting)
		return qmp_fail(rc, "its start", err);
	rc = json_object_get(greeting, "QMP") ? 0 : -EBADMSG;
	json_decref(greeting);
	if (rc < 0)
		return qmp_fail(rc, "its start", err);
	return qmp_order(q, "{\"execute\":\"qmp_capabilities\"}", deadline_ns, err);
}
