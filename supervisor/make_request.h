/*
 * make_request: the body of POST /v1/boxes (BoxLite's CreateBoxRequest), checked. What it asks for
 * and cannot be had is refused by name, unless it means the same as not asking.
 */
#ifndef SBXD_SUPERVISOR_MAKE_REQUEST_H
#define SBXD_SUPERVISOR_MAKE_REQUEST_H

#include <jansson.h>
#include <stdint.h>

#include "lib/err.h"
#include "supervisor/config.h"
#include "wire/api_error.h"

/* What a box may be asked for; GET /v1/config says how much at most. */
#define MAKE_CPUS_MAX 32 /* BoxLite's, as the next */
#define MAKE_MEMORY_MIB_MIN 128
#define MAKE_MEMORY_MIB_MAX CONFIG_MEMORY_MIB_MAX
#define MAKE_DISK_GB_MAX (CONFIG_DISK_MIB_MAX / 1024U)

/* Texts and env lie in the parsed body. 0 and NULL: not said. */
struct make_request {
	const char *name;
	const char *image;
	int64_t cpus;
	int64_t memory_mib;
	int64_t disk_gb;
	const char *working_dir;
	const char *user;
	json_t *env; /* names and values are sound */
};

/* 0, or -EINVAL with *e and *err. */
int make_request_take(json_t *body, struct make_request *out, enum api_error *e, struct err *err);

#endif
