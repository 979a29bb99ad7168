/*
 * info: walks through a list of boxes whose elements are of unknown size: each version of BoxLite
 * put something else behind the part that all have. sbx-boxlite; holds no state.
 *
 * An element begins with four pointers to text (the second may be NULL) and a number that is 0
 * or 1. From the end of the known part on, each place is tried in turn; what is tried lies within
 * the element before, until the right place is reached. A pointer is looked at through the kernel,
 * which says "no" where a load would kill us.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/boxlite/program/abi.h"

#define INFO_TAIL_MAX 256 /* bytes behind the known part; the longest so far has 48 */
#define INFO_TEXT_MAX 256

/* Is there printable text at p, of at least `least` bytes? */
static bool is_text(const char *p, size_t least)
{
	char text[INFO_TEXT_MAX];
	struct iovec to = {.iov_base = text};
	struct iovec from = {.iov_base = (void *)(uintptr_t)p};
	size_t have = 0;

	/* Not past the end of a page that may be the last one. */
	while (have < sizeof(text)) {
		size_t page = 4096 - ((uintptr_t)p + have) % 4096;
		ssize_t n;

		to.iov_base = text + have;
		from.iov_base = (void *)((uintptr_t)p + have);
		to.iov_len = from.iov_len = page < sizeof(text) - have ? page : sizeof(text) - have;
		n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
		if (n <= 0)
			return false;
		for (size_t i = have; i < have + (size_t)n; i++) {
			if (text[i] == '\0')
				return i >= least;
			if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
				return false;
		}
		have += (size_t)n;
	}
	return true; /* a long one */
}

static bool is_info(const char *at)
{
	struct blx_info i;

	memcpy(&i, at, sizeof(i));
	return (i.running == 0 || i.running == 1) && i.id && i.image && i.status &&
	       is_text(i.id, 1) && (!i.name || is_text(i.name, 0)) && is_text(i.image, 0) &&
	       is_text(i.status, 1);
}

const struct blx_info *info_next(const struct blx_info_list *list, const struct blx_info *at)
{
	const char *p = (const char *)at;

	if (!at)
		return list->count > 0 ? list->items : NULL;
	for (size_t n = sizeof(*at); n <= sizeof(*at) + INFO_TAIL_MAX; n += sizeof(void *)) {
		if (is_info(p + n))
			return (const struct blx_info *)(const void *)(p + n);
	}
	return NULL;
}
