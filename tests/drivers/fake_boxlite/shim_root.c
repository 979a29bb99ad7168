/* shim_root: the box's namespaces, its root and its init. In the box's process. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/drivers/fake_boxlite/shim.h"

#define SHIM_NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET)

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	shim_need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	(void)close(fd);
}

/* A child that stays outside maps the ids: root's range, or the one id of an ordinary user. */
static void map_ids(pid_t pid, int go)
{
	char path[64];
	char map[64];
	char c;
	uid_t uid = geteuid();
	gid_t gid = getegid();

	shim_need(read(go, &c, 1) == 1, "ids");
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	(void)snprintf(map, sizeof(map), "0 %u %u", uid ? uid : SHIM_UID_BASE, uid ? 1 : SHIM_UIDS);
	put(path, map);
	if (uid) {
		(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
		put(path, "deny");
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	(void)snprintf(map, sizeof(map), "0 %u %u", uid ? gid : SHIM_UID_BASE, uid ? 1 : SHIM_UIDS);
	put(path, map);
}

void shim_enter_namespaces(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int go[2];
	int status = -1;
	int sock;
	pid_t self = getpid();
	pid_t child;

	shim_need(pipe2(go, O_CLOEXEC) == 0, "pipe");
	child = fork();
	shim_need(child >= 0, "fork");
	if (child == 0) {
		(void)close(go[1]);
		map_ids(self, go[0]);
		_exit(0);
	}
	(void)close(go[0]);
	shim_need(unshare(SHIM_NAMESPACES) == 0, "namespaces");
	shim_need(write(go[1], "x", 1) == 1, "ids");
	(void)close(go[1]);
	shim_need(waitpid(child, &status, 0) == child && status == 0, "id maps");
	shim_need(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "become root");
	shim_need(sethostname("boxlite", 7) == 0, "host name");
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	shim_need(sock >= 0 && ioctl(sock, SIOCSIFFLAGS, &lo) == 0, "loopback");
	(void)close(sock);
	shim_need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
}

/* ---- the init ---- */

static _Noreturn void init_run(int alive, int ready, const char *root)
{
	char path[128];
	struct pollfd p[2] = {{.fd = alive, .events = POLLIN}, {.events = POLLIN}};
	struct signalfd_siginfo info;
	sigset_t set;

	(void)snprintf(path, sizeof(path), "%s/proc", root);
	(void)sigfillset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	p[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		_exit(errno);
	(void)!write(ready, "x", 1);
	(void)close(ready);
	while (poll(p, 2, -1) >= 0 && !p[0].revents) {
		(void)!read(p[1].fd, &info, sizeof(info));
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
	_exit(0);
}

pid_t shim_start_init(const char *root, int *alive)
{
	int life[2];
	int ready[2];
	char c;
	pid_t pid;

	shim_need(pipe2(life, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0, "pipe");
	pid = fork();
	shim_need(pid >= 0, "fork");
	if (pid == 0) {
		/* What keeps others' waits from ending. */
		(void)close(life[1]);
		(void)close(ready[0]);
		(void)close(SHIM_FD_WATCH);
		(void)close(SHIM_FD_READY);
		(void)close(SHIM_FD_DIR);
		init_run(life[0], ready[1], root);
	}
	(void)close(life[0]);
	(void)close(ready[1]);
	shim_need(read(ready[0], &c, 1) == 1, "init and its procfs");
	(void)close(ready[0]);
	*alive = life[1];
	return pid;
}

/* ---- the root ---- */

static void make_dir(const char *root, const char *name, mode_t mode)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	shim_need(mkdir(path, mode) == 0 && chmod(path, mode) == 0, name);
}

static void bind_file(const char *root, const char *host)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s%s", root, host);
	put(path, "");
	shim_need(mount(host, path, NULL, MS_BIND, NULL) == 0, host);
}

/* /usr with what the box does to it, or as it is where that cannot be had. */
static void mount_usr(const char *root)
{
	char path[256];
	char data[1024];

	make_dir(root, "usr", 0755);
	make_dir(root, ".usr", 0755);
	make_dir(root, ".usr/up", 0755);
	make_dir(root, ".usr/work", 0755);
	(void)snprintf(path, sizeof(path), "%s/usr", root);
	(void)snprintf(data, sizeof(data),
	    "lowerdir=/usr,upperdir=%s/.usr/up,workdir=%s/.usr/work,userxattr", root, root);
	if (mount("overlay", path, "overlay", 0, data) < 0)
		shim_need(mount("/usr", path, NULL, MS_BIND | MS_REC, NULL) == 0, "usr");
}

/* The host's /bin and the like: links into /usr, on every system that this runs on. */
static void copy_links(const char *root)
{
	static const char *const names[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
	char path[256];
	char target[256];
	ssize_t n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = readlink(names[i], target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		(void)snprintf(path, sizeof(path), "%s%s", root, names[i]);
		shim_need(symlink(target, path) == 0, names[i]);
	}
}

static void bind_etc(const char *root, const char *name)
{
	char path[256];
	char host[256];
	struct stat st;

	(void)snprintf(host, sizeof(host), "/etc/%s", name);
	(void)snprintf(path, sizeof(path), "%s/etc/%s", root, name);
	if (stat(host, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode))
		shim_need(mkdir(path, 0755) == 0, name);
	else
		put(path, "");
	shim_need(mount(host, path, NULL, MS_BIND, NULL) == 0, name);
}

static void fill_etc(const char *root)
{
	static const char *const binds[] = {
	    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"};
	static const char *const texts[][2] = {
	    {"passwd",
		"root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n"
		"nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"},
	    {"group", "root:x:0:\ndaemon:x:1:\nusers:x:100:\nnogroup:x:65534:\n"},
	    {"hosts", "127.0.0.1 localhost\n127.0.1.1 boxlite\n"},
	    {"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	    {"resolv.conf", ""},
	};
	char path[256];

	for (size_t i = 0; i < sizeof(binds) / sizeof(binds[0]); i++)
		bind_etc(root, binds[i]);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/etc/%s", root, texts[i][0]);
		put(path, texts[i][1]);
	}
}

static void fill_dev(const char *root)
{
	static const char *const files[] = {
	    "/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"};
	static const char *const links[][2] = {{"fd", "/proc/self/fd"}, {"ptmx", "pts/ptmx"},
	    {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
	    {"stderr", "/proc/self/fd/2"}};
	char path[256];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		bind_file(root, files[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/dev/%s", root, links[i][0]);
		shim_need(symlink(links[i][1], path) == 0, path);
	}
	(void)snprintf(path, sizeof(path), "%s/dev/pts", root);
	shim_need(mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC,
		      "newinstance,ptmxmode=0666,mode=0620") == 0,
	    "devpts");
	(void)snprintf(path, sizeof(path), "%s/dev/shm", root);
	shim_need(
	    mount("shm", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") == 0, "shm");
}

void shim_build_root(const char *root, int disk_gb)
{
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = {{"dev", 0755}, {"dev/pts", 0755}, {"dev/shm", 01777}, {"etc", 0755},
	    {"home", 0755}, {"mnt", 0755}, {"opt", 0755}, {"proc", 0555}, {"root", 0700},
	    {"run", 0755}, {"srv", 0755}, {"sys", 0555}, {"tmp", 01777}, {"var", 0755},
	    {"var/lib", 0755}, {"var/tmp", 01777}};
	char data[64];

	(void)snprintf(data, sizeof(data), "mode=0755,size=%dm", (disk_gb ? disk_gb : 1) * 1024);
	shim_need(mount("root", root, "tmpfs", 0, data) == 0, "root");
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		make_dir(root, dirs[i].name, dirs[i].mode);
	mount_usr(root);
	copy_links(root);
	fill_etc(root);
	fill_dev(root);
}

void shim_enter_root(const char *root)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/tmp", root);
	shim_need(
	    mount("tmp", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=256m") == 0, "tmp");
	shim_need(chdir(root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
		      umount2(".", MNT_DETACH) == 0 && chdir("/") == 0,
	    "pivot_root");
}
