/*
 * worker_adopt: which connections a successor takes from a worker of the supervisor before it:
 * those that came to a socket of sbxd, and none that a box could have made.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib/fd.h"
#include "supervisor/client_int.h"
#include "supervisor/listen.h"
#include "supervisor/worker_adopt.h"
#include "supervisor/worker_int.h"
#include "tests/unit/supervisor/sbxd_testing.h"

static const struct pool_rules rules = {.slots = 2, .replicas = 2, .max_boots = 1};

struct fixture {
	struct sbxd *s;
	struct worker *w;
	int ctl; /* the worker's end */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = {0};
	int pair[2];

	assert_non_null(f);
	f->s = stage_open(&rules);
	(void)snprintf(
	    f->s->socket_path, sizeof(f->s->socket_path), "/tmp/sbxd-adopt-%d", (int)getpid());
	f->s->config.listen_tcp = (struct config_listen){.set = true, .addr = {127, 0, 0, 1}};
	if (listen_open(f->s, &err) < 0)
		fail_msg("%s", err.text);
	f->w = worker_new(f->s, 0, 1);
	assert_non_null(f->w);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	f->w->ctl = pair[0];
	f->ctl = pair[1];
	f->w->adopted = true;
	f->w->held_due = 10;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct client *c;

	while ((c = TAILQ_FIRST(&f->w->handed)))
		client_close(c);
	worker_free(f->w);
	fd_close(&f->ctl);
	listen_close(f->s);
	stage_close(f->s);
	free(f);
	return 0;
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), 0);
	return cookie;
}

/* The worker shows fd, which goes. NULL, or what is wrong with it. */
static const char *show(struct fixture *f, int fd, uint64_t cookie, uint32_t flags)
{
	struct ctl_msg m = {.body.conn = {.cookie = cookie, .flags = flags}, .fd = fd};
	const char *wrong = worker_adopt_held(f->w, &m);

	fd_close(&m.fd);
	return wrong;
}

/* Both ends of a connection to an address; the accepted one is what a worker would have. */
struct ends {
	int near;
	int far;
};

static struct ends connect_to(int listener)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct ends e;

	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	e.far = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(e.far, (struct sockaddr *)&addr, len), 0);
	do {
		e.near = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (e.near < 0 && errno == EAGAIN);
	assert_true(e.near >= 0);
	return e;
}

static void assert_refused(const char *wrong)
{
	assert_non_null(wrong);
	assert_non_null(strstr(wrong, "no supervisor gave it"));
}

static void test_from_the_unix_socket(void **state)
{
	struct fixture *f = *state;
	struct ends e = connect_to(f->s->unix_listener.fd);
	uint64_t cookie = cookie_of(e.near);

	assert_null(show(f, e.near, cookie, 0));
	assert_true(clients_have(f->s->clients, cookie));
	assert_false(TAILQ_FIRST(&f->w->handed)->peer.by_token);
	fd_close(&e.far);
}

static void test_from_tcp(void **state)
{
	struct fixture *f = *state;
	struct ends e = connect_to(f->s->tcp_listener.fd);
	struct ends other = connect_to(f->s->tcp_listener.fd);
	uint64_t cookie = cookie_of(e.near);
	const struct client *c;

	assert_null(show(f, e.near, cookie, CTL_CONN_ONCE));
	assert_true(clients_have(f->s->clients, cookie));
	c = TAILQ_FIRST(&f->w->handed);
	assert_true(c->peer.by_token);
	assert_false(c->gap);
	assert_null(show(f, other.near, cookie_of(other.near), CTL_CONN_ONCE | CTL_CONN_READ_ON));
	assert_true(TAILQ_NEXT(c, link)->gap);
	assert_int_equal(f->s->clients->tcp_count, 2);
	fd_close(&e.far);
	fd_close(&other.far);
}

/* Its next requests were read by a supervisor that is dead: there is no going on. */
static void test_a_gap_ends_it(void **state)
{
	struct fixture *f = *state;
	struct ends e = connect_to(f->s->tcp_listener.fd);
	char byte;

	assert_null(show(f, e.near, cookie_of(e.near), CTL_CONN_READ_ON));
	client_handed_back(TAILQ_FIRST(&f->w->handed), NULL, 0, false);
	assert_int_equal(clients_count(f->s->clients), 0);
	assert_int_equal(read(e.far, &byte, 1), 0);
	fd_close(&e.far);
}

/* The listener may be gone, or at another address. */
static void test_from_tcp_that_was(void **state)
{
	struct fixture *f = *state;
	struct ends e = connect_to(f->s->tcp_listener.fd);

	loop_del(f->s->loop, &f->s->tcp_listener.watch);
	fd_close(&f->s->tcp_listener.fd);
	f->s->config.listen_tcp.set = false;
	assert_null(show(f, e.near, cookie_of(e.near), CTL_CONN_ONCE));
	fd_close(&e.far);
}

static void test_what_a_worker_could_have_made_up(void **state)
{
	struct fixture *f = *state;
	struct ends e = connect_to(f->s->tcp_listener.fd);
	int pair[2];
	int fd;

	assert_refused(show(f, e.near, cookie_of(e.near) + 1, 0)); /* it is another one */
	fd_close(&e.far);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_refused(show(f, pair[0], cookie_of(pair[0]), 0));
	fd_close(&pair[1]);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_refused(show(f, fd, cookie_of(fd), 0));
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_refused(show(f, pair[0], 0, 0));
	fd_close(&pair[1]);
	assert_int_equal(clients_count(f->s->clients), 0);
}

/* A connection over TCP within a network of its own, as a box has one; -1 when that cannot be. */
static int connect_elsewhere(int *far)
{
	const struct sockaddr_in any = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	FD_SCOPED int listener = -1;
	struct ends e;

	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ioctl(listener, SIOCSIFFLAGS, &lo) < 0 ||
	    bind(listener, (const struct sockaddr *)&any, sizeof(any)) < 0 ||
	    listen(listener, 1) < 0)
		return -1;
	e = connect_to(listener);
	*far = e.far;
	return e.near;
}

static int receive_elsewhere(void)
{
	int pair[2];
	int fds[FD_PASS_MAX] = {-1, -1, -1, -1};
	char byte = 0;
	int status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int far = -1;
		int fd = connect_elsewhere(&far);

		(void)fd_send_msg(pair[1], &byte, 1, &fd, fd >= 0 ? 1 : 0);
		_exit(0);
	}
	fd_close(&pair[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(fd_recv_msg(pair[0], &byte, 1, fds), 1);
	fd_close(&pair[0]);
	return fds[0];
}

static void test_tcp_of_a_box(void **state)
{
	struct fixture *f = *state;
	uint64_t network = 0;
	socklen_t len = sizeof(network);
	int fd = receive_elsewhere();

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &network, &len) < 0) {
		fd_close(&fd);
		skip();
	}
	assert_refused(show(f, fd, cookie_of(fd), CTL_CONN_ONCE));
	assert_int_equal(clients_count(f->s->clients), 0);
}

static void test_more_than_it_said(void **state)
{
	struct fixture *f = *state;
	struct ends e = connect_to(f->s->tcp_listener.fd);

	f->w->held_due = 0;
	assert_non_null(show(f, e.near, cookie_of(e.near), 0));
	fd_close(&e.far);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_from_the_unix_socket),
	    staged(test_from_tcp),
	    staged(test_a_gap_ends_it),
	    staged(test_from_tcp_that_was),
	    staged(test_what_a_worker_could_have_made_up),
	    staged(test_tcp_of_a_box),
	    staged(test_more_than_it_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
