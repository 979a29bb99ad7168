/* Tests of supervisor/reconcile.c: which boxes of a taken-over table a sweep is to keep, and why.
 */
#include "tests/unit/supervisor/sbxd_testing.h"

#include <sys/stat.h>

#include "lib/fd.h"
#include "supervisor/reconcile.h"
#include "wire/control.h"

static int setup(void **state)
{
	struct sbxd *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	stage_table(s, SLOT_STATES * 2 + 1);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct sbxd *s = *state;

	stage_table_close(s);
	free(s);
	return 0;
}

static void name_of(char out[SHM_NAME_LEN], uint32_t slot)
{
	(void)snprintf(out, SHM_NAME_LEN, "sbxd-" STAGE_INSTANCE "-%u-1", slot);
}

/* How the slot stands in the memfd, 0 when it does not. */
static char kept_how(int fd, uint32_t slot)
{
	char name[SHM_NAME_LEN];
	char text[4096];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	name_of(name, slot);
	assert_true(n >= 0 && n < (ssize_t)sizeof(text));
	for (const char *at = text; at < text + n; at += strlen(at) + 1) {
		assert_true(*at == CTL_KEEP_LIVE || *at == CTL_KEEP_ENDING);
		if (!strcmp(at + 1, name))
			return *at;
	}
	return '\0';
}

static char expected(enum slot_state state, bool has_worker)
{
	static const bool up[SLOT_STATES] = {
	    [SLOT_STOCK] = true,
	    [SLOT_ACTIVE] = true,
	    [SLOT_CHECKING] = true,
	    [SLOT_WARM] = true,
	};

	if (state == SLOT_FREE || state == SLOT_QUARANTINED)
		return '\0';
	return up[state] && has_worker ? CTL_KEEP_LIVE : CTL_KEEP_ENDING;
}

/* Every state, with a worker that lives and without. */
static void test_what_a_sweep_keeps(void **state)
{
	struct sbxd *s = *state;
	FD_SCOPED int fd = -1;
	int byte = 0;

	for (uint32_t i = 0; i < SLOT_STATES * 2; i++) {
		s->parts[i].state = i / 2;
		name_of(s->parts[i].name, i);
		if (i % 2)
			s->workers[i] =
			    (struct worker *)(void *)&byte; /* only whether it is there counts */
	}
	s->parts[SLOT_STATES * 2].state = SLOT_RESERVED; /* it has no name yet */
	fd = reconcile_kept(s);
	assert_true(fd >= 0);
	for (uint32_t i = 0; i < SLOT_STATES * 2; i++)
		assert_int_equal(kept_how(fd, i), expected(i / 2, i % 2));
}

static void test_an_empty_table_keeps_nothing(void **state)
{
	FD_SCOPED int fd = reconcile_kept(*state);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_what_a_sweep_keeps, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_an_empty_table_keeps_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
