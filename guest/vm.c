/*
 * vm: from the kernel's exec of /init to a box. sbx-guest, first process of a virtual machine. If
 * we die here the kernel panics, which ends the machine; its console says why.
 *
 * The initial file system holds us, sbx-files, the kernel's modules and the order to load them in.
 * The image is the machine's first disk, read-only and shared with other machines; what is written
 * goes to a tmpfs.
 */
#include "guest/vm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest/mux.h"

#define VM_MODULES "/modules"
#define VM_ORDER "/modules/order" /* names, one a line */
#define VM_HELPER "/sbx-files"
#define VM_HELPER_FD 3
#define VM_PORTS "/sys/class/virtio-ports"
#define VM_WAIT_NS 20000000000ULL /* for a device to be found; emulated machines are slow */
#define VM_WAIT_STEP_NS 1000000L

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int vm_fail(const char *what, const char *which)
{
	int err = errno;
	char line[256];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	int n;

	/* The level is that of the kernel's own last words: nothing on the command line hides it.
	 */
	n = snprintf(line, sizeof(line), "<0>sbx-guest: %s %s: %s\n", what, which, strerror(err));
	if (fd >= 0 && n > 0)
		(void)!write(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

bool vm_is_machine(void)
{
	const char *mark = getenv("SBX_MACHINE"); /* from the kernel's command line */

	return getpid() == 1 && mark != NULL && strcmp(mark, "1") == 0;
}

/* The module's memory is given back: the initial file system lives as long as the machine. */
static int vm_load_module(const char *name)
{
	char path[128];
	int fd;
	int rc;

	(void)snprintf(path, sizeof(path), VM_MODULES "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return vm_fail("open", path);
	rc = (int)syscall(SYS_finit_module, fd, "", 0);
	if (rc != 0 && errno != EEXIST)
		return vm_fail("load", path);
	(void)close(fd);
	(void)unlink(path);
	return 0;
}

static int vm_load_modules(void)
{
	static char order[4096];
	char *save = NULL;
	int fd = open(VM_ORDER, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, order, sizeof(order) - 1);
	int rc = 0;

	if (n < 0)
		return vm_fail("read", VM_ORDER);
	(void)close(fd);
	order[n] = '\0';
	for (char *name = strtok_r(order, "\n", &save); name != NULL && rc == 0;
	     name = strtok_r(NULL, "\n", &save))
		rc = vm_load_module(name);
	return rc;
}

static void vm_pause(void)
{
	const struct timespec ts = {.tv_nsec = VM_WAIT_STEP_NS};

	(void)nanosleep(&ts, NULL);
}

int vm_await(const char *path)
{
	uint64_t deadline = mux_clock() + VM_WAIT_NS;

	while (access(path, F_OK) != 0) {
		if (mux_clock() >= deadline)
			return vm_fail("find the device", path);
		vm_pause();
	}
	return 0;
}

/* Descriptors 0 .. 2 were the console's. */
static int vm_place(int fd, int place)
{
	if (fd < 0 || dup2(fd, place) < 0)
		return -1;
	if (fd != place)
		(void)close(fd);
	return 0;
}

/* Its name has the number of the device in it. False: it is not there yet. */
static bool vm_find_port(char *path, size_t size)
{
	DIR *dir = opendir(VM_PORTS);
	struct dirent *e = NULL;
	int n = 0;

	while (dir != NULL && (e = readdir(dir)) != NULL && e->d_name[0] == '.')
		;
	if (e != NULL)
		n = snprintf(path, size, "/dev/%s", e->d_name);
	if (dir != NULL)
		(void)closedir(dir);
	return n > 0 && (size_t)n < size && access(path, F_OK) == 0;
}

static int vm_open_port(void)
{
	uint64_t deadline = mux_clock() + VM_WAIT_NS;
	struct pollfd p = {.events = POLLIN};
	char path[64];

	while (!vm_find_port(path, sizeof(path))) {
		if (mux_clock() >= deadline)
			return vm_fail("find a port in", VM_PORTS);
		vm_pause();
	}
	p.fd = open(path, O_RDWR);
	if (p.fd < 0)
		return vm_fail("open", path);
	/* Until the other side is seen to be there, the port reads as ended. */
	while (poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0 && mux_clock() < deadline)
		vm_pause();
	return p.fd;
}

static int vm_open_stream(void)
{
	int fd = vm_open_port();

	if (fd < 0)
		return -1;
	if (dup2(fd, STDOUT_FILENO) < 0 || vm_place(fd, STDIN_FILENO) != 0 ||
	    vm_place(open("/dev/null", O_RDWR), STDERR_FILENO) != 0)
		return vm_fail("set up", "the stream");
	return 0;
}

static int vm_open_helper(void)
{
	int fd = open(VM_HELPER, O_RDONLY);

	if (fd < 0)
		return errno == ENOENT ? 0 : vm_fail("open", VM_HELPER);
	return vm_place(fd, VM_HELPER_FD);
}

static const char *const settings[][2] = {
    /* What asks for more than there is is to be ended when it takes it, as in any other box. */
    {"/proc/sys/vm/overcommit_memory", "1"},
    {"/proc/sys/kernel/printk", "1"},
};

static void vm_set(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	for (size_t i = 0; i < COUNT(settings); i++) {
		fd = open(settings[i][0], O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			continue; /* the box is one without it */
		(void)!write(fd, settings[i][1], strlen(settings[i][1]));
		(void)close(fd);
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void)ioctl(fd, SIOCSIFFLAGS, &lo); /* likewise */
		(void)close(fd);
	}
}

/*
 * Whatever runs in the box, we are to be heard, and able to end it: as the kernel's scheduler sees
 * it. What we start is as usual again.
 */
static void vm_go_first(void)
{
	const struct {
		uint32_t size;
		uint32_t policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t deadline[3];
	} attr = {.size = sizeof(attr), .policy = SCHED_OTHER, .flags = 1, .nice = -20};

	(void)syscall(SYS_sched_setattr, 0, &attr, 0); /* flag 1: SCHED_FLAG_RESET_ON_FORK */
}

int vm_boot(struct guest *g)
{
	(void)umask(0);
	if (vm_mount_early() != 0 || vm_open_helper() != 0 || vm_load_modules() != 0 ||
	    vm_make_root(g) != 0)
		return -1;
	vm_set();
	vm_go_first();
	/* As in any other box: what is set-uid gains nobody anything. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return vm_fail("give up", "new privileges");
	return vm_open_stream();
}
