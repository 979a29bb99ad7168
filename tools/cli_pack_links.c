/* cli_pack_links: files with more names than one. sbxctl; its memory dies with it. */
#include "tools/cli_pack_links.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct seen {
	dev_t dev;
	ino_t ino;
	char *name; /* owned */
};

static int compare(const void *a, const void *b)
{
	const struct seen *x = a;
	const struct seen *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static void free_seen(void *node)
{
	struct seen *s = node;

	free(s->name);
	free(s);
}

void cli_pack_links_free(struct cli_pack_links *l)
{
	tdestroy(l->tree, free_seen);
	l->tree = NULL;
}

const char *cli_pack_links_find(struct cli_pack_links *l, const struct stat *st, const char *name)
{
	struct seen *s;
	struct seen **found;

	if (!S_ISREG(st->st_mode) || st->st_nlink < 2)
		return "";
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct seen){st->st_dev, st->st_ino, strdup(name)};
	found = s->name ? tsearch(s, &l->tree, compare) : NULL;
	if (found && *found == s)
		return "";
	free_seen(s);
	return found ? (*found)->name : NULL;
}
