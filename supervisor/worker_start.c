/* worker_start: from a reserved slot to a worker process with its boot order. Runs in sbxd. */
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/making.h"
#include "supervisor/spawn.h"
#include "supervisor/worker_int.h"

static void fill_limits(const struct config_limits *l, struct ctl_limits *out)
{
	*out = (struct ctl_limits){
	    .head_bytes = l->head_bytes,
	    .json_depth = l->json_depth,
	    .connections = l->box_connections,
	    .idle_ms = (uint32_t)(l->connection_idle_ns / NS_PER_MS),
	    .run_output_bytes = l->run_output_bytes,
	    .run_body_bytes = l->run_body_bytes,
	    .exec_body_bytes = l->exec_body_bytes,
	    .file_bytes = l->file_bytes,
	    .max_executions = l->box_executions,
	    .exec_detach_grace_ms = (uint32_t)(l->execution_detach_grace_ns / NS_PER_MS),
	    .exec_keep_ms = (uint32_t)(l->execution_keep_ns / NS_PER_MS),
	    .op_stall_ms = (uint32_t)(l->operation_stall_ns / NS_PER_MS),
	};
}

static void fill_boot(const struct sbxd *s, const struct pool_box *b, struct ctl_boot *boot)
{
	const struct config *c = &s->config;

	*boot = (struct ctl_boot){
	    .slot = b->slot,
	    .memory_mib = b->spec.memory_mib,
	    .cpus_milli = b->spec.cpus_milli,
	    .disk_mib = b->spec.disk_mib,
	    .pids_max = b->spec.pids_max,
	    .boot_timeout_ms = (uint32_t)(c->boot_timeout_ns / NS_PER_MS),
	    .check_timeout_ms = (uint32_t)(c->health_check_timeout_ns / NS_PER_MS),
	    .orphan_grace_ms = (uint32_t)(c->orphan_grace_ns / NS_PER_MS),
	    .slots_off = s->seg.header->slots_off,
	};
	fill_limits(&c->limits, &boot->limits);
	sbxd_fill_site(s, &boot->site);
	memcpy(boot->name, s->parts[b->slot].name, sizeof(boot->name)); /* as it was published */
	(void)strlcpy(boot->token, b->token, sizeof(boot->token));
	(void)strlcpy(boot->image, b->spec.image, sizeof(boot->image));
	(void)strlcpy(boot->box_name, b->name, sizeof(boot->box_name));
}

static int worker_exec(struct worker *w, int prepared)
{
	struct sbxd *s = w->s;
	FD_SCOPED int theirs = -1;
	char slot_text[16];
	const char *argv[] = {"sbx-worker", "box", slot_text, NULL};
	struct spawned child;
	int pair[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	w->ctl = pair[0];
	theirs = pair[1];
	(void)snprintf(slot_text, sizeof(slot_text), "%u", w->slot);
	rc = spawn_process(s->worker_path, argv,
	    (const int[SPAWN_FDS]){theirs, s->seg.fd, prepared, s->guest_fd, s->helper_fd}, &child);
	if (rc < 0)
		return rc;
	w->pid = child.pid;
	w->pidfd = child.pidfd;
	w->start = child.start;
	rc = loop_add(s->loop, &w->pid_watch, w->pidfd, EPOLLIN, worker_on_exit);
	if (rc == 0)
		rc = loop_add(s->loop, &w->ctl_watch, w->ctl, EPOLLIN, worker_on_ctl);
	return rc;
}

static void worker_send_boot(struct worker *w, const struct pool_box *b)
{
	const struct config_environment *env = &w->s->config.environment;
	const struct making *m = making_by_token(w->s, b->uid, b->token);
	const void *tail = m ? buf_head(&m->env) : (const uint8_t *)env->data;
	struct ctl_boot boot;
	int rc;

	fill_boot(w->s, b, &boot);
	if (m) {
		memcpy(boot.user, m->user, sizeof(boot.user));
		memcpy(boot.working_dir, m->working_dir, sizeof(boot.working_dir));
	}
	rc = ctl_send(w->ctl, CTL_BOOT, 0, w->gen, &boot, tail, m ? m->env.len : env->len, -1);
	if (rc < 0) /* a new socket takes one message; if not, the boot times out and is reported */
		log_error("worker %d: boot order not sent: %s", (int)w->pid, strerror(-rc));
}

/* Its place was published when it was reserved, perhaps before `auto` was decided. */
static void note_driver(struct sbxd *s, const struct pool_box *b)
{
	struct slot_sup *part = &s->parts[b->slot];

	(void)strlcpy(part->driver, s->driver, sizeof(part->driver));
	(void)strlcpy(part->isolation, s->isolation, sizeof(part->isolation));
}

void worker_spawn(struct sbxd *s, const struct pool_box *b, int prepared)
{
	struct worker *w = worker_new(s, b->slot, b->generation);
	char why[CTL_PATH + 128];
	int rc = -ENOMEM;

	if (w) {
		w->permit = sem_trywait(&s->seg.header->boot_slots) ==
			    0; /* the pool counts the same permits */
		publish_count(s, COUNTER_BOOTS);
		rc = worker_exec(w, prepared);
	}
	if (rc == 0) {
		FAULT_POINT("sbxd.spawn.forked");
		note_driver(s, b);
		/* Before the order: without it the worker ends when we die, and with it our
		 * successor knows whom to look for. */
		publish_now(s, b);
		worker_send_boot(w, b);
		FAULT_POINT("sbxd.spawn.ordered");
		return;
	}
	(void)snprintf(why, sizeof(why), "start %s: %s", s->worker_path, strerror(-rc));
	log_error("slot %u: %s", b->slot, why);
	pool_boot_failed(s->pool, loop_now(s->loop), b->slot, b->generation, why);
	if (w && w->pidfd >= 0) {
		worker_kill(w); /* it runs, but cannot be watched by the loop */
		(void)spawn_reap(w->pidfd);
	}
	pool_worker_gone(s->pool, loop_now(s->loop), b->slot, b->generation, 0, why);
	if (w)
		worker_free(w);
}
