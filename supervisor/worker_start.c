/* worker_start: from a reserved slot to a worker process with its boot order. Runs in sbxd. */
#include <bsd/string.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/images.h"
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
	    .flags = b->flags & SLOT_FLAG_SAVED ? CTL_BOOT_TAKE_OVER : 0,
	    .slots_off = s->seg.header->slots_off,
	};
	fill_limits(&c->limits, &boot->limits);
	sbxd_fill_site(s, &boot->site);
	memcpy(boot->name, s->parts[b->slot].name, sizeof(boot->name)); /* as it was published */
	(void)strlcpy(boot->token, b->token, sizeof(boot->token));
	(void)strlcpy(boot->image, b->spec.image, sizeof(boot->image));
	(void)strlcpy(boot->box_name, b->name, sizeof(boot->box_name));
}

static int worker_exec(struct worker *w, int prepared, int hold)
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
	    (const int[SPAWN_FDS]){theirs, s->seg.fd, prepared, s->guest_fd, s->helper_fd, hold},
	    &child);
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

/* True when the block of variables has that name. */
static bool env_has(const char *env, size_t len, const char *name, size_t name_len)
{
	for (size_t at = 0; at < len; at += strlen(env + at) + 1) {
		if (!strncmp(env + at, name, name_len) && env[at + name_len] == '=')
			return true;
	}
	return false;
}

/* The image's variables, then those that are stronger: configured ones, or all of a made box. */
static int put_env(struct buf *out, const struct image_config *image, const char *env, size_t len)
{
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < image->env_len; at += strlen(image->env + at) + 1) {
		const char *entry = image->env + at;

		if (!env_has(env, len, entry, strcspn(entry, "=")))
			rc = buf_append(out, entry, strlen(entry) + 1);
	}
	return rc == 0 ? buf_append(out, env, len) : rc;
}

static const char *stronger(const char *own, const char *image)
{
	return own && *own ? own : image;
}

static int worker_send_boot(
    struct worker *w, const struct pool_box *b, const struct image_config *image)
{
	const struct config_environment *env = &w->s->config.environment;
	const struct making *m = making_by_token(w->s, b->uid, b->token);
	const void *own = m ? buf_head(&m->env) : (const uint8_t *)env->data;
	struct ctl_boot boot;
	struct buf tail;
	int rc;

	fill_boot(w->s, b, &boot);
	/* An ordinary user's box has one uid: it can have none of the image's. */
	(void)strlcpy(boot.user, stronger(m ? m->user : NULL, w->s->uid == 0 ? image->user : ""),
	    sizeof(boot.user));
	(void)strlcpy(boot.working_dir, stronger(m ? m->working_dir : NULL, image->working_dir),
	    sizeof(boot.working_dir));
	buf_init(&tail, CTL_TAIL_MAX);
	rc = put_env(&tail, image, own, m ? m->env.len : env->len);
	if (rc == 0)
		rc = ctl_send(w->ctl, CTL_BOOT, 0, w->gen, &boot, buf_head(&tail), tail.len, -1);
	buf_free(&tail);
	return rc;
}

void worker_spawn(struct sbxd *s, const struct pool_box *b, int prepared)
{
	struct worker *w = worker_new(s, b->slot, b->generation);
	struct image_config image = {.user = "", .working_dir = "", .env = "", .hold = -1};
	char why[CTL_PATH + 128];
	int rc = -ENOMEM;

	(void)image_config_of(s, b->spec.image, &image); /* it is prepared */
	if (w) {
		w->permit = sem_trywait(&s->seg.header->boot_slots) ==
			    0; /* the pool counts the same permits */
		publish_count(s, COUNTER_BOOTS);
		rc = worker_exec(w, prepared, image.hold);
	}
	if (rc == 0) {
		FAULT_POINT("sbxd.spawn.forked");
		/* Before the order: without it the worker ends when we die, and with it our
		 * successor knows whom to look for. */
		publish_now(s, b);
		rc = worker_send_boot(w, b, &image);
		FAULT_POINT("sbxd.spawn.ordered");
		if (rc == 0 || rc == -EPIPE)
			return; /* or it has died, and its pidfd will say so */
		/* A new socket takes one message: it was too long. */
		(void)snprintf(why, sizeof(why),
		    "the variables of the box and of its image are too long together: %s",
		    strerror(-rc));
		log_error("slot %u: %s", b->slot, why);
		pool_boot_failed(s->pool, loop_now(s->loop), b->slot, b->generation, why);
		return; /* it is closed as any box */
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
