/* cli_grid: tables that fit the terminal. sbxctl; what is not written is lost with it. */
#include "tools/cli_grid.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/top_text.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX 10000

static const char *const styles[CLI_STYLES] = {
    [CLI_PLAIN] = "",
    [CLI_HEADING] = "\033[1m",
    [CLI_GOOD] = "\033[32m",
    [CLI_QUIET] = "\033[2m",
    [CLI_WARN] = "\033[33m",
    [CLI_BAD] = "\033[31m",
    [CLI_FOLDER] = "\033[34m",
    [CLI_LINK] = "\033[36m",
};

static int columns_of(int fd)
{
	struct winsize size = {.ws_col = 0};
	const char *text = getenv("COLUMNS");
	long columns = text ? strtol(text, NULL, 10) : 0;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return columns > 0 && columns <= COLUMNS_MAX ? (int)columns : COLUMNS_DEFAULT;
}

/* A file has no locale: names are written as they are, and their width is counted all the same. */
struct cli_screen cli_screen_of(int fd)
{
	const char *term = getenv("TERM");
	const char *none = getenv("NO_COLOR");
	struct cli_screen s = {.columns = 0};

	if (!isatty(fd)) {
		(void)setlocale(LC_CTYPE, "C.UTF-8"); /* one that is not there leaves "C" */
		return s;
	}
	(void)setlocale(LC_CTYPE, ""); /* likewise */
	s.columns = columns_of(fd);
	s.colors = !(none && *none) && term && strcmp(term, "dumb") != 0;
	return s;
}

static void begin(FILE *f, const struct cli_screen *s, enum cli_style style)
{
	if (s->colors)
		(void)fputs(styles[style], f); /* the stream remembers errors */
}

static void end(FILE *f, const struct cli_screen *s, enum cli_style style)
{
	if (s->colors && style != CLI_PLAIN)
		(void)fputs("\033[0m", f);
}

void cli_put_cell(FILE *f, const struct cli_screen *s, const struct cli_cell *cell, int width,
    bool right, bool last)
{
	size_t size = TOP_TEXT_BYTES(width);
	char *out = malloc(size);
	struct top_piece piece = {0};

	if (out)
		piece = top_text_fit(cell->text, width, out, size);
	if (right)
		(void)fprintf(f, "%*s", width - piece.columns, "");
	begin(f, s, cell->style);
	(void)fputs(out ? out : "", f);
	end(f, s, cell->style);
	if (!last)
		(void)fprintf(f, "%*s", 1 + (right ? 0 : width - piece.columns), "");
	free(out);
}

void cli_put_styled(FILE *f, const struct cli_screen *s, enum cli_style style, const char *text)
{
	const struct cli_cell cell = {text, style};

	cli_put_cell(f, s, &cell, top_text_columns(text), false, true);
}

void cli_grid_init(struct cli_grid *g, const struct cli_column *columns, size_t count)
{
	*g = (struct cli_grid){.columns = columns, .count = count};
}

void cli_grid_free(struct cli_grid *g)
{
	for (size_t i = 0; i < g->rows * g->count; i++)
		free(g->texts[i]);
	free(g->texts);
	free(g->styles);
	cli_grid_init(g, g->columns, g->count);
}

static bool make_room(struct cli_grid *g)
{
	size_t room = g->room ? 2 * g->room : 64;
	char **texts;
	enum cli_style *more;

	if (g->rows < g->room)
		return true;
	texts = realloc(g->texts, room * g->count * sizeof(*texts));
	if (texts)
		g->texts = texts;
	more = texts ? realloc(g->styles, room * g->count * sizeof(*more)) : NULL;
	if (!more)
		return false;
	g->styles = more;
	g->room = room;
	return true;
}

void cli_grid_add(struct cli_grid *g, const struct cli_cell *cells)
{
	size_t at = g->rows * g->count;

	if (!make_room(g)) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; i < g->count; i++) {
		g->texts[at + i] = strdup(cells[i].text);
		g->styles[at + i] = cells[i].style;
		g->failed |= g->texts[at + i] == NULL;
	}
	g->rows++;
}

static int total(const int *widths, size_t count)
{
	int sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += widths[i] ? widths[i] + (sum > 0) : 0;
	return sum;
}

static int least_of(const struct cli_column *c, int natural)
{
	return c->least > 0 && c->least < natural ? c->least : natural;
}

/* Takes a column off the widest that has more than its least, or, `hard`, than one. False when none
 * has. */
static bool shrink_one(
    const struct cli_column *columns, const int *natural, size_t count, int *widths, bool hard)
{
	size_t widest = count;

	for (size_t i = 0; i < count; i++) {
		int least = hard ? 1 : least_of(&columns[i], natural[i]);

		if (widths[i] > least && (widest == count || widths[i] > widths[widest]))
			widest = i;
	}
	if (widest == count)
		return false;
	widths[widest]--;
	return true;
}

/* Gives up the column that is wanted least. False when all of them are to stay. */
static bool drop_one(const struct cli_column *columns, size_t count, bool *dropped)
{
	size_t at = count;

	for (size_t i = 0; i < count; i++) {
		if (!dropped[i] && columns[i].drop > 0 &&
		    (at == count || columns[i].drop > columns[at].drop))
			at = i;
	}
	if (at == count)
		return false;
	dropped[at] = true;
	return true;
}

void cli_grid_fit(
    const struct cli_column *columns, const int *natural, size_t count, int limit, int *widths)
{
	bool dropped[CLI_GRID_COLUMNS] = {false};
	bool fits;

	do {
		for (size_t i = 0; i < count; i++)
			widths[i] = dropped[i] ? 0 : natural[i];
		do
			fits = limit <= 0 || total(widths, count) <= limit;
		while (!fits && shrink_one(columns, natural, count, widths, false));
	} while (!fits && drop_one(columns, count, dropped));
	while (!fits && shrink_one(columns, natural, count, widths, true))
		fits = total(widths, count) <= limit;
}

static const char *text_at(const struct cli_grid *g, size_t row, size_t column)
{
	const char *text = g->texts[row * g->count + column];

	return text ? text : "?";
}

static void put_row(const struct cli_grid *g, FILE *f, const struct cli_screen *s,
    const int *widths, const struct cli_cell *cells)
{
	size_t last = g->count;

	for (size_t i = 0; i < g->count; i++)
		last = widths[i] ? i : last;
	for (size_t i = 0; i < g->count; i++) {
		if (widths[i])
			cli_put_cell(f, s, &cells[i], widths[i], g->columns[i].right, i == last);
	}
	(void)fputc('\n', f);
}

void cli_grid_put(const struct cli_grid *g, FILE *f, const struct cli_screen *screen)
{
	struct cli_cell cells[CLI_GRID_COLUMNS];
	int natural[CLI_GRID_COLUMNS];
	int widths[CLI_GRID_COLUMNS];

	for (size_t i = 0; i < g->count; i++) {
		natural[i] = top_text_columns(g->columns[i].title);
		for (size_t row = 0; row < g->rows; row++) {
			int columns = top_text_columns(text_at(g, row, i));

			natural[i] = columns > natural[i] ? columns : natural[i];
		}
		cells[i] = (struct cli_cell){g->columns[i].title, CLI_HEADING};
	}
	cli_grid_fit(g->columns, natural, g->count, screen->columns, widths);
	put_row(g, f, screen, widths, cells);
	for (size_t row = 0; row < g->rows; row++) {
		for (size_t i = 0; i < g->count; i++)
			cells[i] =
			    (struct cli_cell){text_at(g, row, i), g->styles[row * g->count + i]};
		put_row(g, f, screen, widths, cells);
	}
	if (g->failed)
		(void)fprintf(stderr, "sbxctl: no memory for all of the table\n");
}
