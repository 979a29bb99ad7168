/* event: what a record of the flight recorder says. Any process; holds no state. */
#include "shm/event.h"

#include <stdbool.h>
#include <string.h>

#include "shm/ring.h"
#include "shm/slot.h"

static void add(struct event_view *v, const char *name, const char *text, int64_t number)
{
	v->fields[v->count++] = (struct event_field){.name = name, .text = text, .number = number};
}

static void add_number(struct event_view *v, const char *name, int64_t number, bool there)
{
	if (there)
		add(v, name, NULL, number);
}

static void add_text(struct event_view *v, const char *name, const char *text)
{
	if (*text)
		add(v, name, text, 0);
}

void event_describe(const struct shm_event *ev, struct event_view *out)
{
	bool names_a_box = ev->token[0] != '\0';

	*out = (struct event_view){.count = 0};
	clock_format_rfc3339(ev->wall_ms, out->time);
	memcpy(out->box_id, ev->token, sizeof(ev->token));
	memcpy(out->request_id, ev->request_id, sizeof(ev->request_id));
	memcpy(out->reason, ev->reason, sizeof(ev->reason));

	add_text(out, "time", out->time);
	add_number(out, "seq", (int64_t)ev->seq, true);
	add_text(out, "kind", ring_kind_name(ev->kind));
	add_number(out, "slot", ev->slot, ev->slot != SHM_NONE);
	add_number(out, "generation", (int64_t)ev->generation, ev->generation != 0);
	add_text(out, "box_id", out->box_id);
	add_number(out, "uid", ev->owner_uid, names_a_box);
	if (ev->kind == EVENT_STATE) {
		add_text(out, "from", slot_state_name(ev->from));
		add_text(out, "to", slot_state_name(ev->to));
	}
	add_number(out, "pid", ev->pid, ev->pid != 0);
	add_number(out, "code", ev->code, ev->code != 0);
	add_text(out, "request_id", out->request_id);
	add_text(out, "reason", out->reason);
}
