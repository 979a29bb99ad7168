/* cli_session: messages of an attached client, both ways. sbxctl; what is in its buffers is lost
 * with it. */
#include "tools/cli_session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli_view.h"
#include "tools/ws_client.h"
#include "wire/json.h"

#define READ_SIZE 65536U

static int order(struct cli_session *a, const char *type, int columns, int rows)
{
	struct json_out j;
	struct buf text;
	int rc;

	buf_init(&text, 256);
	json_out_init(&j, &text);
	json_object_begin(&j, NULL);
	json_put_string(&j, "type", type);
	if (columns) {
		json_put_int(&j, "cols", columns);
		json_put_int(&j, "rows", rows);
	}
	json_object_end(&j);
	rc = json_out_error(&j);
	if (rc == 0)
		rc = ws_client_put(&a->to, WS_TEXT, buf_head(&text), text.len);
	buf_free(&text);
	return rc;
}

int cli_session_tell_size(struct cli_session *a)
{
	int columns;
	int rows;

	return a->tty && cli_terminal_size(&columns, &rows) ? order(a, "resize", columns, rows) : 0;
}

int cli_session_take_stdin(struct cli_session *a)
{
	uint8_t bytes[READ_SIZE];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		return ws_client_put(&a->to, WS_BINARY, bytes, (size_t)n);
	a->stdin_open = false; /* its end, or a terminal that is gone */
	return order(a, "stdin_eof", 0, 0);
}

/* ---- from the service ---- */

static int status_of(const json_t *o)
{
	const json_t *code = json_object_get(o, "exit_code");
	json_int_t n = json_integer_value(code);

	if (!json_is_integer(code) || n < -127 || n > 255)
		return CLI_FAILED;
	if (!strcmp(cli_text_at(o, "status"), "timed_out"))
		return CLI_TIMEOUT;
	return n < 0 ? CLI_SIGNAL + (int)-n : (int)n;
}

static int take_text(struct cli_session *a, const uint8_t *text, size_t n, struct err *err)
{
	json_t *o = json_parse_object(text, n, err);
	const char *type = cli_text_at(o, "type");

	if (!o)
		return -EBADMSG;
	if (!strcmp(type, "exit"))
		a->status = status_of(o);
	else if (!strcmp(type, "error"))
		(void)snprintf(a->error, sizeof(a->error), "%s", cli_text_at(o, "message"));
	json_decref(o); /* other types are newer than we are */
	return 0;
}

static int take_frame(struct cli_session *a, const struct ws_client_frame *f, struct err *err)
{
	enum ws_code code;
	unsigned int stream;

	switch (f->opcode) {
	case WS_BINARY:
		stream = f->n > 0 ? f->payload[0] : 0;
		if (stream != 1 && stream != 2)
			return err_set(err, EBADMSG, "output of an unknown stream");
		if (a->closed_out)
			return 0;
		return buf_append(&a->out[stream - 1], f->payload + 1, f->n - 1);
	case WS_TEXT:
		return take_text(a, f->payload, f->n, err);
	case WS_PING:
		return ws_client_put(&a->to, WS_PONG, f->payload, f->n);
	case WS_CLOSE:
		if (ws_read_close(f->payload, f->n, &code) < 0)
			return err_set(err, EBADMSG, "a Close that makes no sense");
		a->close_code = code;
		return ws_client_put(&a->to, WS_CLOSE, f->payload, f->n < 2 ? 0 : 2);
	case WS_PONG:
	case WS_CONTINUATION:
		return 0;
	}
	return 0;
}

int cli_session_take_frames(struct cli_session *a, struct err *err)
{
	struct ws_client_frame frame;
	size_t used = 0;
	int rc = 0;

	while (rc == 0 && a->close_code == CLI_SESSION_OPEN && a->out[0].len < CLI_SESSION_HIGH &&
	       a->out[1].len < CLI_SESSION_HIGH) {
		rc = ws_client_next(buf_head(&a->from), a->from.len, &used, &frame, err);
		if (rc <= 0)
			return rc;
		rc = take_frame(a, &frame, err);
		buf_consume(&a->from, used);
	}
	return rc;
}

int cli_session_receive(struct cli_session *a, struct err *err)
{
	ssize_t n = buf_recv(&a->from, a->sock, READ_SIZE);

	if (n == 0 || n == -ECONNRESET)
		a->lost = true;
	else if (n < 0 && n != -EAGAIN && n != -EINTR)
		return err_sys(err, (int)-n, "reading from the service");
	return 0;
}

/* What could not be sent any more is answered by what comes from there, or by its end. */
void cli_session_send(struct cli_session *a)
{
	ssize_t n = buf_send(&a->to, a->sock);

	if (n < 0 && n != -EAGAIN && n != -EINTR)
		buf_clear(&a->to);
}
