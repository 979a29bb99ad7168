/* tar_head: headers, block by block. sbx-worker and sbxctl; holds no state. */
#include "wire/tar_head.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/utf8.h"

/* What a field of that many bytes holds in octal, its NUL not counted. */
#define OCTAL_MAX(bytes) ((1ULL << (3 * ((bytes)-1))) - 1)

struct ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[8]; /* with the version */
	char names[64];
	char device[16];
	char prefix[155];
	char rest[12];
};

/* The end of an old GNU header, from `prefix` on. */
struct gnu_extent {
	char offset[12];
	char length[12];
};

#define GNU_HEAD_EXTENTS 4
#define GNU_MORE_EXTENTS 21

struct gnu_tail {
	char unused[41];
	struct gnu_extent extents[GNU_HEAD_EXTENTS];
	char more;
	char size[12]; /* of the file, holes included */
	char rest[17];
};

struct gnu_more {
	struct gnu_extent extents[GNU_MORE_EXTENTS];
	char more;
	char rest[7];
};

_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");
_Static_assert(
    sizeof(struct gnu_tail) == TAR_BLOCK - offsetof(struct ustar, prefix), "as is GNU's");
_Static_assert(sizeof(struct gnu_more) == TAR_BLOCK, "a block of extents is one too");

static const char kind_types[ENTRY_KINDS] = {
    [ENTRY_FILE] = '0',
    [ENTRY_DIRECTORY] = '5',
    [ENTRY_SYMLINK] = '2',
    [ENTRY_HARDLINK] = '1',
};

int tar_zeros_put(struct buf *out, size_t n)
{
	uint8_t *to = buf_reserve(out, n);

	if (!to)
		return buf_room(out) < n ? -ENOBUFS : -ENOMEM;
	memset(to, 0, n);
	buf_commit(out, n);
	return 0;
}

/* Octal, or what does not fit in GNU's binary form, which most readers know. */
static void put_number(char *field, size_t size, uint64_t n)
{
	if (n <= OCTAL_MAX(size)) {
		(void)snprintf(field, size, "%0*llo", (int)size - 1, (unsigned long long)n);
		return;
	}
	memset(field, 0, size);
	for (size_t i = 0; i < sizeof(n) && i < size - 1; i++, n >>= 8)
		field[size - 1 - i] = (char)(n & 0xff);
	field[0] = (char)0x80;
}

/* At most `size` bytes; a field that is full has no NUL. */
static void put_text(char *field, size_t size, const char *text)
{
	memcpy(field, text, strnlen(text, size));
}

/* Where a path is cut into prefix and name: its slash, or NULL when it fits neither way. */
static const char *find_split(const char *path, size_t n)
{
	const size_t name_max = sizeof(((struct ustar *)0)->name);
	const size_t prefix_max = sizeof(((struct ustar *)0)->prefix);
	const char *slash = n > name_max ? strchr(path + n - name_max - 1, '/') : NULL;

	if (!slash || slash == path || slash[1] == '\0' || (size_t)(slash - path) > prefix_max)
		return NULL;
	return slash;
}

static bool fits(const char *text)
{
	return strlen(text) <= sizeof(((struct ustar *)0)->name);
}

/* Does the header alone say the path? */
static bool path_fits(const struct tar_head *h)
{
	if (fits(h->path))
		return true;
	/* GNU's header has something else in the prefix's place. */
	return h->member->extents == 0 && find_split(h->path, strlen(h->path));
}

/* ---- pax ---- */

/* "LENGTH KEY=VALUE\n", LENGTH counting itself. */
static int put_record(struct buf *out, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3;
	size_t len = rest + 1;
	int digits;

	do {
		digits = snprintf(NULL, 0, "%zu", len);
		len = rest + (size_t)digits;
	} while (snprintf(NULL, 0, "%zu", len) != digits);
	return buf_printf(out, "%zu %s=%s\n", len, key, value);
}

static int put_record_int(struct buf *out, const char *key, long long value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", value);
	return put_record(out, key, text);
}

static bool is_utf8(const char *text)
{
	size_t n = strlen(text);

	return utf8_valid_prefix((const uint8_t *)text, n, NULL) == n;
}

/* What the header cannot say. 0 or -errno. */
static int put_records(struct buf *out, const struct tar_head *h)
{
	const struct entry_member *m = h->member;
	bool path = !path_fits(h);
	bool link = !fits(h->link);
	int rc = 0;

	if ((path && !is_utf8(h->path)) || (link && !is_utf8(h->link)))
		rc = put_record(out, "hdrcharset", "BINARY");
	if (rc == 0 && path)
		rc = put_record(out, "path", h->path);
	if (rc == 0 && link)
		rc = put_record(out, "linkpath", h->link);
	if (rc == 0 && m->extents == 0 && h->data > OCTAL_MAX(sizeof(((struct ustar *)0)->size)))
		rc = put_record_int(out, "size", (long long)h->data);
	if (rc == 0 && m->uid > OCTAL_MAX(sizeof(((struct ustar *)0)->uid)))
		rc = put_record_int(out, "uid", m->uid);
	if (rc == 0 && m->gid > OCTAL_MAX(sizeof(((struct ustar *)0)->gid)))
		rc = put_record_int(out, "gid", m->gid);
	if (rc == 0 &&
	    (m->mtime < 0 || (uint64_t)m->mtime > OCTAL_MAX(sizeof(((struct ustar *)0)->mtime))))
		rc = put_record_int(out, "mtime", m->mtime);
	return rc;
}

/* ---- blocks ---- */

static int put_block(struct buf *out, struct ustar *u)
{
	const uint8_t *bytes = (const uint8_t *)u;
	unsigned int sum = 0;

	memset(u->checksum, ' ', sizeof(u->checksum));
	for (size_t i = 0; i < sizeof(*u); i++)
		sum += bytes[i];
	(void)snprintf(u->checksum, sizeof(u->checksum) - 1, "%06o", sum);
	return buf_append(out, u, sizeof(*u));
}

/* The whole pax header, if one is needed. */
static int put_pax(struct buf *out, const struct tar_head *h)
{
	struct ustar u = {.type = 'x', .magic = "ustar\00000"};
	struct buf records;
	int rc;

	buf_init(&records, 4U * ENTRY_PATH_MAX);
	rc = put_records(&records, h);
	if (rc == 0 && records.len > 0) {
		put_text(u.name, sizeof(u.name), "././@PaxHeader");
		put_number(u.mode, sizeof(u.mode), 0644);
		put_number(u.uid, sizeof(u.uid), 0);
		put_number(u.gid, sizeof(u.gid), 0);
		put_number(u.size, sizeof(u.size), records.len);
		put_number(u.mtime, sizeof(u.mtime), 0);
		rc = put_block(out, &u);
		if (rc == 0)
			rc = buf_append(out, buf_head(&records), records.len);
		if (rc == 0)
			rc = tar_zeros_put(out, -records.len % TAR_BLOCK);
	}
	buf_free(&records);
	return rc;
}

static void fill_name(struct ustar *u, const struct tar_head *h)
{
	const char *slash = NULL;

	if (!fits(h->path) && path_fits(h))
		slash = find_split(h->path, strlen(h->path));
	if (slash)
		memcpy(u->prefix, h->path, (size_t)(slash - h->path));
	put_text(u->name, sizeof(u->name), slash ? slash + 1 : h->path);
	put_text(u->link, sizeof(u->link), h->link);
}

/* Up to `max` extents. Returns how many. */
static uint32_t fill_extents(
    struct gnu_extent *to, uint32_t max, const struct entry_extent *e, uint32_t left)
{
	uint32_t n = left < max ? left : max;

	for (uint32_t i = 0; i < n; i++) {
		put_number(to[i].offset, sizeof(to[i].offset), e[i].offset);
		put_number(to[i].length, sizeof(to[i].length), e[i].length);
	}
	return n;
}

/* The header of a file with holes, and the blocks that its map goes on in. */
static int put_sparse(struct buf *out, const struct tar_head *h, struct ustar *u)
{
	uint32_t left = h->member->extents;
	const struct entry_extent *e = h->extents;
	struct gnu_tail tail = {.more = 0};
	uint32_t n = fill_extents(tail.extents, GNU_HEAD_EXTENTS, e, left);
	int rc;

	tail.more = left > n;
	put_number(tail.size, sizeof(tail.size), h->member->size);
	memcpy(u->prefix, &tail, sizeof(tail));
	memcpy(u->magic, "ustar  ", sizeof(u->magic));
	u->type = 'S';
	rc = put_block(out, u);
	while (rc == 0 && left > n) {
		struct gnu_more more = {.more = 0};

		e += n;
		left -= n;
		n = fill_extents(more.extents, GNU_MORE_EXTENTS, e, left);
		more.more = left > n;
		rc = buf_append(out, &more, sizeof(more));
	}
	return rc;
}

int tar_head_put(struct buf *out, const struct tar_head *h)
{
	const struct entry_member *m = h->member;
	struct ustar u = {.type = kind_types[m->kind], .magic = "ustar\00000"};
	int rc = put_pax(out, h);

	if (rc < 0)
		return rc;
	fill_name(&u, h);
	put_number(u.mode, sizeof(u.mode), m->mode);
	put_number(u.uid, sizeof(u.uid), m->uid);
	put_number(u.gid, sizeof(u.gid), m->gid);
	put_number(u.size, sizeof(u.size), h->data);
	put_number(u.mtime, sizeof(u.mtime), m->mtime < 0 ? 0 : (uint64_t)m->mtime);
	return m->extents ? put_sparse(out, h, &u) : put_block(out, &u);
}
