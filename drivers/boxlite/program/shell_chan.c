/* shell_chan: one operation of the worker's, from its request to its end. sbx-boxlite; the loop. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/shell.h"

static struct shell_chan *chan_find(struct shell *s, uint32_t id)
{
	struct shell_chan *c = s->chans[id % AGENT_CHANNELS_MAX];

	return c && c->id == id ? c : NULL;
}

struct shell_chan *shell_chan_by_ticket(struct shell *s, uint64_t ticket)
{
	for (size_t i = 0; i < AGENT_CHANNELS_MAX; i++) {
		if (s->chans[i] && s->chans[i]->ticket == ticket)
			return s->chans[i];
	}
	return NULL;
}

static struct shell_chan *chan_new(struct shell *s, const struct agent_head *h)
{
	struct shell_chan *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->s = s;
	c->id = h->channel;
	c->type = h->type;
	buf_init(&c->request, AGENT_REQUEST_MAX);
	buf_init(&c->text, SHELL_TEXT_MAX);
	buf_init(&c->input, SHELL_INPUT_MAX);
	buf_init(&c->chunk, AGENT_PAYLOAD_MAX);
	for (size_t i = 0; i < AGENT_STREAMS; i++) {
		buf_init(&c->output[i], 2U * INBOX_OUTPUT_MAX);
		c->credit[i] = AGENT_WINDOW;
	}
	s->chans[h->channel % AGENT_CHANNELS_MAX] = c;
	return c;
}

static void chan_free(struct shell_chan *c)
{
	c->s->chans[c->id % AGENT_CHANNELS_MAX] = NULL;
	if (c->passing)
		inbox_passed(c->s->p->inbox, c->passing);
	buf_free(&c->request);
	buf_free(&c->text);
	buf_free(&c->input);
	buf_free(&c->chunk);
	for (size_t i = 0; i < AGENT_STREAMS; i++)
		buf_free(&c->output[i]);
	free(c->exec);
	free(c->paths);
	free(c);
}

/* ---- the end ---- */

static void chan_end(struct shell_chan *c, const struct agent_end *end)
{
	c->ended = true;
	shell_send(c->s, AGENT_END, 0, c->id, end, sizeof(*end));
	shell_run_drop(c);
	shell_chan_settle(c);
}

void shell_chan_fail(struct shell_chan *c, enum agent_code code, const char *text)
{
	struct {
		struct agent_error error;
		char text[AGENT_ERROR_TEXT];
	} out = {.error.code = code};
	size_t n = strnlen(text, sizeof(out.text));

	memcpy(out.text, text, n);
	c->ended = true;
	shell_send(c->s, AGENT_ERROR, 0, c->id, &out, sizeof(out.error) + n);
	shell_run_drop(c);
	shell_chan_settle(c);
}

/* BoxLite says the number of a signal as a negative status. */
static void chan_say_end(struct shell_chan *c)
{
	struct agent_end end = {.exit_code = c->status};

	if (c->closing) {
		end.exit_code = -1;
		end.signal = SIGKILL;
		end.flags = AGENT_END_KILLED;
	} else if (c->script && c->status != 0) {
		shell_file_failed(c);
		return;
	} else if (c->script && c->script->done(c) < 0) {
		shell_chan_fail(c, AGENT_E_IO, "what the box's programs say is not understood");
		return;
	} else if (c->status < 0) {
		end.exit_code = -1;
		end.signal = -c->status;
	}
	end.bytes = c->bytes;
	chan_end(c, &end);
}

static bool chan_is_empty(const struct shell_chan *c)
{
	return c->output[AGENT_STDOUT].len == 0 && (c->script || c->output[AGENT_STDERR].len == 0);
}

static void chan_send(struct shell_chan *c, enum agent_stream stream)
{
	struct buf *b = &c->output[stream];

	while (b->len && c->credit[stream] && shell_has_room(c->s) && !c->ended) {
		size_t n = b->len < AGENT_PAYLOAD_MAX ? b->len : AGENT_PAYLOAD_MAX;

		if (n > c->credit[stream])
			n = (size_t)c->credit[stream];
		shell_send(c->s, AGENT_DATA, (uint8_t)stream, c->id, buf_head(b), n);
		c->credit[stream] -= n;
		buf_consume(b, n);
	}
}

void shell_chan_pump(struct shell_chan *c)
{
	chan_send(c, AGENT_STDOUT);
	if (!c->script) /* what its line complains of is for the error */
		chan_send(c, AGENT_STDERR);
	if (chan_is_empty(c) && c->passing) {
		inbox_passed(c->s->p->inbox, c->passing);
		c->passing = 0;
	}
	if (c->exited && !c->ended && (chan_is_empty(c) || c->closing))
		chan_say_end(c);
}

void shell_chan_settle(struct shell_chan *c)
{
	if (c->ended && !c->starting && !c->writing && !c->dropping && !c->x)
		chan_free(c);
}

/* ---- frames ---- */

static int chan_open(struct shell_chan *c)
{
	const uint8_t *request = buf_head(&c->request);
	size_t n = c->request.len;
	enum agent_code code = AGENT_OK;

	c->opened = true;
	if (c->type == AGENT_EXEC) {
		if (agent_parse_exec(request, n, &c->exec) < 0)
			return -EBADMSG;
		if (c->exec->head.flags & AGENT_EXEC_NARROW)
			c->credit[AGENT_STDOUT] = c->credit[AGENT_STDERR] = AGENT_WINDOW_NARROW;
		if (c->exec->head.flags & AGENT_EXEC_HELPER) {
			shell_chan_fail(c, AGENT_E_EXEC,
			    "sbx-files is not in this box, which is served by its own shell");
			return 0;
		}
	} else {
		code = shell_file_open(c, request, n);
	}
	if (code == AGENT_OK)
		shell_run_start(c);
	else
		shell_chan_fail(c, code, "the request makes no sense");
	return 0;
}

static int chan_request(struct shell *s, const struct agent_head *h, const uint8_t *payload)
{
	struct shell_chan *c = chan_find(s, h->channel);

	if (!c && s->chans[h->channel % AGENT_CHANNELS_MAX])
		return -EBADMSG; /* so many at once the worker has not */
	if (!c)
		c = chan_new(s, h);
	if (!c || c->opened || c->type != h->type || buf_append(&c->request, payload, h->size) < 0)
		return -EBADMSG;
	return h->flags & AGENT_F_MORE ? 0 : chan_open(c);
}

static int chan_data(struct shell_chan *c, const struct agent_head *h, const uint8_t *payload)
{
	if (h->arg != AGENT_STDIN || c->input_end || buf_append(&c->input, payload, h->size) < 0)
		return -EBADMSG;
	shell_run_input(c);
	return 0;
}

static int chan_credit(struct shell_chan *c, const struct agent_head *h, const uint8_t *payload)
{
	uint32_t more;

	if (h->arg >= AGENT_STREAMS || h->size != sizeof(more))
		return -EBADMSG;
	memcpy(&more, payload, sizeof(more));
	c->credit[h->arg] += more;
	shell_chan_pump(c);
	return 0;
}

static int chan_close(struct shell_chan *c)
{
	if (!c->closing && !c->ended) {
		c->closing = true;
		shell_run_drop(c);
	}
	return 0;
}

static int chan_numbers(struct shell_chan *c, const struct agent_head *h, const uint8_t *payload)
{
	uint32_t sig;
	uint16_t size[2];

	if (h->type == AGENT_SIGNAL && h->size == sizeof(sig)) {
		memcpy(&sig, payload, sizeof(sig));
		shell_run_signal(c, (int)sig);
	} else if (h->type == AGENT_RESIZE && h->size == sizeof(size)) {
		memcpy(size, payload, sizeof(size));
		shell_run_resize(c, size[0], size[1]);
	} else {
		return -EBADMSG;
	}
	return 0;
}

int shell_chan_frame(struct shell *s, const struct agent_head *h, const uint8_t *payload)
{
	struct shell_chan *c;

	if (h->type == AGENT_EXEC || h->type == AGENT_READ || h->type == AGENT_WRITE ||
	    h->type == AGENT_PATH)
		return chan_request(s, h, payload);
	c = chan_find(s, h->channel);
	if (!c || c->ended)
		return 0; /* it crossed the end on the wire */
	if (h->type == AGENT_DATA)
		return chan_data(c, h, payload);
	if (h->type == AGENT_CREDIT)
		return chan_credit(c, h, payload);
	if (h->type == AGENT_CLOSE)
		return chan_close(c);
	if (h->type == AGENT_EOF) {
		c->input_end = true;
		shell_run_input(c);
		return 0;
	}
	return chan_numbers(c, h, payload);
}
