/* files_path: what a request says of names: in its query, or in a JSON body. sbx-worker only. */
#ifndef SBXD_WORKER_FILES_PATH_H
#define SBXD_WORKER_FILES_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "wire/api_error.h"

struct conn;
struct http_head;

/* What can be said. */
struct path_form {
	const char *from;      /* what the path is called */
	const char *to;	       /* the second one; NULL: there is none */
	const char *flag_name; /* what can be asked for; NULL: nothing */
	uint32_t flag;	       /* of AGENT_PATH_* */
	bool mode;	       /* permission bits can be given */
};

struct path_request {
	uint32_t flags; /* AGENT_PATH_* */
	uint32_t mode;
	char from[PATH_MAX];
	char to[PATH_MAX];
};

/* Adds what the query says. 0, or -EINVAL after answering. */
int path_take_query(
    struct path_request *r, const struct path_form *f, struct conn *c, const struct http_head *h);

/* Adds what a body of n bytes says; without one, nothing. 0, or -EINVAL with *e and *err. */
int path_take_body(struct path_request *r, const struct path_form *f, const uint8_t *body, size_t n,
    enum api_error *e, struct err *err);

/* Whether all is there that is needed. 0, or -EINVAL with *err. */
int path_check(struct path_request *r, const struct path_form *f, struct err *err);

#endif
