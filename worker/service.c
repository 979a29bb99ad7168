/*
 * service: the end of a box, as its clients see it. sbx-worker. If we die here, sbxd answers who is
 * still owed an answer.
 */
#include "worker/service.h"

#include <malloc.h>
#include <sys/mman.h>

#include "lib/clock.h"
#include "worker/conn.h"
#include "worker/exec.h"
#include "worker/op.h"

#define PATIENCE_CHECKS 2 /* times health_check_timeout, */
#define PATIENCE_MIN_NS (10 * NS_PER_S)

/* An operation ends because its box is gone. */
static void service_lose_op(struct op *op, enum api_error e, const char *message)
{
	struct conn *c = op->conn;

	if (c && !c->responding) {
		conn_fail(c, e, message);
	} else if (c) {
		if (op->cls->lost)
			op->cls->lost(op, e, message);
		conn_cut(c);
	}
	op_free(op);
}

void service_set_state(
    struct service *s, enum service_state state, enum api_error e, const char *message)
{
	struct op *op;

	if (state <= s->state)
		return;
	s->state = state;
	while (state == SERVICE_DEAD && (op = LIST_FIRST(&s->ops_running)))
		service_lose_op(op, e, message);
	if (state == SERVICE_DEAD)
		exec_drop_all(s);
	for (size_t i = 0; i < SHM_CONNS; i++) {
		if (s->conns[i])
			conn_wake(s->conns[i]);
	}
}

bool service_keep(struct service *s, size_t n)
{
	if (s->buffered + n > SERVICE_BUFFER_MAX)
		return false;
	s->buffered += n;
	return true;
}

uint64_t service_patience_ns(const struct service *s)
{
	uint64_t slow = PATIENCE_CHECKS * s->check_ns;

	return slow > PATIENCE_MIN_NS ? slow : PATIENCE_MIN_NS;
}

void service_rest(struct service *s)
{
	s->resting = true;
	for (size_t i = 0; i < SHM_CONNS; i++) {
		if (s->conns[i])
			conn_rest(s->conns[i]);
	}
}

void service_trim(struct service *s)
{
	agent_link_trim(s->link);
	/* Both are advice: when they are refused, the memory just stays. */
	(void)madvise(s->scratch, SERVICE_SCRATCH, MADV_DONTNEED);
	(void)malloc_trim(0);
}
