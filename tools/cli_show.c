/* cli_show: boxes, events and numbers as people read them. sbxctl; holds no state. */
#include "tools/cli_show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "shm/names.h"
#include "shm/slot.h"
#include "tools/cli.h"
#include "tools/cli_view.h"

#define NUMBER_LEN 24
#define SHORT_LINE 110 /* on a screen of less the date of an event is left out */

static const struct cli_column box_columns[] = {
    {"BOX", 16, 0, false},
    {"NAME", 8, 2, false},
    {"STATE", 0, 0, false},
    {"USER", 6, 0, false},
    {"THREAD", 6, 0, false},
    {"ISOLATION", 4, 8, false},
    {"AGE", 0, 1, true},
    {"SINCE", 0, 5, true},
    {"LEASES", 0, 4, true},
    {"BUSY", 0, 6, true},
    {"COMMANDS", 0, 7, true},
    {"MEMORY", 0, 3, true},
};

#define BOX_COLUMNS (sizeof(box_columns) / sizeof(box_columns[0]))

/* The state in the pool, or what a made box is at when it does not run: that is always active. */
static const char *what_it_is_at(const json_t *b)
{
	const char *state = cli_text_at(b, "state");
	const char *status = cli_text_at(b, "status");

	return !strcmp(state, slot_state_name(SLOT_ACTIVE)) && strcmp(status, "running") != 0 &&
		       strcmp(status, "-") != 0
		   ? status
		   : state;
}

static enum cli_style style_of(const char *state)
{
	static const struct {
		uint32_t state;
		enum cli_style style;
	} known[] = {
	    {SLOT_ACTIVE, CLI_GOOD},
	    {SLOT_WARM, CLI_QUIET},
	    {SLOT_STOCK, CLI_QUIET},
	    {SLOT_BOOTING, CLI_WARN},
	    {SLOT_CLOSING, CLI_WARN},
	    {SLOT_QUARANTINED, CLI_BAD},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(state, slot_state_name(known[i].state)))
			return known[i].style;
	}
	return CLI_PLAIN;
}

static void add_box(struct cli_grid *g, const json_t *b)
{
	const char *state = what_it_is_at(b);
	char age[16];
	char since[16];
	char memory[16];
	char leases[NUMBER_LEN];
	char busy[NUMBER_LEN];
	char commands[NUMBER_LEN];
	const struct cli_cell cells[BOX_COLUMNS] = {
	    {cli_text_at(b, "box_id"), CLI_PLAIN},
	    {cli_text_at(b, "name"), CLI_PLAIN},
	    {state, style_of(state)},
	    {cli_text_at(b, "user_id"), CLI_PLAIN},
	    {cli_text_at(b, "thread_id"), CLI_PLAIN},
	    {cli_text_at(b, "isolation"), CLI_PLAIN},
	    {age, CLI_PLAIN},
	    {since, CLI_PLAIN},
	    {leases, CLI_PLAIN},
	    {busy, CLI_PLAIN},
	    {commands, CLI_PLAIN},
	    {memory, CLI_PLAIN},
	};

	cli_format_age(json_number_value(json_object_get(b, "age_seconds")), age, sizeof(age));
	cli_format_age(
	    json_number_value(json_object_get(b, "state_seconds")), since, sizeof(since));
	cli_format_bytes((uint64_t)cli_int_at(b, "memory_bytes"), memory, sizeof(memory));
	(void)snprintf(leases, sizeof(leases), "%lld", cli_int_at(b, "leases"));
	(void)snprintf(busy, sizeof(busy), "%lld", cli_int_at(b, "in_flight"));
	(void)snprintf(commands, sizeof(commands), "%lld", cli_int_at(b, "commands_total"));
	cli_grid_add(g, cells);
}

void cli_put_boxes(const json_t *boxes)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	struct cli_grid g;
	json_t *box;
	size_t i;

	cli_grid_init(&g, box_columns, BOX_COLUMNS);
	json_array_foreach(cli_walk(boxes), i, box)
	{
		add_box(&g, box);
	}
	cli_grid_put(&g, stdout, &screen);
	cli_grid_free(&g);
}

/* The words at the end of an event's line. The caller's; NULL without memory. */
static char *reason_of(const json_t *event)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	(void)fputs(cli_text_at(event, "reason"), f);
	if (json_object_get(event, "code"))
		(void)fprintf(f, " (code %lld)", cli_int_at(event, "code"));
	if (json_object_get(event, "count"))
		(void)fprintf(f, " (%lld)", cli_int_at(event, "count"));
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

void cli_put_event(FILE *f, const struct cli_screen *s, const json_t *event)
{
	const char *time = cli_text_at(event, "time");
	bool is_short = s->columns > 0 && s->columns < SHORT_LINE;
	char *reason = reason_of(event);
	char change[40] = "";
	int date = is_short && strchr(time, 'T') ? (int)(strchr(time, 'T') - time) + 1 : 0;
	const struct {
		struct cli_cell cell;
		int width;
	} parts[] = {
	    {{time + date, CLI_QUIET}, CLOCK_RFC3339_LEN - 1 - (is_short ? 11 : 0)},
	    {{cli_text_at(event, "kind"), CLI_HEADING}, 16},
	    {{cli_text_at(event, "box_id"), CLI_PLAIN}, 16},
	    {{change, CLI_PLAIN}, is_short ? 18 : 20},
	};
	int left = s->columns;

	if (json_object_get(event, "from"))
		(void)snprintf(change, sizeof(change), "%s->%s", cli_text_at(event, "from"),
		    cli_text_at(event, "to"));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		cli_put_cell(f, s, &parts[i].cell, parts[i].width, false, false);
		left -= parts[i].width + 1;
	}
	if (s->columns == 0 && reason)
		cli_put_text(f, reason);
	else if (left > 0)
		cli_put_cell(f, s, &(const struct cli_cell){reason ? reason : "-", CLI_PLAIN}, left,
		    false, true);
	(void)fputc('\n', f);
	free(reason);
}

void cli_put_numbers(const char *title, const json_t *object)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	const int indent = 10;
	int at = indent;
	const char *key;
	json_t *value;

	cli_put_cell(stdout, &screen, &(const struct cli_cell){title, CLI_HEADING}, indent - 1,
	    false, false);
	json_object_foreach(cli_walk(object), key, value)
	{
		char word[96];
		int len = snprintf(
		    word, sizeof(word), " %s %lld", key, (long long)json_integer_value(value));

		if (!json_integer_value(value))
			continue;
		if (screen.columns > 0 && at > indent && at + len > screen.columns) {
			(void)printf("\n%*s", indent, "");
			at = indent;
		}
		(void)fputs(word, stdout);
		at += len;
	}
	(void)fputc('\n', stdout);
}

void cli_put_latencies(const json_t *object)
{
	static const struct cli_column columns[] = {
	    {"LATENCY", 10, 0, false},
	    {"COUNT", 0, 0, true},
	    {"P50 us", 0, 0, true},
	    {"P95 us", 0, 0, true},
	    {"P99 us", 0, 0, true},
	};
	static const char *const keys[] = {"count", "p50_us", "p95_us", "p99_us"};
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	struct cli_grid g;
	const char *key;
	json_t *value;

	cli_grid_init(&g, columns, sizeof(columns) / sizeof(columns[0]));
	json_object_foreach(cli_walk(object), key, value)
	{
		char numbers[sizeof(keys) / sizeof(keys[0])][NUMBER_LEN];
		struct cli_cell cells[sizeof(columns) / sizeof(columns[0])] = {{key, CLI_PLAIN}};

		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			(void)snprintf(numbers[i], NUMBER_LEN, "%lld", cli_int_at(value, keys[i]));
			cells[i + 1] = (struct cli_cell){numbers[i], CLI_PLAIN};
		}
		if (cli_int_at(value, "count"))
			cli_grid_add(&g, cells);
	}
	cli_grid_put(&g, stdout, &screen);
	cli_grid_free(&g);
}
