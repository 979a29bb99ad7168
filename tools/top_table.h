/*
 * top_table: the shared table that is looked at: finding it, noticing that it was replaced or cut
 * off, and who supervises it.
 */
#ifndef SBXD_TOOLS_TOP_TABLE_H
#define SBXD_TOOLS_TOP_TABLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"
#include "tools/top_model.h"

#define TOP_TABLE_NAMES 2 /* our own, and root's */

struct top_table {
	char name[TOP_TABLE_NAMES][64];
	size_t names;
	struct reader reader; /* valid while attached */
	bool attached;
	bool named; /* and its name still means it */
	dev_t device;
	ino_t inode;

	int pidfd; /* of its supervisor, readable when that ends; -1 none */
	int32_t pid;
	uint64_t start;

	char trouble[160]; /* what is wrong with the table; "" nothing is */
};

/* Where tables of that instance (a valid name; NULL: the default one) are. Attaches to nothing. */
void top_table_init(struct top_table *t, const char *instance);
void top_table_close(struct top_table *t);

/*
 * Attaches to the table, or to the one that has taken its place, which the model is then reset to.
 * 0: there is one, maybe the old one; else -errno with *err, and `trouble` says it in short.
 */
int top_table_attach(struct top_table *t, struct top_model *m, struct err *err);

/*
 * Takes one snapshot of the table in a file (NULL: of the one that stands under the name), frozen
 * at the last moment that it tells of. Attaches to nothing. 0 or -errno with *err.
 */
int top_table_load(
    const struct top_table *t, const char *path, struct top_model *m, struct err *err);

/*
 * Takes a snapshot. A table that is cut off while it is read is let go, with the snapshot before
 * left as it was. 0, -ENOTCONN when there is none, -EBUSY when it was cut off.
 */
int top_table_look(struct top_table *t, struct top_model *m, uint64_t now);

/* Is there anything else under its name by now? */
bool top_table_replaced(const struct top_table *t);

/* Is a new snapshot worth while before it is due: another table, another supervisor, or it fares
 * otherwise than the model shows? Cheap. */
bool top_table_stirs(const struct top_table *t, const struct top_model *m, uint64_t now);

#endif
