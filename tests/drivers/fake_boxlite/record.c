/*
 * record: boxes as the home directory knows them: boxes/ID/ holds config (what was asked for), made
 * (it has run), process (pids and start times of its process and its init) and sock.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "tests/drivers/fake_boxlite/fake.h"

#define RECORD_TEXT 2048

static int open_boxes(struct runtime *rt)
{
	char path[PATH_MAX + 8];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/boxes", rt->home);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int record_lock(struct runtime *rt)
{
	char path[PATH_MAX + 16];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/.records", rt->home);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)flock(fd, LOCK_EX);
	return fd;
}

void record_unlock(int fd)
{
	fd_close(&fd);
}

int record_open(struct runtime *rt, const char *id)
{
	int boxes = open_boxes(rt);
	int fd;

	if (boxes < 0)
		return boxes;
	fd = openat(boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	(void)close(boxes);
	return fd;
}

/* Its process, if it is the one that was noted. */
static void read_process(int dir, struct record *r)
{
	char text[128];
	long pid = 0;
	long init = 0;
	unsigned long long start = 0;
	unsigned long long init_start = 0;
	int fd;

	r->pid = 0;
	if (fd_read_file_at(dir, "process", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%ld %llu %ld %llu", &pid, &start, &init, &init_start) != 4)
		return;
	fd = proc_open_exact((pid_t)pid, start);
	if (fd < 0)
		return;
	if (proc_wait_gone(fd, 0) < 0) {
		r->pid = (pid_t)pid;
		r->start = start;
		r->init = (pid_t)init;
		r->init_start = init_start;
	}
	(void)close(fd);
}

static enum blx_code read_record(int boxes, const char *id, struct record *out)
{
	char text[RECORD_TEXT];
	int network = 0;
	int auto_remove = 0;
	int detach = 0;
	long long created = 0;
	int dir = openat(boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return BLX_NOT_FOUND;
	memset(out, 0, sizeof(*out));
	if (fd_read_file_at(dir, "config", text, sizeof(text)) <= 0 ||
	    sscanf(text, "name=%127[^\n]\nimage=%255[^\n]\n%d %d %d %d %d %d %lld", out->name,
		out->image, &out->cpus, &out->memory_mib, &out->disk_gb, &network, &auto_remove,
		&detach, &created) != 9) {
		(void)close(dir);
		return BLX_NOT_FOUND; /* half made, by one that died */
	}
	if (!strcmp(out->name, "-"))
		out->name[0] = '\0';
	(void)snprintf(out->id, sizeof(out->id), "%s", id);
	out->network = network;
	out->auto_remove = auto_remove;
	out->detach = detach;
	out->created_at = created;
	read_process(dir, out);
	(void)snprintf(out->status, sizeof(out->status), "%s",
	    out->pid				   ? "running"
	    : faccessat(dir, "made", F_OK, 0) == 0 ? "stopped"
						   : "configured");
	(void)close(dir);
	return BLX_OK;
}

enum blx_code record_each(struct runtime *rt, record_fn *fn, void *ctx, struct blx_error *err)
{
	int boxes = open_boxes(rt);
	DIR *d = boxes < 0 ? NULL : fdopendir(boxes);
	enum blx_code code = BLX_OK;
	struct record r;

	if (!d)
		return error_sys(err, BLX_STORAGE, boxes, "boxes");
	for (struct dirent *e = readdir(d); e && code == BLX_OK; e = readdir(d)) {
		if (e->d_name[0] != '.' && read_record(dirfd(d), e->d_name, &r) == BLX_OK)
			code = fn(ctx, &r);
	}
	(void)closedir(d);
	return code;
}

struct finding {
	const char *id;
	struct record *out;
	int rank; /* 3: its id, 2: its name, 1: its id begins so */
};

static enum blx_code find_better(void *ctx, const struct record *r)
{
	struct finding *f = ctx;
	int rank = !strcmp(r->id, f->id)		   ? 3
		   : !strcmp(r->name, f->id)		   ? 2
		   : !strncmp(r->id, f->id, strlen(f->id)) ? 1
							   : 0;

	if (rank > f->rank) {
		f->rank = rank;
		*f->out = *r;
	}
	return BLX_OK;
}

enum blx_code record_find(
    struct runtime *rt, const char *id, struct record *out, struct blx_error *err)
{
	struct finding f = {id, out, 0};
	enum blx_code code = *id ? record_each(rt, find_better, &f, err) : BLX_OK;

	if (code == BLX_OK && !f.rank)
		code = error_set(err, BLX_NOT_FOUND, "box not found: %s", id);
	return code;
}

static void draw_id(char out[FAKE_ID])
{
	static const char letters[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz";
	uint8_t bytes[12];

	(void)!getrandom(bytes, sizeof(bytes), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		out[i] = letters[bytes[i] % (sizeof(letters) - 1)];
	out[sizeof(bytes)] = '\0';
}

/* The file appears whole. */
static int put_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = -EIO;
	(void)close(fd);
	if (rc == 0 && renameat(dir, ".new", dir, name) < 0)
		rc = -errno;
	return rc;
}

/* A box is there when it has a config. What one that was killed has half made or half removed is
 * taken away by the next who makes or removes something. */
static void take_half(int boxes)
{
	static const char *const files[] = {"made", "process", "sock", ".new"};
	int copy = openat(boxes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	int dir;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		dir = openat(boxes, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0 && faccessat(dir, "config", F_OK, 0) < 0) {
			for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
				(void)unlinkat(dir, files[i], 0);
			(void)unlinkat(boxes, e->d_name, AT_REMOVEDIR);
		}
		fd_close(&dir);
	}
	if (d)
		(void)closedir(d);
}

enum blx_code record_make(
    struct runtime *rt, const struct options *o, struct record *out, struct blx_error *err)
{
	char text[RECORD_TEXT];
	char id[FAKE_ID];
	int boxes = open_boxes(rt);
	int dir = -1;
	int rc = boxes < 0 ? boxes : 0;
	enum blx_code code = BLX_STORAGE;

	draw_id(id);
	if (rc == 0)
		take_half(boxes);
	if (rc == 0 && mkdirat(boxes, id, 0700) < 0)
		rc = -errno;
	if (rc == 0)
		rc = dir = openat(boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(text, sizeof(text), "name=%s\nimage=%.255s\n%d %d %d %d %d %d %lld\n",
	    o->name[0] ? o->name : "-", o->rootfs ? o->rootfs : o->image, o->cpus ? o->cpus : 2,
	    o->memory_mib ? o->memory_mib : 512, o->disk_gb, o->network, o->auto_remove, o->detach,
	    (long long)time(NULL));
	if (rc >= 0)
		rc = put_file(dir, "config", text);
	if (rc >= 0)
		code = read_record(boxes, id, out);
	fd_close(&dir);
	fd_close(&boxes);
	return code == BLX_OK ? BLX_OK : error_sys(err, code, rc, "making a box");
}

void record_started(int dir)
{
	int fd = openat(dir, "made", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	fd_close(&fd);
}

enum blx_code record_remove(struct runtime *rt, const struct record *r, struct blx_error *err)
{
	int boxes = open_boxes(rt);
	int dir = record_open(rt, r->id);
	int rc = 0;

	if (dir >= 0 && unlinkat(dir, "config", 0) < 0 && errno != ENOENT)
		rc = -errno;
	fd_close(&dir);
	if (boxes >= 0)
		take_half(boxes);
	fd_close(&boxes);
	return rc == 0 ? BLX_OK : error_sys(err, BLX_STORAGE, rc, "removing a box");
}

static enum blx_code recover_one(void *ctx, const struct record *r)
{
	if (r->auto_remove && !r->pid)
		(void)record_remove(ctx, r, NULL);
	return BLX_OK;
}

void record_recover(struct runtime *rt)
{
	(void)record_each(rt, recover_one, rt, NULL);
}
