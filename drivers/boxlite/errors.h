/*
 * errors: what BoxLite's error codes mean to us.
 */
#ifndef SBXD_DRIVERS_BOXLITE_ERRORS_H
#define SBXD_DRIVERS_BOXLITE_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#define BLX_OK 0
#define BLX_INTERNAL 1
#define BLX_NOT_FOUND 2
#define BLX_ALREADY_EXISTS 3
#define BLX_UNSUPPORTED 13
#define BLX_CODES 22 /* 0 .. 21; a later version may have more */

struct blx_meaning {
	const char *name; /* BoxLite's */
	int error;	  /* errno value */
	bool gone;	  /* the box that was asked for is there no more: it is invalidated */
	bool again;	  /* the same call may do better a moment later */
};

/* Of a code that is not known: an I/O error, neither gone nor to be tried again. */
const struct blx_meaning *blx_meaning(int code);

/* "NotFound: MESSAGE", for people; cut to size, control characters made spaces. message may be
 * NULL. */
void blx_error_text(int code, const char *message, char *out, size_t size);

#endif
