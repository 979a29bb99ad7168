/* A client that orders more than the guest reads: it waits, and the box lives. The guest is the
 * test's. */
#include "tests/unit/worker/exec_testing.h"

#define FLOOD_MAX (64U << 20) /* bytes: far more than what breaks the link */
#define ORDER "{\"type\":\"signal\",\"sig\":28}"

/* Sends orders until nobody takes more, while the guest reads nothing. Returns the bytes. */
static size_t flood(struct harness *h, struct peer *p)
{
	static uint8_t frame[6 + sizeof(ORDER) - 1] = {
	    WS_FIN | WS_TEXT, 0x80 | (sizeof(ORDER) - 1)}; /* its mask is zero */
	size_t total = 0;
	int vain = 0;

	memcpy(frame + 6, ORDER, sizeof(ORDER) - 1);
	while (vain < 50 && total < FLOOD_MAX) {
		size_t at = total % sizeof(frame);
		ssize_t n =
		    send(p->fd, frame + at, sizeof(frame) - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			total += (size_t)n;
			vain = 0;
			continue;
		}
		vain++;
		assert_int_equal(loop_step(h->s.loop, 0), 0);
	}
	assert_int_equal(total % sizeof(frame), 0); /* a socket takes them whole */
	return total / sizeof(frame);
}

static void expect_flood(const char *json, void **state)
{
	struct harness *h = *state;
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct running r;
	struct peer late;
	struct peer p;
	char path[96];
	size_t orders;

	exec_run(h, json, &r);
	ws_open(h, &p, r.id, "");
	assert_int_equal(skip_to(h, AGENT_CREDIT, payload), 4); /* of its first client */
	assert_int_equal(skip_to(h, AGENT_CREDIT, payload), 4);
	orders = flood(h, &p);
	assert_true(orders > 10000);
	assert_int_equal(h->broken, 0);
	assert_true(h->link.out.len <= AGENT_LINK_OUT_LOW + SERVICE_SCRATCH);

	/* Nor may a request add to it. */
	exec_path(path, r.id, "/signal");
	peer_request(h, &late, "POST", path, "", "{\"signal\":15}");
	for (int i = 0; i < 50; i++)
		assert_int_equal(loop_step(h->s.loop, 0), 0);
	peer_expect(h, &late, "HTTP/1.1 429 "); /* and here the guest reads on */
	peer_expect(h, &late, "box_resources");
	peer_close(&late);

	for (size_t i = 0; i < orders; i++)
		expect_signal(h, r.chan, 28);
	ws_put_text(h, &p, "{\"type\":\"signal\",\"sig\":15}");
	expect_signal(h, r.chan, 15);
	peer_once(h, "POST", path, "{\"signal\":2}", "204", "");
	expect_signal(h, r.chan, 2);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
}

static void test_with_stdin(void **state)
{
	expect_flood(EXEC_CAT, state);
}

/* No credit is ever given for it, so that credit cannot be what is waited for. */
static void test_without_stdin(void **state)
{
	expect_flood("{\"command\":\"cat\",\"stdin\":false}", state);
}

/* It ends while its client waits to be read: the client is told. */
static void test_end_in_a_flood(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, "{\"command\":\"cat\",\"stdin\":false}", &r);
	ws_open(h, &p, r.id, "");
	(void)flood(h, &p);
	guest_end(h, r.chan, 3, 0, 0);
	ws_expect_exit(h, &p, 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_with_stdin),
	    TEST(test_without_stdin),
	    TEST(test_end_in_a_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
