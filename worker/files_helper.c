/*
 * files_helper: starts sbx-files in the box, and reads how it ended. sbx-worker. If we die here the
 * box dies with us, and sbxd answers the client.
 */
#include "worker/files_helper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "worker/files.h"
#include "worker/op.h"

/* 0 or -errno. */
static int helper_put_string(struct buf *b, const char *s)
{
	uint32_t len = (uint32_t)strlen(s);
	int rc = buf_append(b, &len, sizeof(len));

	return rc < 0 ? rc : buf_append(b, s, len);
}

int files_helper_open(
    struct op *op, const struct agent_chan_ops *ops, const char *const argv[], uint32_t flags)
{
	struct agent_exec head = {.flags = AGENT_EXEC_HELPER | flags, .argc = 1};
	struct buf request;
	int rc;

	while (argv[head.argc - 1])
		head.argc++;
	buf_init(&request, AGENT_REQUEST_MAX);
	rc = buf_append(&request, &head, sizeof(head));
	for (int i = 0; rc == 0 && i < 2; i++) /* neither user nor directory */
		rc = helper_put_string(&request, "");
	if (rc == 0)
		rc = helper_put_string(&request, "sbx-files");
	for (size_t i = 0; rc == 0 && argv[i]; i++)
		rc = helper_put_string(&request, argv[i]);
	if (rc == 0)
		rc = agent_chan_open(
		    op->s->link, &op->chan, ops, AGENT_EXEC, buf_head(&request), request.len);
	buf_free(&request);
	return rc;
}

void files_helper_keep(struct files_helper *h, struct op *op, const uint8_t *p, size_t n)
{
	size_t room = sizeof(h->why) - 1 - h->len;
	size_t kept = n < room ? n : room;

	for (size_t i = 0; i < kept; i++)
		h->why[h->len++] = p[i] ? (char)p[i] : '?';
	h->why[h->len] = '\0';
	agent_chan_grant(&op->chan, AGENT_STDERR, n);
}

enum api_error files_helper_result(
    struct files_helper *h, const struct op *op, const struct agent_end *end, const char **why)
{
	bool coded = end->signal == 0 && end->exit_code > AGENT_OK && end->exit_code < AGENT_CODES;

	if (end->signal == 0 && end->exit_code == AGENT_OK)
		return API_OK;
	if (end->signal && op->s->resting) {
		*why = "the box was stopped";
		return API_INVALID_STATE;
	}
	if (!coded || h->len == 0)
		h->len = (size_t)snprintf(h->why, sizeof(h->why),
		    end->signal ? "the file helper was killed by signal %d"
				: "the file helper ended with status %d",
		    end->signal ? end->signal : end->exit_code);
	*why = h->why;
	if (coded)
		return files_error((uint32_t)end->exit_code);
	/* Nobody else kills so without asking than a box that has no memory left. */
	return end->signal == SIGKILL ? API_BOX_RESOURCES : API_EXECUTION_FAILED;
}
