/* perform_int: the actions that have a file of their own, as perform.c calls them. */
#ifndef SBXD_SUPERVISOR_PERFORM_INT_H
#define SBXD_SUPERVISOR_PERFORM_INT_H

struct pool_action;
struct sbxd;

/* POOL_CLEAN: has the janitor prove a box gone, then makes its slot usable again; pool_cleaned()
 * follows. */
void perform_clean(struct sbxd *s, const struct pool_action *a);

#endif
