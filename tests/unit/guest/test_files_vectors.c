/* The real sbx-files finds what tests/data/search.json says, in that order. */
#include "tests/unit/guest/files_run.h"

#include <jansson.h>

#define VECTORS "tests/data/search.json"

/* Every directory on the way to it. */
static void make_parents(const struct tree *t, const char *name)
{
	char parent[256];

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
		if (mkdir(tree_path(t, parent), 0755) < 0)
			assert_int_equal(errno, EEXIST);
	}
}

static void make_tree(const struct tree *t, const json_t *vectors)
{
	const char *name;
	json_t *content;
	size_t i;

	json_object_foreach(json_object_get(vectors, "files"), name, content)
	{
		make_parents(t, name);
		tree_file(t, name, json_string_value(content), json_string_length(content));
	}
	json_array_foreach(json_object_get(vectors, "empty_dirs"), i, content)
	{
		make_parents(t, json_string_value(content));
		tree_dir(t, json_string_value(content));
	}
}

/* An argument of the case; NULL: it has none. */
static const char *argument(const json_t *one, const char *key, const char *name, char to[256])
{
	const json_t *value = json_object_get(one, key);

	if (json_is_null(value) || !value)
		return NULL;
	if (json_is_string(value))
		(void)snprintf(to, 256, "%s=%s", name, json_string_value(value));
	else if (json_is_integer(value))
		(void)snprintf(to, 256, "%s=%lld", name, (long long)json_integer_value(value));
	else
		(void)snprintf(to, 256, "%s=%d", name, json_is_true(value));
	return to;
}

static void check(const struct run *r, const json_t *one)
{
	const char *pattern = json_string_value(json_object_get(one, "pattern"));
	json_t *expect = json_object_get(one, "expect");
	json_t *row;
	size_t i;

	if (r->status != 0)
		fail_msg("%s: %s", pattern, r->why);
	if (r->rows_len != (size_t)json_integer_value(json_object_get(one, "count")) ||
	    r->truncated != json_is_true(json_object_get(one, "truncated")))
		fail_msg("%s: %zu rows, truncated %d", pattern, r->rows_len, r->truncated);
	json_array_foreach(expect, i, row)
	{
		char text[RUN_ROW_MAX];

		if (json_is_string(row))
			(void)snprintf(text, sizeof(text), "%s", json_string_value(row));
		else
			(void)snprintf(text, sizeof(text), "%s:%lld:%s",
			    json_string_value(json_array_get(row, 0)),
			    (long long)json_integer_value(json_array_get(row, 1)),
			    json_string_value(json_array_get(row, 2)));
		if (strcmp(r->rows[i], text) != 0)
			fail_msg("%s: %s, not %s", pattern, r->rows[i], text);
	}
}

/* Each key of a case that is an argument, and what sbx-files calls it. */
static const char *const keys[][2] = {
    {"pattern", "pattern"},
    {"include_dirs", "dirs"},
    {"glob", "glob"},
    {"literal", "literal"},
    {"case_sensitive", "case"},
    {"max_results", "max"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static void run_all(struct tree *t, const char *command)
{
	json_t *vectors = json_load_file(VECTORS, JSON_ALLOW_NUL, NULL);
	json_t *one;
	size_t i;

	assert_non_null(vectors);
	make_tree(t, vectors);
	assert_true(json_array_size(json_object_get(vectors, command)) > 10);
	json_array_foreach(json_object_get(vectors, command), i, one)
	{
		char texts[KEYS][256];
		const char *args[KEYS + 1] = {NULL};
		size_t n = 0;

		for (size_t k = 0; k < KEYS; k++) {
			args[n] = argument(one, keys[k][0], keys[k][1], texts[k]);
			n += args[n] != NULL;
		}
		args[n] = NULL;
		check(run_in(t, command, args), one);
	}
	json_decref(vectors);
}

static void test_glob(void **state)
{
	run_all(*state, "glob");
}

static void test_grep(void **state)
{
	run_all(*state, "grep");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TREE_TEST(test_glob),
	    TREE_TEST(test_grep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
