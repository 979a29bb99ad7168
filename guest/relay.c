/*
 * relay: makes two of a process: the one that was started relays, the guest is its only child. If
 * we die the kernel kills the guest; if the guest dies its pipe ends, and so do we.
 */
#include "guest/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/relay_pump.h"

#define RELAY_HELPER_FD 3
#define RELAY_PIPE (256 * 1024) /* bytes: fewer turns for much data */

static void relay_run(pid_t guest, int to, int from)
{
	int status = 0;
	int rc;

	(void)signal(SIGPIPE, SIG_IGN); /* a write says so */
	rc = relay_pump(to, from);
	(void)kill(guest, SIGKILL); /* it has ended, or nobody hears it any more */
	(void)waitpid(guest, &status, 0);
	_exit(rc == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Larger where the kernel allows it. */
static int make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	(void)fcntl(ends[0], F_SETPIPE_SZ, RELAY_PIPE);
	return 0;
}

/* As descriptor 3, whatever is there now; nothing more is open in the guest. */
static int open_helper(const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return path ? -errno : 0;
	if (fd != RELAY_HELPER_FD) {
		if (dup3(fd, RELAY_HELPER_FD, O_CLOEXEC) < 0)
			return -errno;
		(void)close(fd);
	}
	return 0;
}

/* What every box has, and an image of a registry has not. Not sticky, as in other boxes: root may
 * write what another has made there. One that is there already is left as it is. */
static void make_directories(void)
{
	static const struct {
		const char *path;
		mode_t mode;
	} dirs[] = {
	    {"/mnt", 0755},
	    {"/mnt/skills", 0777},
	    {"/mnt/user-data", 0755},
	    {"/mnt/user-data/outputs", 0777},
	    {"/mnt/user-data/uploads", 0777},
	    {"/mnt/user-data/workspace", 0777},
	};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (mkdir(dirs[i].path, dirs[i].mode) == 0)
			(void)chmod(dirs[i].path, dirs[i].mode); /* whatever the umask was */
	}
}

/* The guest's half: what it reads and writes are the pipes. Both at once would leave a moment in
 * which nobody ends it. */
static void become_guest(pid_t parent, const int to[2], const int from[2])
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	if (dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0)
		_exit(1);
	for (int i = 0; i < 2; i++) {
		(void)close(to[i]);
		(void)close(from[i]);
	}
}

int relay_enter(const char *helper)
{
	pid_t parent = getpid();
	int to[2];
	int from[2];
	int rc;
	pid_t pid;

	make_directories();
	(void)close(RELAY_HELPER_FD); /* whoever started us may have left something there */
	rc = open_helper(helper);
	if (rc == 0)
		rc = make_pipe(to);
	if (rc == 0)
		rc = make_pipe(from);
	if (rc < 0)
		return rc;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		(void)close(to[0]);
		(void)close(from[1]);
		if (helper)
			(void)close(RELAY_HELPER_FD); /* the guest's alone */
		relay_run(pid, to[1], from[0]);
	}
	become_guest(parent, to, from);
	return 0;
}
