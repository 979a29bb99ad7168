/* api_box: the Box object of the HTTP interface, and what the files about boxes share. */
#ifndef SBXD_SUPERVISOR_API_BOX_H
#define SBXD_SUPERVISOR_API_BOX_H

#include "supervisor/pool.h"
#include "wire/json.h"

#define API_BOX_MAX 16384U /* bytes of one Box */

struct client;
struct sbxd;

/* Writes the members of box b, as a client of uid `viewer` may see it, into the object that is open
 * in j. */
void api_put_box(struct json_out *j, const struct sbxd *s, uid_t viewer, const struct pool_box *b);

/* Answers 200 with box b. */
void api_reply_box(const struct sbxd *s, struct client *c, const struct pool_box *b);

/* The box that the request names. NULL: there is none that c may know of, and c was told so. */
const struct pool_box *api_find_box(const struct sbxd *s, struct client *c, const char *id);

/* Tells c that there is no box of that id. */
void api_no_box(struct client *c, const char *id);

/* A lease id as text and back. 0, or -EINVAL when it is none. */
#define API_LEASE_LEN 17
void api_format_lease(uint64_t id, char out[API_LEASE_LEN]);
int api_parse_lease(const char *text, uint64_t *id);

#endif
