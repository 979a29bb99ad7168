/*
 * files_tar: PUT files and GET files: trees into and out of the box, as tar archives. sbx-worker.
 *
 * The worker knows tar and the box knows files: sbx-files (guest/files/unpack.c, pack.c) does what
 * is to be done there, and records (wire/entry.h) go between them. Neither side ever has more than
 * a few buffers of an archive: who is slow stops the other.
 */
#ifndef SBXD_WORKER_FILES_TAR_H
#define SBXD_WORKER_FILES_TAR_H

#include <limits.h>
#include <stdbool.h>

/* Nothing of it is kept here: only so that no client writes for ever. */
#define FILES_UPLOAD_MAX (64ULL * 1024U * 1024U * 1024U)

struct conn;
struct http_head;

/* Routes' begin(). */
void files_begin_upload(struct conn *c, const struct http_head *h);
void files_begin_download(struct conn *c, const struct http_head *h);

/* What both have in their query. */
struct files_tar_query {
	char path[PATH_MAX]; /* without "." and slashes that are not needed */
	bool directory;	     /* it ended in a slash, or in "/.": it must be one */
	bool contents;	     /* it ended in "/.", or is "/": what is in it, without its name */
	bool flag;
};

/* flag: the name of the boolean, which is `preset` when it is absent. 0, or -EINVAL after answering
 * the client. */
int files_tar_take_query(struct conn *c, const struct http_head *h, const char *flag, bool preset,
    struct files_tar_query *out);

#endif
