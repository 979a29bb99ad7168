/*
 * vm_wake: AGENT_WAKE: a machine that stood still goes on. sbx-guest. If we die here the machine
 * ends.
 *
 * A copy has the clock and the random state of what it was copied from. Both are replaced before
 * anything else may run in it: nobody is served until this has been answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "guest/mux.h"
#include "guest/vm.h"

#define WAKE_INODES_BASE 8192U
#define WAKE_INODES_PER_MIB 256U /* one for each 4 KiB, as in a box of namespaces */
#define WAKE_SECOND 1000000000ULL

static int wake_set_clock(const struct agent_wake *w)
{
	const struct timespec ts = {
	    .tv_sec = (time_t)(w->realtime_ns / WAKE_SECOND),
	    .tv_nsec = (long)(w->realtime_ns % WAKE_SECOND),
	};

	return clock_settime(CLOCK_REALTIME, &ts);
}

/* The pool takes the host's bytes, and the generator a new key from the pool, at once. */
static int wake_reseed(const struct agent_wake *w)
{
	union {
		struct rand_pool_info info;
		uint8_t room[sizeof(struct rand_pool_info) + sizeof(w->seed)];
	} pool = {.info = {.entropy_count = 8 * sizeof(w->seed), .buf_size = sizeof(w->seed)}};
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -1;
	memcpy(pool.info.buf, w->seed, sizeof(w->seed));
	rc = ioctl(fd, RNDADDENTROPY, &pool.info);
	if (rc == 0)
		rc = ioctl(fd, RNDRESEEDCRNG, 0);
	explicit_bzero(&pool, sizeof(pool));
	(void)close(fd);
	return rc < 0 ? -1 : 0;
}

static int wake_write(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	(void)close(fd);
	return n < 0 ? -1 : 0;
}

/* An image's own may be a link to nowhere. */
static int wake_replace(const char *path, const char *text)
{
	(void)unlink(path);
	return wake_write(path, O_CREAT | O_TRUNC, text);
}

static int wake_name(const struct agent_wake *w)
{
	char text[2 * sizeof(w->machine_id) + 2];
	char host[sizeof(w->hostname) + 2];

	for (size_t i = 0; i < sizeof(w->machine_id); i++)
		(void)snprintf(text + 2 * i, 4, "%02x\n", w->machine_id[i]);
	(void)snprintf(host, sizeof(host), "%s\n", w->hostname);
	if (sethostname(w->hostname, strlen(w->hostname)) != 0 ||
	    wake_replace("/etc/machine-id", text) != 0)
		return -1;
	return wake_replace("/etc/hostname", host);
}

static int wake_limit_disk(struct guest *g, const struct agent_wake *w)
{
	char path[32];
	char options[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", g->scratch_fd);
	(void)snprintf(options, sizeof(options), "size=%um,nr_inodes=%u", w->disk_mib,
	    WAKE_INODES_BASE + w->disk_mib * WAKE_INODES_PER_MIB);
	return mount(NULL, path, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options);
}

/* The kernel's own threads count too: the box may have as many more as it was given. */
static int wake_limit_processes(const struct agent_wake *w)
{
	char text[128] = "";
	const char *slash;
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		(void)close(fd);
	slash = n > 0 ? strchr(text, '/') : NULL; /* "0.00 0.00 0.00 running/all last" */
	if (slash == NULL) {
		errno = EIO;
		return -1;
	}
	(void)snprintf(text, sizeof(text), "%lu", strtoul(slash + 1, NULL, 10) + w->pids_max);
	return wake_write("/proc/sys/kernel/threads-max", 0, text);
}

/* 0, or -1 with errno and *step. */
static int wake_become(struct guest *g, const struct agent_wake *w, const char **step)
{
	*step = "reseed the random pool";
	if (wake_reseed(w) != 0)
		return -1;
	*step = "set the names";
	if (wake_name(w) != 0)
		return -1;
	*step = "set the size of the disk";
	if (wake_limit_disk(g, w) != 0)
		return -1;
	*step = "limit the number of processes";
	return w->pids_max != 0 ? wake_limit_processes(w) : 0;
}

int vm_wake(struct guest *g, const uint8_t *payload, size_t n)
{
	const char *step = "set the clock";
	struct agent_error e = {.code = AGENT_E_IO};
	struct agent_wake w;
	bool is_new;
	int rc;

	if (n != sizeof(w))
		return -EBADMSG;
	memcpy(&w, payload, sizeof(w));
	is_new = (w.flags & AGENT_WAKE_NEW) != 0;
	if ((w.flags & ~AGENT_WAKE_NEW) != 0 || w.hostname[sizeof(w.hostname) - 1] != '\0')
		return -EBADMSG;
	rc = wake_set_clock(&w);
	if (rc == 0 && is_new)
		rc = wake_become(g, &w, &step);
	explicit_bzero(w.seed, sizeof(w.seed));
	if (rc != 0) {
		e.sys_err = errno;
		(void)out_put(&g->out, AGENT_ERROR, 0, 0, &e, sizeof(e), step, strlen(step));
		return 0;
	}
	(void)out_put_quick(&g->out, AGENT_PONG, 0, 0, &w.nonce, sizeof(w.nonce)); /* has room */
	return is_new ? mux_hello(g) : 0;
}
