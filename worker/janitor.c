/*
 * janitor: the privileged helper of sbxd. A process of its own: drivers may block, sbxd may not.
 * If it dies, sbxd starts another and asks again; everything it does can be done twice. If sbxd
 * dies, the control socket ends and so does the janitor.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "worker/janitor_int.h"

#define LOCK_WAIT_MS 15000 /* less than sbxd waits for an order */
#define LOCK_TRY_MS 5

/* A driver is at it still: sbxd is not to think that we hang. That it cannot be told is no harm. */
static void janitor_busy(void *ctx)
{
	const struct ctl_msg *msg = ctx;

	(void)ctl_send(CTL_FD_CONTROL, CTL_BUSY, msg->head.seq, 0, NULL, NULL, 0, -1);
}

static struct driver_site janitor_site(const struct ctl_msg *msg, int prepared)
{
	const struct ctl_site *site = &msg->body.prepare.site;

	return (struct driver_site){
	    .instance = site->instance,
	    .state_dir = site->state_dir,
	    .runtime_dir = site->runtime_dir,
	    .uid_base = site->uid_base,
	    .prepared = prepared,
	    .options = {.data = (const char *)msg->tail, .len = msg->tail_len},
	    .busy = janitor_busy,
	    .busy_ctx = (void *)(uintptr_t)msg, /* only read */
	};
}

int janitor_driver(const struct ctl_site *wire, const struct driver **out, struct err *err)
{
	*out = driver_find(wire->driver);
	return *out ? 0 : err_set(err, ENOENT, "there is no driver %s", wire->driver);
}

static janitor_fn *const handlers[CTL_TYPES] = {
    [CTL_PREPARE] = janitor_prepare,
    [CTL_CLEANUP] = janitor_cleanup,
    [CTL_SWEEP] = janitor_sweep,
    [CTL_FINISH] = janitor_finish,
};

/* Every message that has a handler begins with it. */
_Static_assert(offsetof(struct ctl_prepare, site) == 0, "the site comes first");
_Static_assert(offsetof(struct ctl_cleanup, site) == 0, "the site comes first");

static janitor_fn *janitor_fn_of(const struct ctl_msg *msg)
{
	return msg->head.type < CTL_TYPES ? handlers[msg->head.type] : NULL;
}

void janitor_answer_free(struct janitor_answer *answer)
{
	fd_close(&answer->fd);
	buf_free(&answer->tail);
}

void janitor_handle(const struct ctl_msg *msg, int prepared, struct janitor_answer *answer)
{
	janitor_fn *fn = janitor_fn_of(msg);
	struct driver_site site;
	struct err err = {0};
	int rc;

	*answer = (struct janitor_answer){.fd = -1};
	if (!fn) {
		rc = err_set(
		    &err, EBADMSG, "the janitor does not do %s", ctl_type_name(msg->head.type));
	} else {
		site = janitor_site(msg, prepared);
		rc = fn(&site, &msg->body, answer, &err);
	}
	answer->done.code = -rc;
	(void)snprintf(answer->done.text, sizeof(answer->done.text), "%s", rc < 0 ? err.text : "");
}

static int janitor_send(uint64_t seq, const struct janitor_answer *a)
{
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLOUT};
	int rc;

	do {
		rc = ctl_send(CTL_FD_CONTROL, CTL_DONE, seq, 0, &a->done, buf_head(&a->tail),
		    a->tail.len, a->fd);
	} while (rc == -EAGAIN && poll(&p, 1, -1) > 0);
	return rc;
}

/*
 * A dead sbxd's janitor may still be at its last order when its successor's gets the first: they
 * take turns. One whose sbxd has died meanwhile must not begin: it would sweep what it was never
 * told of. *lock: of the runtime directory, held for life from the first order on.
 */
static int janitor_take_turn(const struct ctl_site *site, int *lock)
{
	struct pollfd hangup = {.fd = CTL_FD_CONTROL};

	if (*lock >= 0)
		return 0;
	*lock = open(site->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock < 0)
		return -errno;
	for (int waited = 0; flock(*lock, LOCK_EX | LOCK_NB) < 0; waited += LOCK_TRY_MS) {
		if (errno != EWOULDBLOCK || waited >= LOCK_WAIT_MS) {
			fd_close(lock);
			return -EBUSY;
		}
		if (poll(&hangup, 1, LOCK_TRY_MS) > 0)
			return -EPIPE;
	}
	return poll(&hangup, 1, 0) > 0 ? -EPIPE : 0;
}

/* 1: go on, 0: sbxd has hung up, -errno. */
static int janitor_serve_one(uint8_t *packet, int *lock)
{
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLIN};
	struct janitor_answer answer;
	struct ctl_msg msg;
	int rc;

	if (poll(&p, 1, -1) < 0)
		return errno == EINTR ? 1 : -errno;
	rc = ctl_recv(CTL_FD_CONTROL, packet, &msg);
	if (rc == -EAGAIN)
		return 1;
	if (rc <= 0)
		return rc;
	rc = janitor_fn_of(&msg) ? janitor_take_turn(&msg.body.prepare.site, lock) : 0;
	if (rc < 0)
		return rc; /* sbxd starts another, which tries again */
	FAULT_POINT("janitor.turn");
	janitor_handle(&msg, msg.fd, &answer);
	FAULT_POINT("janitor.done");
	fd_close(&msg.fd);
	rc = janitor_send(msg.head.seq, &answer);
	janitor_answer_free(&answer);
	return rc < 0 ? rc : 1;
}

int janitor_main(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
	uint8_t *packet = malloc(CTL_MSG_MAX);
	int rc = packet ? 1 : -ENOMEM;
	int lock = -1;

	/* A terminal's interrupt is for sbxd, which still needs us to clean up. */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	while (rc > 0)
		rc = janitor_serve_one(packet, &lock);
	if (rc == -EPIPE) /* sbxd is gone */
		rc = 0;
	if (rc < 0)
		log_error("janitor: %s", strerror(-rc));
	free(packet);
	return rc < 0;
}
