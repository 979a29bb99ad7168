/* agent_link: frames, credit and channels against a guest that keeps, and that breaks, the rules.
 */
#include "tests/unit/worker/harness.h"

struct probe {
	struct agent_chan chan;
	int started;
	int sendable;
	int ended;
	int failed;
	uint32_t code;
	char text[64];
	struct agent_end end;
	struct buf data[AGENT_STREAMS];
};

static struct probe *probe_of(struct agent_chan *c)
{
	return LOOP_OWNER(c, struct probe, chan);
}

static int on_started(struct agent_chan *c, const uint8_t *p, size_t n)
{
	(void)p;
	probe_of(c)->started++;
	return n == 4 ? 0 : -EBADMSG;
}

static size_t on_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	assert_int_equal(buf_append(&probe_of(c)->data[stream], p, n), 0);
	return n;
}

static void on_sendable(struct agent_chan *c)
{
	probe_of(c)->sendable++;
}

static void on_end(struct agent_chan *c, const struct agent_end *end)
{
	probe_of(c)->ended++;
	probe_of(c)->end = *end;
}

static void on_error(struct agent_chan *c, uint32_t code, const char *text)
{
	probe_of(c)->failed++;
	probe_of(c)->code = code;
	(void)snprintf(probe_of(c)->text, sizeof(probe_of(c)->text), "%s", text);
}

static const struct agent_chan_ops probe_ops = {
    .started = on_started,
    .data = on_data,
    .sendable = on_sendable,
    .end = on_end,
    .error = on_error,
};

static void probe_init(struct probe *p)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < AGENT_STREAMS; i++)
		buf_init(&p->data[i], 16U << 20);
}

static void probe_free(struct probe *p)
{
	agent_chan_drop(&p->chan);
	for (size_t i = 0; i < AGENT_STREAMS; i++)
		buf_free(&p->data[i]);
}

static uint32_t probe_open(struct harness *h, struct probe *p)
{
	probe_init(p);
	assert_int_equal(
	    agent_chan_open(&h->link, &p->chan, &probe_ops, AGENT_EXEC, "request", 7), 0);
	return guest_expect(h, AGENT_EXEC);
}

static void test_life_of_a_channel(void **state)
{
	struct harness *h = *state;
	struct probe p;
	uint32_t id = probe_open(h, &p);

	assert_int_not_equal(id, 0);
	guest_started(h, id);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "out", 3);
	guest_send(h, AGENT_DATA, AGENT_STDERR, id, "err", 3);
	guest_end(h, id, 3, 0, 0);
	H_UNTIL(h, p.ended == 1);
	assert_int_equal(p.started, 1);
	assert_int_equal(p.end.exit_code, 3);
	assert_memory_equal(buf_head(&p.data[AGENT_STDOUT]), "out", 3);
	assert_memory_equal(buf_head(&p.data[AGENT_STDERR]), "err", 3);
	assert_null(p.chan.link);
	/* Frames that crossed the end on the wire are nobody's. */
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "late", 4);
	guest_end(h, id, 0, 0, 0);
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), 0);
	guest_send(h, AGENT_PONG, 0, 0, "x", 1);
	H_UNTIL(h, h->pongs == 1);
	assert_int_equal(p.ended, 1);
	assert_int_equal(h->broken, 0);
	probe_free(&p);
}

static void test_error_closes(void **state)
{
	struct harness *h = *state;
	struct probe p;
	uint32_t id = probe_open(h, &p);

	guest_error(h, id, AGENT_E_NOT_FOUND, "no such file");
	H_UNTIL(h, p.failed == 1);
	assert_int_equal(p.code, AGENT_E_NOT_FOUND);
	assert_string_equal(p.text, "no such file");
	assert_null(p.chan.link);
	probe_free(&p);
}

/* Every frame byte by byte: what comes in pieces means the same. */
static void test_split_frames(void **state)
{
	struct harness *h = *state;
	const struct agent_end end = {.exit_code = 9};
	uint8_t wire[128];
	struct probe p;
	uint32_t id = probe_open(h, &p);
	size_t n = 0;

	agent_put_head(wire, AGENT_DATA, 0, AGENT_STDOUT, id, 5);
	memcpy(wire + 16, "abcde", 5);
	agent_put_head(wire + 21, AGENT_DATA, 0, AGENT_STDOUT, id, 0);
	agent_put_head(wire + 37, AGENT_END, 0, 0, id, sizeof(end));
	memcpy(wire + 53, &end, sizeof(end));
	n = 53 + sizeof(end);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(send(h->guest, wire + i, 1, 0), 1);
		h_settle(h);
		assert_int_equal(p.data[AGENT_STDOUT].len, i < 16 ? 0 : i < 21 ? i - 15 : 5);
		assert_int_equal(p.ended, i == n - 1);
	}
	assert_int_equal(p.end.exit_code, 9);
	probe_free(&p);
}

static void fill_window(struct harness *h, uint32_t id, struct probe *p)
{
	static uint8_t block[AGENT_PAYLOAD_MAX];
	size_t before = p->data[AGENT_STDOUT].len;

	for (size_t sent = 0; sent < AGENT_WINDOW; sent += sizeof(block)) {
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
		H_UNTIL(h, p->data[AGENT_STDOUT].len == before + sent + sizeof(block));
	}
}

static void test_window_overrun_breaks(void **state)
{
	struct harness *h = *state;
	struct probe p;
	uint32_t id = probe_open(h, &p);

	fill_window(h, id, &p);
	h_settle(h);
	assert_int_equal(h->broken, 0);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "x", 1);
	H_UNTIL(h, h->broken == 1);
	assert_int_equal(p.data[AGENT_STDOUT].len, AGENT_WINDOW);
	probe_free(&p);
}

static void test_grant_gives_credit(void **state)
{
	struct harness *h = *state;
	uint8_t payload[64];
	struct agent_head head;
	struct probe p;
	uint32_t id = probe_open(h, &p);
	uint32_t credit = 0;

	fill_window(h, id, &p);
	agent_chan_grant(&p.chan, AGENT_STDOUT, 10);
	h_settle(h);
	assert_int_equal(h->from_worker.len, 0); /* not worth a frame yet */
	agent_chan_grant(&p.chan, AGENT_STDOUT, AGENT_WINDOW - 10);
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_CREDIT);
	assert_int_equal(head.arg, AGENT_STDOUT);
	assert_int_equal(head.channel, id);
	memcpy(&credit, payload, sizeof(credit));
	assert_int_equal(credit, AGENT_WINDOW);
	fill_window(h, id, &p);
	assert_int_equal(h->broken, 0);
	probe_free(&p);
}

static void test_sending_is_bounded_by_credit(void **state)
{
	struct harness *h = *state;
	static uint8_t bytes[AGENT_WINDOW + 100];
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	const uint32_t credit = 40;
	size_t got = 0;
	struct probe p;
	uint32_t id = probe_open(h, &p);

	assert_int_equal(agent_chan_send(&p.chan, bytes, sizeof(bytes)), AGENT_WINDOW);
	assert_int_equal(agent_chan_room(&p.chan), 0);
	while (got < AGENT_WINDOW) {
		struct agent_head head = guest_next(h, payload, sizeof(payload));

		assert_int_equal(head.type, AGENT_DATA);
		assert_int_equal(head.arg, AGENT_STDIN);
		got += head.size;
	}
	assert_int_equal(got, AGENT_WINDOW);
	assert_int_equal(p.sendable, 0);
	guest_send(h, AGENT_CREDIT, AGENT_STDIN, id, &credit, sizeof(credit));
	H_UNTIL(h, p.sendable == 1);
	assert_int_equal(agent_chan_room(&p.chan), 40);
	assert_int_equal(agent_chan_send(&p.chan, bytes, 100), 40);
	assert_int_equal(guest_expect(h, AGENT_DATA), id);
	probe_free(&p);
}

static void test_too_much_credit_breaks(void **state)
{
	struct harness *h = *state;
	const uint32_t credit = 1;
	struct probe p;
	uint32_t id = probe_open(h, &p);

	guest_send(h, AGENT_CREDIT, AGENT_STDIN, id, &credit, sizeof(credit));
	H_UNTIL(h, h->broken == 1);
	probe_free(&p);
}

static void test_long_request_is_continued(void **state)
{
	struct harness *h = *state;
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	size_t n = 3 * AGENT_PAYLOAD_MAX + 5;
	uint8_t *request = malloc(n);
	struct agent_head head;
	struct probe p;

	assert_non_null(request);
	memset(request, 'r', n);
	probe_init(&p);
	assert_int_equal(agent_chan_open(&h->link, &p.chan, &probe_ops, AGENT_EXEC, request, n), 0);
	for (int i = 0; i < 4; i++) {
		head = guest_next(h, payload, sizeof(payload));
		assert_int_equal(head.type, AGENT_EXEC);
		assert_int_equal(head.flags, i < 3 ? AGENT_F_MORE : 0);
		assert_int_equal(head.size, i < 3 ? AGENT_PAYLOAD_MAX : 5);
	}
	assert_int_equal(agent_chan_open(&h->link, &p.chan, &probe_ops, AGENT_EXEC, request,
			     AGENT_REQUEST_MAX + 1),
	    -EMSGSIZE);
	free(request);
	probe_free(&p);
}

static void test_channels_run_out(void **state)
{
	struct harness *h = *state;
	static struct probe p[AGENT_CHANNELS_MAX + 1];
	uint32_t id = 0;

	for (size_t i = 0; i < AGENT_CHANNELS_MAX; i++)
		id = probe_open(h, &p[i]);
	assert_int_equal(
	    agent_chan_open(&h->link, &p[AGENT_CHANNELS_MAX].chan, &probe_ops, AGENT_EXEC, "", 0),
	    -EAGAIN);
	guest_end(h, id, 0, 0, 0);
	H_UNTIL(h, p[AGENT_CHANNELS_MAX - 1].ended == 1);
	assert_int_not_equal(probe_open(h, &p[AGENT_CHANNELS_MAX]), id);
	for (size_t i = 0; i <= AGENT_CHANNELS_MAX; i++)
		probe_free(&p[i]);
}

static void test_end_of_stream_breaks(void **state)
{
	struct harness *h = *state;

	fd_close(&h->guest);
	for (int i = 0; i < 100 && !h->broken; i++)
		assert_int_equal(loop_step(h->s.loop, NS_PER_MS), 0);
	assert_int_equal(h->broken, 1);
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), -EPIPE);
}

/* What no correct guest sends. {0} as payload of `size` bytes on the open channel, or on 0. */
struct bad {
	enum agent_type type;
	unsigned int arg;
	bool on_channel;
	size_t size;
};

static const struct bad bads[] = {
    {AGENT_PING, 0, false, 0},
    {AGENT_EXEC, 0, true, 0},
    {AGENT_CLOSE, 0, true, 0},
    {AGENT_HELLO, 0, false, sizeof(struct agent_hello)}, /* a second one */
    {AGENT_PONG, 0, true, 4},
    {AGENT_PONG, 0, false, 4}, /* nobody asked */
    {AGENT_DATA, AGENT_STDIN, true, 1},
    {AGENT_DATA, AGENT_STDOUT, false, 1},
    {AGENT_EOF, AGENT_STDOUT, true, 0}, /* END says it */
    {AGENT_CREDIT, AGENT_STDOUT, true, 4},
    {AGENT_CREDIT, AGENT_STDIN, true, 3},
    {AGENT_STARTED, 0, true, 3},
    {AGENT_END, 0, true, 23},
    {AGENT_ERROR, 0, true, 7},
    {AGENT_ERROR, 0, true, 8 + AGENT_ERROR_TEXT + 1},
};

static void test_broken_rules_break_the_link(void **state)
{
	static const uint8_t zeros[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		void *own = NULL;
		struct harness *h;
		struct probe p;
		uint32_t id;

		assert_int_equal(h_setup(&own), 0);
		h = own;
		id = probe_open(h, &p);
		guest_send(
		    h, bads[i].type, bads[i].arg, bads[i].on_channel ? id : 0, zeros, bads[i].size);
		H_UNTIL(h, h->broken == 1);
		assert_int_equal(p.ended + p.failed, 0);
		probe_free(&p);
		(void)h_teardown(&own);
	}
}

static void test_garbage_breaks_the_link(void **state)
{
	struct harness *h = *state;

	assert_int_equal(send(h->guest, "HTTP/1.1 200 OK\r\n\r\n", 19, 0), 19);
	H_UNTIL(h, h->broken == 1);
}

/* ---- a guest that stands still ---- */

static int roused;

static int rouse_and_tell(void *ctx)
{
	struct harness *h = ctx;

	roused++;
	return agent_link_send(&h->link, AGENT_WAKE, "w", 1);
}

static int rouse_in_vain(void *ctx)
{
	(void)ctx;
	roused++;
	return -ETIMEDOUT;
}

static void fall_asleep(struct harness *h, struct agent_link_ops *ops, int (*rouse)(void *ctx))
{
	*ops = h_link_ops;
	ops->rouse = rouse;
	h->link.ops = ops;
	h->link.asleep = true;
	roused = 0;
}

/* Whatever is sent first; and what the wake brings comes before it. */
static void test_what_is_sent_rouses_the_guest(void **state)
{
	struct harness *h = *state;
	struct agent_link_ops ops;
	struct probe p;

	fall_asleep(h, &ops, rouse_and_tell);
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), 0);
	assert_int_equal(roused, 1);
	(void)guest_expect(h, AGENT_WAKE);
	(void)guest_expect(h, AGENT_PING);
	fall_asleep(h, &ops, rouse_and_tell);
	probe_init(&p);
	assert_int_equal(
	    agent_chan_open(&h->link, &p.chan, &probe_ops, AGENT_EXEC, "request", 7), 0);
	(void)guest_expect(h, AGENT_WAKE);
	(void)guest_expect(h, AGENT_EXEC);
	agent_chan_close(&p.chan);
	(void)guest_expect(h, AGENT_CLOSE);
	assert_int_equal(roused, 1);
	assert_int_equal(h->broken, 0);
	probe_free(&p);
	h->link.ops = &h_link_ops;
}

static void test_one_that_does_not_go_on_breaks_the_link(void **state)
{
	struct harness *h = *state;
	struct agent_link_ops ops;

	fall_asleep(h, &ops, rouse_in_vain);
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), -EPIPE);
	H_UNTIL(h, h->broken == 1);
	assert_int_equal(roused, 1);
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), -EPIPE);
	assert_int_equal(roused, 1);
	h->link.ops = &h_link_ops;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_life_of_a_channel),
	    TEST(test_error_closes),
	    TEST(test_split_frames),
	    TEST(test_window_overrun_breaks),
	    TEST(test_grant_gives_credit),
	    TEST(test_sending_is_bounded_by_credit),
	    TEST(test_too_much_credit_breaks),
	    TEST(test_long_request_is_continued),
	    TEST(test_channels_run_out),
	    TEST(test_end_of_stream_breaks),
	    cmocka_unit_test(test_broken_rules_break_the_link),
	    TEST(test_garbage_breaks_the_link),
	    TEST(test_what_is_sent_rouses_the_guest),
	    TEST(test_one_that_does_not_go_on_breaks_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
