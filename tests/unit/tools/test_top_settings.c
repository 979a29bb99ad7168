/* Tests of tools/top_settings.c and tools/top_options.c: what the user wants, kept and given. */
#include "tools/top_settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/top_options.h"

struct fixture {
	char dir[40];
	char path[80];
};

static int setup(void **state)
{
	static struct fixture f;

	(void)strcpy(f.dir, "/tmp/sbxd-unit-settings-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	(void)snprintf(f.path, sizeof(f.path), "%s/new/sbxtop.conf", f.dir);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[80];

	(void)unlink(f->path);
	(void)snprintf(path, sizeof(path), "%s/new", f->dir);
	(void)rmdir(path);
	return rmdir(f->dir); /* and nothing else was left in it */
}

static void test_path(void **state)
{
	char *const both[] = {(char[]){"HOME=/h"}, (char[]){"XDG_CONFIG_HOME=/x"}, NULL};
	char *const home[] = {
	    (char[]){"XDG_CONFIG_HOME=relative"}, (char[]){"HOME=/h"}, (char[]){"HOMER=/n"}, NULL};
	char *const none[] = {(char[]){"PATH=/bin"}, NULL};
	char out[64];

	(void)state;
	assert_int_equal(top_settings_path(both, out, sizeof(out)), 0);
	assert_string_equal(out, "/x/sbxtop.conf");
	assert_int_equal(top_settings_path(home, out, sizeof(out)), 0);
	assert_string_equal(out, "/h/.config/sbxtop.conf");
	assert_int_equal(top_settings_path(none, out, sizeof(out)), -ENOENT);
	assert_int_equal(top_settings_path(home, out, 10), -ENAMETOOLONG);
}

static void test_saved_and_loaded(void **state)
{
	struct fixture *f = *state;
	struct top_settings s;
	struct top_settings got;
	struct stat st;

	top_settings_default(&s);
	assert_int_equal(top_settings_load(&s, f->path), 0); /* there is none yet */
	s.interval = 2.5;
	s.sort = top_column_find("user");
	s.descending = false;
	s.event_lines = 12;
	s.changed = true;
	assert_int_equal(top_layout_parse("user,cpu", &s.layout, NULL, 0), 0);
	assert_int_equal(top_settings_save(&s, f->path), 0);
	assert_false(s.changed);
	top_settings_default(&got);
	assert_int_equal(top_settings_load(&got, f->path), 0);
	assert_true(got.interval == 2.5);
	assert_int_equal(got.sort, s.sort);
	assert_false(got.descending);
	assert_int_equal(got.event_lines, 12);
	assert_int_equal(got.layout.count, 2);
	assert_int_equal(got.layout.column[0], s.layout.column[0]);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void write_file(const struct fixture *f, const char *text)
{
	struct top_settings s;
	FILE *file;

	top_settings_default(&s);
	assert_int_equal(top_settings_save(&s, f->path), 0); /* for the directory */
	file = fopen(f->path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Each wrong line leaves the default, and says nothing about the others. */
static void test_wrong_lines(void **state)
{
	struct fixture *f = *state;
	struct top_settings plain;
	struct top_settings s;

	top_settings_default(&plain);
	top_settings_default(&s);
	write_file(f,
	    "# interval=9\ninterval=0\nsort=nonsense\ncolumns=user,user\nevent_lines=1000\n"
	    "event_lines=x\nunknown=1\nno equals sign\n\n=\ninterval=nan\n");
	assert_int_equal(top_settings_load(&s, f->path), 0);
	assert_memory_equal(&s, &plain, sizeof(s));
	write_file(f, "interval=x\nsort=age\ndescending=no\nevent_lines=0");
	assert_int_equal(top_settings_load(&s, f->path), 0);
	assert_int_equal(s.sort, top_column_find("age"));
	assert_false(s.descending);
	assert_int_equal(s.event_lines, 0);
}

static void test_a_link_is_written_through(void **state)
{
	struct fixture *f = *state;
	struct top_settings s;
	struct stat st;
	char link[80];

	top_settings_default(&s);
	write_file(f, "interval=5\n");
	(void)snprintf(link, sizeof(link), "%s/link", f->dir);
	assert_int_equal(symlink(f->path, link), 0);
	s.interval = 7;
	assert_int_equal(top_settings_save(&s, link), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(link), 0);
	s.interval = 1;
	assert_int_equal(top_settings_load(&s, f->path), 0);
	assert_true(s.interval == 7);
}

static void test_what_cannot_be_saved(void **state)
{
	struct top_settings s;

	(void)state;
	top_settings_default(&s);
	s.changed = true;
	assert_int_equal(top_settings_save(&s, "/proc/sbxtop.conf"), -ENOENT);
	assert_true(s.changed);
	assert_true(top_settings_load(&s, "/proc/self/mem/x") < 0);
}

/* ---- options ---- */

static int parse(struct top_options *o, struct err *err, char *const *args)
{
	char *argv[16] = {(char[]){"sbxtop"}};
	int argc = 1;

	for (; *args; args++)
		argv[argc++] = *args;
	return top_options_parse(o, argc, argv, err);
}

#define PARSE(o, err, ...) parse(o, err, (char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void test_options(void **state)
{
	struct top_options o;
	struct err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err), 0);
	assert_false(o.batch);
	assert_int_equal(o.sort, -1);
	assert_int_equal(PARSE(&o, &err, "-b", "-n", "3", "-d0.5", "--sort=-user", "-f", "x",
			     "--instance", "i-1", "--socket", "/s", "-C", "-o", "user,cpu"),
	    0);
	assert_true(o.batch && o.no_color && o.inverted && o.layout_given);
	assert_int_equal(o.count, 3);
	assert_true(o.interval == 0.5);
	assert_int_equal(o.sort, top_column_find("user"));
	assert_string_equal(o.filter, "x");
	assert_string_equal(o.instance, "i-1");
	assert_string_equal(o.socket, "/s");
	assert_int_equal(o.layout.count, 2);
	assert_int_equal(PARSE(&o, &err, "--columns", "help"), 0);
	assert_true(o.layout_given);
	assert_int_equal(o.layout.count, 0);
}

/* --json is a batch of one, unless more are asked for. */
static void test_how_many(void **state)
{
	struct top_options o;
	struct err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--json"), 0);
	assert_true(o.batch && o.json);
	assert_int_equal(o.count, 1);
	assert_int_equal(PARSE(&o, &err, "--json", "-n", "5"), 0);
	assert_int_equal(o.count, 5);
	assert_int_equal(PARSE(&o, &err, "--json", "-b"), 0);
	assert_int_equal(o.count, 0);
	assert_int_equal(PARSE(&o, &err, "-b", "--replay", "/file"), 0);
	assert_int_equal(o.count, 1);
	assert_string_equal(o.replay_file, "/file");
	assert_int_equal(PARSE(&o, &err, "--replay=/other"), 0);
	assert_string_equal(o.replay_file, "/other");
	assert_int_equal(PARSE(&o, &err, "--replay"), 0);
	assert_true(o.replay);
	assert_null(o.replay_file);
}

static void test_wrong_options(void **state)
{
	static const struct {
		const char *args; /* between blanks */
		const char *text;
	} cases[] = {
	    {"-n 0", "-n: '0'"},
	    {"-n 2x", "-n: '2x'"},
	    {"-n", "-n needs a value"},
	    {"-d 0.01", "-d: '0.01'"},
	    {"-d nan", "-d: 'nan'"},
	    {"-s nope", "'nope'"},
	    {"-o user,nope", "'nope'"},
	    {"--instance A/B", "'A/B'"},
	    {"-x", "unknown option -x"},
	    {"--nope", "unknown option --nope"},
	    {"--batch=1", "--batch takes no value"},
	    {"extra", "unexpected argument 'extra'"},
	    {"--replay a b", "unexpected argument 'b'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct top_options o = {.count = 77};
		struct err err = {0};
		char text[64];
		char *rest = text;
		char *args[8] = {NULL};

		(void)strcpy(text, cases[i].args);
		for (int n = 0; rest; n++)
			args[n] = strsep(&rest, " ");
		assert_int_equal(parse(&o, &err, args), -EINVAL);
		if (!strstr(err.text, cases[i].text))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].text);
		assert_int_equal(o.count, 77);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_path),
	    WITH(test_saved_and_loaded),
	    WITH(test_wrong_lines),
	    WITH(test_a_link_is_written_through),
	    cmocka_unit_test(test_what_cannot_be_saved),
	    cmocka_unit_test(test_options),
	    cmocka_unit_test(test_how_many),
	    cmocka_unit_test(test_wrong_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
