/*
 * fake_workers: what worker_link.h declares, with workers that are records only: what sbxd tells
 * them is written down. For one source file of a test program.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_FAKE_WORKERS_H
#define SBXD_TESTS_UNIT_SUPERVISOR_FAKE_WORKERS_H

#include <errno.h>

#include "supervisor/worker_link.h"
#include "tests/unit/supervisor/sbxd_testing.h"

struct worker {
	pid_t pid;
	uint64_t start;
	uint32_t told[CTL_TYPES];
	uint32_t killed;
	int prepared;
	struct worker_figures figures;
};

struct worker_figures *worker_figures(struct worker *w)
{
	return &w->figures;
}

pid_t worker_pid(const struct worker *w)
{
	return w->pid;
}

uint64_t worker_start_time(const struct worker *w)
{
	return w->start;
}

void worker_kill(struct worker *w)
{
	w->killed++;
}

void worker_tell(struct worker *w, uint16_t type, const void *body, size_t len)
{
	assert_int_equal(type == CTL_CLOSE   ? sizeof(struct ctl_close)
			 : type == CTL_CLAIM ? sizeof(struct ctl_claim)
					     : 0,
	    len);
	assert_int_equal(body != NULL, len != 0);
	w->told[type]++;
}

void worker_stop(struct worker *w, uint32_t timeout_ms)
{
	(void)timeout_ms;
	w->told[CTL_STOP]++;
}

void worker_pulse(struct worker *w)
{
	(void)w;
}

int worker_hand_over(struct worker *w, struct client *c, const void *bytes, size_t n)
{
	(void)w;
	(void)c;
	(void)bytes;
	(void)n;
	return -EPIPE;
}

bool worker_has_conns(const struct worker *w, uint32_t n)
{
	(void)w;
	(void)n;
	return false;
}

void worker_spawn(struct sbxd *s, const struct pool_box *b, int prepared)
{
	struct worker *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_null(s->workers[b->slot]);
	w->pid = (pid_t)(4000 + b->generation);
	w->start = 77;
	w->prepared = prepared;
	s->workers[b->slot] = w;
}

void workers_forget_all(struct sbxd *s)
{
	for (uint32_t i = 0; i < s->seg.slot_count; i++) {
		free(s->workers[i]);
		s->workers[i] = NULL;
	}
}

#endif
