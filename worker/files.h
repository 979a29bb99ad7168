/* files: requests below fs/. sbx-worker. */
#ifndef SBXD_WORKER_FILES_H
#define SBXD_WORKER_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/api_error.h"

#define FILES_BODY_MAX (64U * 1024U) /* of a request that is JSON */
#define FILES_PATTERN_MAX 4096U
#define FILES_RESULTS_MAX 10000U /* matches that may be asked for */
#define FILES_ENTRIES_MAX 100000U
#define FILES_DEPTH_MAX 2048U

struct conn;
struct http_head;

/* Routes' begin(). */
void files_begin_read(struct conn *c, const struct http_head *h);
void files_begin_write(struct conn *c, const struct http_head *h);
void files_begin_stat(struct conn *c, const struct http_head *h);
void files_begin_list(struct conn *c, const struct http_head *h);
void files_begin_glob(struct conn *c, const struct http_head *h);
void files_begin_grep(struct conn *c, const struct http_head *h);
void files_begin_mkdir(struct conn *c, const struct http_head *h);
void files_begin_remove(struct conn *c, const struct http_head *h);
void files_begin_rename(struct conn *c, const struct http_head *h);

/* files_remove.c: with all that is in it. */
void files_remove_tree(struct conn *c, const char *path);

/*
 * The `path` of a query into out; bytes that are no UTF-8 survive. Length, or -EINVAL after
 * answering the client.
 */
int files_take_path(struct conn *c, const struct http_head *h, char out[PATH_MAX]);

/* The same, for what may be a directory: slashes at its end are dropped. */
int files_take_directory(struct conn *c, const struct http_head *h, char out[PATH_MAX]);

/* Whether `path` can be one; slashes at its end are dropped. NULL, or what is wrong with it. */
const char *files_check_path(char *path);

/* A text of a query, which is not empty: 1: it is in out; 0: not there; -EINVAL after answering. */
int files_take_text(struct conn *c, const struct http_head *h, const char *key, char *out,
    size_t size, enum api_error e);

/* A flag of a query: 1, 0, true or false. As files_take_number(). */
int files_take_flag(struct conn *c, const struct http_head *h, const char *key, bool *out);

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
