/* cli_view: what several commands of sbxctl show. Holds no state. */
#include "tools/cli_view.h"

#include <string.h>

#include "lib/clock.h"
#include "shm/event.h"
#include "shm/names.h"
#include "shm/slot.h"
#include "tools/cli.h"
#include "wire/json.h"

json_t *cli_walk(const json_t *o)
{
	union {
		const json_t *in;
		json_t *out;
	} u = {.in = o};

	return u.out;
}

long long cli_int_at(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

const char *cli_text_at(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "-";
}

json_t *cli_text_json(const char *text)
{
	return json_stringn(text, utf8_valid_prefix((const uint8_t *)text, strlen(text), NULL));
}

static json_t *text_or_null(const char *text, bool absent)
{
	return absent ? json_null() : cli_text_json(text);
}

static double seconds_since(uint64_t now, uint64_t then)
{
	return now > then ? (double)(now - then) / (double)NS_PER_S : 0;
}

static void put_int(json_t *o, const char *key, uint64_t value)
{
	(void)json_object_set_new(o, key, json_integer((json_int_t)value)); /* o may be NULL too */
}

static void put_usage(json_t *o, const struct reader_box *b)
{
	put_int(o, "in_flight", b->in_flight);
	put_int(o, "connections", b->conns);
	put_int(o, "commands_total", b->work.exec_total);
	put_int(o, "commands_failed", b->work.exec_failed);
	put_int(o, "bytes_in", b->work.bytes_in);
	put_int(o, "bytes_out", b->work.bytes_out);
	put_int(o, "memory_bytes", b->work.memory_bytes);
	put_int(o, "cpu_ns", b->work.cpu_ns);
	put_int(o, "box_pid", (uint64_t)b->work.box_pid);
}

json_t *cli_box_json(const struct reader_box *b, uint64_t now)
{
	const struct slot_sup *s = &b->sup;
	json_t *o = json_object();

	(void)json_object_set_new(o, "box_id", cli_text_json(s->token));
	(void)json_object_set_new(o, "name", text_or_null(s->box_name, s->box_name[0] == '\0'));
	(void)json_object_set_new(
	    o, "status", json_string(shm_box_status_name(shm_box_status(s->state, s->flags))));
	(void)json_object_set_new(o, "state", json_string(slot_state_name(s->state)));
	(void)json_object_set_new(o, "image", cli_text_json(s->image));
	(void)json_object_set_new(o, "driver", cli_text_json(s->driver));
	(void)json_object_set_new(o, "isolation", cli_text_json(s->isolation));
	(void)json_object_set_new(
	    o, "user_id", text_or_null(s->user, s->flags & SLOT_FLAG_NO_USER));
	(void)json_object_set_new(
	    o, "thread_id", text_or_null(s->thread, s->flags & SLOT_FLAG_ANONYMOUS));
	(void)json_object_set_new(
	    o, "last_error", text_or_null(s->last_error, s->last_error[0] == '\0'));
	put_int(o, "slot", b->slot);
	put_int(o, "owner_uid", s->owner_uid);
	put_int(o, "generation", s->generation);
	put_int(o, "leases", s->leases);
	put_int(o, "waiters", s->waiters);
	put_int(o, "pid", (uint64_t)s->worker_pid);
	put_int(o, "memory_mib", s->memory_mib);
	(void)json_object_set_new(o, "age_seconds", json_real(seconds_since(now, s->created_ns)));
	(void)json_object_set_new(o, "state_seconds", json_real(seconds_since(now, s->state_ns)));
	put_usage(o, b);
	return o;
}

/* Text in a column of that width, cut with '~'. Counts characters, not bytes. */
static void put_column(FILE *f, const char *text, int width)
{
	char cut[128];
	size_t n = 0;
	int columns = 0;

	while (text[n] && n < sizeof(cut) - 6 && columns < width - 1) {
		do {
			cut[n] = text[n];
			n++;
		} while (((unsigned char)text[n] & 0xc0) == 0x80 && n < sizeof(cut) - 2);
		columns++;
	}
	cut[n] = '\0';
	if (text[n]) {
		(void)snprintf(cut + n, sizeof(cut) - n, "%s", text[n + 1] ? "~" : text + n);
		columns++;
	}
	cli_put_text(f, cut);
	(void)fprintf(f, "%*s", width + 1 - columns, "");
}

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

static void put_box(const json_t *b)
{
	char age[16];
	char since[16];
	char memory[16];

	cli_format_age(json_number_value(json_object_get(b, "age_seconds")), age, sizeof(age));
	cli_format_age(
	    json_number_value(json_object_get(b, "state_seconds")), since, sizeof(since));
	cli_format_bytes((uint64_t)cli_int_at(b, "memory_bytes"), memory, sizeof(memory));
	put_column(stdout, cli_text_at(b, "box_id"), 16);
	put_column(stdout, cli_text_at(b, "name"), 16);
	put_column(stdout, what_it_is_at(b), 11);
	put_column(stdout, cli_text_at(b, "user_id"), 16);
	put_column(stdout, cli_text_at(b, "thread_id"), 20);
	put_column(stdout, cli_text_at(b, "isolation"), 11);
	(void)printf("%7s %7s %6lld %5lld %8lld %7s\n", age, since, cli_int_at(b, "leases"),
	    cli_int_at(b, "in_flight"), cli_int_at(b, "commands_total"), memory);
}

void cli_put_boxes(const json_t *boxes)
{
	json_t *box;
	size_t i;

	(void)printf("%-16s %-16s %-11s %-16s %-20s %-11s %7s %7s %6s %5s %8s %7s\n", "BOX", "NAME",
	    "STATE", "USER", "THREAD", "ISOLATION", "AGE", "SINCE", "LEASES", "BUSY", "COMMANDS",
	    "MEMORY");
	json_array_foreach(cli_walk(boxes), i, box)
	{
		put_box(box);
	}
}

json_t *cli_event_json(const struct shm_event *ev)
{
	struct event_view view;
	json_t *o = json_object();

	event_describe(ev, &view);
	for (size_t i = 0; i < view.count; i++) {
		const struct event_field *field = &view.fields[i];

		(void)json_object_set_new(o, field->name,
		    field->text ? cli_text_json(field->text) : json_integer(field->number));
	}
	return o;
}

void cli_put_event(FILE *f, const json_t *event)
{
	char change[40] = "";

	if (json_object_get(event, "from"))
		(void)snprintf(change, sizeof(change), "%s->%s", cli_text_at(event, "from"),
		    cli_text_at(event, "to"));
	put_column(f, cli_text_at(event, "time"), CLOCK_RFC3339_LEN - 1);
	put_column(f, cli_text_at(event, "kind"), 16);
	put_column(f, cli_text_at(event, "box_id"), 16);
	put_column(f, change, 20);
	cli_put_text(f, cli_text_at(event, "reason"));
	if (json_object_get(event, "code"))
		(void)fprintf(f, " (code %lld)", cli_int_at(event, "code"));
	if (json_object_get(event, "count"))
		(void)fprintf(f, " (%lld)", cli_int_at(event, "count"));
	(void)fputc('\n', f);
}

void cli_put_numbers(const char *title, const json_t *object)
{
	const char *key;
	json_t *value;

	(void)printf("%-10s", title);
	json_object_foreach(cli_walk(object), key, value)
	{
		if (json_integer_value(value))
			(void)printf(" %s %lld", key, (long long)json_integer_value(value));
	}
	(void)fputc('\n', stdout);
}

void cli_put_latencies(const json_t *object)
{
	const char *key;
	json_t *value;

	(void)printf(
	    "%-10s %8s %10s %10s %10s\n", "LATENCY", "COUNT", "P50 us", "P95 us", "P99 us");
	json_object_foreach(cli_walk(object), key, value)
	{
		if (cli_int_at(value, "count"))
			(void)printf("%-10s %8lld %10lld %10lld %10lld\n", key,
			    cli_int_at(value, "count"), cli_int_at(value, "p50_us"),
			    cli_int_at(value, "p95_us"), cli_int_at(value, "p99_us"));
	}
}
