/* bench_rows: reading files of rows. sbxbench; holds no state. */
#include "tools/bench_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG_SHOWN 20U

/* Returns how many lines are wrong, and one more if it cannot be read. */
static unsigned int read_file(struct bench_summary *s, FILE *f, const char *name)
{
	unsigned int wrong = 0;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	for (unsigned int number = 1; (n = getline(&line, &cap, f)) >= 0; number++) {
		struct err err;

		if (bench_summary_add(s, line, (size_t)n, &err) == 0)
			continue;
		if (wrong++ < WRONG_SHOWN)
			(void)fprintf(stderr, "sbxbench: %s:%u: %s\n", name, number, err.text);
	}
	free(line);
	if (wrong > WRONG_SHOWN)
		(void)fprintf(stderr, "sbxbench: %s: %u more lines\n", name, wrong - WRONG_SHOWN);
	if (!ferror(f))
		return wrong;
	(void)fprintf(stderr, "sbxbench: %s: %s\n", name, strerror(errno));
	return wrong + 1;
}

static unsigned int read_path(struct bench_summary *s, const char *path)
{
	unsigned int wrong;
	FILE *f;

	if (strcmp(path, "-") == 0)
		return read_file(s, stdin, "standard input");
	f = fopen(path, "re");
	if (!f) {
		(void)fprintf(stderr, "sbxbench: %s: %s\n", path, strerror(errno));
		return 1;
	}
	wrong = read_file(s, f, path);
	(void)fclose(f); /* opened for reading */
	return wrong;
}

int bench_rows_read(struct bench_summary *s, char *const *paths)
{
	unsigned int wrong = 0;

	for (; *paths; paths++)
		wrong += read_path(s, *paths);
	if (wrong == 0 && s->rows == 0)
		(void)fprintf(stderr, "sbxbench: there is no row\n");
	return wrong || s->rows == 0 ? BENCH_FAILED : BENCH_OK;
}
