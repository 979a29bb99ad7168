/* The table of sbxctl's commands: what help, completion and the manual page rely on. */
#include "tests/unit/tools/cli_fixture.h"

static bool is_option_name(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name);
}

static bool uses_letter(const struct cli_command *c, size_t before, char letter)
{
	for (size_t i = 0; i < before; i++) {
		if (c->options[i].letter == letter)
			return true;
	}
	return letter == 'h'; /* help's */
}

static void test_rows_are_whole(void **state)
{
	const struct cli_command *c;
	size_t n = 0;

	(void)state;
	for (; (c = cli_command_at(n)); n++) {
		assert_non_null(c->name);
		assert_non_null(c->args);
		assert_non_null(c->run);
		assert_true(c->help && c->help[0] >= 'a' && c->help[0] <= 'z');
		assert_int_not_equal(c->help[strlen(c->help) - 1], '.');
		assert_true(c->option_count <= CLI_OPTIONS_MAX);
		for (size_t i = 0; i < c->option_count; i++) {
			const struct cli_option *o = &c->options[i];

			assert_true(is_option_name(o->name));
			assert_non_null(o->help);
			assert_int_equal(o->value != NULL, o->type != CLI_OPTION_FLAG);
			if (o->letter && uses_letter(c, i, o->letter))
				fail_msg("%s: -%c is taken", c->name, o->letter);
		}
		for (size_t k = 0; k < CLI_WORDS_MAX; k++)
			assert_int_equal(c->words[k] == CLI_WORD_CHOICE && !c->choices, 0);
	}
	assert_true(n > 10);
}

static void test_find(void **state)
{
	(void)state;
	assert_ptr_equal(cli_command_find("shm", "dump"), &cli_shm_dump);
	assert_null(cli_command_find("shm", "load"));
	assert_null(cli_command_find("shm", NULL));
	assert_ptr_equal(cli_command_find("run", "x"), &cli_run);
	assert_ptr_equal(cli_command_find("run", NULL), &cli_run);
}

static void test_every_command_tells_how_it_is_used(void **state)
{
	const struct cli_command *c;

	(void)state;
	for (size_t n = 0; (c = cli_command_at(n)); n++) {
		struct cli_run r;
		char *synopsis = cli_synopsis(c);
		char first[1024];

		assert_non_null(synopsis);
		if (c->hidden) {
			free(synopsis);
			continue;
		}
		snprintf(first, sizeof(first), "usage: sbxctl %s\n", synopsis);
		CLI_RUN(&r, c, "/nonexistent", NULL, "--help");
		assert_int_equal(r.status, 0); /* CLI_HELPED, of which an exit status has 8 bits */
		assert_string_equal(r.err, "");
		assert_int_equal(strncmp(r.out, first, strlen(first)), 0);
		for (size_t i = 0; i < c->option_count; i++)
			assert_non_null(strstr(r.out, c->options[i].help));
		assert_non_null(strstr(r.out, "--instance NAME"));
		free(synopsis);
	}
}

static void test_help_about_a_command(void **state)
{
	struct cli_run r;

	(void)state;
	CLI_RUN(&r, &cli_help, NULL, NULL, "shm", "dump");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "usage: sbxctl shm dump [NAME]\n\nPrint and validate"));
	CLI_RUN(&r, &cli_help, NULL, NULL, "nosuch");
	assert_int_equal(r.status, CLI_USAGE);
	assert_non_null(strstr(r.err, "unknown command 'nosuch'"));
	CLI_RUN(&r, &cli_help, NULL, NULL);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "\n  rm [-f] BOX\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows_are_whole),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_every_command_tells_how_it_is_used),
	    cmocka_unit_test(test_help_about_a_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
