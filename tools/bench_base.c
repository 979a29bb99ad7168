/* bench_base: what the kernel alone costs, on this machine, now. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define STACK 65536
#define BUFFER_ALIGN 4096UL

static void read_all(int fd, char *buf, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = read(fd, buf + done, n - done);

		if (got <= 0)
			_exit(0); /* the other side is done */
		done += (size_t)got;
	}
}

static void write_all(int fd, const char *buf, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = write(fd, buf + done, n - done);

		if (put <= 0)
			_exit(0);
		done += (size_t)put;
	}
}

char *bench_buffer(size_t bytes)
{
	char *buf =
	    aligned_alloc(BUFFER_ALIGN, (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN);

	if (!buf)
		bench_die("aligned_alloc");
	memset(buf, 0, bytes);
	return buf;
}

/* A child that runs fn on its end of a pair; our end is returned. */
static int fork_peer(
    void (*fn)(int fd, size_t bytes, size_t chunk), size_t bytes, size_t chunk, pid_t *pid)
{
	int pair[2];
	const int buffer = BENCH_SEND_BUFFER;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		bench_die("socketpair");
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	*pid = fork();
	if (*pid < 0)
		bench_die("fork");
	if (*pid == 0) {
		(void)close(pair[0]);
		fn(pair[1], bytes, chunk);
		_exit(0);
	}
	(void)close(pair[1]);
	return pair[0];
}

static void echo(int fd, size_t bytes, size_t chunk)
{
	char buf[4096];

	(void)chunk;
	for (;;) {
		read_all(fd, buf, bytes);
		write_all(fd, buf, bytes);
	}
}

void base_ping_pong(struct samples *s, size_t n, size_t bytes)
{
	char buf[4096] = {0};
	pid_t pid;
	int fd = fork_peer(echo, bytes, 0, &pid);

	for (size_t i = 0; i < n; i++) {
		uint64_t begin = clock_now_ns();

		write_all(fd, buf, bytes);
		read_all(fd, buf, bytes);
		samples_add(s, clock_now_ns() - begin);
	}
	(void)close(fd);
	(void)waitpid(pid, NULL, 0);
}

pid_t base_vfork(int (*fn)(void *arg), void *arg, int flags)
{
	static char stack[STACK] __attribute__((aligned(16)));

	return clone(fn, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | flags | SIGCHLD, arg);
}

static int exec_argv(void *arg)
{
	char *const *argv = arg;

	execve(argv[0], argv, environ);
	_exit(127);
}

void base_spawn(struct samples *s, size_t n, const char *const argv[])
{
	for (size_t i = 0; i < n; i++) {
		uint64_t begin = clock_now_ns();
		pid_t pid = base_vfork(exec_argv, (void *)(uintptr_t)argv, 0);
		int status = 0;

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			bench_die(argv[0]);
		samples_add(s, clock_now_ns() - begin);
	}
}

static int end_at_once(void *arg)
{
	(void)arg;
	_exit(0);
}

int base_namespaces(struct samples *s, size_t n, int flags)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t begin = clock_now_ns();
		pid_t pid = base_vfork(end_at_once, NULL, flags);

		if (pid < 0 && errno == EPERM)
			return -EPERM;
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			bench_die("clone");
		samples_add(s, clock_now_ns() - begin);
	}
	return 0;
}

bool base_bwrap(struct samples *s, size_t n)
{
	static const char *const argv[] = {"/usr/bin/bwrap", "--unshare-all", "--die-with-parent",
	    "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
	    "/bin/true", NULL};

	if (access(argv[0], X_OK) < 0)
		return false;
	base_spawn(s, n, argv);
	return true;
}

static void pour(int fd, size_t bytes, size_t chunk)
{
	char *buf = bench_buffer(chunk);

	for (size_t done = 0; done < bytes; done += chunk)
		write_all(fd, buf, chunk);
}

void base_stream(struct samples *s, size_t n, size_t total, size_t chunk)
{
	char *buf = bench_buffer(chunk);

	for (size_t i = 0; i < n; i++) {
		pid_t pid;
		uint64_t begin = 0;
		size_t got = 0;
		int fd = fork_peer(pour, total, chunk, &pid);

		while (got < total) {
			ssize_t r = read(fd, buf, chunk);

			if (r <= 0)
				bench_die("read");
			if (begin == 0)
				begin = clock_now_ns(); /* from the first bytes on: the fork is not
							   the stream */
			got += (size_t)r;
		}
		samples_add(s, clock_now_ns() - begin);
		(void)close(fd);
		(void)waitpid(pid, NULL, 0);
	}
	free(buf);
}
