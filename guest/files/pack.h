/*
 * pack: what the files of `sbx-files pack` share. pack.c goes through a tree; pack_file.c says what
 * a file is and what is in it; pack_links.c knows which files were said under another name.
 *
 * Trees change while they are looked at: what is gone was never there, a file that has shrunk is
 * filled up with zeros, and what has grown is said as it was. Whatever else cannot be read fails
 * the command: an archive that lacks something without saying so is worse than none.
 */
#ifndef SBXD_GUEST_FILES_PACK_H
#define SBXD_GUEST_FILES_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "guest/files/files.h"

/* A member: its name in the archive, and what it is. */
struct pack_name {
	const char *bytes;
	size_t len;
};

/* Says the member alone. extents, link: see wire/entry.h. */
void pack_member(enum entry_kind kind, const struct stat *st, uint32_t extents,
    const struct pack_name *name, const char *link, size_t link_len);

/* ---- pack_file.c ---- */

/* Says the regular file fd and all that is in it. 0 or an errno. */
int pack_file(int fd, const struct stat *st, const struct pack_name *name);

/* ---- pack_links.c ---- */

/*
 * The name under which a file with several names was said first; NULL: this is the first, and it is
 * remembered, as long as there is room.
 */
const struct pack_name *links_find(const struct stat *st, const struct pack_name *name);

#endif
