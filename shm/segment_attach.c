/*
 * segment_attach: looking at and attaching to a segment that somebody else made. sbxd at its start,
 * and tools. If sbxd dies here the supervisor lock is owner-dead once more and its successor does
 * the same again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/scope_lock.h"
#include "shm/segment_impl.h"

/* What could be learned of a name without trusting anything in it. */
struct found {
	enum segment_verdict verdict;
	struct segment_plan plan;
	int32_t pid;
	uint64_t start;
};

bool segment_supervisor_alive(int32_t pid, uint64_t start)
{
	FD_SCOPED int fd = -1;

	if (pid <= 0)
		return false;
	fd = proc_open_exact(pid, start);
	if (fd < 0)
		return fd != -ESRCH;	   /* cannot tell: then it lives */
	return proc_wait_gone(fd, 0) != 0; /* a zombie is gone */
}

static int check_file(const struct stat *st, struct err *why)
{
	uid_t uid = st->st_uid;

	if (!S_ISREG(st->st_mode))
		return err_set(why, EINVAL, "not a regular file");
	if (uid != geteuid() && uid != 0)
		return err_set(
		    why, EPERM, "belongs to uid %u, not to us or root", (unsigned int)uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(why, EPERM, "others than its owner may write it (mode %04o)",
		    (unsigned int)(st->st_mode & 07777));
	return 0;
}

/* Fills *f from the open file. 0, or -errno with *why set and verdict FOREIGN or LIVE. */
static int judge(int fd, struct found *f, struct err *why)
{
	struct shm_header h; /* a private copy: what is checked is what is used */
	struct stat st;
	bool alive;
	int rc;

	f->verdict = SEGMENT_FOREIGN;
	if (fstat(fd, &st) < 0)
		return err_sys(why, errno, "stat");
	rc = check_file(&st, why);
	if (rc < 0)
		return rc;
	if (st.st_size < (off_t)sizeof(h) || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return err_set(why, EINVAL, "truncated to %lld bytes", (long long)st.st_size);
	f->pid = atomic_load(&h.supervisor_pid);
	f->start = atomic_load(&h.supervisor_start);
	alive = segment_supervisor_alive(f->pid, f->start);
	if (atomic_load(&h.magic) == 0) {
		f->verdict = alive ? SEGMENT_LIVE : SEGMENT_FOREIGN;
		return err_set(why, alive ? EBUSY : EINVAL,
		    alive ? "being made by pid %d"
			  : "never finished by its maker, pid %d, now dead",
		    f->pid);
	}
	rc = segment_check_header(&h, (uint64_t)st.st_size, &f->plan, why);
	if (rc < 0)
		return rc;
	if (h.owner_uid != (uint32_t)st.st_uid)
		return err_set(why, EINVAL, "made by uid %u but owned by uid %u", h.owner_uid,
		    (unsigned int)st.st_uid);
	if (atomic_load(&h.supervisor_state) == SUPERVISOR_GONE)
		alive = false;
	f->verdict = alive ? SEGMENT_LIVE : SEGMENT_ORPHANED;
	return 0;
}

/* O_NONBLOCK: /dev/shm is open to all, and somebody may have put a FIFO there. */
static int open_name(const char *name, bool writable)
{
	int fd = shm_open(name, (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

enum segment_verdict segment_probe(const char *name, struct err *why)
{
	FD_SCOPED int fd = open_name(name, false);
	struct found f;

	if (fd == -ENOENT)
		return SEGMENT_ABSENT;
	if (fd < 0) {
		(void)err_sys(why, -fd, "open");
		return SEGMENT_FOREIGN;
	}
	if (judge(fd, &f, why) == 0 && f.verdict == SEGMENT_LIVE)
		(void)err_set(why, EBUSY, "supervised by pid %d", f.pid);
	return f.verdict;
}

/*
 * Becomes the supervisor. Memory for the rebuilding is got first: with the lock taken there is no
 * way back.
 */
static int take_over(struct segment *s)
{
	struct shm_header *h = s->header;
	struct slot_sup *parts = calloc(s->slot_count, sizeof(*parts));
	uint32_t *order = calloc(s->slot_count, sizeof(*order));
	uint64_t start = 0;
	int rc = parts && order ? proc_start_time(getpid(), &start) : -ENOMEM;
	int lock = 0;

	if (rc == 0 && !scope_lock_is_intact(&h->supervisor_lock))
		rc = -ENOTRECOVERABLE;
	if (rc == 0) {
		lock = pthread_mutex_trylock(&h->supervisor_lock);
		rc = lock == EOWNERDEAD ? 0 : -lock;
	}
	if (rc == 0) {
		segment_rebuild(s, parts, order);
		FAULT_POINT("segment-takeover");
		if (lock == EOWNERDEAD)
			INVARIANT(pthread_mutex_consistent(&h->supervisor_lock) == 0);
		segment_sign(s, start, atomic_load(&h->supervisor_gen) + 1);
	}
	free(order);
	free(parts);
	return rc;
}

int segment_attach_file(const char *path, struct segment *out, struct err *err)
{
	FD_SCOPED int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct segment_plan plan;
	struct shm_header h;
	struct err why = {0};
	struct stat st;
	void *base;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "table in %s", path);
	if (!S_ISREG(st.st_mode) || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return err_set(err, EINVAL, "table in %s: no table is that short", path);
	if (segment_check_header(&h, (uint64_t)st.st_size, &plan, &why) < 0)
		return err_set(err, why.code, "table in %s: %.180s", path, why.text);
	base = mmap(NULL, (size_t)plan.total_size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return err_sys(err, errno, "table in %s: map", path);
	segment_bind(out, base, -1, false, &plan);
	return 0;
}

int segment_attach(const char *name, bool writable, struct segment *out, struct err *err)
{
	FD_SCOPED int fd = open_name(name, writable);
	struct segment s;
	struct found f = {0};
	struct err why = {0};
	void *base;
	int rc;

	if (fd < 0) {
		rc = fd;
		fd = -1;
		return err_sys(err, -rc, "attach shared table %s", name);
	}
	rc = judge(fd, &f, &why);
	if (rc != 0)
		return err_set(err, -rc, "attach shared table %s: %s", name, why.text);
	base = mmap(NULL, (size_t)f.plan.total_size, writable ? PROT_READ | PROT_WRITE : PROT_READ,
	    MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return err_sys(err, errno, "attach shared table %s: map", name);
	segment_bind(&s, base, -1, writable, &f.plan);
	rc = writable ? take_over(&s) : 0;
	if (rc < 0) {
		(void)munmap(base, (size_t)f.plan.total_size); /* our own mapping, no lock held */
		return err_sys(
		    err, -rc, "attach shared table %s: supervisor lock (pid %d)", name, f.pid);
	}
	if (writable)
		s.fd = fd_take(&fd);
	*out = s;
	return 0;
}
