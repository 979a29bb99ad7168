/* bench_client: requests whose failures are results. sbxbench, one for each thread; when it dies
 * the service takes back what was leased on the connection. */
#include "tools/bench_client.h"

#include <errno.h>

#include "lib/clock.h"
#include "tools/answer.h"

#define ANSWER_MAX (64U * 1024U * 1024U)
#define REQUEST_MAX 65536U

void bench_client_init(
    struct bench_client *cl, const char *socket, int cancel_fd, double timeout_seconds)
{
	*cl = (struct bench_client){.socket = socket,
	    .cancel_fd = cancel_fd,
	    .timeout_ns = clock_seconds_to_ns(timeout_seconds)};
	buf_init(&cl->path, REQUEST_MAX);
	buf_init(&cl->body, REQUEST_MAX);
	buf_init(&cl->answer, ANSWER_MAX);
}

void bench_client_close(struct bench_client *cl)
{
	httpc_close(cl->c);
	cl->c = NULL;
	buf_free(&cl->path);
	buf_free(&cl->body);
	buf_free(&cl->answer);
}

int bench_client_connect(struct bench_client *cl, struct err *err)
{
	if (cl->c)
		return 0;
	return httpc_connect(
	    cl->socket, cl->cancel_fd, clock_now_ns() + cl->timeout_ns, &cl->c, err);
}

void bench_client_begin(
    struct bench_client *cl, const char *path, const char *box, const char *rest)
{
	int rc;

	buf_clear(&cl->path);
	buf_clear(&cl->body);
	rc = buf_puts(&cl->path, path);
	if (rc == 0 && box)
		rc = http_put_escaped(&cl->path, box, false);
	if (rc == 0 && rest)
		rc = buf_puts(&cl->path, rest);
	if (rc < 0)
		buf_clear(&cl->path); /* bench_client_call() finds it empty */
}

void bench_client_begin_body(struct bench_client *cl)
{
	json_out_init(&cl->j, &cl->body);
	json_object_begin(&cl->j, NULL);
}

static int end_body(struct bench_client *cl, struct err *err)
{
	if (cl->path.len == 0 || buf_terminate(&cl->path) < 0)
		return err_set(err, ENOMEM, "the request does not fit");
	if (cl->j.b == NULL)
		return 0;
	json_object_end(&cl->j);
	if (json_out_error(&cl->j))
		return err_set(err, ENOBUFS, "the request does not fit");
	cl->j.b = NULL;
	return 0;
}

static int exchange(struct bench_client *cl, const struct httpc_request *req, unsigned int *status,
    uint64_t *ns, struct err *err)
{
	uint64_t begin = clock_now_ns();
	uint64_t deadline = begin + cl->timeout_ns;
	const struct http_head *head = NULL;
	int rc = httpc_send(cl->c, req, deadline, &head, err);

	if (rc == 0) {
		*status = head->status;
		buf_clear(&cl->answer);
		rc = httpc_read_all(cl->c, deadline, &cl->answer, err);
	}
	if (ns)
		*ns = clock_now_ns() - begin;
	if (rc < 0) {
		httpc_close(cl->c);
		cl->c = NULL;
	}
	return rc;
}

int bench_client_call(
    struct bench_client *cl, const char *method, uint64_t *ns, json_t **out, struct err *err)
{
	struct httpc_request req = {.method = method};
	unsigned int status = 0;
	int rc = end_body(cl, err);

	if (rc == 0)
		rc = bench_client_connect(cl, err);
	if (rc < 0)
		return rc;
	req.path = (const char *)buf_head(&cl->path);
	if (cl->body.len) {
		req.body = buf_head(&cl->body);
		req.body_len = cl->body.len;
	}
	rc = exchange(cl, &req, &status, ns, err);
	if (rc < 0)
		return rc;
	if (status < 200 || status > 299)
		return answer_error(status, buf_head(&cl->answer), cl->answer.len, err);
	if (!out)
		return 0;
	*out = json_parse_object(buf_head(&cl->answer), cl->answer.len, err);
	return *out ? 0 : -EIO;
}

int bench_client_acquire(struct bench_client *cl, const char *user, const char *thread,
    const char *image, uint64_t *ns, json_t **out, struct err *err)
{
	bench_client_begin(cl, "/v1/acquire", NULL, NULL);
	bench_client_begin_body(cl);
	json_put_string(&cl->j, "user_id", user);
	json_put_string(&cl->j, "thread_id", thread);
	if (image)
		json_put_string(&cl->j, "image", image);
	json_put_bool(&cl->j, "release_on_disconnect", true); /* we may be killed */
	return bench_client_call(cl, "POST", ns, out, err);
}

int bench_client_release(
    struct bench_client *cl, const char *box, const char *lease, uint64_t *ns, struct err *err)
{
	bench_client_begin(cl, "/v1/boxes/", box, "/release");
	bench_client_begin_body(cl);
	json_put_string(&cl->j, "lease_id", lease);
	return bench_client_call(cl, "POST", ns, NULL, err);
}

int bench_client_remove(struct bench_client *cl, const char *box, struct err *err)
{
	bench_client_begin(cl, "/v1/boxes/", box, NULL);
	return bench_client_call(cl, "DELETE", NULL, NULL, err);
}

int bench_client_inspect(struct bench_client *cl, const char *box, json_t **out, struct err *err)
{
	bench_client_begin(cl, "/v1/boxes/", box, NULL);
	return bench_client_call(cl, "GET", NULL, out, err);
}
