/* What sbxbench makes of its measurements: rows, groups, tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/bench.h"
#include "tools/bench_command.h"
#include "tools/bench_plan.h"
#include "tools/bench_summary.h"
#include "wire/json.h"

static void test_quantiles(void **state)
{
	struct samples s = {0};

	(void)state;
	assert_int_equal(samples_quantile(&s, 0.5), 0);
	samples_add(&s, 40);
	assert_int_equal(samples_quantile(&s, 0.99), 40);
	samples_add(&s, 10);
	samples_add(&s, 30);
	samples_add(&s, 20);
	assert_int_equal(samples_quantile(&s, 0), 10);
	assert_int_equal(samples_quantile(&s, 0.5), 25);
	assert_int_equal(samples_quantile(&s, 0.75), 33); /* 32.5 */
	assert_int_equal(samples_quantile(&s, 1), 40);
	samples_free(&s);
}

static struct bench_plan plan_of(const char *scenario)
{
	return (struct bench_plan){.scenario = bench_scenario_find(scenario),
	    .workload = bench_workload_find("noop"),
	    .concurrency = 3,
	    .replicas = 5,
	    .idle_timeout = -1,
	    .skip_seconds = 0.25,
	    .provider = "sbxd-test"};
}

static void test_threads_of_scenarios(void **state)
{
	static const struct {
		const char *scenario;
		uint32_t turn;
		const char *thread;
	} cases[] = {{"warm_same_thread", 7, "warm-hit"}, {"cold_unique_thread", 7, "cold-7"},
	    {"warm_miss_many_threads", 4, "thread-0"}, {"warm_miss_many_threads", 7, "thread-3"},
	    {"idle_timeout", 6, "idle-3"}, {"idle_timeout", 7, "idle-3"},
	    {"replica_pressure", 9, "pressure-9"}, {"replica_pressure", 10, "pressure-0"}};

	(void)state;
	assert_null(bench_scenario_find("x"));
	assert_null(bench_workload_find("x"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench_plan p = plan_of(cases[i].scenario);
		char thread[BENCH_THREAD];

		p.scenario->thread(&p, cases[i].turn, thread);
		assert_string_equal(thread, cases[i].thread);
	}
}

/* A row as text, which the caller frees. */
static char *row_text(const struct bench_plan *p, const struct bench_row *r)
{
	struct buf b;
	char *text;

	buf_init(&b, 8192);
	assert_int_equal(bench_row_put(p, r, &b), 0);
	text = strndup((const char *)buf_head(&b), b.len);
	buf_free(&b);
	assert_non_null(text);
	return text;
}

static void test_rows(void **state)
{
	struct bench_plan p = plan_of("cold_unique_thread");
	struct bench_row r = {.iteration = 2,
	    .thread = "cold-2",
	    .acquire_ms = 1.0625,
	    .run_ms = 2,
	    .release_ms = 3,
	    .total_ms = 6.5,
	    .warm_hit = -1,
	    .success = true};
	const struct err first = {.text = "no \"box\""};
	const struct err second = {.text = "later"};
	char *text = row_text(&p, &r);

	(void)state;
	assert_string_equal(text,
	    "{\"provider\":\"sbxd-test\",\"scenario\":\"cold_unique_thread\",\"workload\":\"noop\","
	    "\"iteration\":2,\"concurrency\":3,\"thread_id\":\"cold-2\",\"user_id\":\"bench-user\","
	    "\"acquire_ms\":1.063,\"run_ms\":2.000,\"release_ms\":3.000,\"total_ms\":6.500,"
	    "\"warm_hit\":null,\"success\":true,\"error\":null,\"replicas\":5,\"idle_timeout\":"
	    "null,"
	    "\"health_check_skip_seconds\":0.250,\"image\":null,\"no_warmpool\":false}\n");
	free(text);
	r.warm_hit = 1;
	bench_row_fail(&r, "acquire", &first);
	bench_row_fail(&r, "release", &second); /* what came first is kept */
	p.replicas = -1;
	text = row_text(&p, &r);
	assert_non_null(strstr(text,
	    "\"warm_hit\":true,\"success\":false,\"error\":\"acquire: no \\\"box\\\"\","
	    "\"replicas\":null"));
	free(text);
}

/* A table in one of its forms, which the caller frees. */
static char *table_text(const struct bench_table *t, enum bench_form form)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	bench_table_print(t, form, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void test_tables(void **state)
{
	static const char *const cells[] = {"name", "n", "\xc3\xa9\xc3\xa9", "1", "a, \"b\"", ""};
	static const char *const forms[] = {
	    [BENCH_TEXT_FORM] = "name    n\n\xc3\xa9\xc3\xa9      1\na, \"b\"  -\n",
	    [BENCH_MARKDOWN] =
		"| name   | n |\n|---|---:|\n| \xc3\xa9\xc3\xa9     | 1 |\n| a, \"b\" | - |\n",
	    [BENCH_CSV] = "name,n\r\n\xc3\xa9\xc3\xa9,1\r\n\"a, \"\"b\"\"\",\r\n",
	};
	struct bench_table t;

	(void)state;
	bench_table_init(&t, 2, 1);
	for (size_t i = 0; i < 6; i++)
		bench_table_add(&t, "%s", cells[i]);
	for (int form = 0; form <= BENCH_CSV; form++) {
		char *text = table_text(&t, (enum bench_form)form);

		assert_string_equal(text, forms[form]);
		free(text);
	}
	bench_table_free(&t);
}

static int add_line(struct bench_summary *s, const char *line)
{
	struct err err = {0};
	int rc = bench_summary_add(s, line, strlen(line), &err);

	assert_true(rc == 0 || *err.text);
	return rc;
}

static void test_groups(void **state)
{
	struct bench_summary s;
	struct bench_table t;
	struct err err;

	(void)state;
	assert_true(bench_summary_init(&s, "", &err) < 0);
	assert_true(bench_summary_init(&s, "a,", &err) < 0);
	assert_int_equal(bench_summary_init(&s, "c", &err), 0);
	assert_int_equal(add_line(&s, "  # no row"), 0);
	assert_int_equal(add_line(&s, " \t\r\n"), 0);
	assert_int_equal(s.rows, 0);
	assert_int_equal(
	    add_line(&s,
		"{\"c\":10,\"success\":true,\"acquire_ms\":2,\"total_ms\":1,\"warm_hit\":true}\n"),
	    0);
	assert_int_equal(add_line(&s, "{\"c\":9,\"success\":false}"), 0);
	assert_int_equal(
	    add_line(&s, "{\"c\":10,\"success\":true,\"acquire_ms\":4,\"total_ms\":1}"), 0);
	assert_true(add_line(&s, "{\"c\":9,\"success\":true}") < 0);
	assert_true(
	    add_line(&s, "{\"c\":9,\"success\":true,\"acquire_ms\":1e300,\"total_ms\":1}") < 0);
	assert_true(add_line(&s, "nonsense") < 0);
	assert_int_equal(s.rows, 3);
	bench_summary_table(&s, &t);
	assert_string_equal(t.cells[t.columns], "9"); /* before 10 */
	assert_string_equal(t.cells[t.columns + 3], "1");
	assert_string_equal(t.cells[t.columns + 5], "");
	assert_string_equal(t.cells[2 * t.columns + 4], "0.500");
	assert_string_equal(t.cells[2 * t.columns + 5], "3.000");
	bench_table_free(&t);
	bench_summary_free(&s);
}

static void test_options(void **state)
{
	static const struct bench_command self = {"test", "", "", NULL};
	uint32_t count = 1;
	double seconds = 1;
	const char *text = NULL;
	bool flag = false;
	bool given = false;
	const struct bench_option options[] = {
	    {"count", BENCH_COUNT, &count, "N", "", 0, 10, &given},
	    {"seconds", BENCH_SECONDS, &seconds, "S", "", 0.5, 2, NULL},
	    {"text", BENCH_TEXT, &text, "T", "", 0, 0, NULL},
	    {"flag", BENCH_FLAG, &flag, NULL, "", 0, 0, NULL},
	};
	char *good[] = {
	    "test", "a", "--count=10", "--flag", "--seconds", "1.5", "--text", "--x", NULL};
	char *const bad[][3] = {{"test", "--count", "11"}, {"test", "--count", "-1"},
	    {"test", "--seconds", "0.4"}, {"test", "--seconds", "inf"}, {"test", "--count", "1x"},
	    {"test", "a", "--text"}, {"test", "--flag=1", "a"}, {"test", "-f", "a"}};
	int status;

	(void)state;
	assert_int_equal(bench_parse(&self, options, 4, 8, good, &status), 7);
	assert_string_equal(good[7], "a"); /* arguments come last */
	assert_int_equal(count, 10);
	assert_true(given && flag && seconds > 1.4);
	assert_string_equal(text, "--x");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *argv[] = {bad[i][0], bad[i][1], bad[i][2], NULL};

		assert_int_equal(bench_parse(&self, options, 4, 3, argv, &status), -1);
		assert_int_equal(status, BENCH_USAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_quantiles),
	    cmocka_unit_test(test_threads_of_scenarios),
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_groups),
	    cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
