/* bench_plot: sbxbench plot: how long warm and cold turns took, as a histogram that gnuplot draws.
 * Holds no state. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "tools/bench.h"
#include "tools/bench_command.h"
#include "tools/bench_peer.h"
#include "tools/bench_rows.h"
#include "tools/bench_summary.h"

#define PER_DECADE 20 /* bins: each a good tenth wider than the one before */
#define BINS 400
#define BIN_FIRST (-80) /* 0.1 us */
#define BOUND_MS (60 * 1000)

struct histogram {
	unsigned int n[BINS];
	size_t total;
};

/* Bin i is from 10^((BIN_FIRST + i) / PER_DECADE) ms on. */
static double bin_from(int i)
{
	return pow(10, (double)(BIN_FIRST + i) / PER_DECADE);
}

static void fill(struct histogram *h, const struct samples *s)
{
	for (size_t i = 0; i < s->count; i++) {
		double ms = bench_ms(s->ns[i] ? s->ns[i] : 1);
		int bin = (int)floor(log10(ms) * PER_DECADE) - BIN_FIRST;

		h->n[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
	}
	h->total = s->count;
}

/* In percent of the turns, so that many warm ones and few cold ones are seen alike. */
static void put_data(FILE *f, const char *name, const struct histogram *h)
{
	(void)fprintf(f, "$%s << EOD\n", name);
	for (int i = 0; i < BINS; i++) {
		if (h->n[i])
			(void)fprintf(f, "%.6g %.6g %.6g\n",
			    bin_from(i) * pow(10, 0.5 / PER_DECADE),
			    100.0 * h->n[i] / (double)h->total, bin_from(i + 1) - bin_from(i));
	}
	(void)fprintf(f, "EOD\n");
}

static void put_script(FILE *f, const char *measure, struct samples *warm, struct samples *cold)
{
	struct histogram hot = {.total = 0};
	struct histogram cool = {.total = 0};
	const char *between = "plot ";

	fill(&hot, warm);
	fill(&cool, cold);
	(void)fprintf(f,
	    "set terminal svg size 800,360 font 'sans-serif,13' background 'white'\n"
	    "set logscale x\nset format x '%%g'\nset style fill solid 0.7 noborder\n"
	    "set grid y\nset xlabel '%s, ms'\nset ylabel '%% of turns'\nset key top right\n",
	    measure);
	if (hot.total)
		put_data(f, "warm", &hot);
	if (cool.total)
		put_data(f, "cold", &cool);
	if (hot.total) {
		(void)fprintf(f,
		    "%s$warm using 1:2:3 with boxes lc rgb '#2a7fbf' title 'warm, %zu turns, p50 "
		    "%.3g ms'",
		    between, hot.total, samples_ms(warm, 0.5));
		between = ", ";
	}
	if (cool.total)
		(void)fprintf(f,
		    "%s$cold using 1:2:3 with boxes lc rgb '#d9822b' title 'cold, %zu turns, p50 "
		    "%.3g ms'",
		    between, cool.total, samples_ms(cold, 0.5));
	(void)fprintf(f, "\n");
}

/* ---- gnuplot ---- */

static pid_t start_gnuplot(const char *program, int out, int *to)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)dup2(ends[0], STDIN_FILENO);
		(void)dup2(out, STDOUT_FILENO);
		(void)execl(program, "gnuplot", "-", (char *)NULL);
		_exit(127);
	}
	(void)close(ends[0]);
	*to = ends[1];
	return pid;
}

/* 0, or -errno when it fails or says nothing for too long. */
static int await_gnuplot(pid_t pid)
{
	FD_SCOPED int pidfd = bench_pidfd(pid);
	int rc = pidfd < 0 ? pidfd : proc_wait_gone(pidfd, BOUND_MS);
	int status = 0;

	if (rc < 0)
		(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return rc < 0 ? rc : status ? -EIO : 0;
}

static int draw(const char *measure, struct samples *warm, struct samples *cold, int out)
{
	char program[PEER_PATH];
	int to = -1;
	FILE *f;
	pid_t pid;
	int rc;

	if (!bench_find_program("gnuplot", program)) {
		(void)fprintf(stderr, "sbxbench: gnuplot is not installed\n");
		return BENCH_FAILED;
	}
	pid = start_gnuplot(program, out, &to);
	if (pid < 0)
		bench_die("gnuplot");
	f = fdopen(to, "w");
	if (f) {
		put_script(f, measure, warm, cold);
		(void)fclose(f); /* what it did not get, it will miss */
	}
	rc = await_gnuplot(pid);
	if (rc == 0)
		return BENCH_OK;
	(void)fprintf(stderr, "sbxbench: gnuplot: %s\n", strerror(-rc));
	return BENCH_FAILED;
}

/* ---- the command ---- */

static int plot(struct bench_summary *s, enum bench_measure m, const char *output)
{
	struct samples none[2] = {0};
	struct samples *warm = &none[0];
	struct samples *cold = &none[1];
	FD_SCOPED int file = -1;

	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->groups[i].values[0], "true") == 0)
			warm = &s->groups[i].times[m];
		else if (strcmp(s->groups[i].values[0], "false") == 0)
			cold = &s->groups[i].times[m];
	}
	if (warm->count + cold->count == 0) {
		(void)fprintf(stderr, "sbxbench: no turn succeeded\n");
		return BENCH_FAILED;
	}
	if (output)
		file = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (output && file < 0)
		bench_die(output);
	return draw(bench_measure_name(m), warm, cold, file < 0 ? STDOUT_FILENO : file);
}

int bench_plot_main(const struct bench_command *self, int argc, char **argv)
{
	const char *name = "acquire";
	const char *output = NULL;
	const struct bench_option options[] = {
	    {"time", BENCH_TEXT, &name, "NAME", "acquire, run, release or total (acquire)", 0, 0,
		NULL},
	    {"output", BENCH_TEXT, &output, "FILE", "write it there (standard output)", 0, 0, NULL},
	};
	enum bench_measure m = BENCH_ACQUIRE;
	struct bench_summary s;
	struct err err;
	int status;
	int at =
	    bench_parse(self, options, sizeof(options) / sizeof(options[0]), argc, argv, &status);

	if (at < 0)
		return status;
	if (at == argc)
		return bench_usage(self, "no file is given");
	while (m < BENCH_MEASURES && strcmp(bench_measure_name(m), name) != 0)
		m++;
	if (m == BENCH_MEASURES)
		return bench_usage(self, "--time: no '%s'", name);
	if (bench_summary_init(&s, "warm_hit", &err) < 0)
		return bench_usage(self, "%s", err.text);
	status = bench_rows_read(&s, argv + at);
	if (status == BENCH_OK)
		status = plot(&s, m, output);
	bench_summary_free(&s);
	return status;
}
