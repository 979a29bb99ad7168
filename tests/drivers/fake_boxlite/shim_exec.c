/* shim_exec: commands in the box. In the box's process and its children. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/drivers/fake_boxlite/shim.h"

#define SEARCH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct command {
	const char *workdir;
	const char *user;
	char *argv[SHIM_STRINGS];
	char *envp[SHIM_STRINGS];
};

/* The strings of the request, in the message itself. */
static int command_parse(const struct shim_ask *ask, size_t len, struct command *c)
{
	char *p = (char *)(uintptr_t)ask->text;
	char *end = p + len;
	int n = 0;
	int envs = 0;

	static char search[] = "PATH=" SEARCH;
	static char home[] = "HOME=/root";

	if (len == 0 || end[-1] != '\0' || ask->b < 1 || ask->b >= SHIM_STRINGS)
		return -EINVAL;
	c->envp[envs++] = search;
	c->envp[envs++] = home;
	for (; p < end; p += strlen(p) + 1, n++) {
		if (n == 0)
			c->workdir = p;
		else if (n == 1)
			c->user = p;
		else if (n < ask->b + 2)
			c->argv[n - 2] = p;
		else if (envs < SHIM_STRINGS - 1)
			c->envp[envs++] = p;
	}
	return n < ask->b + 2 ? -EINVAL : 0;
}

/* "name", "uid", "uid:gid": of the box's own passwd, without the host's name services. */
static int find_user(const char *user, uid_t *uid, gid_t *gid)
{
	char line[512];
	char name[128];
	unsigned int u, g;
	FILE *f;
	int found = 0;

	*gid = 0;
	if (sscanf(user, "%u:%u", uid, gid) >= 1)
		return 0;
	f = fopen("/etc/passwd", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found =
		    sscanf(line, "%127[^:]:%*[^:]:%u:%u", name, &u, &g) == 3 && !strcmp(name, user);
	}
	if (f)
		(void)fclose(f);
	if (!found)
		return -ENOENT;
	*uid = u;
	*gid = g;
	return 0;
}

static int open_terminal(int *master)
{
	char path[64];
	int number;
	int unlock = 0;

	*master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0 || ioctl(*master, TIOCSPTLCK, &unlock) < 0 ||
	    ioctl(*master, TIOCGPTN, &number) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/dev/pts/%d", number);
	return open(path, O_RDWR | O_NOCTTY);
}

static _Noreturn void child_fail(int status)
{
	int number = errno;

	(void)!write(status, &number, sizeof(number));
	_exit(127);
}

static _Noreturn void child_run(const struct command *c, const int fds[3], int terminal, int status)
{
	sigset_t none;
	uid_t uid = 0;
	gid_t gid = 0;

	(void)sigemptyset(&none);
	(void)setsid();
	for (int i = 0; i < 3; i++) {
		if (dup2(terminal >= 0 ? terminal : fds[i], i) < 0)
			child_fail(status);
	}
	if (terminal >= 0)
		(void)ioctl(0, TIOCSCTTY, 0);
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	errno = ENOENT;
	if (find_user(c->user, &uid, &gid) < 0 || chdir(c->workdir) < 0)
		child_fail(status);
	if ((uid && setgroups(0, NULL) < 0) || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		child_fail(status);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	(void)execvpe(c->argv[0], c->argv, c->envp);
	child_fail(status);
}

pid_t shim_run(const struct shim_ask *ask, size_t len, const int fds[3], int *terminal)
{
	static struct command c;
	int status[2];
	int slave = -1;
	int number = 0;
	int rc;
	pid_t pid;

	*terminal = -1;
	memset(&c, 0, sizeof(c));
	rc = command_parse(ask, len, &c);
	if (rc == 0 && ask->a) {
		slave = open_terminal(terminal);
		rc = slave < 0 ? slave : 0;
	}
	if (rc == 0 && !ask->a && (fds[0] < 0 || fds[1] < 0 || fds[2] < 0))
		rc = -EINVAL;
	if (rc < 0 || pipe2(status, O_CLOEXEC) < 0)
		return rc < 0 ? rc : -errno;
	pid = fork();
	if (pid == 0)
		child_run(&c, fds, slave, status[1]);
	rc = pid < 0 ? -errno : 0;
	(void)close(status[1]);
	if (slave >= 0)
		(void)close(slave);
	if (rc == 0 && read(status[0], &number, sizeof(number)) == sizeof(number))
		rc = -number;
	(void)close(status[0]);
	return rc < 0 ? rc : pid;
}
