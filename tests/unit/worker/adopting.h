/*
 * adopting: sbxd's death and its successor, played to a real worker. A worker that is stopped
 * meanwhile finds what happened in the order in which it did.
 */
#ifndef SBXD_TEST_WORKER_ADOPTING_H
#define SBXD_TEST_WORKER_ADOPTING_H

#include <dirent.h>
#include <sched.h>

#include "tests/unit/worker/stage.h"

#define LONG_GRACE_MS 60000U

/* A worker that does not end by itself while the test runs. */
static inline struct stage *adopting_boot(void **state)
{
	struct stage *t = stage_new(*state);

	t->orphan_grace_ms = LONG_GRACE_MS;
	stage_start(t);
	return t;
}

static inline void adopting_stop(struct stage *t)
{
	siginfo_t info;

	assert_int_equal(kill(t->pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)t->pid, &info, WSTOPPED), 0);
}

static inline void adopting_go_on(struct stage *t)
{
	assert_int_equal(kill(t->pid, SIGCONT), 0);
}

/* What the dead sbxd had not read is lost with it. */
static inline void adopting_die(struct stage *t)
{
	fd_close(&t->ctl);
}

static inline void adopting_connect(struct stage *t)
{
	pid_t pid = 0;
	int fd = rendezvous_connect(t->site->dir, 0, &pid);

	if (fd < 0)
		fail_msg("rendezvous: %s", strerror(-fd));
	assert_int_equal(pid, t->pid);
	fd_close(&t->ctl);
	t->ctl = fd;
}

/* PID 1 of the box, as the table has it. */
static inline pid_t adopting_box(struct stage *t)
{
	struct slot_work work;

	assert_int_equal(slot_read_work(t->page, &work), 0);
	assert_true(work.box_pid > 0);
	return work.box_pid;
}

static inline void adopting_expect_hello(
    struct stage *t, enum ctl_hello_state state, uint32_t conns)
{
	stage_expect(t, CTL_HELLO);
	assert_int_equal(t->msg.head.gen, STAGE_GEN);
	assert_int_equal(t->msg.body.hello.slot, 0);
	assert_int_equal(t->msg.body.hello.pid, t->pid);
	assert_int_equal(t->msg.body.hello.state, state);
	assert_int_equal(t->msg.body.hello.conns, conns);
	if (state != CTL_UP)
		return;
	stage_expect(t, CTL_BOOTED); /* as the one before was told, or not */
	assert_int_equal(t->msg.body.booted.box_pid, adopting_box(t));
}

static inline void adopting_succeed(struct stage *t, uint32_t conns)
{
	adopting_die(t);
	adopting_connect(t);
	adopting_expect_hello(t, CTL_UP, conns);
}

static inline uint64_t adopting_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), 0);
	return cookie;
}

/* A connection that the worker shows: with what it is told apart by, and the very socket. The
 * descriptor is the caller's. */
static inline int adopting_expect_held(struct stage *t)
{
	stage_expect(t, CTL_HELD);
	assert_int_equal(t->msg.head.seq, 0);
	assert_true(t->msg.fd >= 0);
	assert_int_equal(adopting_cookie(t->msg.fd), t->msg.body.conn.cookie);
	return fd_take(&t->msg.fd);
}

/* The same, of which only the word is wanted. */
static inline uint64_t adopting_held_cookie(struct stage *t)
{
	int fd = adopting_expect_held(t);

	fd_close(&fd);
	return t->msg.body.conn.cookie;
}

/* The worker turns, and has done what came before. */
static inline void adopting_expect_alive(struct stage *t)
{
	stage_send(t, CTL_PING, NULL);
	stage_expect(t, CTL_PONG);
	assert_int_equal(t->msg.head.seq, t->seq);
}

/* A request that is answered at once, without the guest. */
#define ADOPTING_SHORT "GET " STAGE_BOX "/run HTTP/1.1\r\nHost: x\r\n\r\n"

static inline void adopting_send(const struct stage *t, const char *text)
{
	assert_int_equal(send(t->client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static inline void adopting_ask(struct stage *t)
{
	buf_clear(&t->answer);
	adopting_send(t, ADOPTING_SHORT);
	stage_expect_text(t, "\"reason\":\"method_not_allowed\"");
}

/* A client that was answered and stays connected. */
static inline void adopting_be_idle(struct stage *t)
{
	stage_hand_over(t, ADOPTING_SHORT, strlen(ADOPTING_SHORT));
	stage_expect_text(t, "\"reason\":\"method_not_allowed\"");
}

static inline int adopting_count_fds(const struct stage *t)
{
	char path[64];
	int count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)t->pid);
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		count += e->d_name[0] != '.';
	(void)closedir(dir);
	return count;
}

static inline bool adopting_is_locked(struct stage *t)
{
	int rc = pthread_mutex_trylock(&t->page->scope_lock);

	if (rc == 0)
		assert_int_equal(pthread_mutex_unlock(&t->page->scope_lock), 0);
	return rc == EBUSY;
}

static inline int adopting_words(const struct stage *t)
{
	int count = 0;

	for (int i = 0; i < SHM_CONNS; i++)
		count += atomic_load(&t->page->conns[i]) != 0;
	return count;
}

/* Waits for what shows in the page; whoever asks takes turns with the worker. */
#define ADOPTING_UNTIL(cond)                                                  \
	do {                                                                  \
		uint64_t until_ = clock_now_ns() + STAGE_WAIT_MS * NS_PER_MS; \
		while (!(cond)) {                                             \
			if (clock_now_ns() > until_)                          \
				fail_msg("did not happen: %s", #cond);        \
			(void)sched_yield();                                  \
		}                                                             \
	} while (0)

#endif
