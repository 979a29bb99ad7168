/* api_box: the Box object of the HTTP interface. */
#ifndef SBXD_SUPERVISOR_API_BOX_H
#define SBXD_SUPERVISOR_API_BOX_H

#include "supervisor/pool.h"
#include "wire/json.h"

struct client;
struct sbxd;

/* Writes the members of box b, as client c may see it, into the object that is open in j. */
void api_put_box(
    struct json_out *j, const struct sbxd *s, const struct client *c, const struct pool_box *b);

/* A lease id as text and back. 0, or -EINVAL when it is none. */
#define API_LEASE_LEN 17
void api_format_lease(uint64_t id, char out[API_LEASE_LEN]);
int api_parse_lease(const char *text, uint64_t *id);

#endif
