/* files: GET fs/read and PUT fs/write. sbx-worker. */
#ifndef SBXD_WORKER_FILES_H
#define SBXD_WORKER_FILES_H

#include <limits.h>
#include <stdint.h>

#include "wire/api_error.h"

struct conn;
struct http_head;

/* Routes' begin(). */
void files_begin_read(struct conn *c, const struct http_head *h);
void files_begin_write(struct conn *c, const struct http_head *h);

/*
 * The `path` of a query into out; bytes that are no UTF-8 survive. Length, or -EINVAL after
 * answering the client.
 */
int files_take_path(struct conn *c, const struct http_head *h, char out[PATH_MAX]);

/*
 * A number of a query, in base 8 or 10. 1: *out is set; 0: not there; -EINVAL after answering the
 * client.
 */
int files_take_number(struct conn *c, const struct http_head *h, const char *key, int base,
    uint64_t least, uint64_t most, uint64_t *out);

/* Answers the client whose operation agent_chan_open() refused with rc. */
void files_refuse(struct conn *c, int rc);

/* The guest's error code as ours. */
enum api_error files_error(uint32_t code);

#endif
