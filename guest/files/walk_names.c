/* walk_names: the names that are in a directory. sbx-files; only reads. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/files/walk_int.h"

#define WALK_READ 32768U /* of a directory, at once */
#define WALK_NAMES_MAX (UINT32_MAX / 4U)

void *walk_grow(void *block, size_t *size, size_t want, size_t each)
{
	size_t more = *size > 0 ? *size : 64;
	void *bigger;

	if (want <= *size)
		return block;
	while (more < want)
		more *= 2;
	bigger = reallocarray(block, more, each);
	if (bigger != NULL)
		*size = more;
	return bigger;
}

static int add_name(struct walk *w, unsigned char type, const char *name)
{
	size_t len = strlen(name) + 1;
	void *names = walk_grow(w->names, &w->names_size, w->names_len + 1 + len, 1);
	void *order;

	if (names == NULL || w->names_len + 1 + len > WALK_NAMES_MAX)
		return -ENOMEM;
	w->names = names;
	order = walk_grow(w->order, &w->order_size, w->order_len + 1, sizeof(*w->order));
	if (order == NULL)
		return -ENOMEM;
	w->order = order;
	w->order[w->order_len++] = (uint32_t)w->names_len;
	w->names[w->names_len] = type;
	memcpy(w->names + w->names_len + 1, name, len);
	w->names_len += 1 + len;
	return 0;
}

static int compare_names(const void *a, const void *b, void *names)
{
	uint32_t x;
	uint32_t y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return strcmp((const char *)names + x + 1, (const char *)names + y + 1);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Takes the names that lie in n bytes of directory entries. 0 or -ENOMEM. */
static int take_entries(struct walk *w, const uint8_t *bytes, size_t n)
{
	size_t at = 0;

	while (at < n) {
		const struct dirent64 *e = (const struct dirent64 *)(const void *)(bytes + at);

		walk_step(w);
		if (!is_dots(e->d_name) && add_name(w, e->d_type, e->d_name) != 0)
			return -ENOMEM;
		at += e->d_reclen;
	}
	return 0;
}

int walk_read_names(struct walk *w, struct frame *f)
{
	static _Alignas(struct dirent64) uint8_t bytes[WALK_READ];
	int err = 0;

	f->names_len = w->names_len;
	f->first = f->next = w->order_len;
	while (err == 0) {
		ssize_t n = getdents64(f->fd, bytes, sizeof(bytes));

		if (n <= 0) {
			err = n < 0 ? errno : 0;
			break;
		}
		err = -take_entries(w, bytes, (size_t)n);
	}
	f->end = w->order_len;
	if (w->ops->sorted && f->end > f->first)
		qsort_r(w->order + f->first, f->end - f->first, sizeof(*w->order), compare_names,
		    w->names);
	return err;
}
