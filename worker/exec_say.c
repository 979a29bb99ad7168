/* exec_say: the text messages that an attached client gets. sbx-worker; holds no state. */
#include "worker/exec_say.h"

#include <stdio.h>

#include "wire/json.h"
#include "worker/conn_ws.h"
#include "worker/exec.h"

#define SAY_MAX 2048U

static void say_text(struct conn_ws *w, struct buf *b, const struct json_out *j)
{
	/* Without memory the client learns it from what follows. */
	if (json_out_error(j) == 0)
		conn_ws_text(w, buf_head(b), b->len);
	buf_free(b);
}

void exec_say_error(struct conn_ws *w, const char *message)
{
	struct json_out j;
	struct buf b;

	buf_init(&b, SAY_MAX);
	json_out_init(&j, &b);
	json_object_begin(&j, NULL);
	json_put_string(&j, "type", "error");
	json_put_string(&j, "message", message);
	json_object_end(&j);
	say_text(w, &b, &j);
}

void exec_say_exit(struct conn_ws *w, int exit_code, const char *status, const char *message)
{
	struct json_out j;
	struct buf b;

	buf_init(&b, SAY_MAX);
	json_out_init(&j, &b);
	json_object_begin(&j, NULL);
	json_put_string(&j, "type", "exit");
	json_put_int(&j, "exit_code", exit_code);
	json_put_string(&j, "status", status);
	if (*message)
		json_put_string(&j, "error_message", message);
	json_object_end(&j);
	say_text(w, &b, &j);
}

void exec_say_lost(struct conn_ws *w, struct execution *x)
{
	static const char *const names[EXEC_STREAMS] = {"stdout", "stderr"};
	char text[128];

	for (size_t i = 0; i < EXEC_STREAMS; i++) {
		struct exec_output *o = &x->out[i];

		if (o->lost == 0)
			continue;
		(void)snprintf(text, sizeof(text),
		    "%s: %llu bytes were dropped while no client was attached", names[i],
		    (unsigned long long)o->lost);
		o->lost = 0;
		exec_say_error(w, text);
	}
}
