/*
 * relay: encodes what sbx-guest sends. Runs in the process that was started; the guest is its only
 * child. If we die the kernel kills the guest; if the guest dies its pipe ends, and so do we.
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

#include "wire/base64.h"

#define RELAY_PIECE 24576U /* bytes: a multiple of three, so that a full one needs no padding */
#define RELAY_HELPER_FD 3

static int write_all(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, text, n);

		if (done < 0 && errno != EINTR)
			return -1;
		if (done > 0) {
			text += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

static void encode(int from)
{
	static uint8_t bytes[RELAY_PIECE];
	static char text[RELAY_PIECE / 3 * 4];
	ssize_t n;

	do {
		n = read(from, bytes, sizeof(bytes));
		if (n > 0) {
			base64_encode(bytes, (size_t)n, text);
			if (write_all(text, base64_len((size_t)n)) != 0)
				return;
		}
	} while (n > 0 || (n < 0 && errno == EINTR));
}

static void relay_run(pid_t guest, int from)
{
	int status = 0;

	(void)signal(SIGPIPE, SIG_IGN); /* a write says so */
	(void)close(STDIN_FILENO);	/* the guest's alone, as the helper is */
	if (from != RELAY_HELPER_FD)
		(void)close(RELAY_HELPER_FD);
	encode(from);
	(void)kill(guest, SIGKILL); /* it has ended, or nobody hears it any more */
	(void)waitpid(guest, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
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

int relay_enter(const char *helper)
{
	pid_t parent = getpid();
	int ends[2];
	int rc;
	pid_t pid;

	make_directories();
	(void)close(RELAY_HELPER_FD); /* whoever started us may have left something there */
	rc = open_helper(helper);
	if (rc < 0)
		return rc;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		(void)close(ends[1]);
		relay_run(pid, ends[0]);
	}
	/* Both at once would leave a moment in which nobody ends us. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	if (dup2(ends[1], STDOUT_FILENO) < 0)
		_exit(1);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return 0;
}
