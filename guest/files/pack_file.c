/*
 * pack_file: one file as records. sbx-files; only reads.
 *
 * Holes are only made use of when they are worth it: many a program that unpacks knows nothing of
 * them, and many a file has a small one by chance.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "guest/files/pack.h"

#define FILE_HOLES_MIN (16U * 1024U * 1024U)

static struct {
	uint32_t count;
	struct entry_extent all[ENTRY_EXTENTS_MAX];
} extents;

void pack_member(enum entry_kind kind, const struct stat *st, uint32_t count,
    const struct pack_name *name, const char *link, size_t link_len)
{
	const struct entry_member m = {
	    .kind = kind,
	    .mode = st->st_mode & 07777U,
	    .size = kind == ENTRY_FILE ? (uint64_t)st->st_size : 0,
	    .mtime = st->st_mtim.tv_sec,
	    .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
	    .uid = st->st_uid,
	    .gid = st->st_gid,
	    .extents = count,
	    .path_len = (uint32_t)name->len,
	    .link_len = (uint32_t)link_len,
	};

	emit_record(ENTRY_MEMBER, &m, sizeof(m), name->bytes, name->len, link, link_len);
}

static void add_extent(uint64_t offset, uint64_t length)
{
	extents.all[extents.count++] = (struct entry_extent){.offset = offset, .length = length};
}

/* Where the data lies. When there are too many places, the last one goes to the end. */
static void find_extents(int fd, uint64_t size)
{
	off_t at = 0;

	extents.count = 0;
	while ((uint64_t)at < size) {
		off_t from = lseek(fd, at, SEEK_DATA);
		off_t to;

		if (from < 0 && errno == ENXIO)
			break; /* a hole to the end */
		if (from < 0)
			from = at; /* it knows of no holes */
		if ((uint64_t)from >= size)
			break;
		to = extents.count < ENTRY_EXTENTS_MAX - 2 ? lseek(fd, from, SEEK_HOLE) : -1;
		if (to <= from || (uint64_t)to > size)
			to = (off_t)size;
		add_extent((uint64_t)from, (uint64_t)(to - from));
		at = to;
	}
	if ((uint64_t)at < size || size == 0)
		add_extent(size, 0);
}

static bool holes_are_worth_it(uint64_t size)
{
	uint64_t data = 0;

	for (uint32_t i = 0; i < extents.count; i++)
		data += extents.all[i].length;
	return size - data >= FILE_HOLES_MIN;
}

static void emit_extents(void)
{
	for (uint32_t i = 0; i < extents.count; i += ENTRY_EXTENTS_AT_ONCE) {
		uint32_t n = extents.count - i;

		if (n > ENTRY_EXTENTS_AT_ONCE)
			n = ENTRY_EXTENTS_AT_ONCE;
		emit_record(
		    ENTRY_EXTENTS, &extents.all[i], n * sizeof(extents.all[0]), NULL, 0, NULL, 0);
	}
}

static void emit_piece(uint64_t offset, const uint8_t *bytes, size_t n)
{
	const struct entry_piece piece = {.offset = offset};

	emit_record(ENTRY_PIECE, &piece, sizeof(piece), bytes, n, NULL, 0);
}

/* What was promised of a file is said, be it still there or not. 0 or an errno. */
static int emit_data(int fd, uint64_t offset, uint64_t length)
{
	static uint8_t bytes[ENTRY_PIECE_MAX];

	while (length > 0) {
		size_t want = length < sizeof(bytes) ? (size_t)length : sizeof(bytes);
		ssize_t n = pread(fd, bytes, want, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0) { /* it has shrunk */
			memset(bytes, 0, want);
			n = (ssize_t)want;
		}
		emit_piece(offset, bytes, (size_t)n);
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return 0;
}

int pack_file(int fd, const struct stat *st, const struct pack_name *name)
{
	uint64_t size = (uint64_t)st->st_size;
	int err = 0;

	extents.count = 0;
	if (size >= FILE_HOLES_MIN)
		find_extents(fd, size);
	if (extents.count > 0 && !holes_are_worth_it(size))
		extents.count = 0;
	pack_member(ENTRY_FILE, st, extents.count, name, NULL, 0);
	emit_extents();
	if (extents.count == 0)
		err = emit_data(fd, 0, size);
	for (uint32_t i = 0; err == 0 && i < extents.count; i++)
		err = emit_data(fd, extents.all[i].offset, extents.all[i].length);
	emit_piece(size, NULL, 0);
	return err;
}
