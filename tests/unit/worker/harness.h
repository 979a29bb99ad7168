/*
 * harness: a worker's insides between a guest and a client that the test plays, in one process.
 * Nothing sleeps: the loop is stepped until what is awaited has happened.
 */
#ifndef SBXD_TEST_WORKER_HARNESS_H
#define SBXD_TEST_WORKER_HARNESS_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "shm/slot.h"
#include "wire/limits.h"
#include "worker/conn.h"
#include "worker/op.h"
#include "worker/service.h"

#define H_TOKEN "0123456789abcdef"
#define H_BOX "/v1/boxes/" H_TOKEN
#define H_WAIT (5 * NS_PER_S)
#define H_COOKIE 77U
#define H_ALARM_S 60U

struct harness {
	struct service s; /* first */
	struct agent_link link;
	struct report report;
	struct ctl_limits limits;
	struct shm_page *page;
	int guest; /* the test's end */
	struct buf from_guest;
	struct buf from_worker; /* bytes that the fake guest has read and not used */
	int client;		/* the test's end of the newest connection */
	uint32_t client_flags;	/* CTL_CONN_* of the next one */
	struct buf answer;	/* what the client has read */
	bool answer_ended;

	int broken;
	char broken_why[128];
	int gone;
	uint64_t gone_cookie;
	bool orphaned;
	int back; /* connections handed back */
	int back_fd;
	uint32_t back_flags;
	struct buf back_bytes;
	uint64_t pongs;
};

static inline bool h_hand_back(struct service *s, int fd, unsigned int index, uint64_t seq,
    const struct ctl_conn *who, const void *bytes, size_t n)
{
	struct harness *h = (struct harness *)(void *)s;

	(void)seq;
	assert_int_equal(who->cookie, H_COOKIE);
	if (h->orphaned)
		return false;
	report_conn(s->report, index, 0, CONN_FREE);
	h->back++;
	h->back_flags = who->flags;
	fd_close(&h->back_fd);
	h->back_fd = fd;
	buf_clear(&h->back_bytes);
	assert_int_equal(buf_append(&h->back_bytes, bytes, n), 0);
	return true;
}

static inline void h_conn_gone(struct service *s, unsigned int index, uint64_t seq, uint64_t cookie)
{
	struct harness *h = (struct harness *)(void *)s;

	(void)seq;
	if (index < SHM_CONNS) {
		/* Nobody may answer any more; free when sbxd knows. */
		assert_int_equal(CONN_STATE(s->report->page->conns[index]), CONN_RESPONDING);
		report_conn(s->report, index, 0, CONN_FREE);
	}
	h->gone++;
	h->gone_cookie = cookie;
}

static inline void h_service_broken(struct service *s, const char *why)
{
	struct harness *h = (struct harness *)(void *)s;

	h->broken++;
	(void)snprintf(h->broken_why, sizeof(h->broken_why), "%s", why);
}

static inline void h_hello(void *ctx, const struct agent_hello *hello)
{
	(void)ctx;
	assert_int_equal(hello->version, AGENT_VERSION);
}

static inline void h_pong(void *ctx, const uint8_t *payload, size_t n)
{
	struct harness *h = ctx;

	(void)payload;
	(void)n;
	h->pongs++;
}

static inline void h_broken(void *ctx, int code, const char *why)
{
	(void)code;
	h_service_broken(&((struct harness *)ctx)->s, why);
}

/* One frame from the fake guest. */
static inline void guest_send(struct harness *h, enum agent_type type, unsigned int arg,
    uint32_t channel, const void *payload, size_t n)
{
	uint8_t head[AGENT_HEAD_LEN];

	agent_put_head(head, type, 0, (uint8_t)arg, channel, (uint32_t)n);
	assert_int_equal(send(h->guest, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	if (n)
		assert_int_equal(send(h->guest, payload, n, MSG_NOSIGNAL), n);
}

static inline void guest_hello(struct harness *h)
{
	const struct agent_hello hello = {.version = AGENT_VERSION, .pid = 1};

	guest_send(h, AGENT_HELLO, 0, 0, &hello, sizeof(hello));
}

static inline void guest_end(struct harness *h, uint32_t channel, int code, int sig, uint32_t flags)
{
	const struct agent_end end = {.exit_code = code, .signal = sig, .flags = flags, .bytes = 5};

	guest_send(h, AGENT_END, 0, channel, &end, sizeof(end));
}

static inline void guest_error(struct harness *h, uint32_t channel, uint32_t code, const char *text)
{
	uint8_t payload[256];
	const struct agent_error e = {.code = code};

	memcpy(payload, &e, sizeof(e));
	memcpy(payload + sizeof(e), text, strlen(text));
	guest_send(h, AGENT_ERROR, 0, channel, payload, sizeof(e) + strlen(text));
}

static inline void h_drain(struct harness *h)
{
	uint8_t bytes[65536];
	ssize_t n;

	while ((n = recv(h->guest, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(buf_append(&h->from_worker, bytes, (size_t)n), 0);
	while (h->client >= 0 && (n = recv(h->client, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(buf_append(&h->answer, bytes, (size_t)n), 0);
	if (h->client >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
		h->answer_ended = true;
}

static inline void h_step(struct harness *h)
{
	assert_int_equal(loop_step(h->s.loop, 20 * NS_PER_MS), 0);
	h_drain(h);
}

/* Runs the loop until cond holds; fails when it does not come true. */
#define H_UNTIL(h, cond)                                               \
	do {                                                           \
		uint64_t until_ = clock_now_ns() + H_WAIT;             \
		h_drain(h);                                            \
		while (!(cond)) {                                      \
			if (clock_now_ns() > until_)                   \
				fail_msg("did not happen: %s", #cond); \
			h_step(h);                                     \
		}                                                      \
	} while (0)

/* Lets everything that is ready happen. */
static inline void h_settle(struct harness *h)
{
	for (int i = 0; i < 6; i++) {
		assert_int_equal(loop_step(h->s.loop, 0), 0);
		h_drain(h);
	}
}

/* The next frame that the worker has sent to the guest. */
static inline struct agent_head guest_next(struct harness *h, uint8_t *payload, size_t size)
{
	struct agent_head head = {.size = 0};

	H_UNTIL(h, agent_get_head(buf_head(&h->from_worker), h->from_worker.len, &head) == 1 &&
		       h->from_worker.len >= AGENT_HEAD_LEN + head.size);
	assert_true(head.size <= size);
	memcpy(payload, buf_head(&h->from_worker) + AGENT_HEAD_LEN, head.size);
	buf_consume(&h->from_worker, AGENT_HEAD_LEN + head.size);
	return head;
}

/* Expects a frame of this type and returns its channel. */
static inline uint32_t guest_expect(struct harness *h, enum agent_type type)
{
	static uint8_t payload[AGENT_DATA_MAX];
	struct agent_head head = guest_next(h, payload, sizeof(payload));

	assert_int_equal(head.type, type);
	return head.channel;
}

static inline void guest_started(struct harness *h, uint32_t channel)
{
	static const uint32_t pid = 7;

	guest_send(h, AGENT_STARTED, 0, channel, &pid, sizeof(pid));
}

static const struct service_ops h_service_ops = {
    .hand_back = h_hand_back,
    .conn_gone = h_conn_gone,
    .broken = h_service_broken,
};

static const struct agent_link_ops h_link_ops = {
    .hello = h_hello,
    .pong = h_pong,
    .broken = h_broken,
};

static inline int h_setup(void **state)
{
	static const char env[] = "GREETING=hello\0LANG=de_DE.UTF-8";
	struct harness *h = calloc(1, sizeof(*h));
	int pair[2];

	log_init("test", LOG_TEXT, LOG_ERROR);
	assert_non_null(h);
	assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR); /* as boot.c does */
	(void)alarm(H_ALARM_S);				  /* a test that blocks ends */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	h->guest = pair[1];
	h->client = -1;
	h->back_fd = -1;
	buf_init(&h->from_worker, 64U << 20);
	buf_init(&h->answer, 512U << 20);
	buf_init(&h->back_bytes, 1U << 20);
	h->page = aligned_alloc(SHM_PAGE, SHM_PAGE);
	assert_non_null(h->page);
	memset(h->page, 0, SHM_PAGE);
	h->s.loop = loop_create();
	assert_non_null(h->s.loop);
	report_init(&h->report, h->s.loop, h->page, 1);
	assert_int_equal(agent_link_init(&h->link, h->s.loop, pair[0], &h_link_ops, h), 0);
	h->s.link = &h->link;
	h->s.report = &h->report;
	h->s.ops = &h_service_ops;
	h->limits = (struct ctl_limits)CTL_LIMITS_DEFAULT;
	h->limits.idle_ms = 0; /* who has no deadline is to have no timer */
	h->limits.max_executions = 4;
	h->s.limits = &h->limits;
	h->s.token = H_TOKEN;
	h->s.name = "";
	h->s.default_cwd = "";
	h->s.default_user = "";
	h->s.env = env;
	h->s.env_len = sizeof(env);
	h->s.scratch = malloc(SERVICE_SCRATCH);
	LIST_INIT(&h->s.ops_running);
	LIST_INIT(&h->s.executions);
	guest_hello(h);
	H_UNTIL(h, h->link.greeted);
	*state = h;
	return 0;
}

static inline int h_teardown(void **state)
{
	struct harness *h = *state;

	fd_close(&h->client);
	service_set_state(&h->s, SERVICE_DEAD, API_BOX_DIED, "the test is over");
	h_settle(h);
	h->orphaned = true;
	for (int i = 0; i < 100 && h->s.conn_count; i++) {
		for (size_t k = 0; k < SHM_CONNS; k++) {
			if (h->s.conns[k])
				conn_die(h->s.conns[k]);
		}
		h_settle(h);
	}
	assert_int_equal(h->s.conn_count, 0);
	assert_int_equal(h->report.in_flight, 0);
	for (size_t k = 0; k < SHM_CONNS; k++)
		assert_int_equal(atomic_load(&h->page->conns[k]), 0);
	report_fini(&h->report);
	agent_link_fini(&h->link);
	loop_destroy(h->s.loop);
	fd_close(&h->guest);
	fd_close(&h->back_fd);
	buf_free(&h->from_worker);
	buf_free(&h->answer);
	buf_free(&h->back_bytes);
	free(h->s.scratch);
	free(h->page);
	free(h);
	return 0;
}

/* Hands a new connection over with what sbxd would have read of it. */
static inline void h_connect_bytes(struct harness *h, const void *bytes, size_t n)
{
	const struct ctl_conn who = {.cookie = H_COOKIE, .uid = 1000, .flags = h->client_flags};
	int pair[2];

	fd_close(&h->client);
	buf_clear(&h->answer);
	h->answer_ended = false;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	h->client = pair[1];
	conn_open(&h->s, pair[0], &who, 3, bytes, n);
}

static inline void h_connect(struct harness *h, const char *text)
{
	h_connect_bytes(h, text, strlen(text));
}

static inline void h_client_send(struct harness *h, const char *text)
{
	assert_int_equal(send(h->client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Hands over a request with a body. */
static inline void h_request(
    struct harness *h, const char *method, const char *rest, const char *extra, const char *body)
{
	struct buf b;

	buf_init(&b, 1U << 20);
	assert_int_equal(
	    buf_printf(&b, "%s " H_BOX "/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s",
		method, rest, extra, strlen(body), body),
	    0);
	h_connect_bytes(h, buf_head(&b), b.len);
	buf_free(&b);
}

static inline const char *h_answer(struct harness *h)
{
	assert_int_equal(buf_terminate(&h->answer), 0);
	return (const char *)buf_head(&h->answer);
}

static inline bool h_answer_has(struct harness *h, const char *text)
{
	return h->answer.len >= strlen(text) &&
	       memmem(buf_head(&h->answer), h->answer.len, text, strlen(text)) != NULL;
}

/* Waits until the answer holds `text`. */
static inline void h_expect(struct harness *h, const char *text)
{
	uint64_t until = clock_now_ns() + H_WAIT;

	h_drain(h);
	while (!h_answer_has(h, text)) {
		if (clock_now_ns() > until)
			fail_msg("no \"%s\" in: %s", text, h_answer(h));
		h_step(h);
	}
}

static inline unsigned int h_word(struct harness *h, size_t i)
{
	return CONN_STATE(atomic_load(&h->page->conns[i]));
}

#endif
