/*
 * api_box_list: GET /v1/boxes. Runs in sbxd; holds no state.
 *
 * Boxes are listed in the order of their generations, which only grow: so a page goes on where the
 * one before it ended, whatever came and went in between, and nothing is listed twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/names.h"
#include "supervisor/api_box.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define LIST_JSON_MAX (48U * 1024U * 1024U)
#define LIST_PAGE_MAX 1000U
#define LIST_TOKEN_LEN 24

/* What is asked for. */
struct list_query {
	uint64_t after; /* generation */
	uint32_t page;	/* UINT32_MAX: all there are */
	bool all_uids;
	bool any_status;
	enum shm_box_status status;
};

/* A page token: the generation of the last box that was shown. */
static int parse_token(const char *text, uint64_t *out)
{
	char *end;
	unsigned long long v;

	if (*text != 'g' || strspn(text + 1, "0123456789abcdef") != strlen(text + 1) ||
	    strlen(text) > 17 || !text[1])
		return -EINVAL;
	v = strtoull(text + 1, &end, 16);
	*out = v;
	return 0;
}

static int parse_status(const char *text, enum shm_box_status *out)
{
	for (uint32_t i = 0; i < BOX_STATUSES; i++) {
		if (strcmp(shm_box_status_name(i), text) != 0)
			continue;
		*out = (enum shm_box_status)i;
		return 0;
	}
	return -EINVAL;
}

/* 0, or -EINVAL with *err. */
static int parse_query(const char *query, struct list_query *q, struct err *err)
{
	uint64_t page = UINT32_MAX;
	char text[LIST_TOKEN_LEN];
	int rc;

	*q = (struct list_query){.any_status = true};
	if (http_query_number(query, "pageSize", 10, 1, LIST_PAGE_MAX, &page, err) < 0 ||
	    http_query_flag(query, "all", &q->all_uids, err) < 0)
		return -EINVAL;
	q->page = (uint32_t)page;
	rc = http_query_get(query, "pageToken", text, sizeof(text)); /* "": the first page */
	if (rc != 0 && rc != -ENOENT && (rc < 0 || parse_token(text, &q->after) < 0))
		return err_set(err, EINVAL, "\"pageToken\" is none that was given out");
	rc = http_query_text(query, "status", text, sizeof(text), err);
	q->any_status = rc == 0;
	if (rc > 0 && parse_status(text, &q->status) < 0)
		rc = err_set(err, EINVAL, "\"status\": no box is ever at that");
	return rc < 0 ? rc : 0;
}

/* An admin may ask for those of other uids, too, and for what is nobody's: the stock, and slots of
 * which nobody knows whose they were. */
static bool is_listed(const struct list_query *q, const struct client *c, const struct pool_box *b)
{
	if (b->state == SLOT_FREE || b->generation <= q->after)
		return false;
	if (!(q->all_uids && client_is_admin(c)) && (b->uid != client_uid(c) || !b->token[0]))
		return false;
	return q->any_status || q->status == shm_box_status(b->state, b->flags);
}

static int by_generation(const void *a, const void *b)
{
	const struct pool_box *const *x = a;
	const struct pool_box *const *y = b;

	return (*x)->generation < (*y)->generation ? -1 : (*x)->generation > (*y)->generation;
}

static void put_page(struct json_out *j, const struct sbxd *s, const struct client *c,
    const struct pool_box *const *found, uint32_t count, uint32_t page)
{
	char token[LIST_TOKEN_LEN];

	json_array_begin(j, "boxes");
	for (uint32_t i = 0; i < count && i < page; i++) {
		json_object_begin(j, NULL);
		api_put_box(j, s, client_uid(c), found[i]);
		json_object_end(j);
	}
	json_array_end(j);
	if (count <= page)
		return;
	(void)snprintf(
	    token, sizeof(token), "g%llx", (unsigned long long)found[page - 1]->generation);
	json_put_string(j, "next_page_token", token);
}

void api_list_boxes(struct sbxd *s, struct client *c, const struct route_call *call)
{
	uint32_t slots = pool_rules(s->pool)->slots;
	const struct pool_box **found;
	struct list_query q;
	struct err err = {0};
	uint32_t count = 0;
	struct json_out j;
	struct buf out;

	if (parse_query(call->head->query, &q, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
		return;
	}
	found = calloc(slots, sizeof(struct pool_box *));
	if (!found) {
		client_reply_error(c, API_INTERNAL, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < slots; i++) {
		if (is_listed(&q, c, pool_box_at(s->pool, i)))
			found[count++] = pool_box_at(s->pool, i);
	}
	qsort((void *)found, count, sizeof(struct pool_box *), by_generation);
	buf_init(&out, LIST_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_page(&j, s, c, found, count, q.page);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
	free((void *)found);
}
