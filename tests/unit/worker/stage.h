/*
 * stage: the test plays sbxd to a real sbx-worker with a real box of the namespace driver: control
 * pair, segment, prepared memfd, exec with fixed descriptors.
 */
#ifndef SBXD_TEST_WORKER_STAGE_H
#define SBXD_TEST_WORKER_STAGE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/driver.h"
#include "lib/buf.h"
#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/segment.h"
#include "shm/slot.h"
#include "wire/control.h"
#include "wire/limits.h"
#include "wire/rendezvous.h"

#define STAGE_TOKEN "00112233445566aa"
#define STAGE_NAME "my.box-1"
#define STAGE_SLOTS 4
#define STAGE_GEN 41
#define STAGE_UID_BASE 805306368U
#define STAGE_CLIENT_UID 1234U
#define STAGE_WAIT_MS 20000
#define STAGE_ALARM_S 300U

/* What all tests of one program share. */
struct stage_site {
	bool usable; /* the driver works on this host */
	char why[256];
	char dir[64];
	char segment[64];
	char instance[24]; /* of this process alone: tests may run side by side */
	char name[64];	   /* of the box */
	struct segment seg;
	struct driver_site site;
	const struct driver *driver;
	int guest;
	int files;
	struct stage *current; /* what a failed test has left */
};

struct stage {
	struct stage_site *site;
	pid_t pid;
	int ctl;
	struct shm_page *page;
	struct ctl_msg msg; /* the newest */
	uint8_t packet[CTL_MSG_MAX];
	uint64_t seq;
	const char *token;	  /* of CTL_BOOT */
	uint32_t orphan_grace_ms; /* of CTL_BOOT, as the next two */
	const char *user;
	const char *working_dir;
	const char *fault; /* SBX_FAULT, or NULL */
	int client;
	struct buf answer;
};

static inline const char *stage_path(const char *env, const char *otherwise)
{
	const char *path = getenv(env);

	return path ? path : otherwise;
}

static inline int stage_setup(void **state)
{
	struct stage_site *s = calloc(1, sizeof(*s));
	struct driver_facts facts = {.isolation = ""};
	struct err err = {0};
	char workers[96];

	assert_non_null(s);
	(void)alarm(STAGE_ALARM_S); /* a test that blocks ends */
	*state = s;		    /* also what a failed setup has made is torn down */
	s->seg.fd = -1;
	s->guest = -1;
	s->files = -1;
	log_init("test", LOG_TEXT, LOG_ERROR);
	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/sbxd-worker-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	(void)snprintf(s->instance, sizeof(s->instance), "wt%d", (int)getpid());
	(void)snprintf(s->name, sizeof(s->name), "sbxd-%s-0-1", s->instance);
	s->site = (struct driver_site){
	    .instance = s->instance,
	    .state_dir = s->dir,
	    .runtime_dir = s->dir,
	    .uid_base = getuid() == 0 ? STAGE_UID_BASE : 0,
	    .prepared = memfd_create("prepared", MFD_CLOEXEC),
	};
	assert_true(s->site.prepared >= 0);
	assert_int_equal(chmod(s->dir, 0711), 0);
	(void)snprintf(workers, sizeof(workers), "%s/" RENDEZVOUS_DIR, s->dir);
	assert_int_equal(mkdir(workers, 0700), 0);
	s->guest = open(stage_path("SBX_GUEST", "build/sbx-guest"), O_RDONLY | O_CLOEXEC);
	if (s->guest < 0)
		fail_msg("no sbx-guest: build it, or set SBX_GUEST");
	s->files = open(stage_path("SBX_FILES", "build/sbx-files"), O_RDONLY | O_CLOEXEC);
	if (s->files < 0)
		fail_msg("no sbx-files: build it, or set SBX_FILES");
	s->driver = driver_find("namespace");
	assert_non_null(s->driver);
	(void)snprintf(s->segment, sizeof(s->segment), "/sbxd-wtest-%d", (int)getpid());
	if (segment_create(s->segment, s->instance, STAGE_SLOTS, 2, &s->seg, &err) < 0)
		fail_msg("segment: %s", err.text);
	s->usable = s->driver->probe(&s->site, &facts, &err) == 0 &&
		    s->driver->prepare(&s->site, "host", &err) == 0;
	(void)snprintf(s->why, sizeof(s->why), "%s", err.text);
	return 0;
}

static inline int stage_teardown(void **state)
{
	struct stage_site *s = *state;
	struct err err = {0};
	char command[128];

	if (s->usable) {
		if (s->driver->cleanup(&s->site, s->name, 0, 0, &err) < 0)
			fail_msg("cleanup: %s", err.text);
		if (s->driver->finish(&s->site, &err) < 0)
			fail_msg("finish: %s", err.text);
	}
	segment_close(&s->seg);
	if (*s->segment)
		assert_int_equal(segment_unlink(s->segment), 0);
	fd_close(&s->guest);
	fd_close(&s->files);
	fd_close(&s->site.prepared);
	(void)snprintf(command, sizeof(command), "rm -rf %s", s->dir);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

/* Runs in the forked child. */
static inline void stage_exec(const struct stage_site *s, int control, const char *fault)
{
	const int from[] = {control, s->seg.fd, s->site.prepared, s->guest, s->files};
	const char *path = stage_path("SBX_WORKER", "build/check/sbx-worker");
	int high[5];

	for (int i = 0; i < 5; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 20);
	for (int i = 0; i < 5; i++) {
		if (dup2(high[i], CTL_FD_CONTROL + i) < 0)
			_exit(126);
	}
	if (fault && setenv("SBX_FAULT", fault, 1) < 0)
		_exit(126);
	(void)execl(path, "sbx-worker", "box", "0", (char *)NULL);
	_exit(127);
}

static inline void stage_spawn(struct stage *t)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0)
		stage_exec(t->site, pair[1], t->fault);
	fd_close(&pair[1]);
	t->ctl = pair[0];
}

static inline bool stage_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* The next message; 0 when the worker closed. */
static inline int stage_recv(struct stage *t)
{
	int rc;

	if (!stage_readable(t->ctl, STAGE_WAIT_MS))
		fail_msg("the worker says nothing");
	rc = ctl_recv(t->ctl, t->packet, &t->msg);
	if (rc < 0)
		fail_msg("ctl_recv: %s", strerror(-rc));
	return rc;
}

static inline void stage_expect(struct stage *t, enum ctl_type type)
{
	if (stage_recv(t) != 1)
		fail_msg("the worker ended before a %s", ctl_type_name(type));
	if (t->msg.head.type != type)
		fail_msg("%s (%s) instead of %s", ctl_type_name(t->msg.head.type),
		    t->msg.head.type == CTL_FAILED ? t->msg.body.failed.text : "",
		    ctl_type_name(type));
	if (type != CTL_HELLO)
		assert_int_equal(t->msg.head.gen, STAGE_GEN);
}

static inline void stage_send(struct stage *t, enum ctl_type type, const void *body)
{
	assert_int_equal(ctl_send(t->ctl, type, ++t->seq, STAGE_GEN, body, NULL, 0, -1), 0);
}

static inline void stage_send_boot(struct stage *t)
{
	static const char env[] = "FROM_BOX=yes";
	const struct stage_site *s = t->site;
	struct ctl_boot boot = {
	    .slot = 0,
	    .memory_mib = 512,
	    .disk_mib = 256,
	    .pids_max = 128,
	    .boot_timeout_ms = 20000,
	    .check_timeout_ms = 5000,
	    .orphan_grace_ms = t->orphan_grace_ms,
	    .slots_off = s->seg.header->slots_off,
	    .site.uid_base = s->site.uid_base,
	    .image = "host",
	    .limits = CTL_LIMITS_DEFAULT,
	    .site.driver = "namespace",
	};

	(void)snprintf(boot.name, sizeof(boot.name), "%s", s->name);
	(void)snprintf(boot.token, sizeof(boot.token), "%s", t->token);
	(void)snprintf(boot.box_name, sizeof(boot.box_name), "%s", STAGE_NAME);
	(void)snprintf(boot.user, sizeof(boot.user), "%s", t->user);
	(void)snprintf(boot.working_dir, sizeof(boot.working_dir), "%s", t->working_dir);
	(void)snprintf(boot.site.instance, sizeof(boot.site.instance), "%s", s->instance);
	(void)snprintf(boot.site.state_dir, sizeof(boot.site.state_dir), "%s", s->dir);
	(void)snprintf(boot.site.runtime_dir, sizeof(boot.site.runtime_dir), "%s", s->dir);
	assert_int_equal(
	    ctl_send(t->ctl, CTL_BOOT, ++t->seq, STAGE_GEN, &boot, env, sizeof(env), -1), 0);
}

static inline struct stage *stage_new(struct stage_site *s)
{
	struct stage *t = calloc(1, sizeof(*t));

	if (!s->usable) {
		print_message("skipped: %s\n", s->why);
		free(t);
		skip();
	}
	assert_non_null(t);
	s->current = t;
	t->site = s;
	t->page = &s->seg.slots[0].page;
	t->client = -1;
	t->token = STAGE_TOKEN;
	t->user = "";
	t->working_dir = "";
	t->orphan_grace_ms = 100;
	buf_init(&t->answer, 256U << 20);
	return t;
}

static inline void stage_start(struct stage *t)
{
	stage_spawn(t);
	stage_expect(t, CTL_HELLO);
	assert_int_equal(t->msg.body.hello.slot, 0);
	assert_int_equal(t->msg.body.hello.pid, t->pid);
	stage_send_boot(t);
	stage_expect(t, CTL_BOOTED);
	assert_int_equal(t->msg.head.seq, t->seq);
}

static inline struct stage *stage_boot(void **state)
{
	struct stage *t = stage_new(*state);

	stage_start(t);
	return t;
}

/* Waits for the worker's end; its wait status. */
static inline int stage_wait(struct stage *t)
{
	int pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	int status = 0;

	assert_true(pidfd >= 0);
	if (proc_wait_gone(pidfd, STAGE_WAIT_MS) < 0)
		fail_msg("the worker does not end");
	fd_close(&pidfd);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	t->pid = 0;
	return status;
}

static inline void stage_free(struct stage *t)
{
	struct err err = {0};

	if (t->pid) {
		(void)kill(t->pid, SIGKILL);
		(void)stage_wait(t);
	}
	if (t->site->driver->cleanup(&t->site->site, t->site->name, 0, 0, &err) < 0)
		fail_msg("cleanup: %s", err.text);
	fd_close(&t->ctl);
	fd_close(&t->client);
	buf_free(&t->answer);
	assert_int_equal(slot_init(&t->site->seg.slots[0], 0), 0); /* what sbxd's repair would do */
	t->site->current = NULL;
	free(t);
}

/* After each test: a failed one leaves its worker behind. */
static inline int stage_after(void **state)
{
	struct stage_site *s = *state;

	if (s->current)
		stage_free(s->current);
	return 0;
}

/* Everything that the worker was sent and told before has been dealt with. */
static inline void stage_catch_up(struct stage *t)
{
	stage_send(t, CTL_CHECK, NULL);
	stage_expect(t, CTL_CHECKED);
}

static inline void stage_close(struct stage *t)
{
	const struct ctl_close close = {.grace_ms = 5000};

	stage_send(t, CTL_CLOSE, &close);
	do {
		assert_int_equal(stage_recv(t), 1);
		fd_close(&t->msg.fd);
	} while (t->msg.head.type != CTL_CLOSED);
	assert_int_equal(t->msg.body.failed.code, 0);
	assert_int_equal(stage_wait(t), 0);
	stage_free(t);
}

static inline void stage_hand_over(struct stage *t, const void *bytes, size_t n)
{
	struct ctl_conn who = {.cookie = 0, .uid = STAGE_CLIENT_UID};
	socklen_t len = sizeof(who.cookie);
	int pair[2];

	fd_close(&t->client);
	buf_clear(&t->answer);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(getsockopt(pair[0], SOL_SOCKET, SO_COOKIE, &who.cookie, &len), 0);
	t->client = pair[1];
	assert_int_equal(
	    ctl_send(t->ctl, CTL_HANDOVER, ++t->seq, STAGE_GEN, &who, bytes, n, pair[0]), 0);
	fd_close(&pair[0]);
}

static inline void stage_request(struct stage *t, const char *head, const char *body)
{
	struct buf b;

	buf_init(&b, CTL_TAIL_MAX);
	assert_int_equal(buf_printf(&b, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
			     head, strlen(body), body),
	    0);
	stage_hand_over(t, buf_head(&b), b.len);
	buf_free(&b);
}

#define STAGE_BOX "/v1/boxes/" STAGE_TOKEN
#define STAGE_RUN "POST " STAGE_BOX "/run"

static inline const char *stage_text(struct stage *t)
{
	assert_int_equal(buf_terminate(&t->answer), 0);
	return (const char *)buf_head(&t->answer);
}

/* Reads some of the answer; 0 at its end. */
static inline ssize_t stage_read(struct stage *t)
{
	ssize_t n;

	if (!stage_readable(t->client, STAGE_WAIT_MS))
		fail_msg("no answer; so far: %s", stage_text(t));
	n = buf_read_fd(&t->answer, t->client, 1U << 20);
	assert_true(n >= 0);
	return n;
}

static inline bool stage_has(struct stage *t, const char *text)
{
	return t->answer.len && memmem(buf_head(&t->answer), t->answer.len, text, strlen(text));
}

static inline void stage_expect_text(struct stage *t, const char *text)
{
	while (!stage_has(t, text)) {
		if (stage_read(t) == 0)
			fail_msg("no \"%s\" in: %s", text, stage_text(t));
	}
}

#endif
