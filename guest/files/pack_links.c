/*
 * pack_links: files with several names. sbx-files; lost when it dies.
 *
 * The table has a fixed size: a file that finds it full is said once under each of its names, as if
 * they were several files.
 */
#include <string.h>

#include "guest/files/pack.h"

#define LINKS_SLOTS 65536U /* half of them are used at most */
#define LINKS_NAMES (4U * 1024U * 1024U)

struct link {
	dev_t dev;
	ino_t ino;
	struct pack_name name; /* len 0: free */
};

static struct {
	size_t count;
	size_t names_len;
	struct link slots[LINKS_SLOTS];
	char names[LINKS_NAMES];
} links;

static size_t slot_of(const struct stat *st)
{
	uint64_t h = ((uint64_t)st->st_ino ^ ((uint64_t)st->st_dev << 32)) * 0x9e3779b97f4a7c15ULL;

	return (size_t)(h >> 48);
}
_Static_assert(LINKS_SLOTS == 1U << 16, "a slot's number has the upper bits of a hash");

const struct pack_name *links_find(const struct stat *st, const struct pack_name *name)
{
	size_t at = slot_of(st);
	struct link *l;

	for (l = &links.slots[at]; l->name.len > 0; l = &links.slots[at]) {
		if (l->dev == st->st_dev && l->ino == st->st_ino)
			return &l->name;
		at = (at + 1) % LINKS_SLOTS;
	}
	if (links.count == LINKS_SLOTS / 2 || name->len > LINKS_NAMES - links.names_len)
		return NULL;
	memcpy(links.names + links.names_len, name->bytes, name->len);
	*l = (struct link){
	    .dev = st->st_dev,
	    .ino = st->st_ino,
	    .name = {.bytes = links.names + links.names_len, .len = name->len},
	};
	links.names_len += name->len;
	links.count++;
	return NULL;
}
