/* Tests of shm/event.c. */
#include "shm/event.h"

#include "shm/slot.h"
#include "tests/unit/shm/shm_testing.h"

/* The value of that name as text, NULL when it is not there. */
static const char *value(const struct event_view *v, const char *name)
{
	static char number[32];

	for (size_t i = 0; i < v->count; i++) {
		if (strcmp(v->fields[i].name, name) != 0)
			continue;
		if (v->fields[i].text)
			return v->fields[i].text;
		(void)snprintf(number, sizeof(number), "%lld", (long long)v->fields[i].number);
		return number;
	}
	return NULL;
}

static void test_all_that_a_record_can_say(void **state)
{
	static const struct {
		const char *name;
		const char *value;
	} expected[EVENT_FIELDS] = {
	    {"time", "1970-01-01T00:00:01.234Z"},
	    {"seq", "42"},
	    {"kind", "state"},
	    {"slot", "0"},
	    {"generation", "7"},
	    {"box_id", "0123456789abcdef"},
	    {"uid", "0"},
	    {"from", "free"},
	    {"to", "reserved"},
	    {"pid", "99"},
	    {"code", "-5"},
	    {"request_id", "req_1"},
	    {"reason", "because"},
	};
	const struct shm_event ev = {.seq = 42,
	    .wall_ms = 1234,
	    .generation = 7,
	    .slot = 0,
	    .kind = EVENT_STATE,
	    .from = SLOT_FREE,
	    .to = SLOT_RESERVED,
	    .pid = 99,
	    .code = -5,
	    .token = "0123456789abcdef",
	    .request_id = "req_1",
	    .reason = "because"};
	struct event_view v;

	(void)state;
	event_describe(&ev, &v);
	assert_int_equal(v.count, EVENT_FIELDS);
	for (size_t i = 0; i < EVENT_FIELDS; i++) {
		assert_string_equal(v.fields[i].name, expected[i].name); /* in this order */
		assert_string_equal(value(&v, expected[i].name), expected[i].value);
	}
}

static void test_what_is_not_said_is_not_there(void **state)
{
	static const char *const absent[] = {"slot", "generation", "box_id", "uid", "from", "to",
	    "pid", "code", "request_id", "reason"};
	const struct shm_event ev = {.seq = 1, .kind = EVENT_SUPERVISOR_START, .slot = SHM_NONE};
	struct event_view v;

	(void)state;
	event_describe(&ev, &v);
	assert_int_equal(v.count, 3);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_null(value(&v, absent[i]));
	assert_string_equal(value(&v, "kind"), "supervisor_start");
}

/* From a table that was damaged: every text ends, every name is one. */
static void test_a_record_of_anything(void **state)
{
	struct shm_event ev;
	struct event_view v;

	(void)state;
	memset(&ev, 0x41, sizeof(ev));
	event_describe(&ev, &v);
	assert_string_equal(value(&v, "kind"), "?");
	assert_int_equal(strlen(value(&v, "box_id")), sizeof(ev.token));
	assert_int_equal(strlen(value(&v, "request_id")), sizeof(ev.request_id));
	assert_int_equal(strlen(value(&v, "reason")), sizeof(ev.reason));
	ev.kind = EVENT_STATE;
	event_describe(&ev, &v);
	assert_string_equal(value(&v, "from"), slot_state_name(SLOT_STATES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_that_a_record_can_say),
	    cmocka_unit_test(test_what_is_not_said_is_not_there),
	    cmocka_unit_test(test_a_record_of_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
