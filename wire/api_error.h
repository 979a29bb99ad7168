/*
 * api_error: every way a request can fail, as one table: HTTP status, BoxLite's type and code, and
 * our finer reason.
 */
#ifndef SBXD_WIRE_API_ERROR_H
#define SBXD_WIRE_API_ERROR_H

#include <stdint.h>

#include "lib/buf.h"

enum api_error {
	API_OK = 0,
	API_INVALID_ARGUMENT, /* 400 invalid_argument */
	API_INVALID_PATH,     /* 400 */
	API_IS_DIRECTORY,     /* 400 */
	API_NOT_A_DIRECTORY,  /* 400 */
	API_INVALID_PATTERN,  /* 400 */
	API_CROSS_DEVICE,     /* 400 invalid_argument: a rename to another file system */
	API_MALFORMED, /* 400 invalid_argument, reason malformed_request: not HTTP or not JSON */
	API_UNAUTHENTICATED,	/* 401 */
	API_PERMISSION_DENIED,	/* 403 */
	API_NOT_FOUND,		/* 404 */
	API_METHOD,		/* 405 unsupported, reason method_not_allowed */
	API_TIMEOUT,		/* 408 timeout */
	API_INVALID_STATE,	/* 409 invalid_state */
	API_ALREADY_EXISTS,	/* 409 already_exists */
	API_IDENTITY_COLLISION, /* 409 already_exists */
	API_SPEC_MISMATCH,	/* 409 invalid_state: an active box of another image */
	API_NOT_A_TTY,		/* 409 invalid_state */
	API_ATTACHED,		/* 409 invalid_state: an execution has one client at a time */
	API_NOT_EMPTY,		/* 409 invalid_state: a directory */
	API_BUSY,		/* 409 invalid_state: a file in use */
	API_BOX_DIED,		/* 410 stopped */
	API_WORKER_CRASHED,	/* 410 stopped */
	API_STALE_GENERATION,	/* 410 stopped */
	API_TOO_LARGE,		/* 413 invalid_argument */
	API_UPGRADE_REQUIRED,	/* 426 invalid_argument: the endpoint is a WebSocket */
	API_HEAD_TOO_LARGE,	/* 431 invalid_argument */
	API_EXECUTION_FAILED,	/* 422 execution_failed */
	API_IMAGE_PULL_FAILED,	/* 422 image_pull_failed */
	API_KEY_REUSED,		/* 422 invalid_argument: Idempotency-Key with another request */
	API_CAPACITY,		/* 429 resource_exhausted, reason capacity_exceeded */
	API_TOO_MANY,		/* 429 resource_exhausted, reason too_many_connections */
	API_EXECUTION_LIMIT,	/* 429 resource_exhausted, reason execution_limit */
	API_BOX_RESOURCES, /* 429 resource_exhausted, reason box_resources: pids or memory of the
			      box */
	API_INTERNAL,	   /* 500 internal */
	API_UNSUPPORTED,   /* 501 unsupported */
	API_BOOT_FAILED,   /* 502 engine_unavailable */
	API_SHUTTING_DOWN, /* 503 stopped */
	API_NO_SPACE,	   /* 507 storage_error */
	API_IO,		   /* 500 storage_error, reason io */
	API_ERRORS,
};

struct api_error_info {
	unsigned int status;
	const char *type;
	const char *code;
	const char *reason;
};

const struct api_error_info *api_error_info(enum api_error e);

/* The error whose reason is `name`; API_INTERNAL when there is none. */
enum api_error api_error_by_reason(const char *name);

/* Extra members of an error object; zero and NULL are left out. */
struct api_error_more {
	double retry_after_seconds;
	const char *request_id;
	const char *traceparent;
	const char *allow;	  /* the Allow header of a 405 */
	const char *authenticate; /* the WWW-Authenticate header of a 401 */
	const char *extra;	  /* further header lines, each ending in \r\n */
	int no_body;		  /* the answer to a HEAD, which has a length but no body */
	int has_pool;		  /* then active, warm and replicas are written */
	uint32_t active;
	uint32_t warm;
	uint32_t replicas;
};

/* Appends a whole HTTP response for the error, Retry-After included; `more` may be NULL. 0,
 * -ENOBUFS, -ENOMEM; then nothing is appended. */
int api_error_put(struct buf *out, enum api_error e, const char *message,
    const struct api_error_more *more, int keep_alive) __attribute__((warn_unused_result));

#endif
