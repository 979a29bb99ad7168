/*
 * api_images: what boxes are made of, as the BoxLite Box API has it: /v1/images. Runs in sbxd;
 * holds no state: what is in the store, a process that looks there says.
 *
 * A configured image that is not of the store, `host` or a directory, is listed too. The namespace
 * driver shows the host itself, so its identity is that of the host's system.
 */
#include "supervisor/api_images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/digest.h"
#include "lib/fd.h"
#include "lib/image_ref.h"
#include "supervisor/client.h"
#include "supervisor/image_job.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define IMAGE_TAG "latest"
#define IMAGE_SYSTEM "/etc/os-release" /* changes when the host's system does */
#define IMAGE_SYSTEM_MAX 4096U
#define IMAGES_PAGE 100U
#define IMAGES_PAGE_MAX 1000U
#define PAGE_TOKEN_LEN 32

/* ---- rows ---- */

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static uint64_t number_of(const json_t *row, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(row, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* "docker.io/library/python" and "3.11" of a reference; of a digest it is all the tag. */
static void put_parts(struct json_out *j, const char *reference)
{
	const char *slash = strrchr(reference, '/');
	const char *at = strchr(reference, '@');
	const char *colon = at ? at : strrchr(slash ? slash : reference, ':');
	size_t len = colon && *reference != '/' ? (size_t)(colon - reference) : strlen(reference);

	json_put_bytes(j, "repository", reference, len);
	json_put_string(j, "tag", reference[len] ? reference + len + 1 : IMAGE_TAG);
}

void api_put_image(struct json_out *j, const json_t *row)
{
	const char *reference = text_of(row, "reference");
	char time[CLOCK_RFC3339_LEN];

	if (!*reference) /* what it was called is something else by now */
		reference = text_of(row, "id");
	clock_format_rfc3339(number_of(row, "made_wall_ms"), time);
	json_put_string(j, "reference", reference);
	put_parts(j, reference);
	json_put_string(j, "id", text_of(row, "id"));
	json_put_string(j, "cached_at", time);
	if (json_object_get(row, "size_bytes"))
		json_put_uint(j, "size_bytes", number_of(row, "size_bytes"));
	else
		json_put_null(j, "size_bytes");
	clock_format_rfc3339(number_of(row, "used_wall_ms"), time);
	json_put_string(j, "used_at", time);
	json_put_bool(j, "in_use", json_is_true(json_object_get(row, "in_use")));
}

const json_t *api_image_rows(const json_t *result)
{
	return json_object_get(result, "images");
}

bool api_image_is(const json_t *row, const char *name)
{
	static const char *const keys[] = {"id", "source", "reference", "asked"};
	char normal[IMAGE_NORMAL_LEN];
	struct image_ref ref;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (*name && !strcmp(text_of(row, keys[i]), name))
			return true;
	}
	if (image_ref_parse(name, &ref, &(struct err){0}) < 0)
		return false;
	image_ref_print(&ref, normal);
	return !strcmp(text_of(row, "reference"), normal);
}

/* ---- the configured one ---- */

/* "sha256:" and what identifies it. 0 or -EIO. */
static int identify(const struct sbxd *s, char id[IMAGE_DIGEST_LEN])
{
	char system[IMAGE_SYSTEM_MAX];
	ssize_t len = fd_read_file_at(AT_FDCWD, IMAGE_SYSTEM, system, sizeof(system));
	const struct digest_part parts[] = {
	    {s->driver, strlen(s->driver) + 1},
	    {s->config.image, strlen(s->config.image) + 1},
	    {system, len > 0 ? (size_t)len : 0},
	};
	uint8_t digest[DIGEST_LEN];

	if (digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), digest) < 0)
		return -EIO;
	memcpy(id, "sha256:", 7);
	digest_hex(digest, sizeof(digest), id + 7);
	return 0;
}

json_t *api_configured_image(const struct sbxd *s)
{
	FD_SCOPED int fd = open(IMAGE_SYSTEM, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char tagged[IMAGE_REF_MAX + 16];
	uint64_t made;
	char id[IMAGE_DIGEST_LEN];
	struct image_ref ref;
	struct stat st;

	if (image_ref_parse(s->config.image, &ref, &(struct err){0}) < 0 ||
	    (ref.kind != IMAGE_KIND_HOST && ref.kind != IMAGE_KIND_DIR) || identify(s, id) < 0)
		return NULL;
	made = atomic_load_explicit(&s->seg.header->started_wall_ms, memory_order_relaxed);
	if (fd >= 0 && fstat(fd, &st) == 0)
		made = (uint64_t)st.st_mtim.tv_sec * 1000;
	(void)snprintf(tagged, sizeof(tagged), "%s:" IMAGE_TAG, s->config.image);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "reference", s->config.image, "asked",
	    tagged, "id", id, "made_wall_ms", (json_int_t)made, "used_wall_ms", (json_int_t)made,
	    "in_use", 1);
}

/* ---- listing ---- */

/* A page is numbered by its first row: the order is that of names. */
struct page {
	uint64_t first;
	uint64_t size;
};

static int parse_page(const char *query, struct page *p, struct err *err)
{
	char token[PAGE_TOKEN_LEN];
	int rc;

	*p = (struct page){.size = IMAGES_PAGE};
	if (http_query_number(query, "pageSize", 10, 1, IMAGES_PAGE_MAX, &p->size, err) < 0)
		return -EINVAL;
	rc = http_query_get(query, "pageToken", token, sizeof(token));
	if (rc == -ENOENT || rc == 0)
		return 0;
	if (rc < 0 || *token != 'i' || !token[1] || strlen(token) > 9 ||
	    strspn(token + 1, "0123456789") != strlen(token + 1))
		return err_set(err, EINVAL, "\"pageToken\" is none that was given out");
	p->first = strtoull(token + 1, NULL, 10);
	return 0;
}

static int by_reference(const void *a, const void *b)
{
	const json_t *const *x = a;
	const json_t *const *y = b;
	int order = strcmp(text_of(*x, "reference"), text_of(*y, "reference"));

	return order ? order : strcmp(text_of(*x, "id"), text_of(*y, "id"));
}

static void put_rows(struct json_out *j, const json_t **rows, size_t count, const struct page *p)
{
	char token[PAGE_TOKEN_LEN];

	json_object_begin(j, NULL);
	json_array_begin(j, "images");
	for (uint64_t i = p->first; i < count && i - p->first < p->size; i++) {
		json_object_begin(j, NULL);
		api_put_image(j, rows[i]);
		json_object_end(j);
	}
	json_array_end(j);
	if (p->first + p->size < count) {
		(void)snprintf(
		    token, sizeof(token), "i%llu", (unsigned long long)(p->first + p->size));
		json_put_string(j, "next_page_token", token);
	} else {
		json_put_null(j, "next_page_token");
	}
	json_object_end(j);
}

static void reply_list(
    const struct sbxd *s, struct client *c, const json_t *result, const struct page *p)
{
	const json_t *stored = api_image_rows(result);
	json_t *own = api_configured_image(s);
	const json_t **rows = calloc(json_array_size(stored) + 1, sizeof(*rows));
	size_t count = 0;
	struct json_out j;
	struct buf out;
	json_t *row;
	size_t i;

	if (!rows) {
		client_reply_error(c, API_INTERNAL, "out of memory");
		json_decref(own);
		return;
	}
	json_array_foreach(stored, i, row) rows[count++] = row;
	if (own)
		rows[count++] = own;
	qsort(rows, count, sizeof(*rows), by_reference);
	buf_init(&out, IMAGE_JSON_MAX);
	json_out_init(&j, &out);
	put_rows(&j, rows, count, p);
	client_reply_out(c, 200, &j);
	buf_free(&out);
	free(rows);
	json_decref(own);
}

static void reply_one(struct client *c, const json_t *row)
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

static const json_t *find_row(const json_t *result, const json_t *own, const char *name)
{
	json_t *row;
	size_t i;

	if (own && api_image_is(own, name))
		return own;
	json_array_foreach(api_image_rows(result), i, row)
	{
		if (api_image_is(row, name))
			return row;
	}
	return NULL;
}

/* Who asked what; named by the client's number, so that the order ends with either. */
struct question {
	struct sbxd *s;
	uint64_t req;
	bool list;
	bool head;
	struct page page;
	char name[ROUTE_TEXT];
};

static void answer(const struct question *q, struct client *c, const json_t *result)
{
	json_t *own = api_configured_image(q->s);
	const json_t *row = find_row(result, own, q->name);
	char text[ROUTE_TEXT + 32];

	(void)snprintf(text, sizeof(text), "image not found: %s", q->name);
	if (!row)
		client_reply_error(c, API_NOT_FOUND, text);
	else if (q->head)
		client_reply_empty(c, 204, NULL);
	else
		reply_one(c, row);
	json_decref(own);
}

static void on_listed(
    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	struct question *q = (void *)(uintptr_t)ctx;
	struct client *c = client_by_req(s->clients, q->req);

	if (c && done->code)
		client_reply_error(
		    c, done->code == ECANCELED ? API_SHUTTING_DOWN : API_INTERNAL, done->text);
	else if (c && q->list)
		reply_list(s, c, result, &q->page);
	else if (c)
		answer(q, c, result);
	free(q);
}

/* It waits for the answer also when its client has left: that takes milliseconds. */
static void ask(struct sbxd *s, struct client *c, const struct question *question)
{
	struct question *q = malloc(sizeof(*q));
	int rc = -ENOMEM;

	if (q) {
		*q = *question;
		q->s = s;
		q->req = client_req(c);
		rc = image_job_order(s, CTL_IMAGE_LIST, "",
		    &(struct image_hook){.ctx = (uint64_t)(uintptr_t)q, .done = on_listed});
	}
	if (rc == 0) {
		client_wait(c);
		return;
	}
	free(q);
	client_reply_error(
	    c, rc == -EAGAIN ? API_TOO_MANY : API_INTERNAL, "too much is asked about images");
}

void api_list_images(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct question q = {.list = true};
	struct err err = {0};

	if (parse_page(call->head->query, &q.page, &err) < 0)
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	else
		ask(s, c, &q);
}

void api_get_image(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct question q = {.head = call->head->method == HTTP_HEAD};

	(void)snprintf(q.name, sizeof(q.name), "%s", call->match->id);
	ask(s, c, &q);
}
