/*
 * tar_serving: what the guest is asked when a client asks for archives, and what it answers. For
 * the tests of PUT and GET files, each of which is one program: so everything here is static.
 */
#ifndef SBXD_TEST_WORKER_TAR_SERVING_H
#define SBXD_TEST_WORKER_TAR_SERVING_H

#include "tests/unit/worker/harness.h"
#include "tests/unit/worker/tar_testing.h"

/* The request to start the helper: its arguments, after its name, one a line. Returns the channel.
 */
static T_UNUSED uint32_t guest_expect_helper(struct harness *h, const char *args)
{
	uint8_t payload[8192];
	struct agent_head head = guest_next(h, payload, sizeof(payload));
	struct agent_exec_request *r = NULL;
	char got[8192] = "";

	assert_int_equal(head.type, AGENT_EXEC);
	assert_int_equal(agent_parse_exec(payload, head.size, &r), 0);
	assert_true(r->head.flags & AGENT_EXEC_HELPER);
	for (uint32_t i = 1; i < r->head.argc; i++) {
		size_t len = strlen(got);

		(void)snprintf(got + len, sizeof(got) - len, "%s\n", r->argv[i]);
	}
	assert_string_equal(got, args);
	free(r);
	guest_started(h, head.channel);
	return head.channel;
}

/* Sends n bytes as the worker takes them. */
static T_UNUSED void h_send_all(struct harness *h, const uint8_t *p, size_t n)
{
	uint64_t until = clock_now_ns() + H_WAIT;

	while (n) {
		ssize_t sent = send(h->client, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_true(clock_now_ns() < until);
		if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
		}
		h_step(h);
	}
}

/* A request with a body of any bytes, of which `sent` are sent now. */
static T_UNUSED void h_put(
    struct harness *h, const char *query, const struct buf *body, size_t sent)
{
	struct buf b;

	buf_init(&b, T_ARCHIVE_MAX);
	assert_int_equal(buf_printf(&b,
			     "PUT " H_BOX "/files?%s HTTP/1.1\r\nHost: x\r\n"
			     "Content-Length: %zu\r\n\r\n",
			     query, body->len),
	    0);
	h_connect_bytes(h, buf_head(&b), b.len);
	buf_free(&b);
	h_send_all(h, buf_head(body), sent);
}

static T_UNUSED void guest_stderr(struct harness *h, uint32_t id, const char *text)
{
	guest_send(h, AGENT_DATA, AGENT_STDERR, id, text, strlen(text));
}

#endif
