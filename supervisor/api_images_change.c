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
#include "supervisor/progress_stream.h"
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

static void on_stream_progress(struct sbxd *s, uint64_t ctx, const struct ctl_progress *progress)
{
	(void)s;
	progress_stream_tell(progress_stream_of(ctx), progress);
}

static void on_stream_pulled(
    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	struct progress_stream *p = progress_stream_of(ctx);
	const json_t *row = pulled_row(result);

	(void)s;
	if (done->code || !row) {
		progress_stream_fail(
		    p, done->code ? image_job_error(done->code) : API_INTERNAL, fail_text(done));
		return;
	}
	api_put_image(progress_stream_last(p), row);
	progress_stream_end(p);
}

static void stream_pull(struct sbxd *s, struct client *c, const char *reference)
{
	struct progress_stream *p = progress_stream_new(s, image_job_unhook);
	struct image_hook hook = {.progress = on_stream_progress, .done = on_stream_pulled};
	struct ctl_progress now;
	int rc = -ENOMEM;

	if (p) {
		hook.ctx = progress_stream_ctx(p);
		rc = image_job_order(s, CTL_IMAGE_PULL, reference, &hook);
	}
	if (rc < 0) {
		progress_stream_free(p);
		client_reply_error(c, rc == -EAGAIN ? API_TOO_MANY : API_INTERNAL,
		    "too many images are to be pulled");
		return;
	}
	(void)progress_stream_begin(p, c, image_job_progress(s, reference, &now) ? &now : NULL);
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

void api_reply_removed(struct client *c, const json_t *result)
{
	char *text = json_dumps(result, JSON_COMPACT);
	struct buf out;

	buf_init(&out, IMAGE_JSON_MAX);
	if (!text || buf_puts(&out, text) < 0)
		client_reply_error(c, API_INTERNAL, "out of memory");
	else
		client_reply_json(c, 200, &out);
	buf_free(&out);
	free(text);
}

static void on_removed(
    struct sbxd *s, uint64_t req, const struct ctl_done *done, const json_t *result)
{
	struct client *c = client_by_req(s->clients, req);

	if (c && done->code)
		client_reply_error(c, removal_error(done->code), done->text);
	else if (c)
		api_reply_removed(c, result);
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
