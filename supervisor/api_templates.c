/*
 * api_templates: what boxes begin as copies of: /v1/templates. Runs in sbxd; holds no state: what
 * there is, a process that looks there says. One that is being made is made when its client leaves.
 */
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "supervisor/api_images.h"
#include "supervisor/api_spec.h"
#include "supervisor/client.h"
#include "supervisor/image_job.h"
#include "supervisor/make_request.h"
#include "supervisor/progress_stream.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "supervisor/template_build.h"

#define MILLI 1000U
#define MEMORY_MIB_MIN 16
#define DISK_MIB_MIN 1

/* ---- rows ---- */

static void put_text(struct json_out *j, const json_t *row, const char *key)
{
	json_put_string(j, key, json_string_value(json_object_get(row, key)));
}

static void put_number(struct json_out *j, const json_t *row, const char *key)
{
	json_put_int(j, key, json_integer_value(json_object_get(row, key)));
}

static void put_time(struct json_out *j, const json_t *row, const char *from, const char *key)
{
	json_int_t ms = json_integer_value(json_object_get(row, from));
	char time[CLOCK_RFC3339_LEN];

	if (ms <= 0) {
		json_put_null(j, key);
		return;
	}
	clock_format_rfc3339((uint64_t)ms, time);
	json_put_string(j, key, time);
}

/* The members of a TemplateInfo. */
static void put_template(struct json_out *j, const json_t *row)
{
	static const char *const texts[] = {"key", "image", "accelerator", "cpu_model",
	    "qemu_version", "kernel_release", "state", "why"};
	static const char *const numbers[] = {"memory_mib", "cpus", "boxes", "size_bytes"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		put_text(j, row, texts[i]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put_number(j, row, numbers[i]);
	put_time(j, row, "made_wall_ms", "made_at");
	put_time(j, row, "used_wall_ms", "used_at");
}

static void put_built(struct json_out *j, const json_t *result, const json_t *row)
{
	put_template(j, row);
	json_put_bool(j, "built", json_is_true(json_object_get(result, "built")));
}

/* ---- listing ---- */

static void on_listed(
    struct sbxd *s, uint64_t req, const struct ctl_done *done, const json_t *result)
{
	struct client *c = client_by_req(s->clients, req);
	struct json_out j;
	struct buf out;
	json_t *row;
	size_t i;

	if (!c)
		return;
	if (done->code) {
		client_reply_error(
		    c, done->code == ECANCELED ? API_SHUTTING_DOWN : API_INTERNAL, done->text);
		return;
	}
	buf_init(&out, IMAGE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_array_begin(&j, "templates");
	json_array_foreach(json_object_get(result, "templates"), i, row)
	{
		json_object_begin(&j, NULL);
		put_template(&j, row);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

static void order(struct sbxd *s, struct client *c, enum ctl_image_op op, const char *key,
    const struct image_hook *hook)
{
	int rc = image_job_order(s, op, key, hook);

	if (rc == 0)
		client_wait(c);
	else
		client_reply_error(c, rc == -EAGAIN ? API_TOO_MANY : API_INTERNAL,
		    "too much is asked about templates");
}

void api_list_templates(struct sbxd *s, struct client *c, const struct route_call *call)
{
	(void)call;
	order(s, c, CTL_TEMPLATE_LIST, "",
	    &(struct image_hook){.ctx = client_req(c), .done = on_listed});
}

/* ---- building ---- */

static const char *const gone = "the template was made, and is not there";

static const json_t *built_row(const json_t *result)
{
	return json_array_get(json_object_get(result, "templates"), 0);
}

static void on_built(
    struct sbxd *s, uint64_t req, enum api_error error, const char *text, const json_t *result)
{
	struct client *c = client_by_req(s->clients, req);
	const json_t *row = built_row(result);
	struct json_out j;
	struct buf out;

	if (!c)
		return;
	if (error != API_OK || !row) {
		client_reply_error(c, error ? error : API_INTERNAL, error ? text : gone);
		return;
	}
	buf_init(&out, IMAGE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_built(&j, result, row);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

static void on_stream_progress(struct sbxd *s, uint64_t ctx, const struct ctl_progress *p)
{
	(void)s;
	progress_stream_tell(progress_stream_of(ctx), p);
}

static void on_stream_built(
    struct sbxd *s, uint64_t ctx, enum api_error error, const char *text, const json_t *result)
{
	struct progress_stream *p = progress_stream_of(ctx);
	const json_t *row = built_row(result);

	(void)s;
	if (error != API_OK || !row) {
		progress_stream_fail(p, error ? error : API_INTERNAL, error ? text : gone);
		return;
	}
	put_built(progress_stream_last(p), result, row);
	progress_stream_end(p);
}

static void build_streaming(struct sbxd *s, struct client *c, const struct pool_spec *spec)
{
	struct progress_stream *p = progress_stream_new(s, template_build_unhook);

	if (!p) {
		client_reply_error(c, API_INTERNAL, "out of memory");
		return;
	}
	if (progress_stream_begin(p, c, NULL))
		template_build(s, spec,
		    &(struct template_hook){.ctx = progress_stream_ctx(p),
			.progress = on_stream_progress,
			.done = on_stream_built});
}

static void build(struct sbxd *s, struct client *c, const struct pool_spec *spec, bool stream)
{
	if (stream) {
		build_streaming(s, c, spec);
		return;
	}
	client_wait(c);
	template_build(s, spec, &(struct template_hook){.ctx = client_req(c), .done = on_built});
}

static int take_size(json_t *body, const char **image, struct pool_spec *size, struct err *err)
{
	int64_t memory_mib = 0;
	int64_t cpus = 0;
	int64_t disk_mib = 0;
	const struct json_field fields[] = {
	    {"image", JSON_FIELD_STRING, image, 0, 0},
	    {"memory_mib", JSON_FIELD_INT, &memory_mib, MEMORY_MIB_MIN, MAKE_MEMORY_MIB_MAX},
	    {"cpus", JSON_FIELD_INT, &cpus, 1, MAKE_CPUS_MAX},
	    {"disk_mib", JSON_FIELD_INT, &disk_mib, DISK_MIB_MIN, CONFIG_DISK_MIB_MAX},
	};

	if (json_take(body, fields, sizeof(fields) / sizeof(fields[0]), err) < 0)
		return -EINVAL;
	*size = (struct pool_spec){
	    .memory_mib = (uint32_t)memory_mib,
	    .cpus_milli = (uint32_t)cpus * MILLI,
	    .disk_mib = (uint32_t)disk_mib,
	};
	return 0;
}

void api_build_template(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const char *image = NULL;
	enum api_error e = API_INVALID_ARGUMENT;
	struct pool_spec size;
	struct pool_spec spec;
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);

	if (!body) {
		client_reply_error(c, API_MALFORMED, err.text);
		return;
	}
	if (take_size(body, &image, &size, &err) < 0 ||
	    api_spec_choose(s, c, image, &spec, &e, &err) < 0) {
		client_reply_error(c, e, err.text);
		json_decref(body);
		return;
	}
	spec.memory_mib = size.memory_mib ? size.memory_mib : spec.memory_mib;
	spec.cpus_milli = size.cpus_milli ? size.cpus_milli : spec.cpus_milli;
	spec.disk_mib = size.disk_mib ? size.disk_mib : spec.disk_mib;
	build(s, c, &spec, call->head->wants_ndjson);
	json_decref(body);
}

/* ---- removing ---- */

static void on_removed(
    struct sbxd *s, uint64_t req, const struct ctl_done *done, const json_t *result)
{
	struct client *c = client_by_req(s->clients, req);

	if (!c)
		return;
	if (done->code)
		client_reply_error(c,
		    template_error(done->code) == API_BOOT_FAILED ? API_INTERNAL
								  : template_error(done->code),
		    done->text);
	else
		api_reply_removed(c, result);
}

void api_remove_template(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const char *key = call->match->id;

	if (!client_is_admin(c))
		client_reply_error(c, API_PERMISSION_DENIED,
		    "templates are everybody's: only root, sbxd's own user and admin_group remove "
		    "them");
	else if (strlen(key) >= sizeof(((struct ctl_image *)NULL)->image))
		client_reply_error(c, API_NOT_FOUND, "template not found");
	else
		order(s, c, CTL_TEMPLATE_REMOVE, key,
		    &(struct image_hook){.ctx = client_req(c), .done = on_removed});
}
