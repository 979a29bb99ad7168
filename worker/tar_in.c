/*
 * tar_in: libarchive's reader, fed bit by bit. sbx-worker. If we die here the box dies with us.
 *
 * libarchive calls for its input and cannot be told to come back later. So it runs in a coroutine
 * that is suspended whenever its input is used up, and whenever enough records are made. A thread
 * would do it too, but the worker's filter of system calls lets it make none, and everything else
 * here relies on there being one.
 */
#include "worker/tar_in.h"

#include <archive.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "worker/coro.h"
#include "worker/tar_in_int.h"

#define IN_ROOM_MIN (16U * 1024U) /* less is not worth a read */
/*
 * What may be read for the headers of one member, and is in memory several times over: libarchive
 * takes one special header of 1 MiB, and builds a list of as many extents as a sparse map says.
 */
#define IN_HEADERS_MAX (1280U * 1024U)

void tar_in_wait(struct tar_in *t, enum tar_in_state why)
{
	t->state = why;
	coro_suspend(t->coro);
}

bool tar_in_fail(struct tar_in *t, enum api_error e, const char *fmt, ...)
{
	va_list ap;

	if (t->error != API_OK)
		return false;
	t->error = e;
	va_start(ap, fmt);
	(void)vsnprintf(t->why, sizeof(t->why), fmt, ap); /* a cut text is still a text */
	va_end(ap);
	return false;
}

bool tar_in_no_memory(struct tar_in *t)
{
	return tar_in_fail(t, API_INTERNAL, "no memory for the archive");
}

bool tar_in_damaged(struct tar_in *t)
{
	const char *why = archive_error_string(t->archive);

	if (archive_errno(t->archive) == ENOMEM)
		return tar_in_no_memory(t);
	if (!why)
		why = "a header makes no sense";
	if (t->members == 0)
		return tar_in_fail(t, API_INVALID_ARGUMENT, "the body is no tar archive: %s", why);
	return tar_in_fail(t, API_INVALID_ARGUMENT, "the archive is damaged %s \"%s\": %s",
	    t->headers == TAR_IN_DATA ? "in" : "after", t->name, why);
}

/* ---- input ---- */

/* libarchive's callback: all that is there. What was given before is used up by now. */
static la_ssize_t in_read(struct archive *a, void *ctx, const void **out)
{
	struct tar_in *t = ctx;
	size_t n;

	while (t->off == t->len && !t->ended && !t->cancelled) {
		t->off = 0;
		t->len = 0;
		tar_in_wait(t, TAR_IN_HUNGRY);
	}
	n = t->len - t->off;
	if (t->headers != TAR_IN_DATA)
		t->headers += n;
	if (t->cancelled ||
	    (t->headers != TAR_IN_DATA && t->headers > IN_HEADERS_MAX + TAR_IN_SIZE)) {
		archive_set_error(a, EINVAL, "the headers of a member are too long");
		return -1;
	}
	*out = t->bytes + t->off;
	t->off = t->len;
	return (la_ssize_t)n;
}

static void in_main(void *ctx)
{
	struct tar_in *t = ctx;

	t->archive = archive_read_new();
	if (!t->archive) {
		(void)tar_in_no_memory(t);
	} else if (archive_read_support_format_tar(t->archive) != ARCHIVE_OK ||
		   archive_read_open(t->archive, t, NULL, in_read, NULL) != ARCHIVE_OK) {
		(void)tar_in_damaged(t);
	} else {
		while (tar_in_member(t))
			;
		if (t->error == API_OK && !t->cancelled)
			tar_in_finish(t);
	}
	(void)archive_read_free(t->archive); /* what it says is about files it did not open */
	t->archive = NULL;
	t->state = t->error == API_OK ? TAR_IN_DONE : TAR_IN_FAILED;
}

/* ---- from outside ---- */

struct tar_in *tar_in_create(void)
{
	struct tar_in *t = malloc(sizeof(*t));

	if (!t)
		return NULL;
	memset(t, 0, offsetof(struct tar_in, bytes)); /* the rest is touched as it is needed */
	buf_init(&t->records, TAR_IN_RECORDS_HIGH + ENTRY_HEAD_LEN + ENTRY_SIZE_MAX);
	t->coro = coro_create(in_main, t);
	if (t->coro)
		return t;
	free(t);
	return NULL;
}

static bool in_is_over(const struct tar_in *t)
{
	return t->state == TAR_IN_DONE || t->state == TAR_IN_FAILED;
}

void tar_in_free(struct tar_in *t)
{
	if (!t)
		return;
	t->cancelled = true;
	if (!in_is_over(t))
		INVARIANT(!coro_resume(t->coro));
	coro_free(t->coro);
	buf_free(&t->records);
	free(t);
}

size_t tar_in_room(const struct tar_in *t)
{
	size_t room = TAR_IN_SIZE - t->len;

	if (in_is_over(t))
		return TAR_IN_SIZE;
	return room >= IN_ROOM_MIN ? room : 0;
}

void tar_in_put(struct tar_in *t, const uint8_t *p, size_t n)
{
	if (in_is_over(t))
		return;
	INVARIANT(n <= TAR_IN_SIZE - t->len);
	memcpy(t->bytes + t->len, p, n);
	t->len += n;
}

void tar_in_end(struct tar_in *t)
{
	t->ended = true;
}

enum tar_in_state tar_in_run(struct tar_in *t)
{
	if (in_is_over(t) || (t->state == TAR_IN_FULL && t->records.len >= TAR_IN_RECORDS_HIGH))
		return t->state;
	(void)coro_resume(t->coro); /* t->state says how it went */
	return t->state;
}

struct buf *tar_in_records(struct tar_in *t)
{
	return &t->records;
}

enum api_error tar_in_error(const struct tar_in *t, const char **text)
{
	*text = t->why;
	return t->error;
}
