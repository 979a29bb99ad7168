/*
 * exec_testing: executions between a guest that the test plays and any number of clients, which may
 * become WebSockets.
 */
#ifndef SBXD_TEST_EXEC_TESTING_H
#define SBXD_TEST_EXEC_TESTING_H

#include <jansson.h>

#include "tests/unit/worker/harness.h"
#include "wire/websocket.h"
#include "worker/conn_ws.h"
#include "worker/exec.h"

#define EXEC_CAT "{\"command\":\"cat\"}"
#define EXEC_TTY "{\"command\":\"cat\",\"tty\":true}"

/* A client's end of a connection. */
struct peer {
	int fd;
	struct buf in;
	bool ended;
};

static inline void peer_drain(struct harness *h, struct peer *p)
{
	uint8_t bytes[65536];
	ssize_t n = -1;

	h_drain(h);
	while (p->fd >= 0 && (n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(buf_append(&p->in, bytes, (size_t)n), 0);
	if (p->fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
		p->ended = true;
}

/* Runs the loop until cond holds, with the peer's data taken. */
#define PEER_UNTIL(h, p, cond)                                         \
	do {                                                           \
		uint64_t until_ = clock_now_ns() + H_WAIT;             \
		peer_drain(h, p);                                      \
		while (!(cond)) {                                      \
			if (clock_now_ns() > until_)                   \
				fail_msg("did not happen: %s", #cond); \
			h_step(h);                                     \
			peer_drain(h, p);                              \
		}                                                      \
	} while (0)

static inline void peer_open(struct harness *h, struct peer *p, const char *text)
{
	const struct ctl_conn who = {.cookie = H_COOKIE, .uid = 1000, .flags = h->client_flags};
	int pair[2];

	*p = (struct peer){.fd = -1};
	buf_init(&p->in, 64U << 20);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	p->fd = pair[1];
	conn_open(&h->s, pair[0], &who, 3, (const uint8_t *)text, strlen(text));
}

static inline void peer_close(struct peer *p)
{
	fd_close(&p->fd);
	buf_free(&p->in);
}

/* A request with a body below the box; body NULL: none. */
static inline void peer_request(struct harness *h, struct peer *p, const char *method,
    const char *path, const char *fields, const char *body)
{
	struct buf b;

	buf_init(&b, 1U << 20);
	assert_int_equal(
	    buf_printf(&b, "%s " H_BOX "/%s HTTP/1.1\r\nHost: x\r\n%s", method, path, fields), 0);
	if (body)
		assert_int_equal(
		    buf_printf(&b, "Content-Length: %zu\r\n\r\n%s", strlen(body), body), 0);
	else
		assert_int_equal(buf_puts(&b, "\r\n"), 0);
	assert_int_equal(buf_terminate(&b), 0);
	peer_open(h, p, (const char *)buf_head(&b));
	buf_free(&b);
}

static inline const char *peer_text(struct peer *p)
{
	assert_int_equal(buf_terminate(&p->in), 0);
	return (const char *)buf_head(&p->in);
}

static inline bool peer_has(struct peer *p, const char *text)
{
	return p->in.len && memmem(buf_head(&p->in), p->in.len, text, strlen(text)) != NULL;
}

static inline void peer_expect(struct harness *h, struct peer *p, const char *text)
{
	uint64_t until = clock_now_ns() + H_WAIT;

	peer_drain(h, p);
	while (!peer_has(p, text)) {
		if (clock_now_ns() > until)
			fail_msg("no \"%s\" in: %s", text, peer_text(p));
		h_step(h);
		peer_drain(h, p);
	}
}

/* One whole request: its answer has these texts. */
static inline void peer_once(struct harness *h, const char *method, const char *path,
    const char *body, const char *status, const char *text)
{
	char line[32];
	struct peer p;

	(void)snprintf(line, sizeof(line), "HTTP/1.1 %s ", status);
	peer_request(h, &p, method, path, "", body);
	peer_expect(h, &p, line);
	peer_expect(h, &p, text);
	peer_close(&p);
	h_settle(h);
}

/* ---- executions ---- */

struct running {
	char id[EXEC_ID_LEN];
	uint32_t chan; /* in the guest */
};

static inline struct execution *exec_newest(struct harness *h)
{
	struct execution *x = LIST_FIRST(&h->s.executions);

	assert_non_null(x);
	return x;
}

static inline void exec_run(struct harness *h, const char *json, struct running *out)
{
	struct peer p;

	peer_request(h, &p, "POST", "exec", "", json);
	out->chan = guest_expect(h, AGENT_EXEC);
	assert_false(peer_has(&p, "HTTP"));
	guest_started(h, out->chan);
	peer_expect(h, &p, "\"execution_id\":\"exec-");
	assert_true(peer_has(&p, "HTTP/1.1 201 Created\r\n"));
	(void)snprintf(out->id, sizeof(out->id), "%s", exec_newest(h)->id);
	assert_true(peer_has(&p, out->id));
	peer_close(&p);
	h_settle(h);
}

static inline void exec_path(char out[96], const char *id, const char *what)
{
	(void)snprintf(out, 96, "executions/%s%s", id, what);
}

/* ---- WebSockets ---- */

static inline void ws_ask(struct harness *h, struct peer *p, const char *id, const char *query)
{
	char path[96];

	exec_path(path, id, "/attach");
	(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s", query);
	peer_request(h, p, "GET", path,
	    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
	    NULL);
}

/* Attaches; what has come after the head stays in p->in. */
static inline void ws_open(struct harness *h, struct peer *p, const char *id, const char *query)
{
	const char *end;

	ws_ask(h, p, id, query);
	peer_expect(h, p, "\r\n\r\n");
	assert_true(peer_has(p, "HTTP/1.1 101 Switching Protocols\r\n"));
	assert_true(peer_has(p, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	end = memmem(buf_head(&p->in), p->in.len, "\r\n\r\n", 4);
	buf_consume(&p->in, (size_t)(end + 4 - (const char *)buf_head(&p->in)));
}

static inline void ws_put(struct harness *h, struct peer *p, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n) {
		ssize_t done = send(p->fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (done < 0)
			assert_int_equal(errno, EAGAIN);
		if (done <= 0) {
			h_step(h);
			peer_drain(h, p);
			continue;
		}
		at += done;
		n -= (size_t)done;
	}
}

/* A frame of a client; first: FIN and opcode. */
static inline void ws_put_frame(
    struct harness *h, struct peer *p, unsigned int first, const void *payload, size_t n)
{
	static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
	const uint8_t *from = payload;
	uint8_t head[14];
	size_t len = ws_put_head(head, WS_BINARY, n);
	uint8_t *turned = malloc(n + 1);

	assert_non_null(turned);
	head[0] = (uint8_t)first;
	head[1] |= 0x80;
	memcpy(head + len, mask, 4);
	for (size_t i = 0; i < n; i++)
		turned[i] = from[i] ^ mask[i % 4];
	ws_put(h, p, head, len + 4);
	ws_put(h, p, turned, n);
	free(turned);
}

#define WS_FIN 0x80U

static inline void ws_put_text(struct harness *h, struct peer *p, const char *text)
{
	ws_put_frame(h, p, WS_FIN | WS_TEXT, text, strlen(text));
}

/* The next frame of the server: its opcode, and its payload, NUL-terminated, into out. */
static inline enum ws_opcode ws_next(struct harness *h, struct peer *p, struct buf *out)
{
	const uint8_t *b;
	size_t head = 2;
	size_t n;

	PEER_UNTIL(h, p, p->in.len >= 2);
	b = buf_head(&p->in);
	assert_true(b[0] & WS_FIN);
	assert_false(b[1] & 0x80);
	n = b[1];
	if (n >= 126)
		head = n == 126 ? 4 : 10;
	PEER_UNTIL(h, p, p->in.len >= head);
	b = buf_head(&p->in);
	for (size_t i = 2, wide = n; wide >= 126 && i < head; i++)
		n = i == 2 ? b[i] : n << 8 | b[i];
	PEER_UNTIL(h, p, p->in.len >= head + n);
	b = buf_head(&p->in);
	buf_clear(out);
	assert_int_equal(buf_append(out, b + head, n), 0);
	assert_int_equal(buf_terminate(out), 0);
	buf_consume(&p->in, head + n);
	return (enum ws_opcode)(b[0] & 15);
}

/* The next frame, pings left out, is this one. */
static inline void ws_expect(
    struct harness *h, struct peer *p, enum ws_opcode opcode, const void *payload, size_t n)
{
	struct buf got;
	enum ws_opcode next;

	buf_init(&got, 1U << 20);
	do {
		next = ws_next(h, p, &got);
	} while (next == WS_PING && opcode != WS_PING);
	if (next != opcode || got.len != n || memcmp(buf_head(&got), payload, n) != 0)
		fail_msg("frame %d of %zu bytes: %s", (int)next, got.len,
		    got.len ? (const char *)buf_head(&got) : "");
	buf_free(&got);
}

/* The next frame, pings left out, is a text with this in it. */
static inline void ws_expect_text(struct harness *h, struct peer *p, const char *part)
{
	struct buf got;
	enum ws_opcode next;

	buf_init(&got, 1U << 20);
	do {
		next = ws_next(h, p, &got);
	} while (next == WS_PING);
	if (next != WS_TEXT || !strstr((const char *)buf_head(&got), part))
		fail_msg(
		    "frame %d: no \"%s\" in: %s", (int)next, part, (const char *)buf_head(&got));
	buf_free(&got);
}

/* The next frame, pings left out, is a Close with that code, and then the connection ends. */
static inline void ws_expect_close(struct harness *h, struct peer *p, unsigned int code)
{
	struct buf got;
	enum ws_opcode next;

	buf_init(&got, 1U << 20);
	do {
		next = ws_next(h, p, &got);
	} while (next == WS_PING);
	assert_int_equal(next, WS_CLOSE);
	assert_true(got.len >= 2);
	assert_int_equal(buf_head(&got)[0] << 8 | buf_head(&got)[1], code);
	buf_free(&got);
}

static inline void ws_answer_close(struct harness *h, struct peer *p)
{
	ws_put_frame(h, p, WS_FIN | WS_CLOSE, "\x03\xe8", 2);
	PEER_UNTIL(h, p, p->ended);
	assert_int_equal(p->in.len, 0);
	peer_close(p);
	h_settle(h);
}

/* The exit message with that code, the Close, its answer, the end. */
static inline void ws_expect_exit(struct harness *h, struct peer *p, int code)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "\"type\":\"exit\",\"exit_code\":%d,", code);
	ws_expect_text(h, p, text);
	ws_expect_close(h, p, WS_NORMAL);
	ws_answer_close(h, p);
}

/* ---- what several tests do ---- */

static inline struct conn_ws *ws_of_newest(struct harness *h)
{
	return (struct conn_ws *)(void *)exec_newest(h)->attach;
}

/* Takes frames from the worker until one of `type` comes; its payload into out. */
static inline size_t skip_to(
    struct harness *h, enum agent_type type, uint8_t out[AGENT_PAYLOAD_MAX])
{
	struct agent_head head;

	do {
		head = guest_next(h, out, AGENT_PAYLOAD_MAX);
	} while (head.type != type);
	return head.size;
}

/* The loop comes to this timer as if its time had come. */
static inline void let_time_pass(struct harness *h, struct loop_timer *t)
{
	assert_int_not_equal(t->pos, 0);
	assert_int_equal(loop_timer_set(h->s.loop, t, 1, t->fn), 0);
	h_settle(h);
}

static inline void guest_out(
    struct harness *h, const struct running *r, unsigned int stream, const char *text)
{
	guest_send(h, AGENT_DATA, stream, r->chan, text, strlen(text));
}

/* Sends n bytes on stdout, never more than the worker has given credit for; false: it is used up.
 */
static inline bool guest_write(struct harness *h, const struct running *r, size_t n, size_t *credit)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	static uint8_t block[32768];

	memset(block, 'x', sizeof(block));
	while (n) {
		size_t part = n < sizeof(block) ? n : sizeof(block);

		h_settle(h);
		while (h->from_worker.len >= AGENT_HEAD_LEN) {
			struct agent_head head = guest_next(h, payload, sizeof(payload));
			uint32_t more;

			if (head.type != AGENT_CREDIT || head.arg != AGENT_STDOUT)
				continue;
			memcpy(&more, payload, sizeof(more));
			*credit += more;
		}
		if (*credit < part)
			return false;
		guest_send(h, AGENT_DATA, AGENT_STDOUT, r->chan, block, part);
		*credit -= part;
		n -= part;
	}
	h_settle(h);
	return true;
}

static inline struct agent_head next_frame(struct harness *h, uint8_t payload[AGENT_PAYLOAD_MAX])
{
	return guest_next(h, payload, AGENT_PAYLOAD_MAX);
}

static inline void expect_signal(struct harness *h, uint32_t chan, uint32_t signal)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct agent_head head = next_frame(h, payload);

	assert_int_equal(head.type, AGENT_SIGNAL);
	assert_int_equal(head.channel, chan);
	assert_int_equal(head.size, sizeof(signal));
	assert_memory_equal(payload, &signal, sizeof(signal));
}

/* GET of the execution says this. */
static inline void expect_status(struct harness *h, const char *id, const char *text)
{
	char path[96];

	exec_path(path, id, "");
	peer_once(h, "GET", path, NULL, "200", text);
}

static inline void expect_none(struct harness *h, const char *id)
{
	char path[96];

	exec_path(path, id, "");
	peer_once(h, "GET", path, NULL, "404", "execution not found: exec-");
}

#endif
