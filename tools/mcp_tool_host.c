/* mcp_tool_host: upload and download. sbx-mcp; what it dies in the middle of is not there, on
 * neither side. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/mcp_args.h"
#include "tools/mcp_host.h"
#include "tools/mcp_tools.h"

struct transfer {
	bool begun;
	bool overwrite;
	const char *host_path;
	int fd; /* of an upload */
	struct mcp_host_file file;
	uint64_t len;
	uint64_t done;
};

static int transfer_args(struct mcp_call *call, const char **path, struct err *err)
{
	struct transfer *s = call->state;
	int rc = mcp_arg_needed(*path, "path", err);

	s->fd = -1;
	s->file.fd = -1;
	s->file.dir_fd = -1;
	s->begun = true;
	if (rc == 0)
		rc = mcp_arg_needed(s->host_path, "host_path", err);
	return rc < 0 ? rc : mcp_arg_path(call, *path, err);
}

static void transfer_drop(struct mcp_call *call)
{
	struct transfer *s = call->state;

	if (!s->begun)
		return;
	fd_close(&s->fd);
	mcp_host_drop(&s->file);
}

static int put_result(struct mcp_call *call, const char *from, const char *to, struct err *err)
{
	const struct transfer *s = call->state;
	struct json_out j;
	int rc = buf_printf(
	    &call->text, "Copied %llu bytes from %s to %s", (unsigned long long)s->done, from, to);

	json_out_init(&j, &call->data);
	json_object_begin(&j, NULL);
	json_put_string(&j, "host_path", s->host_path);
	json_put_string(&j, "path", call->key);
	json_put_uint(&j, "bytes", s->done);
	json_object_end(&j);
	if (rc == 0)
		rc = json_out_error(&j);
	return rc < 0 ? mcp_no_room(rc, err) : 0;
}

/* ---- upload ---- */

static int upload_begin(struct mcp_call *call, struct err *err)
{
	struct transfer *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"host_path", JSON_FIELD_STRING, &s->host_path, 0, 0},
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	};
	int rc = json_take(call->args, fields, sizeof(fields) / sizeof(fields[0]), err);

	if (rc == 0)
		rc = transfer_args(call, &path, err);
	if (rc == 0)
		rc = mcp_host_open(call->m, s->host_path, &s->len, err);
	if (rc < 0)
		return rc;
	s->fd = rc;
	return 0;
}

static int upload_ask(struct mcp_call *call, struct err *err)
{
	struct transfer *s = call->state;
	struct mcp_ask ask = {.method = "PUT", .body_fd = s->fd, .body_fd_len = s->len};
	struct mcp_rest rest;

	if (lseek(s->fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "%.150s on the host", s->host_path);
	mcp_rest_init(&rest, "/fs/write", call);
	return mcp_rest_ask(&rest, call, &ask, err);
}

static int upload_end(struct mcp_call *call, struct err *err)
{
	struct transfer *s = call->state;

	s->done = s->len;
	return put_result(call, s->host_path, call->key, err);
}

const struct mcp_handler mcp_upload = {
    .state_size = sizeof(struct transfer),
    .in_turn = true,
    .begin = upload_begin,
    .ask = upload_ask,
    .end = upload_end,
    .drop = transfer_drop,
};

/* ---- download ---- */

static int download_begin(struct mcp_call *call, struct err *err)
{
	struct transfer *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"host_path", JSON_FIELD_STRING, &s->host_path, 0, 0},
	    {"overwrite", JSON_FIELD_BOOL, &s->overwrite, 0, 0},
	};
	int rc = json_take(call->args, fields, sizeof(fields) / sizeof(fields[0]), err);

	if (rc == 0)
		rc = transfer_args(call, &path, err);
	return rc < 0 ? rc : mcp_host_create(call->m, s->host_path, s->overwrite, &s->file, err);
}

static int download_ask(struct mcp_call *call, struct err *err)
{
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "GET"};
	struct mcp_rest rest;

	mcp_rest_init(&rest, "/fs/read", call);
	return mcp_rest_ask(&rest, call, &ask, err);
}

static int download_take(struct mcp_call *call, const uint8_t *bytes, size_t n, struct err *err)
{
	struct transfer *s = call->state;

	s->done += n;
	mcp_call_doing(call, "%llu bytes copied", (unsigned long long)s->done);
	while (n > 0) {
		ssize_t k = write(s->file.fd, bytes, n);

		if (k < 0 && errno != EINTR)
			return err_sys(err, errno, "writing %.150s on the host", s->host_path);
		if (k > 0) {
			bytes += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

static int download_end(struct mcp_call *call, struct err *err)
{
	struct transfer *s = call->state;
	int rc = mcp_host_finish(&s->file, s->overwrite, err);

	return rc < 0 ? rc : put_result(call, call->key, s->host_path, err);
}

const struct mcp_handler mcp_download = {
    .state_size = sizeof(struct transfer),
    .begin = download_begin,
    .ask = download_ask,
    .take = download_take,
    .end = download_end,
    .drop = transfer_drop,
};
