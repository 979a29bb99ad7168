/*
 * files_walk: requests that sbx-files answers with records (wire/entry.h), which become one JSON
 * object. sbx-worker only.
 *
 * What is short is answered whole, with its length. What is longer than WALK_WHOLE goes out as it
 * comes, and the guest sends no faster than the client takes it; if it fails then, the connection
 * is cut: an answer that ends is complete.
 */
#ifndef SBXD_WORKER_FILES_WALK_H
#define SBXD_WORKER_FILES_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "wire/entry.h"
#include "wire/json.h"
#include "worker/files_helper.h"
#include "worker/op.h"

#define WALK_WHOLE (64U * 1024U)
#define WALK_LIST_MAX (256U * 1024U) /* of what is told at the end of an answer */

struct walk;

/* A kind of request. */
struct walk_class {
	enum entry_type type; /* of its records; ENTRY_NONE: there are none but the last */
	const char *array;    /* the member that they are put in, one after the other */
	void (*put)(struct walk *w, const struct entry *e);
	/* Adds what the last record says. */
	void (*end)(struct walk *w, const struct entry_done *done);
};

/* A list of objects that is told at the end, if there are any. */
struct walk_list {
	struct buf text;
	struct json_out json;
};

struct walk {
	struct op op; /* first */
	const struct walk_class *cls;
	struct files_helper helper;
	struct buf out; /* of the answer, what was not sent yet */
	struct json_out json;
	struct walk_list problems;
	struct walk_list encoded; /* paths among `array` that are not UTF-8 */
	uint64_t count;		  /* of records in `array` */
	bool begun;		  /* the response was */
	bool complete;		  /* the last record came: `done` is filled */
	bool over;		  /* the guest has said how it ended: `end` is filled */
	struct entry_done done;
	struct agent_end end;
	struct buf kept; /* what came and cannot be passed on yet, at most AGENT_WINDOW */
	struct entry_reader reader;
};

/*
 * Starts a request: NULL after answering the client. The object is open for members that come
 * before the array; then walk_start().
 */
struct walk *walk_new(struct conn *c, const struct walk_class *cls);

/* Starts sbx-files with argv (NULL-terminated, its command first). */
void walk_start(struct walk *w, const char *const argv[]);

/* Adds an object to a list, open for members, if there is room; closed by walk_list_end(). False:
 * there is none. */
bool walk_list_begin(struct walk_list *l);
void walk_list_end(struct walk_list *l);

/* No more is wanted: the answer ends here, and says that there is more. */
void walk_truncate(struct walk *w);

/* A walk_class.end() of searches: truncated, and what went wrong. */
void walk_end_search(struct walk *w, const struct entry_done *done);

#endif
