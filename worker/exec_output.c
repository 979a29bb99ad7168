/*
 * exec_output: the output of an execution. sbx-worker. If we die here the box dies with us, and its
 * clients see their connections end.
 */
#include "worker/exec_output.h"

#include "lib/utf8.h"

#define OUTPUT_PACK_ABOVE 4096U		      /* less is not worth a copy */
#define OUTPUT_MAX (AGENT_WINDOW + EXEC_KEEP) /* a window that nobody takes, after a rewind */

void exec_output_init(struct exec_output *o)
{
	*o = (struct exec_output){.sent = 0};
	buf_init(&o->kept, OUTPUT_MAX);
}

void exec_output_free(struct exec_output *o)
{
	buf_free(&o->kept);
	o->sent = 0;
}

static void output_drop(struct exec_output *o, size_t n)
{
	buf_consume(&o->kept, n);
	o->sent -= n < o->sent ? n : o->sent;
	o->cut |= n > 0;
}

/* Of what the client has, only so much stays that EXEC_KEEP bytes are kept. */
static void output_trim(struct exec_output *o)
{
	size_t more = o->kept.len > EXEC_KEEP ? o->kept.len - EXEC_KEEP : 0;

	output_drop(o, more < o->sent ? more : o->sent);
}

int exec_output_add(struct exec_output *o, const uint8_t *p, size_t n)
{
	int rc = buf_append(&o->kept, p, n);

	if (rc < 0)
		return rc;
	o->owed += n;
	output_trim(o);
	return 0;
}

/* How many of the last bytes are the beginning of a character. */
static size_t output_open_tail(const uint8_t *p, size_t n)
{
	bool incomplete = false;

	for (size_t k = 1; k <= 3 && k <= n; k++) {
		if ((p[n - k] & 0xc0) == 0x80)
			continue;				    /* not its first byte */
		(void)utf8_valid_prefix(p + n - k, k, &incomplete); /* none of it, or all */
		return incomplete ? k : 0;
	}
	return 0;
}

size_t exec_output_next(const struct exec_output *o, bool all, const uint8_t **p)
{
	size_t left = exec_output_left(o);
	size_t n = left < EXEC_PIECE ? left : EXEC_PIECE;

	if (n == 0)
		return 0;
	*p = buf_head(&o->kept) + o->sent;
	if (all && n == left)
		return n;
	return n - output_open_tail(*p, n);
}

size_t exec_output_sent(struct exec_output *o, size_t n)
{
	size_t credit = n < o->owed ? n : o->owed;

	o->sent += n;
	o->owed -= credit;
	output_trim(o);
	return credit;
}

size_t exec_output_yield(struct exec_output *o)
{
	size_t credit = o->owed;

	o->owed = 0;
	o->extra += credit;
	o->kept.max += credit;
	return credit;
}

size_t exec_output_settle(struct exec_output *o)
{
	size_t extra = o->extra;

	if (extra == 0 || exec_output_left(o) > EXEC_KEEP)
		return 0;
	o->extra = 0;
	o->kept.max = OUTPUT_MAX;
	exec_output_pack(o);
	return extra;
}

/* What is left of a character whose beginning was dropped is of no use. */
static void output_drop_torn(struct exec_output *o)
{
	size_t n = 0;

	while (o->cut && n < 3 && n < o->kept.len && (buf_head(&o->kept)[n] & 0xc0) == 0x80)
		n++;
	output_drop(o, n);
}

size_t exec_output_leave(struct exec_output *o)
{
	size_t left = exec_output_left(o);
	size_t credit = o->owed;

	if (o->kept.len > EXEC_KEEP) {
		output_drop(o, o->kept.len - EXEC_KEEP);
		if (exec_output_left(o) < left)
			output_drop_torn(o);
	}
	o->lost += left - exec_output_left(o);
	o->owed = 0;
	return credit;
}

void exec_output_rewind(struct exec_output *o)
{
	output_drop_torn(o);
	o->sent = 0;
}

void exec_output_pack(struct exec_output *o)
{
	struct buf small;

	if (o->kept.len == 0)
		buf_free(&o->kept);
	if (o->kept.cap < o->kept.len + OUTPUT_PACK_ABOVE)
		return;
	buf_init(&small, o->kept.max);
	if (buf_append(&small, buf_head(&o->kept), o->kept.len) < 0) {
		buf_free(&small); /* no memory to save memory: it stays as it is */
		return;
	}
	buf_free(&o->kept);
	o->kept = small;
}
