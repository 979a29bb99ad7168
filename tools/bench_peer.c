/* bench_peer: other sandboxes, called as their users call them. sbxbench; sandboxes that are held
 * end with it, as their input does. */
#include "tools/bench_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"
#include "tools/bench.h"

#define BOUND_MS (60 * 1000) /* for a command that says `true` */
#define WORDS 24
#define LOG_SHOWN 1024

#define LINE(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Its limits, and what it does for its cgroups, need more than root may have in a container. */
#define PODMAN_HERE \
	"--cgroups=disabled", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"

static const struct peer_tool tools[] = {
    {.name = "bwrap",
	.package = "Debian bubblewrap",
	.run = LINE("@program", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/",
	    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true")},
    {.name = "crun",
	.package = "Debian crun",
	.run = LINE("@program", "--cgroup-manager=disabled", "run", "-b", "@bundle", "@id"),
	.hold = LINE("@program", "--cgroup-manager=disabled", "run", "-b", "@bundle", "@held"),
	.exec = LINE("@program", "exec", "@held", "/bin/true"),
	.root = true,
	.cgroup2 = true},
    {.name = "runc",
	.package = "Debian runc",
	.run = LINE("@program", "run", "-b", "@bundle", "@id"),
	.hold = LINE("@program", "run", "-b", "@bundle", "@held"),
	.exec = LINE("@program", "exec", "@held", "/bin/true"),
	.root = true},
    {.name = "podman",
	.package = "Debian podman",
	.run = LINE("@program", "run", "--rm", PODMAN_HERE, "--network", "none", "-v",
	    "/usr:/usr:ro", "--rootfs", "@rootfs", "/bin/true"),
	.hold = LINE("@program", "run", "--rm", "-i", PODMAN_HERE, "--name", "@held", "--network",
	    "none", "-v", "/usr:/usr:ro", "--rootfs", "@rootfs", "/bin/cat"),
	.exec = LINE("@program", "exec", "@held", "/bin/true"),
	.cgroup2 = true},
    {.name = "srt",
	.package = "npm @anthropic-ai/sandbox-runtime",
	.run = LINE("@program", "true")},
};

const struct peer_tool *peer_tool_at(size_t i)
{
	return i < sizeof(tools) / sizeof(tools[0]) ? &tools[i] : NULL;
}

/* ---- calling ---- */

bool bench_find_program(const char *name, char out[PEER_PATH])
{
	const char *path = getenv("PATH");
	char dirs[4096];
	char *rest = dirs;
	char *dir;

	/* Administrators' programs are not in everybody's PATH. */
	(void)snprintf(dirs, sizeof(dirs), "%s:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin");
	while ((dir = strsep(&rest, ":"))) {
		(void)snprintf(out, PEER_PATH, "%s/%s", dir, name);
		if (*dir == '/' && access(out, X_OK) == 0)
			return true;
	}
	return false;
}

static const char *word_of(const struct peer *p, const char *const *line, const char *word)
{
	if (strcmp(word, "@program") == 0)
		return p->program;
	if (strcmp(word, "@rootfs") == 0)
		return p->site->rootfs;
	if (strcmp(word, "@id") == 0)
		return p->id;
	if (strcmp(word, "@held") == 0)
		return p->held_id;
	if (strcmp(word, "@bundle") == 0)
		return line == p->tool->hold ? p->site->hold_bundle : p->site->run_bundle;
	return word;
}

struct start {
	const char *program;
	const char *argv[WORDS];
	int in;
	int out;
	int ns; /* -1: stays */
};

/* Nothing of ours is changed, and what it prints is kept. */
static int exec_peer(void *arg)
{
	const struct start *s = arg;

	(void)dup2(s->in, STDIN_FILENO);
	(void)dup2(s->out, STDOUT_FILENO);
	(void)dup2(s->out, STDERR_FILENO);
	if (s->ns < 0 || setns(s->ns, CLONE_NEWNS) == 0)
		execve(s->program, (char *const *)(uintptr_t)s->argv, environ);
	_exit(127);
}

static pid_t start(const struct peer *p, const char *const *line, int in, int out)
{
	struct start s = {.program = p->program,
	    .in = in,
	    .out = out,
	    .ns = p->tool->cgroup2 ? p->site->cgroup2_ns : -1};

	for (size_t i = 0; line[i] && i < WORDS - 1; i++)
		s.argv[i] = word_of(p, line, line[i]);
	return base_vfork(exec_peer, &s, 0);
}

/* The last thing that it said. */
static int fail_call(const struct peer *p, int status, struct err *err)
{
	char text[LOG_SHOWN];
	ssize_t n = fd_read_file_at(AT_FDCWD, p->site->log, text, sizeof(text));
	char *line;

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	line = n > 0 ? strrchr(text, '\n') : NULL;
	line = line ? line + 1 : text;
	if (WIFSIGNALED(status))
		return err_set(err, EIO, "ended by signal %d", WTERMSIG(status));
	return err_set(err, EIO, "exit status %d%s%.150s", WEXITSTATUS(status), n > 0 ? ": " : "",
	    n > 0 ? line : "");
}

static int await(pid_t pid, int *status, struct err *err)
{
	FD_SCOPED int pidfd = bench_pidfd(pid);
	int rc = pidfd < 0 ? pidfd : proc_wait_gone(pidfd, BOUND_MS);

	if (rc < 0)
		(void)kill(pid, SIGKILL);
	(void)waitpid(pid, status, 0);
	return rc < 0 ? err_sys(err, -rc, "waiting for it") : 0;
}

int peer_call(struct peer *p, const char *const *line, uint64_t *ns, struct err *err)
{
	FD_SCOPED int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	FD_SCOPED int out =
	    open(p->site->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	uint64_t begin = clock_now_ns();
	pid_t pid = start(p, line, in, out);
	int status = 0;
	int rc;

	if (pid < 0)
		return err_sys(err, errno, "vfork");
	rc = await(pid, &status, err);
	if (ns)
		*ns = clock_now_ns() - begin;
	if (rc == 0 && status != 0)
		rc = fail_call(p, status, err);
	return rc;
}

/* ---- a sandbox that is held ---- */

static int hold(struct peer *p, struct err *err)
{
	struct timespec tick = {.tv_nsec = 20000000};
	uint64_t deadline = clock_now_ns() + BOUND_MS * NS_PER_MS;
	FD_SCOPED int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int ends[2];
	int rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe2");
	p->hold_fd = ends[1];
	p->holder = start(p, p->tool->hold, ends[0], out);
	(void)close(ends[0]);
	if (p->holder < 0) {
		p->holder = 0;
		return err_sys(err, errno, "vfork");
	}
	while ((rc = peer_call(p, p->tool->exec, NULL, err)) < 0 && clock_now_ns() < deadline &&
	       waitpid(p->holder, NULL, WNOHANG) == 0)
		(void)nanosleep(&tick, NULL);
	return rc;
}

static void let_go(struct peer *p)
{
	struct err err;
	int status;

	fd_close(&p->hold_fd);
	if (p->holder > 0 && await(p->holder, &status, &err) < 0)
		(void)fprintf(stderr, "sbxbench: %s %s: %s\n", p->tool->name, p->held_id, err.text);
	p->holder = 0;
}

/* ---- a tool ---- */

static void read_version(struct peer *p)
{
	struct err err;
	char text[LOG_SHOWN] = "";

	if (peer_call(p, LINE("@program", "--version"), NULL, &err) < 0)
		return;
	if (fd_read_file_at(AT_FDCWD, p->site->log, text, sizeof(text)) > 0)
		(void)snprintf(
		    p->version, sizeof(p->version), "%.*s", (int)strcspn(text, "\n"), text);
}

int peer_open(
    struct peer *p, const struct peer_tool *tool, const struct peer_site *site, struct err *err)
{
	int rc;

	*p = (struct peer){.tool = tool, .site = site, .hold_fd = -1, .version = "?"};
	if (!bench_find_program(tool->name, p->program))
		return -ENOENT;
	(void)snprintf(p->id, sizeof(p->id), "sbxbench-%d", (int)getpid());
	(void)snprintf(p->held_id, sizeof(p->held_id), "%s-held", p->id);
	read_version(p);
	if (tool->root && geteuid() != 0)
		return err_set(err, EPERM, "it is measured as root only");
	rc = peer_call(p, tool->run, NULL, err);
	if (rc == 0 && tool->hold)
		rc = hold(p, err);
	if (rc < 0)
		let_go(p);
	return rc;
}

void peer_close(struct peer *p)
{
	let_go(p);
}
