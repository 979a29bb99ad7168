/*
 * progress_stream: an answer that tells how far something is, one JSON object a line, and last what
 * came of it. Runs in sbxd.
 */
#ifndef SBXD_SUPERVISOR_PROGRESS_STREAM_H
#define SBXD_SUPERVISOR_PROGRESS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/api_error.h"
#include "wire/control.h"
#include "wire/json.h"

struct client;
struct progress_stream;
struct sbxd;

/* gone: its client has left, or was told all; ctx names it, as progress_stream_ctx(). NULL without
 * memory. */
struct progress_stream *progress_stream_new(
    struct sbxd *s, void (*gone)(struct sbxd *s, uint64_t ctx));

/* A number that is its own, as hooks want one, and back. */
uint64_t progress_stream_ctx(const struct progress_stream *p);
struct progress_stream *progress_stream_of(uint64_t ctx);

/* It was never begun: nobody is told. */
void progress_stream_free(struct progress_stream *p);

/* Answers c so from now on; first with *now, unless that is NULL. False: p is gone already. */
bool progress_stream_begin(
    struct progress_stream *p, struct client *c, const struct ctl_progress *now);

/* It is so far. */
void progress_stream_tell(struct progress_stream *p, const struct ctl_progress *progress);

/* What came of it: the members of an object are to be written there; then progress_stream_end(). */
struct json_out *progress_stream_last(struct progress_stream *p);
void progress_stream_end(struct progress_stream *p);

/* That it failed is what came of it. */
void progress_stream_fail(struct progress_stream *p, enum api_error error, const char *text);

#endif
