/*
 * template_make: a machine is booted, does what every box does first, and is kept. Worker. If it
 * dies, QEMU is killed and what was written is removed by the next who makes it.
 *
 * The machine writes into memory of ours and not to a file: QEMU gets none that it can write, no
 * full disk can kill it, and what is kept are the pages that hold something.
 */
#include "drivers/qemu/template_make.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/qmp.h"
#include "drivers/qemu/room.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/talk.h"
#include "drivers/qemu/template_about.h"
#include "drivers/qemu/template_size.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define MIB (1024ULL * 1024ULL)
#define PAGE 4096U
#define CHUNK 65536U
#define UNDO_NS (5 * NS_PER_S)
#define ASK_MS 2 /* between two looks whether the state is written */

/* ---- the machine ---- */

/* What every box does first is done once, here: pages are read, caches filled. */
static int warm_up(const struct machine *m, uint64_t deadline_ns, struct err *err)
{
	static const char *const lines[] = {":", "ls / >/dev/null 2>&1; true", "true"};
	uint32_t channel = 1;
	int rc = talk_run_helper(m, channel++, deadline_ns, err);

	for (size_t i = 0; rc == 0 && i < sizeof(lines) / sizeof(lines[0]); i++)
		rc = talk_run(m, channel++, lines[i], deadline_ns, err);
	return rc;
}

/* Not stopped before: a clone goes on as this did. */
static int write_state(const struct machine *m, int state, uint64_t deadline_ns, struct err *err)
{
	struct qmp q;
	char status[32] = "";
	int rc = qmp_begin(&q, m, deadline_ns, err);

	if (rc == 0)
		rc = qmp_order(&q, QMP_IGNORE_SHARED, deadline_ns, err);
	if (rc == 0)
		rc = qmp_give(&q, "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"state\"}}",
		    state, deadline_ns, err);
	if (rc == 0)
		rc = qmp_order(&q, "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:state\"}}",
		    deadline_ns, err);
	while (rc == 0 && strcmp(status, "completed") != 0) {
		(void)poll(NULL, 0, ASK_MS);
		rc = qmp_ask(&q, "{\"execute\":\"query-migrate\"}", "status", status,
		    sizeof(status), deadline_ns, err);
		if (rc == 0 && !strcmp(status, "failed"))
			rc = err_set(err, EIO, "QEMU could not write the machine's state");
		if (rc == 0 && clock_now_ns() >= deadline_ns)
			rc = err_set(
			    err, ETIMEDOUT, "QEMU did not write the machine's state in time");
	}
	return rc;
}

static int run_machine(const struct machine_spec *s, int state, const struct driver_spec *spec,
    uid_t base, struct err *err)
{
	static const struct machine_hooks no_hooks;
	struct machine m;
	int rc = template_boot(s, spec, base, &no_hooks, &m, err);

	if (rc < 0)
		return rc;
	FAULT_POINT("driver.qemu.template.booted");
	driver_progress(spec, "warming", 0, 0);
	rc = warm_up(&m, spec->deadline_ns, err);
	if (rc == 0)
		rc = write_state(&m, state, spec->deadline_ns, err);
	if (rc < 0)
		machine_explain(&m, err);
	if (machine_kill(&m, clock_now_ns() + UNDO_NS) < 0 && rc == 0)
		rc = err_set(err, EBUSY, "the template's QEMU does not end");
	machine_close(&m);
	return rc;
}

/* ---- the files ---- */

/* A new file that is to be read only. */
static int create_part(const struct store_entry *e, const char *name)
{
	char path[QEMU_PATH];
	int rc = qemu_path_join(path, e->new_path, name, "");
	int fd;

	if (rc < 0)
		return rc;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	return fd < 0 ? -errno : fd;
}

static int write_at(int fd, const uint8_t *data, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t put = pwrite(fd, data, n, (off_t)at);

		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		data += put;
		n -= (size_t)put;
		at += (uint64_t)put;
	}
	return 0;
}

static bool is_zero(const uint8_t *page)
{
	return page[0] == 0 && !memcmp(page, page + 1, PAGE - 1);
}

/* Runs of pages that hold something. */
static int copy_chunk(const uint8_t *data, size_t n, int to, uint64_t at)
{
	size_t begin = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i <= n; i += PAGE) {
		if (i < n && !is_zero(data + i))
			continue;
		if (i > begin)
			rc = write_at(to, data + begin, i - begin, at + begin);
		begin = i + PAGE;
	}
	return rc;
}

static int copy_memory(int from, int to, uint64_t size, const struct driver_spec *spec)
{
	uint8_t *data = malloc(CHUNK);
	off_t at = 0;
	int rc = data ? 0 : -ENOMEM;

	if (rc == 0 && ftruncate(to, (off_t)size) < 0)
		rc = -errno;
	while (rc == 0 && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		ssize_t n = pread(from, data, CHUNK, at);

		driver_progress(spec, "writing", (uint64_t)at, size);
		rc = n <= 0 ? -EIO : copy_chunk(data, (size_t)n / PAGE * PAGE, to, (uint64_t)at);
		at += n;
	}
	free(data);
	return rc;
}

static int copy_state(int from, int to)
{
	struct stat st;
	uint8_t *data;
	int rc = fstat(from, &st) < 0 ? -errno : st.st_size == 0 ? -EIO : 0;

	if (rc < 0)
		return rc;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, from, 0);
	if (data == MAP_FAILED)
		return -errno;
	rc = write_at(to, data, (size_t)st.st_size, 0);
	(void)munmap(data, (size_t)st.st_size);
	return rc;
}

static int write_about(
    const struct qemu_plan *plan, const struct template_parts *parts, const struct store_entry *e)
{
	FD_SCOPED int fd = create_part(e, TEMPLATE_ABOUT);
	struct template_about about;
	int rc;

	if (fd < 0)
		return fd;
	template_about_fill(plan, parts, &about);
	rc = template_about_write(fd, &about);
	return rc == 0 && fsync(fd) < 0 ? -errno : rc;
}

static int write_files(const struct machine_spec *s, int state_from,
    const uint8_t digest[DIGEST_LEN], const struct driver_spec *spec, const struct store_entry *e)
{
	FD_SCOPED int memory = create_part(e, TEMPLATE_MEMORY);
	FD_SCOPED int state = create_part(e, TEMPLATE_STATE);
	FD_SCOPED int fd = create_part(e, TEMPLATE_NOTE);
	struct template_note note;
	int rc = memory < 0 ? memory : state < 0 ? state : fd < 0 ? fd : 0;

	if (rc == 0)
		rc = copy_memory(s->memory, memory, s->memory_mib * MIB, spec);
	FAULT_POINT("driver.qemu.template.memory");
	if (rc == 0)
		rc = copy_state(state_from, state);
	if (rc == 0 && (fsync(memory) < 0 || fsync(state) < 0))
		rc = -errno;
	if (rc == 0)
		rc = template_note_fill(&note, s->plan, digest, memory, state);
	if (rc == 0)
		rc = write_at(fd, (const uint8_t *)&note, sizeof(note), 0);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	FAULT_POINT("driver.qemu.template.noted");
	return rc;
}

static int make_at(const struct qemu_plan *plan, const struct template_parts *parts,
    const uint8_t digest[DIGEST_LEN], const struct driver_spec *spec, uid_t base,
    const struct store_entry *e, struct err *err)
{
	FD_SCOPED int memory = memfd_create("memory", MFD_CLOEXEC);
	FD_SCOPED int state = memfd_create("state", MFD_CLOEXEC);
	FD_SCOPED int disk = open(plan->disk, O_RDONLY | O_CLOEXEC);
	const struct machine_spec s = {
	    .plan = plan,
	    .memory_mib = parts->memory_mib,
	    .cpus = parts->cpus,
	    .boots = true,
	    .shared = true,
	    .memory = memory,
	    .state = -1,
	    .disk = disk,
	};
	int rc;

	if (disk < 0)
		return err_sys(err, errno, "read the image's disk %s", plan->disk);
	if (memory < 0 || state < 0 || ftruncate(memory, (off_t)(s.memory_mib * MIB)) < 0)
		return err_sys(err, errno, "get %u MiB of memory for a template", s.memory_mib);
	if (mkdir(e->new_path, 0700) < 0)
		return err_sys(err, errno, "make %s", e->new_path);
	driver_progress(spec, "booting", 0, 0);
	rc = run_machine(&s, state, spec, base, err);
	if (rc < 0)
		return rc;
	rc = write_files(&s, state, digest, spec, e);
	if (rc == 0)
		rc = write_about(plan, parts, e);
	return rc < 0 ? err_sys(err, -rc, "write a template to the state directory") : 0;
}

int template_make(const struct driver_site *site, const struct qemu_plan *plan,
    const struct template_parts *parts, const uint8_t digest[DIGEST_LEN],
    const struct driver_spec *spec, uid_t base, struct store_entry *e, struct err *err)
{
	uint64_t size = template_size_read(site, digest);
	/* What does not fit is not worth the boot. */
	int rc = room_make(site, plan->cache_bytes, size ? size : 1, err);

	if (rc == 0)
		rc = make_at(plan, parts, digest, spec, base, e, err);
	if (rc == 0) {
		size = store_bytes(e->new_path);
		rc = room_make(site, plan->cache_bytes, size, err);
		if (rc == -EDQUOT)
			template_size_note(site, digest, size);
	}
	if (rc == 0)
		return store_keep(e, err);
	store_give_up(e);
	return rc;
}
