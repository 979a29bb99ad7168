/* bench_summarize: sbxbench summarize. Holds no state. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench_command.h"
#include "tools/bench_rows.h"
#include "tools/bench_summary.h"

#define GROUP "provider,scenario,workload,concurrency"

int bench_summarize_main(const struct bench_command *self, int argc, char **argv)
{
	const char *keys = GROUP;
	bool csv = false;
	bool markdown = false;
	const struct bench_option options[] = {
	    {"group", BENCH_TEXT, &keys, "FIELD,...", "rows that agree in these are one group", 0,
		0, NULL},
	    {"csv", BENCH_FLAG, &csv, NULL, "as CSV", 0, 0, NULL},
	    {"markdown", BENCH_FLAG, &markdown, NULL, "as Markdown", 0, 0, NULL},
	};
	struct bench_summary s;
	struct bench_table t;
	struct err err;
	int status;
	int at =
	    bench_parse(self, options, sizeof(options) / sizeof(options[0]), argc, argv, &status);

	if (at < 0)
		return status;
	if (at == argc)
		return bench_usage(self, "no file is given");
	if (bench_summary_init(&s, keys, &err) < 0)
		return bench_usage(self, "--group: %s", err.text);
	status = bench_rows_read(&s, argv + at);
	if (status == BENCH_OK) {
		bench_summary_table(&s, &t);
		bench_table_print(&t,
		    csv	       ? BENCH_CSV
		    : markdown ? BENCH_MARKDOWN
			       : BENCH_TEXT_FORM,
		    stdout);
		bench_table_free(&t);
	}
	bench_summary_free(&s);
	return status;
}
