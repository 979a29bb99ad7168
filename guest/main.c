/*
 * main: sbx-guest, PID 1 of a box, or a plain agent in an environment that has its own init.
 *
 * Descriptor 0 is the stream from the worker, 1 the stream to it (they may be the same socket), 2
 * is /dev/null, and 3 is the file helper's program, if there is one. If we die the kernel ends
 * the box. `sbx-guest relay` is for streams that carry text only (relay.h), `sbx-guest relay-alone`
 * for one in whose box another ran (alone.h).
 *
 * The order of the start is the order of need: nobody may look into us before HELLO is out, and
 * what HELLO does not need comes after it, while the worker is reading it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guest/alone.h"
#include "guest/mux.h"
#include "guest/relay.h"
#include "guest/sys.h"
#include "guest/vm.h"

#define GUEST_FD_HELPER 3

static const struct operation *const operations[MUX_OPS] = {
    [AGENT_EXEC] = &command_operation,
    [AGENT_READ] = &file_read_operation,
    [AGENT_WRITE] = &file_write_operation,
    [AGENT_PATH] = &file_path_operation,
};

/* All signals are blocked: SIGCHLD comes through a descriptor, a broken pipe is an error of
 * write(), and nothing else is for us. */
static int start_signals(void)
{
	const unsigned long deflt[4] = {0}; /* the kernel's struct sigaction: SIG_DFL, no flags */
	sigset_t set;

	(void)sigfillset(&set);
	if (sigprocmask(SIG_SETMASK, &set, NULL) != 0)
		return -1;
	/* What whoever started us ignores, commands must not inherit; nor may children be reaped
	 * behind our back. */
	for (int sig = 1; sig <= 64; sig++) /* also those that the C library keeps to itself */
		(void)SYS4(SYS_rt_sigaction, sig, deflt, NULL, 8); /* SIGKILL and SIGSTOP refuse */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* Whoever started us may have left something else open there. */
static int find_helper(void)
{
	struct stat st;

	if (fstat(GUEST_FD_HELPER, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		return -1;
	return fcntl(GUEST_FD_HELPER, F_SETFD, FD_CLOEXEC) == 0 ? GUEST_FD_HELPER : -1;
}

static int start(struct guest *g)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -1;
	g->sig_fd = start_signals();
	if (g->sig_fd < 0 || mux_hello(g) != 0)
		return -1;
	if (set_nonblock(STDIN_FILENO) != 0 || set_nonblock(STDOUT_FILENO) != 0)
		return -1;
	if (!g->init && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return -1;
	if (fcntl(STDERR_FILENO, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
		return -1;
	g->helper_fd = find_helper();
	(void)umask(022);
	(void)chdir("/"); /* there is always one */
	g->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (g->root_fd < 0)
		return -1;
	shim_prepare(&g->shims);
	return 0;
}

/* Says so to who started us, not in the stream: frames only are in that. */
static int refuse(const char *what, const char *why)
{
	struct iovec parts[] = {
	    {(void *)(uintptr_t)what, strlen(what)},
	    {(void *)(uintptr_t)why, strlen(why)},
	    {(void *)(uintptr_t) "\n", 1},
	};

	(void)writev(STDERR_FILENO, parts, 3); /* else the exit status says it */
	return -1;
}

static const char *why_not_alone(int rc)
{
	if (rc == -EXDEV)
		return "it was not started from outside";
	return rc == -EBUSY ? "something in it does not end" : strerror(-rc);
}

static int enter(struct guest *g, int argc, char **argv)
{
	bool alone = !strcmp(argv[1], "relay-alone");
	int rc;

	if (!alone && strcmp(argv[1], "relay") != 0)
		return refuse("relay or relay-alone, and not ", argv[1]);
	rc = alone ? alone_make(&g->killer.tree) : 0;
	if (rc < 0)
		return refuse("take over the box: ", why_not_alone(rc));
	rc = relay_enter(argc > 2 ? argv[2] : NULL);
	return rc < 0 ? refuse("relay: ", strerror(-rc)) : 0;
}

int main(int argc, char **argv)
{
	static struct guest guest;

	const bool machine = vm_is_machine();

	/* To a machine's init the kernel gives what it does not know of its own command line. */
	if (!machine && argc > 1 && enter(&guest, argc, argv) != 0)
		return 1;

	guest.pid = getpid();
	guest.init = guest.pid == 1;
	guest.ops = operations;
	guest.sync = file_sync_begin;
	guest.stop = stop_begin;
	if (machine) {
		if (vm_boot(&guest) != 0)
			return 1;
		guest.wake = vm_wake;
	}
	mux_init(&guest, STDIN_FILENO, STDOUT_FILENO);
	if (start(&guest) != 0)
		return 1;
	if (mux_run(&guest) != 0) {
		kill_everything(&guest);
		return 1;
	}
	kill_everything(&guest);
	return 0;
}
