/*
 * sbxd_testing: a supervisor without socket and driver: a real loop, table, pool and clients, for
 * tests that drive the parts around the pool. What a test does not need it leaves out.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_SBXD_TESTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_SBXD_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "shm/segment.h"
#include "supervisor/client.h"
#include "supervisor/image_job.h"
#include "supervisor/sbxd.h"
#include "wire/limits.h"

#define STAGE_INSTANCE "unit"

/* The table alone: s->seg, s->parts, s->workers. */
static inline void stage_table(struct sbxd *s, uint32_t slots)
{
	struct err err = {0};
	char instance[32];

	(void)snprintf(instance, sizeof(instance), "unit-sup-%d", (int)getpid());
	assert_int_equal(
	    segment_name(s->segment_name, sizeof(s->segment_name), geteuid(), instance), 0);
	(void)segment_unlink(s->segment_name);
	if (segment_create(s->segment_name, STAGE_INSTANCE, slots, 4, &s->seg, &err) < 0)
		fail_msg("%s", err.text);
	(void)snprintf(s->instance, sizeof(s->instance), STAGE_INSTANCE);
	(void)snprintf(s->driver, sizeof(s->driver), "namespace");
	(void)snprintf(s->isolation, sizeof(s->isolation), "namespace");
	s->parts = calloc(slots, sizeof(*s->parts));
	s->workers = calloc(slots, sizeof(struct worker *));
	assert_true(s->parts && s->workers);
	for (uint32_t i = 0; i < slots; i++) {
		s->parts[i].index_next = SHM_NONE;
		s->parts[i].warm_prev = SHM_NONE;
		s->parts[i].warm_next = SHM_NONE;
	}
}

static inline void stage_table_close(struct sbxd *s)
{
	free(s->parts);
	free((void *)s->workers);
	s->parts = NULL;
	s->workers = NULL;
	segment_close(&s->seg);
	if (s->segment_name[0])
		(void)segment_unlink(s->segment_name);
}

static inline uint32_t stage_in_flight(void *ctx, uint32_t slot)
{
	const struct sbxd *s = ctx;

	return s->seg.slots[slot].page.in_flight;
}

static inline uint64_t stage_activity(void *ctx, uint32_t slot)
{
	(void)ctx;
	(void)slot;
	return 0;
}

/* Loop, table, pool and a few clients. */
static inline struct sbxd *stage_open(const struct pool_rules *rules)
{
	struct sbxd *s = calloc(1, sizeof(*s));
	const struct pool_gauge gauge = {stage_in_flight, stage_activity, s};

	assert_non_null(s);
	s->uid = geteuid();
	s->admin_gid = (gid_t)-1;
	s->guest_fd = s->helper_fd = s->signal_fd = s->listening = s->notify.fd = -1;
	s->unix_listener = s->tcp_listener = (struct listener)LISTENER_NONE;
	s->signal_watch.fd = -1;
	s->config.limits = (struct config_limits){
	    .head_bytes = LIMIT_HEAD_BYTES,
	    .body_bytes = LIMIT_BODY_BYTES,
	    .json_depth = LIMIT_JSON_DEPTH,
	    .tcp_connections = LIMIT_TCP_CONNECTIONS,
	    .event_streams = LIMIT_EVENT_STREAMS,
	    .file_bytes = LIMIT_FILE_BYTES,
	};
	stage_table(s, rules->slots);
	s->loop = loop_create();
	s->pool = pool_create(rules, &gauge, 0);
	s->clients = clients_create(s, 8);
	TAILQ_INIT(&s->images);
	s->image_jobs = image_jobs_create();
	assert_true(s->loop && s->pool && s->clients && s->image_jobs);
	return s;
}

static inline void stage_close(struct sbxd *s)
{
	clients_destroy(s->clients);
	image_jobs_free(s);
	pool_destroy(s->pool);
	loop_destroy(s->loop);
	stage_table_close(s);
	free(s);
}

/* Runs the loop until cond holds; what is awaited comes in far less than the rounds there are. */
#define stage_until(s, cond)                                                      \
	do {                                                                      \
		for (int round_ = 0; round_ < 1000 && !(cond); round_++)          \
			assert_int_equal(loop_step((s)->loop, NS_PER_S / 10), 0); \
		assert_true(cond);                                                \
	} while (0)

#endif
