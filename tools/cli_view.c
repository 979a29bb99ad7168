/* cli_view: boxes and events as objects, which sbxctl and sbxtop show. Holds no state. */
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
