/*
 * worker_adopt: connecting to the workers of a dead supervisor, and what they say first. Runs in
 * sbxd at its start; if it dies here the workers wait for the next one.
 */
#include "supervisor/worker_adopt.h"

#include <bsd/string.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "supervisor/worker_int.h"
#include "wire/rendezvous.h"

/* Its control socket, or -errno when it has none (yet). */
static int connect_to(const struct worker *w)
{
	pid_t listener = 0;
	int fd = rendezvous_connect(w->s->runtime_dir, w->slot, &listener);

	if (fd >= 0 && listener != w->pid) { /* of an earlier worker of this slot */
		fd_close(&fd);
		return -ECONNREFUSED;
	}
	return fd;
}

static int watch(struct worker *w)
{
	int rc = loop_add(w->s->loop, &w->pid_watch, w->pidfd, EPOLLIN, worker_on_exit);

	if (rc < 0)
		return rc;
	w->ctl = connect_to(w);
	if (w->ctl < 0) {
		log_debug("worker %d of slot %u: %s", (int)w->pid, w->slot, strerror(-w->ctl));
		w->ctl = -1;
		return 0;
	}
	FAULT_POINT("sbxd.adopt.connected");
	return loop_add(w->s->loop, &w->ctl_watch, w->ctl, EPOLLIN, worker_on_ctl);
}

bool worker_adopt(struct sbxd *s, uint32_t slot, uint64_t gen, pid_t pid, uint64_t start, int pidfd)
{
	struct worker *w = worker_new(s, slot, gen);

	if (!w) {
		(void)proc_signal(pidfd, SIGKILL);
		fd_close(&pidfd);
		return false;
	}
	w->pid = pid;
	w->start = start;
	w->pidfd = pidfd;
	w->adopted = true;
	w->settling = true;
	s->adopting++;
	if (watch(w) == 0)
		return true;
	log_error("worker %d of slot %u: no memory to adopt it: killed", (int)pid, slot);
	worker_kill(w);
	worker_free(w);
	return false;
}

void workers_give_up_silent(struct sbxd *s)
{
	for (uint32_t i = 0; i < s->seg.slot_count; i++) {
		struct worker *w = s->workers[i];

		if (!w || w->ctl >= 0)
			continue;
		pool_not_adopted(
		    s->pool, loop_now(s->loop), i, w->gen, "half-made when its supervisor died");
		worker_adopt_done(w);
	}
}

static bool lives(void *ctx, uint64_t cookie)
{
	const struct sbxd *s = ctx;

	return clients_have(s->clients, cookie);
}

void worker_adopt_done(struct worker *w)
{
	struct sbxd *s = w->s;

	if (!w->settling)
		return;
	w->settling = false;
	if (--s->adopting > 0)
		return;
	/* All that lives is known by now. */
	pool_drop_tied(s->pool, loop_now(s->loop), lives, s);
	log_info("every worker of the last supervisor has answered");
}

const char *worker_adopt_hello(struct worker *w, const struct ctl_msg *m)
{
	const struct ctl_hello *hello = &m->body.hello;
	const struct pool_box *b = pool_box_at(w->s->pool, w->slot);
	struct ctl_claim claim = {0};

	if (m->head.gen != w->gen || hello->slot != w->slot || hello->conns > SHM_CONNS ||
	    hello->state > CTL_ENDING)
		return "an impossible hello";
	w->held_due = hello->conns;
	memcpy(claim.token, b->token, sizeof(claim.token));
	if (claim.token[0]) /* it may have been claimed in the last moment of our predecessor */
		worker_tell(w, CTL_CLAIM, &claim, sizeof(claim));
	pool_adopted(w->s->pool, loop_now(w->s->loop), w->slot, w->gen, hello->state == CTL_UP,
	    hello->state == CTL_ENDING);
	FAULT_POINT("sbxd.adopt.hello");
	if (w->held_due == 0)
		worker_adopt_done(w);
	return NULL;
}

union address {
	struct sockaddr any;
	struct sockaddr_un local;
	struct sockaddr_storage space;
};

/* Of the network that we are in: a box has its own. */
static uint64_t network_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	/* Before Linux 5.14 there is no telling: 0 for all. */
	(void)getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len);
	return cookie;
}

/*
 * Only a connection to our own socket is taken for a client's: a worker can have no other such than
 * those that a supervisor gave it. One over TCP may have come to an address that is not configured
 * any more; by itself it is nobody's, each request on it has to bring the token.
 */
static bool is_clients(const struct worker *w, int fd, uint64_t cookie)
{
	union address addr = {.space = {.ss_family = AF_UNSPEC}};
	socklen_t addr_len = sizeof(addr);
	uint64_t real = 0;
	socklen_t real_len = sizeof(real);
	int type = 0;
	socklen_t type_len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &real, &real_len) < 0 || real != cookie ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 || type != SOCK_STREAM ||
	    getsockname(fd, &addr.any, &addr_len) < 0)
		return false;
	if (addr.any.sa_family == AF_UNIX)
		return !strcmp(addr.local.sun_path, w->s->socket_path);
	return (addr.any.sa_family == AF_INET || addr.any.sa_family == AF_INET6) &&
	       network_of(fd) == network_of(w->ctl);
}

const char *worker_adopt_held(struct worker *w, struct ctl_msg *m)
{
	const struct ctl_conn *conn = &m->body.conn;

	if (w->held_due == 0)
		return "it holds more connections than it said";
	w->held_due--;
	if (!is_clients(w, m->fd, conn->cookie))
		return "it holds a connection that no supervisor gave it";
	if (clients_have(w->s->clients, conn->cookie))
		/* One of two lies, and there is no telling which: the connection ends. */
		(void)shutdown(m->fd, SHUT_RDWR);
	else if (!client_adopt(w->s->clients, fd_take(&m->fd), conn,
		     pool_box_at(w->s->pool, w->slot)->uid, w, &w->handed))
		return "there is no room for the connections it holds";
	FAULT_POINT("sbxd.adopt.held");
	if (w->held_due == 0)
		worker_adopt_done(w);
	return NULL;
}
