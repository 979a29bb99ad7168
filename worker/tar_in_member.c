/*
 * tar_in_member: libarchive's entries as records. sbx-worker. If we die here the box dies with us.
 *
 * Nothing has set a locale, so names are never converted: where libarchive tries to, for pax
 * headers, it fails at the first byte past ASCII, says so in a warning, and keeps the bytes.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/agent.h"
#include "worker/tar_in_int.h"

/* archive_errno() of the one warning that is none: see above. */
#define IN_NOT_ASCII EILSEQ
#define IN_BLOCK 512

/* Queues a record of up to three parts; waits until there is room. False: it is over. */
static bool in_emit(struct tar_in *t, enum entry_type type, const void *fixed, size_t n,
    const void *a, size_t a_len, const void *b, size_t b_len)
{
	const struct entry_head h = {
	    .size = (uint32_t)(n + a_len + b_len),
	    .type = (uint16_t)type,
	};

	while (t->records.len >= TAR_IN_RECORDS_HIGH && !t->cancelled)
		tar_in_wait(t, TAR_IN_FULL);
	if (t->cancelled)
		return false;
	if (buf_append(&t->records, &h, sizeof(h)) < 0 || buf_append(&t->records, fixed, n) < 0 ||
	    buf_append(&t->records, a, a_len) < 0 || buf_append(&t->records, b, b_len) < 0)
		return tar_in_no_memory(t);
	return true;
}

static const struct {
	mode_t type;
	enum entry_kind kind;
} kinds[] = {
    {AE_IFREG, ENTRY_FILE},
    {AE_IFDIR, ENTRY_DIRECTORY},
    {AE_IFLNK, ENTRY_SYMLINK},
};

/* What it becomes in the box; ENTRY_KIND_NONE: nothing. */
static enum entry_kind in_kind(struct archive_entry *e)
{
	if (archive_entry_hardlink(e))
		return ENTRY_HARDLINK;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (archive_entry_filetype(e) == kinds[i].type)
			return kinds[i].kind;
	}
	return ENTRY_KIND_NONE;
}

/* What a link points to, "" for what is none. */
static const char *in_link(struct archive_entry *e, enum entry_kind kind)
{
	const char *link = NULL;

	if (kind == ENTRY_HARDLINK)
		link = archive_entry_hardlink(e);
	else if (kind == ENTRY_SYMLINK)
		link = archive_entry_symlink(e);
	return link ? link : "";
}

/* Fills the record of a member. False: it is refused. */
static bool in_describe(struct tar_in *t, struct archive_entry *e, const char *path,
    const char *link, struct entry_member *m)
{
	size_t path_len = strlen(path);
	size_t link_len = strlen(link);
	long nsec = archive_entry_mtime_nsec(e);

	(void)snprintf(t->name, sizeof(t->name), "%s", path);
	*m = (struct entry_member){
	    .kind = in_kind(e),
	    .mode = archive_entry_perm(e) & 07777U,
	    .mtime = archive_entry_mtime(e),
	    .mtime_nsec = nsec > 0 && nsec <= 999999999 ? (uint32_t)nsec : 0,
	    .path_len = (uint32_t)path_len,
	    .link_len = (uint32_t)link_len,
	};
	if (path_len == 0)
		return tar_in_fail(t, API_INVALID_PATH, "a member of the archive has no name");
	if (path_len > ENTRY_PATH_MAX)
		return tar_in_fail(t, API_INVALID_PATH, "a name is too long: \"%s...\"", t->name);
	if (m->kind == ENTRY_KIND_NONE)
		return tar_in_fail(t, API_INVALID_ARGUMENT,
		    "\"%s\" is a device or a fifo: only files, directories and links can be "
		    "uploaded",
		    t->name);
	if (link_len > ENTRY_PATH_MAX ||
	    (link_len == 0 && (m->kind == ENTRY_SYMLINK || m->kind == ENTRY_HARDLINK)))
		return tar_in_fail(t, API_INVALID_PATH,
		    "what the link \"%s\" points to is empty or too long", t->name);
	if (m->kind != ENTRY_FILE)
		return true;
	if (archive_entry_size(e) < 0)
		return tar_in_fail(t, API_INVALID_ARGUMENT, "\"%s\" has no valid size", t->name);
	m->size = (uint64_t)archive_entry_size(e);
	return true;
}

/* How many bytes of data the headers promise: all of the file, or what its map says. */
static uint64_t in_promised(struct archive_entry *e)
{
	la_int64_t offset;
	la_int64_t length;
	uint64_t sum = 0;

	if (archive_entry_sparse_reset(e) == 0)
		return (uint64_t)archive_entry_size(e);
	while (archive_entry_sparse_next(e, &offset, &length) == ARCHIVE_OK)
		sum += (uint64_t)length;
	return sum;
}

static bool in_emit_piece(struct tar_in *t, uint64_t offset, const uint8_t *p, size_t n)
{
	const struct entry_piece piece = {.offset = offset};

	return in_emit(t, ENTRY_PIECE, &piece, sizeof(piece), p, n, NULL, 0);
}

/* One block of data as pieces. */
static bool in_emit_data(struct tar_in *t, uint64_t offset, const uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t part = n < ENTRY_PIECE_MAX ? n : ENTRY_PIECE_MAX;

		if (!in_emit_piece(t, offset, p, part))
			return false;
		p += part;
		n -= part;
		offset += part;
	}
	return true;
}

/* The data of a file of `size` bytes. */
static bool in_file(struct tar_in *t, struct archive_entry *e, uint64_t size)
{
	uint64_t promised = in_promised(e);
	uint64_t seen = 0;
	uint64_t end = 0;

	for (;;) {
		const void *p;
		la_int64_t offset;
		size_t n;
		int rc = archive_read_data_block(t->archive, &p, &n, &offset);

		if (rc == ARCHIVE_EOF)
			break;
		if (rc != ARCHIVE_OK)
			return tar_in_damaged(t);
		if (offset < 0 || (uint64_t)offset < end || (uint64_t)offset > size ||
		    n > size - (uint64_t)offset)
			return tar_in_fail(t, API_INVALID_ARGUMENT,
			    "the archive is damaged: the map of \"%s\" makes no sense", t->name);
		if (!in_emit_data(t, (uint64_t)offset, p, n))
			return false;
		end = (uint64_t)offset + n;
		seen += n;
	}
	/* A file of nothing but a hole may have a map that libarchive does not show; and it does
	 * not miss data that no map speaks of. */
	if ((seen != promised && seen != 0) || archive_filter_bytes(t->archive, 0) % IN_BLOCK != 0)
		return tar_in_fail(t, API_INVALID_ARGUMENT,
		    "the archive is damaged: the data of \"%s\" is not what its header says",
		    t->name);
	return in_emit_piece(t, size, NULL, 0);
}

bool tar_in_member(struct tar_in *t)
{
	struct archive_entry *e;
	struct entry_member m;
	const char *path;
	const char *link;
	int rc;

	t->headers = 0;
	rc = archive_read_next_header(t->archive, &e);
	if (rc == ARCHIVE_EOF)
		return false;
	if (rc != ARCHIVE_OK && (rc != ARCHIVE_WARN || archive_errno(t->archive) != IN_NOT_ASCII))
		return tar_in_damaged(t);
	path = archive_entry_pathname(e);
	path = path ? path : "";
	link = in_link(e, in_kind(e));
	if (!in_describe(t, e, path, link, &m))
		return false;
	t->members++;
	t->headers = TAR_IN_DATA;
	if (!in_emit(t, ENTRY_MEMBER, &m, sizeof(m), path, m.path_len, link, m.link_len))
		return false;
	if (m.kind == ENTRY_FILE)
		return in_file(t, e, m.size);
	/* A hard link may come with the file's data once more. */
	return archive_read_data_skip(t->archive) >= ARCHIVE_WARN || tar_in_damaged(t);
}

void tar_in_finish(struct tar_in *t)
{
	const struct entry_done done = {.version = AGENT_VERSION, .count = t->members};

	if (archive_filter_bytes(t->archive, 0) == archive_read_header_position(t->archive)) {
		(void)tar_in_fail(t, API_INVALID_ARGUMENT,
		    "the archive is cut: after \"%s\" there is no end mark", t->name);
		return;
	}
	(void)in_emit(t, ENTRY_DONE, &done, sizeof(done), NULL, 0, NULL, 0);
}
