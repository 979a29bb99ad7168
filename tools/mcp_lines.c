/* mcp_lines: bytes become lines of a bounded length. sbx-mcp. */
#include <errno.h>
#include <string.h>

#include "tools/mcp_stdio.h"

void mcp_lines_init(struct mcp_lines *l, size_t max)
{
	*l = (struct mcp_lines){.looked = 0};
	buf_init(&l->b, max + 1); /* and its newline */
}

void mcp_lines_free(struct mcp_lines *l)
{
	buf_free(&l->b);
}

static int no_line(struct mcp_lines *l)
{
	bool full = buf_room(&l->b) == 0;

	l->looked = l->b.len;
	if (!l->skipping && !full)
		return 0;
	buf_clear(&l->b);
	l->looked = 0;
	if (l->skipping)
		return 0;
	l->skipping = true;
	return -EMSGSIZE;
}

int mcp_lines_next(struct mcp_lines *l, const uint8_t **line, size_t *n)
{
	for (;;) {
		const uint8_t *start = buf_head(&l->b);
		const uint8_t *end = NULL;
		bool skipped = l->skipping;

		if (l->b.len > l->looked)
			end = memchr(start + l->looked, '\n', l->b.len - l->looked);
		if (!end)
			return no_line(l);
		*line = start;
		*n = (size_t)(end - start);
		l->looked = 0;
		l->skipping = false;
		buf_consume(&l->b, *n + 1); /* the bytes stay where they are until more are read */
		if (!skipped)
			return 1;
	}
}
