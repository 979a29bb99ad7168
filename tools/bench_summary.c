/* bench_summary: rows of turns, in groups. sbxbench; holds no state. */
#include "tools/bench_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"

#define MS_MAX 1e12 /* thirty years; past it nothing was measured */

static const struct {
	const char *name; /* of the table */
	const char *field;
	bool required;
} measures[] = {
    [BENCH_ACQUIRE] = {"acquire", "acquire_ms", true},
    [BENCH_RUN] = {"run", "run_ms", false},
    [BENCH_RELEASE] = {"release", "release_ms", false},
    [BENCH_TOTAL] = {"total", "total_ms", true},
};

_Static_assert(sizeof(measures) / sizeof(measures[0]) == BENCH_MEASURES, "one row for each");

const char *bench_measure_name(enum bench_measure m)
{
	return measures[m].name;
}

static char *copy(const char *text, size_t n)
{
	char *s = strndup(text, n);

	if (!s)
		bench_die("strndup");
	return s;
}

int bench_summary_init(struct bench_summary *s, const char *keys, struct err *err)
{
	*s = (struct bench_summary){.key_count = 0};
	for (const char *at = keys;; at++) {
		size_t n = strcspn(at, ",");

		if (n == 0 || s->key_count == BENCH_KEYS_MAX) {
			bench_summary_free(s);
			return err_set(err, EINVAL,
			    "'%.60s' is not allowed; give one to %d names of fields, separated by "
			    "commas",
			    keys, BENCH_KEYS_MAX);
		}
		s->keys[s->key_count++] = copy(at, n);
		at += n;
		if (*at == '\0')
			return 0;
	}
}

static void free_group(const struct bench_summary *s, struct bench_group *g)
{
	for (size_t k = 0; k < s->key_count; k++)
		free(g->values[k]);
	for (int m = 0; m < BENCH_MEASURES; m++)
		samples_free(&g->times[m]);
}

void bench_summary_free(struct bench_summary *s)
{
	for (size_t i = 0; i < s->count; i++)
		free_group(s, &s->groups[i]);
	free(s->groups);
	for (size_t k = 0; k < s->key_count; k++)
		free(s->keys[k]);
	*s = (struct bench_summary){.key_count = 0};
}

/* ---- groups ---- */

/* A field as text; "?" when the row has none. */
static char *value_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char *text;

	if (!v)
		return copy("?", 1);
	if (json_is_string(v))
		return copy(json_string_value(v), json_string_length(v));
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	if (!text)
		bench_die("json_dumps");
	return text;
}

static struct bench_group *find_group(struct bench_summary *s, char *const values[BENCH_KEYS_MAX])
{
	for (size_t i = 0; i < s->count; i++) {
		size_t k = 0;

		while (k < s->key_count && strcmp(s->groups[i].values[k], values[k]) == 0)
			k++;
		if (k == s->key_count)
			return &s->groups[i];
	}
	return NULL;
}

static struct bench_group *group_of(struct bench_summary *s, const json_t *row)
{
	struct bench_group g = {.ok = 0};
	struct bench_group *found;

	for (size_t k = 0; k < s->key_count; k++)
		g.values[k] = value_of(row, s->keys[k]);
	found = find_group(s, g.values);
	if (found) {
		free_group(s, &g);
		return found;
	}
	s->groups = reallocarray(s->groups, s->count + 1, sizeof(*s->groups));
	if (!s->groups)
		bench_die("reallocarray");
	s->groups[s->count] = g;
	return &s->groups[s->count++];
}

/* ---- rows ---- */

static int take_times(const json_t *row, double ms[BENCH_MEASURES], struct err *err)
{
	for (int m = 0; m < BENCH_MEASURES; m++) {
		const json_t *v = json_object_get(row, measures[m].field);

		if (!v && !measures[m].required) {
			ms[m] = 0;
			continue;
		}
		ms[m] = json_is_number(v) ? json_number_value(v) : -1;
		if (!(ms[m] >= 0 && ms[m] <= MS_MAX))
			return err_set(err, EINVAL, "%s is no time in ms", measures[m].field);
	}
	return 0;
}

static int take_row(struct bench_summary *s, const json_t *row, struct err *err)
{
	const json_t *success = json_object_get(row, "success");
	double ms[BENCH_MEASURES] = {0};
	struct bench_group *g;

	if (!json_is_boolean(success))
		return err_set(err, EINVAL, "success is not true or false");
	if (json_is_true(success) && take_times(row, ms, err) < 0)
		return -EINVAL;
	g = group_of(s, row);
	s->rows++;
	if (!json_is_true(success)) {
		g->errors++;
		return 0;
	}
	g->ok++;
	g->warm += json_is_true(json_object_get(row, "warm_hit"));
	for (int m = 0; m < BENCH_MEASURES; m++)
		samples_add(&g->times[m], (uint64_t)llround(ms[m] * 1e6));
	return 0;
}

int bench_summary_add(struct bench_summary *s, const char *line, size_t len, struct err *err)
{
	json_t *row;
	int rc;

	while (len > 0 && strchr(" \t\r\n", line[len - 1]))
		len--;
	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (len == 0 || *line == '#')
		return 0;
	row = json_parse_object((const uint8_t *)line, len, err);
	if (!row)
		return -EINVAL;
	rc = take_row(s, row, err);
	json_decref(row);
	return rc;
}

/* ---- the table ---- */

static int by_values(const void *a, const void *b, void *arg)
{
	const struct bench_group *x = a;
	const struct bench_group *y = b;
	const size_t *keys = arg;
	int order = 0;

	for (size_t k = 0; order == 0 && k < *keys; k++) {
		char *x_end;
		char *y_end;
		double p = strtod(x->values[k], &x_end);
		double q = strtod(y->values[k], &y_end);

		if (*x->values[k] && *y->values[k] && !*x_end && !*y_end && p != q)
			order = p < q ? -1 : 1;
		else
			order = strcmp(x->values[k], y->values[k]);
	}
	return order;
}

static void add_head(const struct bench_summary *s, struct bench_table *t)
{
	for (size_t k = 0; k < s->key_count; k++)
		bench_table_add(t, "%s", s->keys[k]);
	bench_table_add(t, "count");
	bench_table_add(t, "ok");
	bench_table_add(t, "errors");
	bench_table_add(t, "warm_hit_rate");
	for (int m = 0; m < BENCH_MEASURES; m++) {
		bench_table_add(t, "%s_p50", measures[m].name);
		bench_table_add(t, "%s_p95", measures[m].name);
		bench_table_add(t, "%s_p99", measures[m].name);
	}
}

static void add_group(const struct bench_summary *s, struct bench_group *g, struct bench_table *t)
{
	static const double quantiles[] = {0.5, 0.95, 0.99};

	for (size_t k = 0; k < s->key_count; k++)
		bench_table_add(t, "%s", g->values[k]);
	bench_table_add(t, "%" PRIu64, g->ok + g->errors);
	bench_table_add(t, "%" PRIu64, g->ok);
	bench_table_add(t, "%" PRIu64, g->errors);
	if (g->ok)
		bench_table_add(t, "%.3f", (double)g->warm / (double)g->ok);
	else
		bench_table_add(t, "%s", "");
	for (int m = 0; m < BENCH_MEASURES; m++) {
		for (int q = 0; q < 3; q++) {
			if (g->ok)
				bench_table_add(t, "%.3f", samples_ms(&g->times[m], quantiles[q]));
			else
				bench_table_add(t, "%s", "");
		}
	}
}

void bench_summary_table(struct bench_summary *s, struct bench_table *t)
{
	qsort_r(s->groups, s->count, sizeof(*s->groups), by_values, &s->key_count);
	bench_table_init(t, s->key_count + 4 + 3 * BENCH_MEASURES, s->key_count);
	add_head(s, t);
	for (size_t i = 0; i < s->count; i++)
		add_group(s, &s->groups[i], t);
}
