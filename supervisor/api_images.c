/*
 * api_images: what boxes are made of, as the BoxLite Box API has it: /v1/images. Runs in sbxd;
 * holds no state.
 *
 * There is one image: the configured one, which is prepared before anybody is served. The namespace
 * driver shows the host itself, so its identity is that of the host's system.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/digest.h"
#include "lib/fd.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "wire/json.h"

#define IMAGE_JSON_MAX 8192U
#define IMAGE_ID_LEN (7 + 2 * DIGEST_LEN + 1) /* "sha256:" and hex digits */
#define IMAGE_TAG "latest"
#define IMAGE_SYSTEM "/etc/os-release" /* changes when the host's system does */
#define IMAGE_SYSTEM_MAX 4096U
#define IMAGES_PAGE_MAX 1000

struct image_view {
	const char *reference;
	char id[IMAGE_ID_LEN];
	uint64_t cached_wall_ms;
};

/* 0 or -EIO. */
static int describe(const struct sbxd *s, struct image_view *out)
{
	FD_SCOPED int fd = open(IMAGE_SYSTEM, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char system[IMAGE_SYSTEM_MAX];
	struct stat st;
	ssize_t len = fd_read_file_at(AT_FDCWD, IMAGE_SYSTEM, system, sizeof(system));
	const struct digest_part parts[] = {
	    {s->driver, strlen(s->driver) + 1},
	    {s->config.image, strlen(s->config.image) + 1},
	    {system, len > 0 ? (size_t)len : 0},
	};
	uint8_t digest[DIGEST_LEN];

	out->reference = s->config.image;
	out->cached_wall_ms =
	    atomic_load_explicit(&s->seg.header->started_wall_ms, memory_order_relaxed);
	if (fd >= 0 && fstat(fd, &st) == 0)
		out->cached_wall_ms = (uint64_t)st.st_mtim.tv_sec * 1000;
	if (digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), digest) < 0)
		return -EIO;
	memcpy(out->id, "sha256:", 7);
	digest_hex(digest, sizeof(digest), out->id + 7);
	return 0;
}

static void put_image(struct json_out *j, const struct image_view *i)
{
	char time[CLOCK_RFC3339_LEN];

	clock_format_rfc3339(i->cached_wall_ms, time);
	json_put_string(j, "reference", i->reference);
	json_put_string(j, "repository", i->reference);
	json_put_string(j, "tag", IMAGE_TAG);
	json_put_string(j, "id", i->id);
	json_put_string(j, "cached_at", time);
	json_put_null(j, "size_bytes");
}

/* Is that the image? By its name, with or without the tag. */
static bool is_named(const struct image_view *i, const char *name)
{
	size_t len = strlen(i->reference);

	return strncmp(name, i->reference, len) == 0 &&
	       (name[len] == '\0' || !strcmp(name + len, ":" IMAGE_TAG));
}

static void reply_image(struct client *c, const struct image_view *i)
{
	struct json_out j;
	struct buf out;

	buf_init(&out, IMAGE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_image(&j, i);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

/* False when the client was told that it cannot be. */
static bool have_image(const struct sbxd *s, struct client *c, struct image_view *out)
{
	if (describe(s, out) == 0)
		return true;
	client_reply_error(c, API_INTERNAL, "SHA-256 is not to be had");
	return false;
}

/* There is one page; a size is checked all the same, a token is none that we gave. */
static int check_page(const char *query, struct err *err)
{
	char token[16];
	uint64_t size;
	int rc;

	if (http_query_number(query, "pageSize", 10, 1, IMAGES_PAGE_MAX, &size, err) < 0)
		return -EINVAL;
	rc = http_query_get(query, "pageToken", token, sizeof(token));
	if (rc != -ENOENT && rc != 0)
		return err_set(err, EINVAL, "\"pageToken\" is none that was given out");
	return 0;
}

void api_list_images(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct image_view image;
	struct err err = {0};
	struct json_out j;
	struct buf out;

	if (check_page(call->head->query, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
		return;
	}
	if (!have_image(s, c, &image))
		return;
	buf_init(&out, IMAGE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_array_begin(&j, "images");
	json_object_begin(&j, NULL);
	put_image(&j, &image);
	json_object_end(&j);
	json_array_end(&j);
	json_put_null(&j, "next_page_token");
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_get_image(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const char *id = call->match->id;
	struct image_view image;
	char text[200];

	if (!have_image(s, c, &image))
		return;
	if (strcmp(id, image.id) != 0 && !is_named(&image, id)) {
		(void)snprintf(text, sizeof(text), "image not found: %s", id);
		client_reply_error(c, API_NOT_FOUND, text);
	} else if (call->head->method == HTTP_HEAD) {
		client_reply_empty(c, 204, NULL);
	} else {
		reply_image(c, &image);
	}
}

void api_pull_image(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const char *reference = NULL;
	const struct json_field fields[] = {
	    {.name = "reference", .type = JSON_FIELD_STRING, .out = &reference},
	};
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);
	struct image_view image;
	char text[300];

	if (!body) {
		client_reply_error(c, API_MALFORMED, err.text);
	} else if (json_take(body, fields, 1, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	} else if (!reference || !*reference) {
		client_reply_error(c, API_INVALID_ARGUMENT, "\"reference\" is missing");
	} else if (have_image(s, c, &image)) {
		(void)snprintf(text, sizeof(text),
		    "%.128s cannot be pulled: the driver %s makes boxes of the image %s only",
		    reference, s->driver, image.reference);
		if (is_named(&image, reference))
			reply_image(c, &image);
		else
			client_reply_error(c, API_IMAGE_PULL_FAILED, text);
	}
	json_decref(body);
}
