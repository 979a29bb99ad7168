/*
 * http_feed: for tests of the HTTP reader: feeds a stream cut into pieces of every size and keeps
 * what the events told.
 */
#ifndef SBXD_TESTS_HTTP_FEED_H
#define SBXD_TESTS_HTTP_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/http.h"

#define BODY_MAX 4096

/* One message as its events told it. */
struct seen {
	struct http_in *in;
	struct err err;
	char body[BODY_MAX];
	size_t body_len;
	size_t heads;
	size_t head_used; /* bytes taken when the head was done */
	size_t used;
	int last; /* the event or error it stopped at */
};

/* Feeds at most `step` bytes at a time, until the message ends, fails or the bytes are used up. */
static inline void feed(
    struct seen *s, enum http_kind kind, const char *data, size_t n, size_t step)
{
	*s = (struct seen){.in = http_in_create(kind)};
	assert_non_null(s->in);
	for (;;) {
		size_t left = n - s->used;
		size_t give = left < step ? left : step;
		/* Memory of exactly that size, so that a sanitizer sees a read past it. */
		uint8_t *copy = malloc(give + 1);
		const uint8_t *body = NULL;
		size_t body_len = 0;
		size_t used = 99999;

		assert_non_null(copy);
		memcpy(copy, data + s->used, give);
		s->last = http_in_feed(s->in, copy, give, &used, &body, &body_len, &s->err);
		assert_true(used <= give);
		s->used += used;
		if (s->last == HTTP_HEAD_DONE) {
			s->heads++;
			s->head_used = s->used;
		}
		if (s->last == HTTP_BODY) {
			assert_true(body_len > 0 && s->body_len + body_len <= BODY_MAX);
			assert_true(body >= copy && body + body_len <= copy + give);
			memcpy(s->body + s->body_len, body, body_len);
			s->body_len += body_len;
		}
		free(copy);
		if (s->last < 0 || s->last == HTTP_END)
			return;
		if (s->last == HTTP_MORE) {
			assert_int_equal(used, give);
			if (s->used == n)
				return;
		}
	}
}

static inline void done(struct seen *s)
{
	http_in_free(s->in);
	s->in = NULL;
}

static const size_t steps[] = {1, 2, 3, 7, 64, 1u << 20};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* Every way of cutting it must be refused, with a text that holds `why`. */
static inline void refused_n(
    enum http_kind kind, const char *data, size_t n, int code, const char *why)
{
	struct seen s;

	for (size_t i = 0; i < STEPS; i++) {
		feed(&s, kind, data, n, steps[i]);
		if (s.last != code || !strstr(s.err.text, why))
			fail_msg("%.60s...: got %d \"%s\", not %d \"%s\"", data, s.last, s.err.text,
			    code, why);
		assert_int_equal(s.err.code, -code);
		done(&s);
	}
}

#endif
