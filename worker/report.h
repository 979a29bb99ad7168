/*
 * report: the worker's part of its slot page: what sbxd and the readers see of this box. sbx-worker
 * only.
 *
 * Published at the start and end of every operation; cpu, memory and heartbeat once a second, only
 * while something happens.
 */
#ifndef SBXD_WORKER_REPORT_H
#define SBXD_WORKER_REPORT_H

#include <stdbool.h>

#include "lib/loop.h"
#include "shm/layout.h"

#define REPORT_BEAT_NS NS_PER_S

struct report {
	struct loop *loop;
	struct shm_page *page; /* the caller's */
	struct slot_work work; /* the truth; the page has a copy */
	uint32_t in_flight;
	bool changed; /* since the last beat */
	struct loop_timer beat;
	/* Once per beat, before publishing: may update work.cpu_ns and work.memory_bytes. */
	void (*on_beat)(struct report *r, bool last);
};

void report_init(struct report *r, struct loop *loop, struct shm_page *page, uint64_t generation);
void report_fini(struct report *r);

/* Publishes at once. */
void report_publish(struct report *r);

void report_set_box(struct report *r, int32_t pid, uint64_t start);
void report_set_error(struct report *r, const char *text);

/* A client's operation begins and ends: pins the box, and is activity. */
void report_begin(struct report *r);
void report_end(struct report *r);

/* Something worth a heartbeat has happened. */
void report_touch(struct report *r);

/* What is owed to the client of connection `index` (enum shm_conn_state). */
void report_conn(struct report *r, unsigned int index, uint64_t cookie, unsigned int state);

#endif
