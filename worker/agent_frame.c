/*
 * agent_frame: what each frame of the guest means that is not data. sbx-worker. If we die here the
 * guest sees the end of its stream, as in agent_link.c.
 */
#include <errno.h>
#include <string.h>

#include "worker/agent_link_int.h"

/* One whole frame that is not data. */
struct frame {
	struct agent_link *l;
	struct agent_chan *c; /* NULL: channel 0, or one that is not open */
	const struct agent_head *head;
	const uint8_t *payload;
};

typedef int frame_fn(const struct frame *f);

static int frame_hello(const struct frame *f)
{
	struct agent_hello h;

	if (f->l->greeted || f->head->channel != 0 || f->head->size != sizeof(h))
		return -EBADMSG;
	memcpy(&h, f->payload, sizeof(h));
	f->l->greeted = true;
	f->l->ops->hello(f->l->ctx, &h);
	return 0;
}

static int frame_pong(const struct frame *f)
{
	if (f->head->channel != 0 || f->l->unanswered == 0)
		return -EBADMSG;
	f->l->unanswered--;
	f->l->ops->pong(f->l->ctx, f->payload, f->head->size);
	return 0;
}

static int frame_started(const struct frame *f)
{
	if (!f->c || !f->c->ops->started)
		return 0;
	return f->c->ops->started(f->c, f->payload, f->head->size);
}

static int frame_credit(const struct frame *f)
{
	uint32_t n;

	if (f->head->size != sizeof(n) || f->head->arg != AGENT_STDIN)
		return -EBADMSG;
	memcpy(&n, f->payload, sizeof(n));
	return f->c ? chan_add_credit(f->c, n) : 0;
}

static int frame_end(const struct frame *f)
{
	const struct agent_chan_ops *ops;
	struct agent_end end;

	if (f->head->size != sizeof(end))
		return -EBADMSG;
	if (!f->c)
		return 0;
	memcpy(&end, f->payload, sizeof(end));
	ops = f->c->ops;
	agent_chan_drop(f->c);
	ops->end(f->c, &end);
	return 0;
}

static int frame_error(const struct frame *f)
{
	char text[AGENT_ERROR_TEXT + 1];
	const struct agent_chan_ops *ops;
	struct agent_error e;
	size_t n;

	if (f->head->size < sizeof(e) || f->head->size - sizeof(e) > AGENT_ERROR_TEXT)
		return -EBADMSG;
	if (!f->c)
		return 0;
	memcpy(&e, f->payload, sizeof(e));
	n = f->head->size - sizeof(e);
	memcpy(text, f->payload + sizeof(e), n);
	text[n] = '\0';
	ops = f->c->ops;
	agent_chan_drop(f->c);
	ops->error(f->c, e.code, text);
	return 0;
}

static frame_fn *const frame_fns[] = {
    [AGENT_CREDIT] = frame_credit,
    [AGENT_HELLO] = frame_hello,
    [AGENT_PONG] = frame_pong,
    [AGENT_STARTED] = frame_started,
    [AGENT_END] = frame_end,
    [AGENT_ERROR] = frame_error,
};

void link_dispatch(struct agent_link *l, const struct agent_head *h, const uint8_t *payload)
{
	struct frame f = {.l = l, .head = h, .payload = payload};

	if (h->type >= sizeof(frame_fns) / sizeof(frame_fns[0]) || !frame_fns[h->type] ||
	    h->flags != 0) {
		link_break(l, EBADMSG, "guest sent a frame of an unknown type");
		return;
	}
	if (h->channel != 0)
		f.c = link_find_chan(l, h->channel);
	if (f.c)
		f.c->moves++;
	if (frame_fns[h->type](&f) < 0)
		link_break(l, EBADMSG, "guest sent a malformed frame");
}
