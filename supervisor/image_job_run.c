/*
 * image_job_run: the process of one order about images. Runs in sbxd; when sbxd dies, it sees its
 * control socket end and exits.
 */
#include <bsd/string.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "supervisor/image_job_int.h"
#include "supervisor/images.h"
#include "supervisor/sbxd.h"
#include "supervisor/spawn.h"

#define PULL_SLACK (60 * NS_PER_S)  /* past its own bound: locks, writing it to the disk */
#define OTHER_TIME (300 * NS_PER_S) /* deleting takes a while */
#define BUILD_TIME                                                                    \
	(600 * NS_PER_S) /* emulated, on a busy host, behind one who is at it already \
			  */
#define BUILD_SLACK (30 * NS_PER_S)

static void tell_progress(struct image_job *j, const struct ctl_progress *p)
{
	struct job_hook *h;
	struct job_hook *next;

	j->progress = *p;
	TAILQ_FOREACH_SAFE (h, &j->hooks, link, next) {
		if (h->hook.progress)
			h->hook.progress(j->s, h->hook.ctx, p);
	}
}

/* Takes one message, if there is one: 1; else what ctl_recv() says. */
static int take_message(struct image_job *j)
{
	static uint8_t packet[CTL_MSG_MAX]; /* one thread, used within this call only */
	struct ctl_msg m;
	int rc = ctl_recv(j->ctl, packet, &m);

	if (rc <= 0)
		return rc;
	if (m.head.type == CTL_DONE && !j->answered) {
		j->answered = true;
		j->done = m.body.done;
	} else if (m.head.type == CTL_PROGRESS && !j->answered) {
		tell_progress(j, &m.body.progress);
	}
	fd_close(&m.fd);
	return rc;
}

static void on_exit_event(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct image_job *j = LOOP_OWNER(watch, struct image_job, pid_watch);
	struct sbxd *s = j->s;
	char how[96];
	char text[160];

	(void)l;
	(void)events;
	/* What it said last may be seen later than its end. */
	while (!j->answered && take_message(j) == 1)
		continue;
	spawn_describe(spawn_reap(j->pidfd), how, sizeof(how));
	if (!j->answered) {
		(void)snprintf(text, sizeof(text), "the process at it %s", how);
		image_job_set_done(j, EIO, text);
	}
	image_job_end(j);
	sbxd_settle(s);
}

/* Its answer counts; its end is awaited, so that nothing of it is left when somebody is told. */
static void on_message(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct image_job *j = LOOP_OWNER(watch, struct image_job, ctl_watch);
	int rc = take_message(j);

	(void)events;
	if (rc == 1 || rc == -EAGAIN)
		return;
	loop_del(l, &j->ctl_watch);
	if (!j->answered)
		(void)proc_signal(j->pidfd, SIGKILL); /* its exit ends the order */
}

static void on_timer(struct loop *l, struct loop_timer *t)
{
	struct image_job *j = LOOP_OWNER(t, struct image_job, timer);
	struct sbxd *s = j->s;

	(void)l;
	if (j->pidfd >= 0) {
		if (!j->answered)
			image_job_set_done(j, ETIMEDOUT, "it did not end in time");
		(void)proc_signal(j->pidfd, SIGKILL); /* its exit ends the order */
		return;
	}
	image_job_end(j); /* it could not be started */
	sbxd_settle(s);
}

static uint64_t time_of(const struct image_job *j)
{
	switch (j->op) {
	case CTL_IMAGE_PULL:
		return j->s->config.images_pull_timeout_ns + PULL_SLACK;
	case CTL_TEMPLATE_BUILD:
		return BUILD_TIME + BUILD_SLACK;
	default:
		return OTHER_TIME;
	}
}

static bool is_of_templates(const struct image_job *j)
{
	return j->op == CTL_TEMPLATE_LIST || j->op == CTL_TEMPLATE_BUILD ||
	       j->op == CTL_TEMPLATE_REMOVE;
}

static void fill_order(const struct image_job *j, struct ctl_image *body)
{
	*body = (struct ctl_image){
	    .op = j->op,
	    .slot = j->s->seg.slot_count,
	    .memory_mib = j->memory_mib,
	    .cpus_milli = j->cpus_milli,
	    .disk_mib = j->disk_mib,
	    .time_ms = (uint32_t)(BUILD_TIME / NS_PER_MS),
	};
	sbxd_fill_site(j->s, &body->site);
	(void)strlcpy(body->image, j->image, sizeof(body->image));
}

static int run(struct image_job *j)
{
	static const char *const argv[] = {"sbx-worker", "image", NULL};
	struct sbxd *s = j->s;
	FD_SCOPED int theirs = -1;
	bool templates = is_of_templates(j);
	struct ctl_image body;
	struct spawned child;
	int pair[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	j->ctl = pair[0];
	theirs = pair[1];
	j->result = memfd_create("sbxd-images", MFD_CLOEXEC);
	if (j->result < 0)
		return -errno;
	rc = spawn_process(s->worker_path, argv,
	    (const int[SPAWN_FDS]){theirs, -1, j->prepared, templates ? s->guest_fd : -1,
		templates ? s->helper_fd : -1, j->hold},
	    &child);
	if (rc < 0)
		return rc;
	j->pidfd = child.pidfd;
	fill_order(j, &body);
	rc = loop_add(s->loop, &j->pid_watch, j->pidfd, EPOLLIN, on_exit_event);
	if (rc == 0)
		rc = loop_add(s->loop, &j->ctl_watch, j->ctl, EPOLLIN, on_message);
	if (rc == 0)
		rc = loop_timer_set(s->loop, &j->timer, loop_now(s->loop) + time_of(j), on_timer);
	if (rc == 0)
		rc = ctl_send(j->ctl, CTL_IMAGE, 1, 0, &body, buf_head(&s->options), s->options.len,
		    j->result);
	FAULT_POINT("sbxd.image.ordered");
	return rc;
}

void image_job_start(struct image_job *j)
{
	int rc;

	j->running = true;
	if (j->op != CTL_IMAGE_LIST && !is_of_templates(j))
		images_let_go(j->s);
	rc = run(j);
	if (rc == 0)
		return;
	image_job_set_done(j, -rc, "the process for it could not be started");
	if (j->pidfd >= 0) {
		(void)proc_signal(j->pidfd, SIGKILL);
		(void)spawn_reap(j->pidfd); /* it has begun nothing: it ends at once */
		loop_del(j->s->loop, &j->pid_watch);
		fd_close(&j->pidfd);
	}
	/* Told from the loop, as ever. */
	if (loop_timer_set(j->s->loop, &j->timer, loop_now(j->s->loop), on_timer) < 0)
		log_error("no memory to tell that %s cannot be had", j->image);
}
