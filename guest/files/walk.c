/*
 * walk: goes through a tree. sbx-files; if it dies, one request fails, and what it had removed is
 * gone.
 */
#include "guest/files/walk.h"
#include "guest/files/walk_int.h"
#include "guest/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- frames ---- */

static void report(struct walk *w, size_t path_len, int err)
{
	if (!path_is_gone(err))
		w->ops->problem(w->ctx, w->path, path_len, err);
}

/* Closes the directory that is the farthest from where we are, when there are too many. */
static void limit_fds(struct walk *w)
{
	if (w->depth - w->shallowest < WALK_FDS_MAX)
		return;
	(void)close(w->frames[w->shallowest].fd); /* was only read */
	w->frames[w->shallowest++].fd = -1;
}

/* Opens the directory `fd`, whose path stands in w->path, and reads it. 0 or an errno: then nothing
 * has changed but that fd is closed. */
static int push(struct walk *w, int fd, size_t path_len, size_t name_len)
{
	struct frame f = {.fd = fd, .path_len = path_len, .name_len = name_len};
	void *frames = walk_grow(w->frames, &w->frames_size, w->depth + 1, sizeof(f));
	struct stat st;
	int err = frames == NULL ? ENOMEM : 0;

	if (frames != NULL)
		w->frames = frames;
	if (err == 0 && fstat(fd, &st) != 0)
		err = errno;
	if (err != 0) {
		(void)close(fd); /* was only read */
		return err;
	}
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	limit_fds(w);
	err = walk_read_names(w, &f);
	w->frames[w->depth++] = f; /* with as much as there is */
	if (err != 0 && w->depth > 1)
		report(w, path_len, err);
	return w->depth > 1 ? 0 : err;
}

/* Opens again the directory that is one above `child`. 0 or an errno. */
static int reopen(struct frame *f, int child)
{
	struct stat st;
	int fd = openat(child, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino) {
		f->fd = fd;
		return 0;
	}
	(void)close(fd); /* was only read */
	return ESTALE;	 /* it was moved to somewhere else */
}

static void pop_last(struct walk *w)
{
	struct frame *f = &w->frames[--w->depth];

	w->names_len = f->names_len;
	w->order_len = f->first;
	if (f->fd >= 0)
		(void)close(f->fd); /* was only read */
	if (w->shallowest > w->depth)
		w->shallowest = w->depth;
}

static void fill_item(const struct walk *w, const struct frame *in, unsigned char type,
    size_t path_len, size_t name_len, struct walk_item *out)
{
	*out = (struct walk_item){
	    .path = w->path,
	    .path_len = path_len,
	    .name = w->path + path_len - name_len,
	    .name_len = name_len,
	    .depth = w->depth,
	    .type = type,
	    .dir = in->fd,
	};
}

/* The way back is lost: nothing above can be found through ".." either. */
static void give_up(struct walk *w, int err)
{
	w->ops->problem(w->ctx, w->path, w->frames[w->depth - 1].path_len, err);
	while (w->depth > 0)
		pop_last(w);
}

/* Leaves the directory that we are in. */
static void pop(struct walk *w)
{
	struct frame left = w->frames[w->depth - 1];
	struct frame *up;
	struct walk_item item;
	int err = 0;

	if (w->depth == 1) {
		pop_last(w);
		return;
	}
	up = &w->frames[w->depth - 2];
	w->path[left.path_len] = '\0';
	if (up->fd < 0)
		err = reopen(up, left.fd);
	if (err != 0) {
		give_up(w, err);
		return;
	}
	if (w->shallowest > w->depth - 2)
		w->shallowest = w->depth - 2;
	pop_last(w);
	if (w->ops->left == NULL)
		return;
	fill_item(w, up, DT_DIR, left.path_len, left.name_len, &item);
	w->ops->left(w->ctx, &item);
}

/* ---- entries ---- */

/* The entry's path, put together in w->path. 0 or an errno. */
static int put_path(struct walk *w, const struct frame *f, const char *name, size_t *out_len)
{
	size_t name_len = strlen(name);
	size_t at = f->path_len > 0 ? f->path_len + 1 : 0;
	char *path = walk_grow(w->path, &w->path_size, at + name_len + 1, 1);

	if (path == NULL)
		return ENOMEM;
	w->path = path;
	if (at > 0)
		w->path[at - 1] = '/';
	memcpy(w->path + at, name, name_len + 1);
	*out_len = at + name_len;
	return *out_len > w->ops->deepest ? ENAMETOOLONG : 0;
}

/* What a file system did not say in the directory. DT_UNKNOWN: the entry is gone. */
static unsigned char look_at_type(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

/* Goes into the directory that the item is. */
static void descend(struct walk *w, const struct walk_item *item)
{
	int fd = openat(
	    item->dir, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? errno : push(w, fd, item->path_len, item->name_len);

	if (err != 0)
		report(w, item->path_len, err);
}

/* The next entry of the innermost directory. False: nothing more is wanted. */
static bool step(struct walk *w)
{
	struct frame *f = &w->frames[w->depth - 1];
	const uint8_t *e = w->names + w->order[f->next++];
	const char *name = (const char *)e + 1;
	unsigned char type = *e;
	struct walk_item item;
	enum walk_verdict verdict;
	size_t len = 0;
	int err;

	if (type == DT_UNKNOWN)
		type = look_at_type(f->fd, name);
	if (type == DT_UNKNOWN)
		return true;
	err = put_path(w, f, name, &len);
	if (err != 0) {
		report(w, len < w->ops->deepest ? len : w->ops->deepest, err);
		return true;
	}
	fill_item(w, f, type, len, strlen(name), &item);
	verdict = w->ops->entry(w->ctx, &item);
	if (verdict == WALK_ON && type == DT_DIR)
		descend(w, &item);
	return verdict != WALK_STOP;
}

int walk_tree(int root, const struct walk_ops *ops, void *ctx)
{
	struct walk w = {.ops = ops, .ctx = ctx};
	int err = push(&w, root, 0, 0);
	bool on = err == 0;

	while (on && w.depth > 0) {
		const struct frame *f = &w.frames[w.depth - 1];

		walk_step(&w);
		if (f->next < f->end)
			on = step(&w);
		else
			pop(&w);
	}
	while (w.depth > 0)
		pop_last(&w);
	free(w.frames);
	free(w.names);
	free(w.order);
	free(w.path);
	return err;
}
