/* Tests of tools/top_columns.c and tools/top_layout.c: what is shown of a box, and in what width.
 */
#include "tools/top_columns.h"

#include <errno.h>

#include "tests/unit/tools/top_testing.h"

static struct top_box sample(void)
{
	struct top_box b = {.there = true};
	struct slot_sup *sup = &b.seen.sup;

	*sup = part_make(SLOT_ACTIVE, 5);
	(void)strcpy(sup->user, "us\xc3\xa9r");
	(void)strcpy(sup->isolation, "microvm-kvm");
	(void)strcpy(sup->box_name, "mine");
	sup->leases = 2;
	sup->waiters = 3;
	sup->memory_mib = 512;
	sup->cpus_milli = 1500;
	sup->source = SOURCE_COLD;
	b.seen.slot = 5;
	b.seen.in_flight = 4;
	b.seen.conns = 6;
	b.seen.work = (struct slot_work){.generation = 6,
	    .exec_total = 1234567,
	    .exec_failed = 8,
	    .bytes_in = 1536,
	    .bytes_out = 5368709120,
	    .memory_bytes = 10240,
	    .box_pid = 777};
	b.age_ns = 184 * NS_PER_S;
	b.idle_ns = NS_PER_S / 4;
	b.state_age_ns = 101ULL * 86400 * NS_PER_S;
	b.cpu_percent = 99.96;
	b.lock = LOCK_WORKER;
	return b;
}

static void test_each_column(void **state)
{
	static const struct {
		const char *key;
		const char *text;
	} cases[] = {{"token", "0000000000000005"}, {"state", "active"}, {"user", "us\xc3\xa9r"},
	    {"thread", "thread"}, {"cpu", "100.0"}, {"memory", "10K"}, {"age", "3m04s"},
	    {"idle", "0.2s"}, {"exec", "4"}, {"total", "1.23M"}, {"leases", "2"}, {"waiters", "3"},
	    {"lock", "worker"}, {"image", "host"}, {"driver", "namespace"},
	    {"isolation", "microvm-kvm"}, {"in", "1.5K"}, {"out", "5.0G"}, {"pid", "4242"},
	    {"error", "-"}, {"name", "mine"}, {"slot", "5"}, {"generation", "6"}, {"uid", "1000"},
	    {"driver_name", "sbxd-unit-5"}, {"since", "101d"}, {"acquires", "0"},
	    {"source", "cold"}, {"conns", "6"}, {"failed", "8"}, {"box_pid", "777"},
	    {"mem_max", "512M"}, {"cpus", "1.50"}, {"disk_max", "-"}, {"pids_max", "0"}};
	struct top_box b = sample();

	(void)state;
	assert_int_equal(sizeof(cases) / sizeof(cases[0]), top_columns_count());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int column = top_column_find(cases[i].key);
		char buf[TOP_NUMBER];

		assert_int_equal(column, i);
		assert_string_equal(
		    top_column_text(top_column_at((size_t)column), &b, buf), cases[i].text);
	}
	assert_int_equal(top_column_find("nonsense"), -1);
}

static const char *text_of(const char *key, const struct top_box *b, char buf[TOP_NUMBER])
{
	return top_column_text(top_column_at((size_t)top_column_find(key)), b, buf);
}

static void test_what_there_is_not(void **state)
{
	struct top_box b = sample();
	char buf[TOP_NUMBER];

	(void)state;
	b.seen.sup.flags = SLOT_FLAG_NO_USER | SLOT_FLAG_ANONYMOUS;
	assert_string_equal(text_of("user", &b, buf), "-");
	assert_string_equal(text_of("thread", &b, buf), "-");
	(void)strcpy(b.seen.work.last_error, "the worker's");
	assert_string_equal(text_of("error", &b, buf), "the worker's");
	(void)strcpy(b.seen.sup.last_error, "sbxd's");
	assert_string_equal(text_of("error", &b, buf), "sbxd's");
	/* A worker that has not reported has no numbers, not zeros. */
	b.seen.work = (struct slot_work){0};
	assert_string_equal(text_of("memory", &b, buf), "-");
	assert_string_equal(text_of("cpu", &b, buf), "-");
	assert_string_equal(text_of("box_pid", &b, buf), "-");
	b.seen.sup.worker_pid = 0;
	assert_string_equal(text_of("pid", &b, buf), "-");
	b.seen.sup.state = 99;
	b.seen.sup.source = 99;
	assert_string_equal(text_of("state", &b, buf), "?");
	assert_string_equal(text_of("source", &b, buf), "?");
}

/* Each column orders two boxes that differ in it, both ways, and leaves alike ones alone. */
static void test_each_column_orders(void **state)
{
	struct top_box low = sample();
	struct top_box high = sample();
	size_t differ = 0;

	(void)state;
	high.seen.sup = part_make(SLOT_WARM, 6);
	(void)strcpy(high.seen.sup.user, "v");
	(void)strcpy(high.seen.sup.last_error, "x");
	high.seen.work.exec_total++;
	high.cpu_percent = 100;
	high.idle_ns++;
	high.lock = LOCK_BROKEN;
	for (size_t i = 0; i < top_columns_count(); i++) {
		const struct top_column *c = top_column_at(i);
		int order = top_column_compare(c, &low, &high);

		assert_int_equal(top_column_compare(c, &high, &low), -order);
		assert_int_equal(top_column_compare(c, &low, &low), 0);
		differ += order != 0;
	}
	assert_true(differ > 10);
	assert_int_equal(
	    top_column_compare(top_column_at((size_t)top_column_find("cpu")), &low, &high), -1);
	assert_int_equal(
	    top_column_compare(top_column_at((size_t)top_column_find("user")), &low, &high), -1);
}

/* ---- layouts ---- */

static void test_parsing_a_layout(void **state)
{
	struct top_layout l;
	struct top_layout before;
	char text[512];
	char bad[32] = "x";

	(void)state;
	assert_int_equal(top_layout_parse("user,cpu,token", &l, NULL, 0), 0);
	assert_int_equal(l.count, 3);
	top_layout_format(&l, text, sizeof(text));
	assert_string_equal(text, "user,cpu,token");
	before = l;
	assert_int_equal(top_layout_parse("user,nope,cpu", &l, bad, sizeof(bad)), -EINVAL);
	assert_string_equal(bad, "nope");
	assert_int_equal(top_layout_parse("user,cpu,user", &l, bad, sizeof(bad)), -EINVAL);
	assert_string_equal(bad, "user");
	assert_int_equal(top_layout_parse("", &l, bad, sizeof(bad)), -EINVAL);
	assert_int_equal(top_layout_parse(",", &l, bad, sizeof(bad)), -EINVAL);
	assert_memory_equal(&l, &before, sizeof(l));
	/* All of them fit, too. */
	top_layout_default(&l);
	top_layout_format(&l, text, sizeof(text));
	assert_int_equal(top_layout_parse(text, &before, NULL, 0), 0);
	assert_int_equal(before.count, l.count);
}

/* Lines are exactly as wide as their columns, on any terminal, from any column on. */
static void test_lines_fit(void **state)
{
	struct top_box b = sample();
	struct top_layout l;
	struct top_line line;

	(void)state;
	(void)strcpy(b.seen.sup.thread,
	    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x82\xb9\xe3\x83\xac\xe3\x83\x83");
	top_layout_default(&l);
	for (size_t first = 0; first < l.count; first++) {
		for (int columns = 1; columns <= 260; columns++) {
			struct top_widths w;
			int sum = 0;

			top_layout_fit(&l, first, columns, &w);
			for (size_t i = first; i < l.count && w.width[i]; i++)
				sum += w.width[i] + (i > first);
			assert_true(sum <= columns);
			top_layout_line(&l, &w, &b, &line);
			assert_int_equal(line.columns, sum);
			assert_int_equal(top_text_columns(line.text), sum);
			top_layout_titles(&l, &w, 0, true, &line);
			assert_int_equal(line.columns, sum);
		}
	}
}

/* A number that is cut would be another number. */
static void test_numbers_are_whole_or_not_there(void **state)
{
	struct top_layout l;
	struct top_widths w;

	(void)state;
	assert_int_equal(top_layout_parse("token,total,user", &l, NULL, 0), 0);
	top_layout_fit(&l, 0, 16 + 1 + 5, &w);
	assert_int_equal(w.width[0], 16);
	assert_int_equal(w.width[1], 0);
	top_layout_fit(&l, 0, 16 + 1 + 6 + 1 + 4, &w);
	assert_int_equal(w.width[1], 6);
	assert_int_equal(w.width[2], 4); /* a text may be cut */
	top_layout_fit(&l, 0, 16 + 1 + 6 + 1 + 30, &w);
	assert_int_equal(w.width[2], 24); /* and grows, to a limit */
}

static void test_which_column_is_there(void **state)
{
	struct top_layout l;
	struct top_widths w;

	(void)state;
	assert_int_equal(top_layout_parse("token,total,user", &l, NULL, 0), 0);
	top_layout_fit(&l, 0, 60, &w);
	assert_int_equal(top_layout_hit(&l, &w, 0), 0);
	assert_int_equal(top_layout_hit(&l, &w, 15), 0);
	assert_int_equal(top_layout_hit(&l, &w, 17), 1);
	assert_int_equal(top_layout_hit(&l, &w, 24), 2);
	assert_int_equal(top_layout_hit(&l, &w, 59), -1);
	top_layout_fit(&l, 2, 60, &w);
	assert_int_equal(top_layout_hit(&l, &w, 3), 2);
}

static void test_titles(void **state)
{
	struct top_layout l;
	struct top_widths w;
	struct top_line line;

	(void)state;
	assert_int_equal(top_layout_parse("token,total,leases", &l, NULL, 0), 0);
	top_layout_fit(&l, 0, 40, &w);
	top_layout_titles(&l, &w, top_column_find("total"), true, &line);
	assert_string_equal(line.text, "BOX              TOTALv LEASES");
	assert_int_equal(line.span[1].style, STYLE_SORTED);
	top_layout_titles(&l, &w, top_column_find("token"), false, &line);
	assert_string_equal(line.text, "BOX^              TOTAL LEASES");
	/* Where there is no room for an arrow there is none. */
	top_layout_titles(&l, &w, top_column_find("leases"), false, &line);
	assert_string_equal(line.text, "BOX               TOTAL LEASES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_column),
	    cmocka_unit_test(test_what_there_is_not),
	    cmocka_unit_test(test_each_column_orders),
	    cmocka_unit_test(test_parsing_a_layout),
	    cmocka_unit_test(test_lines_fit),
	    cmocka_unit_test(test_numbers_are_whole_or_not_there),
	    cmocka_unit_test(test_which_column_is_there),
	    cmocka_unit_test(test_titles),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
