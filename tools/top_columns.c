/* top_columns: what can be shown of a box: one row of a table each. sbxtop; holds no state. */
#include "tools/top_columns.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "shm/names.h"
#include "shm/slot.h"
#include "tools/cli.h"

#define BOX(member) offsetof(struct top_box, member)
#define SUP(member) BOX(seen.sup.member)
#define WORK(member) BOX(seen.work.member)

/* In the order in which they are offered. What is not hidden is what an operator looks for first,
 * the most important on the left, where 80 columns end. */
static const struct top_column columns[] = {
    {"token", "BOX", "scope token, which names the box", TYPE_TEXT, SUP(token), 16, 0, false},
    {"state", "STATE", "state of the box", TYPE_STATE, 0, 8, 3, false},
    {"user", "USER", "user_id of the scope", TYPE_USER, 0, 9, 15, false},
    {"thread", "THREAD", "thread_id of the scope", TYPE_THREAD, 0, 12, 20, false},
    {"cpu", "CPU%", "per cent of one cpu, now", TYPE_PERCENT, BOX(cpu_percent), 6, 0, false},
    {"memory", "MEM", "memory in use", TYPE_BYTES, WORK(memory_bytes), 5, 0, false},
    {"age", "AGE", "time since the box was begun", TYPE_SPAN, BOX(age_ns), 6, 0, false},
    {"idle", "IDLE", "time since anybody had to do with it", TYPE_SPAN, BOX(idle_ns), 6, 0, false},
    {"exec", "EXEC", "operations under way", TYPE_NUMBER32, BOX(seen.in_flight), 4, 0, false},
    {"total", "TOTAL", "commands so far", TYPE_NUMBER64, WORK(exec_total), 6, 0, false},
    {"leases", "LEASES", "leases on it", TYPE_NUMBER32, SUP(leases), 6, 0, false},
    {"waiters", "WAIT", "acquires that wait for it", TYPE_NUMBER32, SUP(waiters), 4, 0, false},
    {"lock", "LOCK", "who holds its scope lock", TYPE_LOCK, BOX(lock), 6, 0, false},
    {"image", "IMAGE", "image", TYPE_TEXT, SUP(image), 8, 16, false},
    {"driver", "DRIVER", "driver", TYPE_TEXT, SUP(driver), 9, 0, false},
    {"isolation", "ISOLATION", "how it is isolated", TYPE_TEXT, SUP(isolation), 11, 0, false},
    {"in", "IN", "bytes into the box", TYPE_BYTES, WORK(bytes_in), 5, 0, false},
    {"out", "OUT", "bytes out of the box", TYPE_BYTES, WORK(bytes_out), 5, 0, false},
    {"pid", "PID", "pid of its worker", TYPE_PID, SUP(worker_pid), 7, 0, false},
    {"error", "LAST ERROR", "last error", TYPE_ERROR, 0, 12, 60, false},
    {"name", "NAME", "what its creator calls it", TYPE_TEXT, SUP(box_name), 8, 16, true},
    {"slot", "SLOT", "slot of the table", TYPE_NUMBER32, BOX(seen.slot), 5, 0, true},
    {"generation", "GEN", "generation of the slot", TYPE_NUMBER64, SUP(generation), 7, 0, true},
    {"uid", "UID", "uid of its owner", TYPE_NUMBER32, SUP(owner_uid), 6, 0, true},
    {"driver_name", "DRIVER NAME", "its name for the driver", TYPE_TEXT, SUP(name), 20, 20, true},
    {"since", "SINCE", "time in its state", TYPE_SPAN, BOX(state_age_ns), 6, 0, true},
    {"acquires", "ACQ", "acquires so far", TYPE_NUMBER64, SUP(acquires), 6, 0, true},
    {"source", "SOURCE", "how it was last acquired", TYPE_SOURCE, SUP(source), 9, 0, true},
    {"conns", "CONNS", "connections of clients", TYPE_NUMBER32, BOX(seen.conns), 5, 0, true},
    {"failed", "FAILED", "commands that could not be run", TYPE_NUMBER64, WORK(exec_failed), 6, 0,
	true},
    {"box_pid", "BOXPID", "pid of its first process", TYPE_PID, WORK(box_pid), 7, 0, true},
    {"mem_max", "MEMMAX", "limit of memory", TYPE_MIB, SUP(memory_mib), 6, 0, true},
    {"cpus", "CPUS", "limit of cpus", TYPE_CPUS, SUP(cpus_milli), 5, 0, true},
    {"disk_max", "DISK", "limit of scratch space", TYPE_MIB, SUP(disk_mib), 6, 0, true},
    {"pids_max", "PIDS", "limit of processes", TYPE_NUMBER32, SUP(pids_max), 5, 0, true},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

_Static_assert(COLUMNS <= TOP_COLUMNS_MAX, "a layout can hold all columns");

size_t top_columns_count(void)
{
	return COLUMNS;
}

const struct top_column *top_column_at(size_t index)
{
	return &columns[index];
}

int top_column_find(const char *key)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		if (strcmp(columns[i].key, key) == 0)
			return (int)i;
	}
	return -1;
}

/* ---- types ---- */

/* What stands at `field`, read without regard to alignment. */
#define DEFINE_GET(name, type)                        \
	static type get_##name(const void *field)     \
	{                                             \
		type value;                           \
                                                      \
		memcpy(&value, field, sizeof(value)); \
		return value;                         \
	}

DEFINE_GET(number32, uint32_t)
DEFINE_GET(number64, uint64_t)
DEFINE_GET(pid, int32_t)
DEFINE_GET(percent, double)
DEFINE_GET(lock, enum top_lock)

typedef const char *text_fn(const struct top_column *c, const void *field, char buf[TOP_NUMBER]);
typedef int compare_fn(const void *a, const void *b);

static const char *text_or_dash(const char *text)
{
	return *text ? text : "-";
}

static const char *text_text(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	(void)buf;
	return text_or_dash(field);
}

static const char *text_number32(const struct top_column *c, const void *field, char *buf)
{
	top_format_count(get_number32(field), c->width, buf);
	return buf;
}

static const char *text_number64(const struct top_column *c, const void *field, char *buf)
{
	top_format_count(get_number64(field), c->width, buf);
	return buf;
}

static const char *text_pid(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	(void)snprintf(buf, TOP_NUMBER, "%d", get_pid(field));
	return get_pid(field) ? buf : "-";
}

static const char *text_bytes(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	cli_format_bytes(get_number64(field), buf, TOP_NUMBER);
	return buf;
}

static const char *text_mib(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	cli_format_bytes((uint64_t)get_number32(field) << 20, buf, TOP_NUMBER);
	return get_number32(field) ? buf : "-";
}

static const char *text_cpus(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	(void)snprintf(buf, TOP_NUMBER, "%.2f", (double)get_number32(field) / 1000);
	return get_number32(field) ? buf : "-";
}

static const char *text_span(const struct top_column *c, const void *field, char *buf)
{
	double seconds = (double)get_number64(field) / (double)NS_PER_S;

	(void)c;
	if (seconds < 100 * 86400.0)
		cli_format_age(seconds, buf, TOP_NUMBER);
	else
		(void)snprintf(buf, TOP_NUMBER, "%.0fd", seconds / 86400);
	return buf;
}

static const char *text_percent(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	(void)snprintf(buf, TOP_NUMBER, "%.1f", get_percent(field));
	return buf;
}

static const char *text_state(const struct top_column *c, const void *field, char *buf)
{
	const struct slot_sup *sup = &((const struct top_box *)field)->seen.sup;

	(void)c;
	(void)buf;
	if (sup->state == SLOT_ACTIVE &&
	    (sup->flags & (SLOT_FLAG_FRESH | SLOT_FLAG_STOPPING | SLOT_FLAG_STOPPED)))
		return shm_box_status_name(shm_box_status(sup->state, sup->flags));
	return slot_state_name(sup->state);
}

static uint32_t get_state(const void *field)
{
	return ((const struct top_box *)field)->seen.sup.state;
}

static const char *text_source(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	(void)buf;
	return slot_source_name(get_number32(field));
}

static const char *text_lock(const struct top_column *c, const void *field, char *buf)
{
	(void)c;
	(void)buf;
	return top_lock_name(get_lock(field));
}

static const char *text_user(const struct top_column *c, const void *field, char *buf)
{
	const struct top_box *b = field;

	(void)c;
	(void)buf;
	return b->seen.sup.flags & SLOT_FLAG_NO_USER ? "-" : text_or_dash(b->seen.sup.user);
}

static const char *text_thread(const struct top_column *c, const void *field, char *buf)
{
	const struct top_box *b = field;

	(void)c;
	(void)buf;
	return b->seen.sup.flags & SLOT_FLAG_ANONYMOUS ? "-" : text_or_dash(b->seen.sup.thread);
}

/* sbxd's word, else the worker's. */
static const char *text_error(const struct top_column *c, const void *field, char *buf)
{
	const struct top_box *b = field;
	const char *error = b->seen.sup.last_error;

	(void)c;
	(void)buf;
	return text_or_dash(*error ? error : b->seen.work.last_error);
}

/* ---- order ---- */

#define DEFINE_COMPARE(name, type)                              \
	static int compare_##name(const void *a, const void *b) \
	{                                                       \
		type x = get_##name(a);                         \
		type y = get_##name(b);                         \
                                                                \
		return (x > y) - (x < y);                       \
	}

DEFINE_COMPARE(number32, uint32_t)
DEFINE_COMPARE(number64, uint64_t)
DEFINE_COMPARE(pid, int32_t)
DEFINE_COMPARE(percent, double)
DEFINE_COMPARE(lock, enum top_lock)
DEFINE_COMPARE(state, uint32_t)

static int compare_text(const void *a, const void *b)
{
	int order = strcmp(a, b);

	return (order > 0) - (order < 0);
}

#define DEFINE_COMPARE_AS_SHOWN(name)                                                        \
	static int compare_##name(const void *a, const void *b)                              \
	{                                                                                    \
		return compare_text(text_##name(NULL, a, NULL), text_##name(NULL, b, NULL)); \
	}

DEFINE_COMPARE_AS_SHOWN(user)
DEFINE_COMPARE_AS_SHOWN(thread)
DEFINE_COMPARE_AS_SHOWN(error)

static const struct {
	text_fn *text;
	compare_fn *compare;
	bool number;
} types[] = {
    [TYPE_TEXT] = {text_text, compare_text, false},
    [TYPE_NUMBER32] = {text_number32, compare_number32, true},
    [TYPE_NUMBER64] = {text_number64, compare_number64, true},
    [TYPE_PID] = {text_pid, compare_pid, true},
    [TYPE_BYTES] = {text_bytes, compare_number64, true},
    [TYPE_MIB] = {text_mib, compare_number32, true},
    [TYPE_CPUS] = {text_cpus, compare_number32, true},
    [TYPE_SPAN] = {text_span, compare_number64, true},
    [TYPE_PERCENT] = {text_percent, compare_percent, true},
    [TYPE_STATE] = {text_state, compare_state, false},
    [TYPE_SOURCE] = {text_source, compare_number32, false},
    [TYPE_LOCK] = {text_lock, compare_lock, false},
    [TYPE_USER] = {text_user, compare_user, false},
    [TYPE_THREAD] = {text_thread, compare_thread, false},
    [TYPE_ERROR] = {text_error, compare_error, false},
};

_Static_assert(sizeof(types) / sizeof(types[0]) == TYPES, "every type is known");

static const void *field_of(const struct top_column *c, const struct top_box *b)
{
	return (const char *)b + c->at;
}

/* Its worker's word, which there may be none of. */
static bool is_reported(const struct top_column *c)
{
	return c->at == BOX(cpu_percent) ||
	       (c->at >= BOX(seen.work) && c->at < BOX(seen.work) + sizeof(struct slot_work));
}

const char *top_column_text(
    const struct top_column *c, const struct top_box *b, char buf[TOP_NUMBER])
{
	if (b->seen.work.generation == 0 && is_reported(c))
		return "-";
	return types[c->type].text(c, field_of(c, b), buf);
}

int top_column_compare(const struct top_column *c, const struct top_box *a, const struct top_box *b)
{
	return types[c->type].compare(field_of(c, a), field_of(c, b));
}

bool top_column_is_number(const struct top_column *c)
{
	return types[c->type].number;
}
