/*
 * janitor_testing: a janitor for tests: the test program itself, which sbxd's real janitor_link
 * starts as `sbx-worker janitor`. It does what the names in its orders say, and writes a line for
 * each order to the file that the site's state_dir names, before it answers.
 *
 *   image "good"      prepared: its name is written to the memfd
 *   image "bad"       refused, every time
 *   image "bad-once"  refused, then prepared
 *   image "dies-N"    the janitor dies over it N times, then it is prepared
 *   image "slow"      the janitor says several times that it is at it, then it is prepared
 *   runtime_dir "unclean"  cleanups fail
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_JANITOR_TESTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_JANITOR_TESTING_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "lib/fd.h"
#include "supervisor/images.h"
#include "supervisor/janitor_link.h"
#include "tests/unit/supervisor/sbxd_testing.h"

/* Lines of the order file that are `line`. */
static inline int orders_like(const char *path, const char *line)
{
	FILE *f = fopen(path, "re");
	char got[256];
	int n = 0;

	while (f && fgets(got, sizeof(got), f)) {
		got[strcspn(got, "\n")] = '\0';
		n += !strcmp(got, line);
	}
	if (f)
		(void)fclose(f);
	return n;
}

static inline void order_note(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || dprintf(fd, "%s\n", line) < 0)
		_exit(90);
	fd_close(&fd);
}

static inline void janitor_do_prepare(const struct ctl_msg *m, struct ctl_done *done)
{
	const struct ctl_prepare *order = &m->body.prepare;
	const char *log = order->site.state_dir;
	const char *image = order->image;
	char line[200];
	int times;

	(void)snprintf(line, sizeof(line), "prepare %s", image);
	order_note(log, line);
	times = orders_like(log, line);
	if (!strncmp(image, "dies-", 5) && times <= atoi(image + 5))
		_exit(91);
	for (int i = 0; !strcmp(image, "slow") && i < 3; i++) {
		if (ctl_send(CTL_FD_CONTROL, CTL_BUSY, m->head.seq, 0, NULL, NULL, 0, -1) < 0)
			_exit(94);
	}
	if (!strcmp(image, "bad") || (!strcmp(image, "bad-once") && times == 1)) {
		done->code = ENOENT;
		(void)snprintf(done->text, sizeof(done->text), "no image %s, try %d", image, times);
		return;
	}
	(void)snprintf(done->isolation, sizeof(done->isolation), "namespace");
	if (m->fd < 0 || dprintf(m->fd, "%s", image) < 0)
		_exit(92);
}

static inline void janitor_do_cleanup(const struct ctl_msg *m, struct ctl_done *done)
{
	const struct ctl_cleanup *order = &m->body.cleanup;
	char line[200];

	(void)snprintf(line, sizeof(line), "cleanup %s %d %llu", order->name, (int)order->box_pid,
	    (unsigned long long)order->box_start);
	order_note(order->site.state_dir, line);
	if (strcmp(order->site.runtime_dir, "unclean") != 0)
		return;
	done->code = EBUSY;
	(void)snprintf(done->text, sizeof(done->text), "a mount is busy");
}

/* The janitor's main(). */
static inline int janitor_main(void)
{
	static uint8_t packet[CTL_MSG_MAX];
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLIN};
	struct ctl_msg m;

	for (;;) {
		struct ctl_done done = {0};
		int rc = ctl_recv(CTL_FD_CONTROL, packet, &m);

		if (rc == -EAGAIN && poll(&p, 1, -1) > 0)
			continue;
		if (rc <= 0)
			return 0;
		if (m.head.type == CTL_PREPARE)
			janitor_do_prepare(&m, &done);
		else if (m.head.type == CTL_CLEANUP)
			janitor_do_cleanup(&m, &done);
		else
			order_note(m.body.prepare.site.state_dir, ctl_type_name(m.head.type));
		fd_close(&m.fd);
		if (ctl_send(CTL_FD_CONTROL, CTL_DONE, m.head.seq, 0, &done, NULL, 0, -1) < 0)
			return 93;
	}
}

static inline bool is_janitor(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[0], "sbx-worker") && !strcmp(argv[1], "janitor");
}

/* A stage with a janitor; its order file is s->state_dir. */
static inline struct sbxd *stage_with_janitor(const struct pool_rules *rules)
{
	struct sbxd *s = stage_open(rules);
	struct err err = {0};
	int fd;

	(void)snprintf(s->worker_path, sizeof(s->worker_path), "/proc/self/exe");
	(void)snprintf(s->state_dir, sizeof(s->state_dir), "/tmp/sbxd-orders-XXXXXX");
	fd = mkostemp(s->state_dir, O_CLOEXEC);
	assert_true(fd >= 0);
	fd_close(&fd);
	if (janitor_start(s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static inline void stage_with_janitor_close(struct sbxd *s)
{
	janitor_stop(s);
	images_free(s);
	(void)unlink(s->state_dir);
	stage_close(s);
}

#endif
