/* bench_bundle: an OCI bundle for runtimes, and a mount namespace for those that want cgroup v2
 * alone. sbxbench; the keeper removes the files if it dies. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/bench.h"
#include "tools/bench_peer.h"

/* The same namespaces as a box of sbxd, but for the user's: the host's /usr, nothing to write to
 * but memory, no network. Without limits, which costs the runtimes nothing. */
#define CONFIG                                                                                     \
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":false,\"user\":{\"uid\":0,\"gid\":0}" \
	","                                                                                        \
	"\"args\":[\"%s\"],\"env\":[\"PATH=/usr/bin:/bin\"],\"cwd\":\"/"                           \
	"\",\"noNewPrivileges\":true},"                                                            \
	"\"root\":{\"path\":\"%s\",\"readonly\":true},\"hostname\":\"peer\",\"mounts\":["          \
	"{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/"                               \
	"usr\",\"options\":[\"rbind\",\"ro\"]},"                                                   \
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"                       \
	"{\"destination\":\"/"                                                                     \
	"dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\"]},"                 \
	"{\"destination\":\"/"                                                                     \
	"tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"nodev\"]}],"      \
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"}," \
	"{\"type\":\"uts\"},{\"type\":\"mount\"}]}}\n"

static void make_dir(const char *path)
{
	if (mkdir(path, 0755) < 0)
		bench_die(path);
}

static void make_bundle(const char *path, const char *rootfs, const char *program)
{
	char file[PEER_PATH + 16];
	FILE *f;

	make_dir(path);
	(void)snprintf(file, sizeof(file), "%s/config.json", path);
	f = fopen(file, "we");
	if (!f || fprintf(f, CONFIG, program, rootfs) < 0 || fclose(f) != 0)
		bench_die(file);
}

/* Of its own it has links into /usr, and places to mount on. */
static void make_rootfs(const char *rootfs)
{
	static const char *const dirs[] = {"usr", "proc", "dev", "tmp", "sys", "etc", "run"};
	static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
	char path[PEER_PATH + 16];
	char target[32];

	make_dir(rootfs);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", rootfs, dirs[i]);
		make_dir(path);
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", rootfs, links[i]);
		(void)snprintf(target, sizeof(target), "usr/%s", links[i]);
		if (symlink(target, path) < 0)
			bench_die(path);
	}
}

/* ---- cgroup v2 alone ---- */

static bool host_has_only_cgroup2(void)
{
	struct statfs fs;

	return statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* In a child: says by a byte that its namespace is made, and waits for the end of the pipe. */
static void make_namespace(int ready, int done) __attribute__((noreturn));

static void make_namespace(int ready, int done)
{
	char byte = 0;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL) < 0)
		_exit(1);
	if (write(ready, &byte, 1) == 1)
		(void)!read(done, &byte, 1);
	_exit(0);
}

static int open_cgroup2_ns(void)
{
	int ready[2];
	int done[2];
	char path[64];
	char byte;
	int fd = -1;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
		bench_die("pipe2");
	pid = fork();
	if (pid < 0)
		bench_die("fork");
	if (pid == 0) {
		(void)close(ready[0]);
		(void)close(done[1]);
		make_namespace(ready[1], done[0]);
	}
	(void)close(ready[1]);
	(void)close(done[0]);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (read(ready[0], &byte, 1) == 1)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)close(ready[0]);
	(void)close(done[1]);
	(void)waitpid(pid, NULL, 0); /* it does nothing more */
	return fd;
}

/* ---- the site ---- */

void peer_site_open(struct peer_site *s)
{
	*s = (struct peer_site){.cgroup2_ns = -1};
	bench_private_make(&s->files, false);
	(void)snprintf(s->rootfs, sizeof(s->rootfs), "%s/rootfs", s->files.dir);
	(void)snprintf(s->run_bundle, sizeof(s->run_bundle), "%s/run-bundle", s->files.dir);
	(void)snprintf(s->hold_bundle, sizeof(s->hold_bundle), "%s/hold-bundle", s->files.dir);
	(void)snprintf(s->log, sizeof(s->log), "%s/log", s->files.dir);
	make_rootfs(s->rootfs);
	make_bundle(s->run_bundle, s->rootfs, "/bin/true");
	make_bundle(s->hold_bundle, s->rootfs, "/bin/cat");
	if (geteuid() == 0 && !host_has_only_cgroup2())
		s->cgroup2_ns = open_cgroup2_ns();
}

void peer_site_close(struct peer_site *s)
{
	fd_close(&s->cgroup2_ns);
	if (bench_private_end(&s->files, -1) == 0)
		keeper_forget(s->files.serial);
}
