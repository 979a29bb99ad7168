/* bench_samples: times, their quantiles, and the table that is printed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"

#define NOTES 64
#define NOTE_MAX 240

void samples_add(struct samples *s, uint64_t ns)
{
	if (s->count == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		s->ns = realloc(s->ns, s->cap * sizeof(uint64_t));
		if (!s->ns)
			bench_die("realloc");
	}
	s->ns[s->count++] = ns;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The same as Python's statistics.quantiles(method="inclusive"): between the two samples that it
 * falls between, in proportion. */
uint64_t samples_quantile(struct samples *s, double q)
{
	double at;
	size_t low;
	double part;

	if (s->count == 0)
		return 0;
	qsort(s->ns, s->count, sizeof(uint64_t), by_value);
	at = q * (double)(s->count - 1);
	low = (size_t)at;
	part = at - (double)low;
	if (low + 1 >= s->count)
		return s->ns[s->count - 1];
	return s->ns[low] + (uint64_t)((double)(s->ns[low + 1] - s->ns[low]) * part + 0.5);
}

double samples_ms(struct samples *s, double q)
{
	return bench_ms(samples_quantile(s, q));
}

void samples_free(struct samples *s)
{
	free(s->ns);
	*s = (struct samples){0};
}

void print_table_head(void)
{
	(void)printf(
	    "| what | p50 | p95 | baseline | ratio | asked | |\n|---|---|---|---|---|---|---|\n");
}

int print_row(const struct row *r)
{
	double ratio = r->base > 0 ? r->value / r->base : 0;
	bool met = r->bound == 0 || (r->at_least ? ratio >= r->bound : ratio <= r->bound);
	char asked[16] = "-";
	char p95[24] = "-";

	if (r->p95 > 0)
		(void)snprintf(p95, sizeof(p95), "%.1f", r->p95);
	if (r->bound > 0)
		(void)snprintf(
		    asked, sizeof(asked), "%s %.2f", r->at_least ? ">=" : "<=", r->bound);
	(void)printf("| %-42s | %9.1f %-5s | %9s | %-30s %9.1f | %6.2f | %7s | %s |\n", r->what,
	    r->value, r->unit, p95, r->baseline, r->base, ratio, asked,
	    r->bound == 0 ? ""
	    : met	  ? "met"
			  : "MISSED");
	(void)fflush(stdout);
	return met ? 0 : 1;
}

static struct {
	char text[NOTES][NOTE_MAX];
	size_t count;
} notes;

void bench_note(const char *fmt, ...)
{
	va_list ap;

	if (notes.count == NOTES)
		return; /* there are not so many things to say */
	va_start(ap, fmt);
	(void)vsnprintf(notes.text[notes.count++], NOTE_MAX, fmt, ap);
	va_end(ap);
}

void bench_print_notes(void)
{
	for (size_t i = 0; i < notes.count; i++)
		(void)printf("- %s\n", notes.text[i]);
	notes.count = 0;
}

double bench_us(uint64_t ns)
{
	return (double)ns / 1e3;
}

double bench_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

int print_times(const char *what, const char *unit, struct samples *s, const char *baseline,
    struct samples *base, double bound)
{
	double (*scale)(uint64_t ns) = strcmp(unit, "ms") == 0 ? bench_ms : bench_us;

	return print_row(&(struct row){
	    .what = what,
	    .unit = unit,
	    .baseline = baseline,
	    .value = scale(samples_quantile(s, 0.5)),
	    .p95 = scale(samples_quantile(s, 0.95)),
	    .base = scale(samples_quantile(base, 0.5)),
	    .bound = bound,
	});
}
