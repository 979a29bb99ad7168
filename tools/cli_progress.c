/* cli_progress: a line that tells how far it is. sbxctl; if it dies the line stays on the screen.
 */
#include "tools/cli_progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli.h"
#include "tools/cli_grid.h"
#include "tools/top_text.h"

#define FIRST_NS (500 * NS_PER_MS) /* what is done sooner needs no line */
#define AGAIN_NS (100 * NS_PER_MS)
#define NUMBERS_LEN 80
#define NAME_LEAST 8

void cli_progress_begin(struct cli_progress *p, const char *what, uint64_t total, bool quiet)
{
	*p = (struct cli_progress){.what = what, .total = total, .began_ns = clock_now_ns()};
	if (!quiet && isatty(STDERR_FILENO))
		p->next_ns = p->began_ns + FIRST_NS;
}

/* "12.3M of 45M  27%  4.1M/s  8.0s left"; what is not known is left out. */
static void put_numbers(const struct cli_progress *p, double seconds, char out[NUMBERS_LEN])
{
	double rate = seconds > 0 ? (double)p->done / seconds : 0;
	char done[16];
	char total[16];
	char speed[16];
	char left[16];

	cli_format_bytes(p->done, done, sizeof(done));
	cli_format_bytes(p->total, total, sizeof(total));
	cli_format_bytes((uint64_t)rate, speed, sizeof(speed));
	if (p->total == 0 || p->done > p->total || rate < 1) {
		(void)snprintf(out, NUMBERS_LEN, "%s  %s/s", done, speed);
		return;
	}
	cli_format_age((double)(p->total - p->done) / rate, left, sizeof(left));
	(void)snprintf(out, NUMBERS_LEN, "%s of %s  %u%%  %s/s  %s left", done, total,
	    (unsigned int)((double)p->done * 100 / (double)p->total), speed, left);
}

void cli_progress_line(
    const struct cli_progress *p, double seconds, int columns, char *out, size_t size)
{
	char numbers[NUMBERS_LEN];
	struct top_piece name = {0};
	int room;

	put_numbers(p, seconds, numbers);
	room = columns - (int)strlen(numbers) - 2;
	if (room >= NAME_LEAST)
		name = top_text_fit(p->what, room, out, size);
	(void)snprintf(out + name.bytes, size - name.bytes, "%s%.*s", name.bytes ? "  " : "",
	    columns > 0 ? columns : 0, numbers);
}

void cli_progress_add(struct cli_progress *p, uint64_t bytes)
{
	uint64_t now;
	int columns;
	size_t size;
	char *line;

	p->done += bytes;
	if (p->next_ns == 0)
		return;
	now = clock_now_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + AGAIN_NS;
	columns = cli_screen_of(STDERR_FILENO).columns - 1; /* the last would begin a new line */
	size = TOP_TEXT_BYTES(columns > 0 ? columns : 1) + NUMBERS_LEN;
	line = malloc(size);
	if (!line)
		return;
	cli_progress_line(p, (double)(now - p->began_ns) / (double)NS_PER_S, columns, line, size);
	(void)fprintf(stderr, "\r%s\033[K", line);
	p->shown = true;
	free(line);
}

void cli_progress_clear(struct cli_progress *p)
{
	if (p->shown)
		(void)fprintf(stderr, "\r\033[K");
	p->shown = false;
}

void cli_progress_end(struct cli_progress *p)
{
	cli_progress_clear(p);
	p->next_ns = 0;
}
