/*
 * http_fields: what the header lines of a head mean, and which heads are refused. Internal to
 * wire/.
 */
#ifndef SBXD_WIRE_HTTP_FIELDS_H
#define SBXD_WIRE_HTTP_FIELDS_H

#include "lib/err.h"
#include "wire/http.h"
#include "wire/http_engine.h"

/*
 * Fills *head from the pieces of `text`, into which NULs are written to end them; *head points into
 * it. 0 or -EBADMSG with *err.
 */
int http_fields_read(enum http_kind kind, char *text, const struct http_raw *raw,
    struct http_head *head, struct err *err);

#endif
