/* bench_fault: what becomes of a box between two turns: it times out, or it is killed. sbxbench;
 * holds no state. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench_turn.h"

#define LOOK_NS (20 * NS_PER_MS)
#define GRACE_S 30

/* Is this box still parked? 1, 0, or -errno. Another box of the scope is none of ours. */
static int is_warm(
    struct bench_client *cl, const struct bench_box *box, json_t **out, struct err *err)
{
	json_t *answer = NULL;
	const char *state;
	int rc = bench_client_inspect(cl, box->id, &answer, err);

	if (rc == -EIO)
		return 0; /* 404 */
	if (rc < 0)
		return rc;
	state = json_string_value(json_object_get(answer, "state"));
	rc = state && strcmp(state, "warm") == 0 &&
	     json_integer_value(json_object_get(answer, "generation")) == box->generation;
	if (rc && out)
		*out = answer;
	else
		json_decref(answer);
	return rc;
}

int bench_await_idle_close(struct bench_client *cl, const struct bench_plan *p,
    const struct bench_box *box, struct err *err)
{
	uint64_t deadline = clock_now_ns() + clock_seconds_to_ns(p->idle_timeout + GRACE_S);
	int rc;

	while ((rc = is_warm(cl, box, NULL, err)) > 0) {
		if (clock_now_ns() > deadline)
			return err_set(err, ETIMEDOUT, "the box outlived idle_timeout");
		rc = httpc_wait(-1, 0, cl->cancel_fd, clock_now_ns() + LOOK_NS);
		if (rc == -ECANCELED)
			return err_set(err, ECANCELED, "interrupted");
	}
	return rc;
}

void bench_inject_fault(struct bench_client *cl, const struct bench_box *box)
{
	json_t *answer = NULL;
	struct err err;
	pid_t pid;

	if (*box->id == '\0' || is_warm(cl, box, &answer, &err) <= 0) {
		(void)fprintf(stderr, "sbxbench: fault: there is no warm box to kill\n");
		return;
	}
	pid = (pid_t)json_integer_value(json_object_get(answer, "box_pid"));
	json_decref(answer);
	if (pid > 1 && kill(pid, SIGKILL) == 0)
		(void)fprintf(stderr, "sbxbench: fault: box %s is killed\n", box->id);
	else
		(void)fprintf(stderr, "sbxbench: fault: box %s cannot be killed: %s\n", box->id,
		    pid > 1 ? strerror(errno) : "its process is not known");
}
