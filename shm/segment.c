/*
 * segment: making, mapping and closing the shared segment. sbxd creates it. If the creator dies
 * before the end, the segment has no magic and nobody attaches; its successor unlinks it.
 */
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/index.h"
#include "shm/scope_lock.h"
#include "shm/segment_impl.h"
#include "shm/slot.h"
#include "shm/warm.h"

#define MIN_BUCKETS 64U

static uint64_t page_up(uint64_t n)
{
	return (n + SHM_PAGE - 1) & ~(uint64_t)(SHM_PAGE - 1);
}

void segment_plan_layout(uint32_t slot_count, struct segment_plan *out)
{
	*out = (struct segment_plan){.slot_count = slot_count, .index_buckets = MIN_BUCKETS};
	while (out->index_buckets < 2 * slot_count)
		out->index_buckets *= 2;
	out->index_off = page_up(sizeof(struct shm_header));
	out->ring_off =
	    page_up(out->index_off + (uint64_t)out->index_buckets * sizeof(_Atomic uint32_t));
	out->slots_off =
	    page_up(out->ring_off + (uint64_t)SHM_RING_RECORDS * sizeof(struct shm_event));
	out->total_size = out->slots_off + (uint64_t)slot_count * sizeof(struct shm_slot);
}

void segment_bind(
    struct segment *out, void *base, int fd, bool writable, const struct segment_plan *plan)
{
	char *bytes = base;

	*out = (struct segment){
	    .fd = fd,
	    .writable = writable,
	    .size = (size_t)plan->total_size,
	    .slot_count = plan->slot_count,
	    .index_buckets = plan->index_buckets,
	    .ring_records = SHM_RING_RECORDS,
	    .header = base,
	    .index = (void *)(bytes + plan->index_off),
	    .ring = (void *)(bytes + plan->ring_off),
	    .slots = (void *)(bytes + plan->slots_off),
	};
}

int segment_name(char *out, size_t size, uid_t uid, const char *instance)
{
	char name[128];
	int n;

	if (!*instance || strchr(instance, '/'))
		return -EINVAL;
	n = snprintf(name, sizeof(name), "/sbxd-%u-%s", (unsigned int)uid, instance);
	if (n < 0 || (size_t)n >= sizeof(name) || (size_t)n >= size ||
	    strlen(instance) >= sizeof(((struct shm_header *)0)->instance))
		return -ENAMETOOLONG;
	memcpy(out, name, (size_t)n + 1);
	return 0;
}

void segment_sign(struct segment *s, uint64_t start, uint64_t gen)
{
	struct shm_header *h = s->header;
	uint64_t now = clock_now_ns();

	atomic_store(&h->supervisor_state, SUPERVISOR_STARTING);
	atomic_store(&h->supervisor_start, start);
	atomic_store(&h->supervisor_pid, (int32_t)getpid());
	atomic_store(&h->supervisor_gen, gen);
	atomic_store(&h->started_ns, now);
	atomic_store(&h->started_wall_ms, clock_wall_ms());
	atomic_store(&h->heartbeat_ns, now);
}

/* Who makes the segment is in it before anything else: a probe that finds it unfinished can tell
 * whether it ever will be. Written, not mapped: a full file system is an error and no SIGBUS. */
static int write_creator(int fd, uint64_t start)
{
	int32_t pid = (int32_t)getpid();

	if (pwrite(fd, &start, sizeof(start), offsetof(struct shm_header, supervisor_start)) !=
	    (ssize_t)sizeof(start))
		return -ENOSPC;
	if (pwrite(fd, &pid, sizeof(pid), offsetof(struct shm_header, supervisor_pid)) !=
	    (ssize_t)sizeof(pid))
		return -ENOSPC;
	return 0;
}

/* Reserves all memory now (0.8 ms for 1024 slots, which touching them then saves again). */
static int reserve(int fd, uint64_t size)
{
	int rc;

	if (FAULT_FAILS("segment-reserve"))
		return -ENOSPC;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	do {
		rc = posix_fallocate(fd, 0, (off_t)size);
	} while (rc == EINTR);
	return -rc;
}

int segment_reset_boots(struct segment *s, uint32_t boots)
{
	struct shm_header *h = s->header;

	if (boots == 0 || boots > (uint32_t)SEM_VALUE_MAX)
		return -EINVAL;
	if (sem_init(&h->boot_slots, 1, boots) < 0)
		return -errno;
	atomic_store(&h->boot_slots_max, boots);
	return 0;
}

/* Everything but the magic. The lock is taken last, as a held robust mutex must not be unmapped. */
static int fill(struct segment *s, const struct segment_plan *plan, const char *instance,
    uint32_t boots, uint64_t start)
{
	struct shm_header *h = s->header;
	int rc;

	h->version = SHM_VERSION;
	h->header_size = sizeof(*h);
	h->layout_hash = segment_layout_hash();
	h->total_size = plan->total_size;
	h->slot_count = plan->slot_count;
	h->slot_size = sizeof(struct shm_slot);
	h->slots_off = plan->slots_off;
	h->index_buckets = plan->index_buckets;
	h->index_off = plan->index_off;
	h->ring_records = SHM_RING_RECORDS;
	h->ring_record_size = sizeof(struct shm_event);
	h->ring_off = plan->ring_off;
	memcpy(h->instance, instance, strlen(instance));
	h->owner_uid = (uint32_t)geteuid();
	atomic_store(&h->next_generation, 1);
	atomic_store(&h->ring_next, 1);
	atomic_store(&h->state_count[SLOT_FREE], plan->slot_count);
	warm_clear(s);
	index_clear(s);
	for (uint32_t i = 0; i < plan->slot_count; i++) {
		rc = slot_init(&s->slots[i], i);
		if (rc < 0)
			return rc;
	}
	rc = segment_reset_boots(s, boots);
	if (rc == 0)
		rc = scope_lock_init(&h->supervisor_lock);
	if (rc < 0)
		return rc;
	segment_sign(s, start, 1);
	return -pthread_mutex_lock(&h->supervisor_lock);
}

static int check_wishes(
    const char *name, const char *instance, uint32_t slots, uint32_t boots, struct err *err)
{
	if (sysconf(_SC_PAGESIZE) != (long)SHM_PAGE)
		return err_set(err, ENOTSUP,
		    "create shared table %s: this host's pages are not %u bytes", name, SHM_PAGE);
	if (slots == 0 || slots > SHM_MAX_SLOTS)
		return err_set(err, EINVAL, "create shared table %s: %u slots, must be 1 to %u",
		    name, slots, SHM_MAX_SLOTS);
	if (boots == 0 || boots > (uint32_t)SEM_VALUE_MAX)
		return err_set(err, EINVAL, "create shared table %s: %u boot permits", name, boots);
	if (strlen(instance) >= sizeof(((struct shm_header *)0)->instance))
		return err_set(
		    err, ENAMETOOLONG, "create shared table %s: instance name %s", name, instance);
	return 0;
}

int segment_create(const char *name, const char *instance, uint32_t slot_count, uint32_t boots,
    struct segment *out, struct err *err)
{
	struct segment_plan plan;
	struct segment s;
	uint64_t start = 0;
	void *base;
	int fd;
	int rc = check_wishes(name, instance, slot_count, boots, err);

	if (rc < 0)
		return rc;
	segment_plan_layout(slot_count, &plan);
	rc = proc_start_time(getpid(), &start);
	if (rc < 0)
		return err_sys(err, -rc, "create shared table %s: own start time", name);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, SHM_MODE);
	if (fd < 0)
		return err_sys(err, errno, "create shared table %s", name);
	rc = fchmod(fd, SHM_MODE) < 0 ? -errno : write_creator(fd, start); /* whatever the umask */
	if (rc == 0)
		rc = reserve(fd, plan.total_size);
	if (rc < 0) {
		(void)err_sys(err, -rc, "create shared table %s: reserve %llu bytes", name,
		    (unsigned long long)plan.total_size);
		goto unlink;
	}
	base = mmap(NULL, (size_t)plan.total_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		rc = err_sys(err, errno, "create shared table %s: map", name);
		goto unlink;
	}
	segment_bind(&s, base, fd, true, &plan);
	rc = fill(&s, &plan, instance, boots, start);
	if (rc < 0) {
		(void)err_sys(err, -rc, "create shared table %s: initialise", name);
		goto unmap;
	}
	FAULT_POINT("segment-create");
	atomic_store_explicit(&s.header->magic, SHM_MAGIC, memory_order_release);
	*out = s;
	return 0;
unmap:
	(void)munmap(base, (size_t)plan.total_size); /* our own mapping */
unlink:
	(void)shm_unlink(name); /* made above; the first error is the one to report */
	fd_close(&fd);
	return rc;
}

bool segment_in_use(const struct segment *s)
{
	return atomic_load(&s->header->state_count[SLOT_FREE]) != s->slot_count;
}

void segment_close(struct segment *s)
{
	if (!s->header)
		return;
	/* A forked child that closes its copy is not the supervisor and leaves the lock alone. */
	if (s->writable && atomic_load(&s->header->supervisor_pid) == (int32_t)getpid()) {
		atomic_store(&s->header->supervisor_state, SUPERVISOR_GONE);
		INVARIANT(pthread_mutex_unlock(&s->header->supervisor_lock) == 0);
	}
	(void)munmap(s->header, s->size); /* our own mapping */
	fd_close(&s->fd);
	*s = (struct segment){.fd = -1};
}

int segment_unlink(const char *name)
{
	return shm_unlink(name) < 0 ? -errno : 0;
}

struct shm_page *segment_map_page(int fd, uint64_t slots_off, uint32_t slot)
{
	struct stat st;
	uint64_t off;
	void *page;

	if (fstat(fd, &st) < 0)
		return NULL;
	off =
	    slots_off + (uint64_t)slot * sizeof(struct shm_slot) + offsetof(struct shm_slot, page);
	if (slot >= SHM_MAX_SLOTS || slots_off < sizeof(struct shm_header) ||
	    slots_off % SHM_PAGE != 0 || st.st_size < (off_t)SHM_PAGE || off < slots_off ||
	    off > (uint64_t)st.st_size - SHM_PAGE) {
		errno = EINVAL;
		return NULL;
	}
	page = mmap(NULL, SHM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)off);
	return page == MAP_FAILED ? NULL : page;
}
