/*
 * entry: what sbx-files (guest/files/) says on its standard output: a stream of records, each a
 * struct entry_head and `size` bytes. Its arguments come in AGENT_EXEC with AGENT_EXEC_HELPER.
 *
 *     sbx-files COMMAND [NAME=VALUE]...
 *
 * A result is complete only with ENTRY_DONE at its end and exit status 0. On failure the helper
 * writes one line for a person to standard error and exits with an enum agent_code; what came
 * before counts for nothing.
 *
 * Little endian, no padding; a change of any of this is a change of AGENT_VERSION. No number is
 * larger than INT64_MAX: not everybody who reads JSON takes more. The box is hostile: entry_feed()
 * checks every record before anybody looks into it.
 */
#ifndef SBXD_WIRE_ENTRY_H
#define SBXD_WIRE_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#define ENTRY_HEAD_LEN 8U
#define ENTRY_SIZE_MAX 16384U /* bytes after the head */
#define ENTRY_PATH_MAX 4095U  /* bytes of a path or of a link's text */

enum entry_type {
	ENTRY_NONE = 0,
	ENTRY_DONE,  /* struct entry_done; the last record */
	ENTRY_ALIVE, /* struct entry_alive; between any two: it works, and has nothing to say */

	/* ---- list, glob, grep ---- */
	ENTRY_ITEM,    /* list: struct entry_item, path, text of a link */
	ENTRY_PATH,    /* glob: struct entry_path, path */
	ENTRY_LINE,    /* grep: struct entry_line, path, text */
	ENTRY_PROBLEM, /* all: struct entry_problem, path, text */

	/* ---- pack, unpack ---- */
	ENTRY_MEMBER,  /* struct entry_member, path, link */
	ENTRY_EXTENTS, /* struct entry_extent, one or more */
	ENTRY_PIECE,   /* struct entry_piece, bytes of the file */

	ENTRY_TYPES,
};

struct entry_head {
	uint32_t size;
	uint16_t type; /* enum entry_type */
	uint16_t reserved;
};

struct entry_done {
	uint32_t version; /* AGENT_VERSION */
	uint32_t flags;	  /* ENTRY_DONE_* */
	uint64_t count;	  /* list, glob, grep: problems; remove: what was removed */
};

/* A search that finds nothing, or the removal of a large tree, is told from one that stands still
 * by this. entry_feed() takes it; nobody else hears of it. */
struct entry_alive {
	uint64_t steps; /* entries that were looked at; more each time */
};

#define ENTRY_DONE_TRUNCATED 1U /* there is more than was asked for */

/* ---- list, glob, grep: paths are relative to where the search began, and any bytes but NUL ----
 */

#define ENTRY_PROBLEMS_MAX 100U /* that are told; all are counted */
#define ENTRY_LINE_MAX 1024U	/* bytes of the text of a line */

struct entry_item {
	uint64_t size;
	int64_t mtime_ns; /* since 1970 */
	uint32_t mode;	  /* st_mode */
	uint32_t uid;
	uint32_t gid;
	uint32_t path_len;
	uint32_t link_len; /* of a symbolic link */
	uint32_t reserved;
};

struct entry_path {
	uint32_t path_len;
	uint32_t reserved;
};

struct entry_line {
	uint64_t number; /* from 1 */
	uint32_t path_len;
	uint32_t text_len; /* UTF-8 */
};

/* Something could not be read, and the search went on without it. */
struct entry_problem {
	uint32_t code; /* enum agent_code, never AGENT_OK */
	uint32_t path_len;
	uint32_t text_len; /* for a person; UTF-8 */
	uint32_t reserved;
};

/*
 * ---- pack, unpack: archives ----
 *
 * `pack` says the members of a tree, `unpack` hears them on its standard input, both in the order
 * of the archive:
 *
 *     (ENTRY_MEMBER [ENTRY_EXTENTS]... [ENTRY_PIECE]...)... ENTRY_DONE
 *
 * Pieces belong to files only. They come in ascending order and do not overlap; an empty one is the
 * last. What is in no piece is a hole.
 *
 * pack says beforehand, in ENTRY_EXTENTS, where the data of a file with holes lies, since a tar
 * header has that before the data; its pieces fill the extents exactly. unpack gets no extents.
 */
enum entry_kind {
	ENTRY_KIND_NONE = 0,
	ENTRY_FILE,
	ENTRY_DIRECTORY,
	ENTRY_SYMLINK,	/* link: its text */
	ENTRY_HARDLINK, /* link: the path of another member, or of what is there */
	ENTRY_KINDS,
};

struct entry_member {
	uint32_t kind; /* enum entry_kind */
	uint32_t mode; /* of S_IFMT nothing: 07777 */
	uint64_t size; /* of a file, holes included */
	int64_t mtime; /* seconds since 1970 */
	uint32_t mtime_nsec;
	uint32_t uid;
	uint32_t gid;
	uint32_t extents; /* how many will come; 0: the file has no holes */
	uint32_t path_len;
	uint32_t link_len; /* 0: it is neither kind of link */
};

struct entry_extent {
	uint64_t offset;
	uint64_t length; /* 0 only for the last one, at the end of the file */
};

struct entry_piece {
	uint64_t offset;
};

#define ENTRY_EXTENTS_MAX 4096U /* of a file */
#define ENTRY_EXTENTS_AT_ONCE (ENTRY_SIZE_MAX / (uint32_t)sizeof(struct entry_extent))
#define ENTRY_PIECE_MAX (ENTRY_SIZE_MAX - (uint32_t)sizeof(struct entry_piece))

/* A checked record. path and text point into the bytes that it was read from. */
struct entry {
	enum entry_type type;
	union {
		struct entry_done done;
		struct entry_alive alive;
		struct entry_item item;
		struct entry_path path;
		struct entry_line line;
		struct entry_problem problem;
		struct entry_member member;
		struct entry_piece piece;
	} u;
	const uint8_t *path; /* neither empty nor with NUL; empty only in ENTRY_PROBLEM */
	size_t path_len;
	/* What comes after the path; with ENTRY_ITEM and ENTRY_MEMBER any bytes but NUL. The
	 * extents; the bytes of a piece. */
	const uint8_t *text;
	size_t text_len;
};

/* Takes a record. 0, or a negative value that entry_feed() returns. */
typedef int entry_fn(void *ctx, const struct entry *e);

/* Where a stream is; zero at its beginning. */
struct entry_reader {
	size_t len;	/* of part */
	uint64_t steps; /* of the last ENTRY_ALIVE */
	uint8_t part[ENTRY_HEAD_LEN + ENTRY_SIZE_MAX];
};

/*
 * Takes the next n bytes of a stream, and calls fn for each record that is complete, ENTRY_ALIVE
 * apart. 0; -EBADMSG: a record makes no sense, and the stream is of no further use; or what fn
 * returned.
 */
int entry_feed(struct entry_reader *r, const uint8_t *bytes, size_t n, entry_fn *fn, void *ctx);

#endif
