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
 * Little endian, no padding; a change of any of this is a change of AGENT_VERSION. The box is
 * hostile: entry_feed() checks every record before anybody looks into it.
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
	ENTRY_DONE, /* struct entry_done; the last record */
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
	uint64_t count;	  /* of what the command counts */
};

#define ENTRY_DONE_TRUNCATED 1U /* there is more than was asked for */

/* A checked record. */
struct entry {
	enum entry_type type;
	union {
		struct entry_done done;
	} u;
};

/* Takes a record. 0, or a negative value that entry_feed() returns. */
typedef int entry_fn(void *ctx, const struct entry *e);

/* Where a stream is; zero at its beginning. */
struct entry_reader {
	size_t len; /* of part */
	uint8_t part[ENTRY_HEAD_LEN + ENTRY_SIZE_MAX];
};

/*
 * Takes the next n bytes of a stream, and calls fn for each record that is complete. 0; -EBADMSG: a
 * record makes no sense, and the stream is of no further use; or what fn returned.
 */
int entry_feed(struct entry_reader *r, const uint8_t *bytes, size_t n, entry_fn *fn, void *ctx);

#endif
