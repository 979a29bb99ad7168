/*
 * api_images_change: images come and go: POST /v1/images/pull, DELETE /v1/images/{id}, POST
 * /v1/images/prune. Runs in sbxd; a pull goes on when its client leaves, and what is removed is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image_ref.h"
#include "supervisor/access.h"
#include "supervisor/api_images.h"
#include "supervisor/client.h"
#include "supervisor/image_job.h"
#include "supervisor/images.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define TEXT_LEN 400

/* ---- pulling ---- */

/* The image that a pull has brought, or NULL. */
static const json_t *pulled_row(const json_t *result)
{
	return json_array_get(api_image_rows(result), 0);
}

static const char *fail_text(const struct ctl_done *done)
{
	return done->code ? done->text : "the image was pulled, and is not there";
}

static void reply_row(struct client *c, const json_t *row)
{
	struct json_out j;
	struct buf out;

	buf_init(&out, IMAGE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	api_put_image(&j, row);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

/* The hook's number is the client's: it goes with it. */
static void on_pulled(
    struct sbxd *s, uint64_t req, const struct ctl_done *done, const json_t *result)
{
	struct client *c = client_by_req(s->clients, req);
	const json_t *row = pulled_row(result);

	if (!c)
		return;
	if (done->code == 0 && row)
		reply_row(c, row);
	else
		client_reply_error(
		    c, done->code ? image_job_error(done->code) : API_INTERNAL, fail_text(done));
}

/* ---- with progress ---- */

struct pull_stream {
	struct client_stream stream;
	struct sbxd *s;
	struct ctl_progress progress;
	bool news;
	bool over;
	struct buf last; /* the last line */
};

static enum stream_next fill(struct client_stream *st, struct buf *out, bool overdue)
{
	struct pull_stream *p = LOOP_OWNER(st, struct pull_stream, stream);
	struct json_out j;

	if (p->over)
		return buf_append(out, buf_head(&p->last), p->last.len) < 0 ? STREAM_BROKEN
									    : STREAM_END;
	if (!p->news && !overdue)
		return STREAM_IDLE;
	p->news = false;
	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "status", p->progress.stage);
	json_put_uint(&j, "done_bytes", p->progress.done);
	if (p->progress.total)
		json_put_uint(&j, "total_bytes", p->progress.total);
	else
		json_put_null(&j, "total_bytes");
	json_object_end(&j);
	return json_out_error(&j) || buf_puts(out, "\n") < 0 ? STREAM_BROKEN : STREAM_IDLE;
}

static void gone(struct client_stream *st)
{
	struct pull_stream *p = LOOP_OWNER(st, struct pull_stream, stream);

	image_job_unhook(p->s, (uint64_t)(uintptr_t)p);
	buf_free(&p->last);
	free(p);
}

static void on_stream_progress(struct sbxd *s, uint64_t ctx, const struct ctl_progress *progress)
{
	struct pull_stream *p = (void *)(uintptr_t)ctx;

	(void)s;
	p->progress = *progress;
	p->news = true;
	client_stream_pump(&p->stream);
}

static void on_stream_pulled(
    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	struct pull_stream *p = (void *)(uintptr_t)ctx;
	const json_t *row = pulled_row(result);
	const struct api_error_info *info =
	    api_error_info(done->code ? image_job_error(done->code) : API_INTERNAL);
	struct json_out j;

	(void)s;
	json_out_init(&j, &p->last);
	json_object_begin(&j, NULL);
	if (done->code == 0 && row) {
		api_put_image(&j, row);
	} else {
		json_object_begin(&j, "error");
		json_put_string(&j, "message", fail_text(done));
		json_put_string(&j, "type", info->type);
		json_put_string(&j, "code", info->code);
		json_put_string(&j, "reason", info->reason);
		json_object_end(&j);
	}
	json_object_end(&j);
	if (json_out_error(&j) || buf_puts(&p->last, "\n") < 0)
		buf_clear(&p->last);
	p->over = true;
	client_stream_end(&p->stream);
}

static void stream_pull(struct sbxd *s, struct client *c, const char *reference)
{
	struct pull_stream *p = calloc(1, sizeof(*p));
	struct image_hook hook = {.ctx = (uint64_t)(uintptr_t)p,
	    .progress = on_stream_progress,
	    .done = on_stream_pulled};
	int rc = p ? image_job_order(s, CTL_IMAGE_PULL, reference, &hook) : -ENOMEM;

	if (rc < 0) {
		free(p);
		client_reply_error(c, rc == -EAGAIN ? API_TOO_MANY : API_INTERNAL,
		    "too many images are to be pulled");
		return;
	}
	p->s = s;
	p->news = image_job_progress(s, reference, &p->progress);
	p->stream = (struct client_stream){.fill = fill, .gone = gone};
	buf_init(&p->last, IMAGE_JSON_MAX);
	client_stream_begin(c, "application/x-ndjson", &p->stream);
}

static void pull(struct sbxd *s, struct client *c, const char *reference, bool stream)
{
	const struct image_hook hook = {.ctx = client_req(c), .done = on_pulled};
	int rc;

	if (stream) {
		stream_pull(s, c, reference);
		return;
	}
	rc = image_job_order(s, CTL_IMAGE_PULL, reference, &hook);
	if (rc == 0)
		client_wait(c);
	else
		client_reply_error(c, rc == -EAGAIN ? API_TOO_MANY : API_INTERNAL,
		    "too many images are to be pulled");
}

/* True when there is nothing to be pulled, and the client was told. */
static bool is_answered(struct sbxd *s, struct client *c, const char *reference)
{
	json_t *own = api_configured_image(s);
	bool known = own && api_image_is(own, reference);
	struct image_ref ref;
	struct err err = {0};
	char text[TEXT_LEN];

	if (known) {
		reply_row(c, own);
	} else if (image_ref_parse(reference, &ref, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	} else if (ref.kind == IMAGE_KIND_OCI && !client_is_admin(c)) {
		client_reply_error(c, API_PERMISSION_DENIED,
		    "\"reference\": only root, sbxd's own user and admin_group may name a "
		    "directory of the host");
	} else if (ref.kind != IMAGE_KIND_OCI && ref.kind != IMAGE_KIND_REGISTRY) {
		(void)snprintf(text, sizeof(text),
		    "%.200s cannot be pulled: that is no image of a registry", reference);
		client_reply_error(c, API_IMAGE_PULL_FAILED, text);
	} else {
		json_decref(own);
		return false;
	}
	json_decref(own);
	return true;
}

void api_pull_image(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const char *reference = NULL;
	const struct json_field fields[] = {
	    {.name = "reference", .type = JSON_FIELD_STRING, .out = &reference},
	};
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);

	if (!body)
		client_reply_error(c, API_MALFORMED, err.text);
	else if (json_take(body, fields, 1, &err) < 0)
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	else if (!reference || !*reference)
		client_reply_error(c, API_INVALID_ARGUMENT, "\"reference\" is missing");
	else if (!is_answered(s, c, reference))
		pull(s, c, reference, call->head->wants_ndjson);
	json_decref(body);
}

/* ---- removing ---- */

static enum api_error removal_error(int32_t code)
{
	return code == ENOENT	   ? API_NOT_FOUND
	       : code == EBUSY	   ? API_INVALID_STATE
	       : code == EINVAL	   ? API_INVALID_ARGUMENT
	       : code == ECANCELED ? API_SHUTTING_DOWN
				   : API_INTERNAL;
}

static void on_removed(
    struct sbxd *s, uint64_t req, const struct ctl_done *done, const json_t *result)
{
	struct client *c = client_by_req(s->clients, req);
	char *text = done->code ? NULL : json_dumps(result, JSON_COMPACT);
	struct buf out;

	if (!c) {
		free(text);
		return;
	}
	buf_init(&out, IMAGE_JSON_MAX);
	if (done->code)
		client_reply_error(c, removal_error(done->code), done->text);
	else if (!text || buf_puts(&out, text) < 0)
		client_reply_error(c, API_INTERNAL, "out of memory");
	else
		client_reply_json(c, 200, &out);
	buf_free(&out);
	free(text);
}

static void order_removal(struct sbxd *s, struct client *c, enum ctl_image_op op, const char *image)
{
	const struct image_hook hook = {.ctx = client_req(c), .done = on_removed};
	int rc;

	if (!client_is_admin(c)) {
		client_reply_error(c, API_PERMISSION_DENIED,
		    "images are everybody's: only root, sbxd's own user and admin_group remove "
		    "them");
		return;
	}
	rc = image_job_order(s, op, image, &hook);
	if (rc == 0)
		client_wait(c);
	else
		client_reply_error(c, rc == -EAGAIN ? API_TOO_MANY : API_INTERNAL,
		    "too much is asked about images");
}

void api_remove_image(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const char *id = call->match->id;
	struct image_ref ref;
	struct err err = {0};

	if (image_ref_parse(id, &ref, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
		return;
	}
	if (!client_is_admin(c) || (ref.kind != IMAGE_KIND_HOST && ref.kind != IMAGE_KIND_DIR))
		order_removal(s, c, CTL_IMAGE_REMOVE, id);
	else
		client_reply_error(c, API_INVALID_STATE,
		    "it is not of the store: nothing of it is sbxd's to remove");
}

void api_prune_images(struct sbxd *s, struct client *c, const struct route_call *call)
{
	(void)call;
	order_removal(s, c, CTL_IMAGE_PRUNE, "");
}
