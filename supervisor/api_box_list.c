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

static int parse_size(const char *text, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v == 0 || v > LIST_PAGE_MAX)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

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

/* 0, or -EINVAL with *what: the parameter that is wrong. */
static int parse_query(const char *query, struct list_query *q, const char **what)
{
	char text[LIST_TOKEN_LEN];
	int rc;

	*q = (struct list_query){.page = UINT32_MAX};
	*what = "pageSize: 1 to 1000 is expected";
	rc = http_query_get(query, "pageSize", text, sizeof(text));
	if (rc != -ENOENT && (rc < 0 || parse_size(text, &q->page) < 0))
		return -EINVAL;
	*what = "pageToken: this is none of ours";
	rc = http_query_get(query, "pageToken", text, sizeof(text));
	if (rc != -ENOENT && (rc < 0 || parse_token(text, &q->after) < 0))
		return -EINVAL;
	*what = "status: no box is ever at that";
	rc = http_query_get(query, "status", text, sizeof(text));
	q->any_status = rc == -ENOENT;
	if (rc != -ENOENT && (rc < 0 || parse_status(text, &q->status) < 0))
		return -EINVAL;
	*what = "all: 0, 1, true or false is expected";
	rc = http_query_flag(query, "all", &q->all_uids);
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
	const char *what;
	uint32_t count = 0;
	struct json_out j;
	struct buf out;

	if (parse_query(call->head->query, &q, &what) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, what);
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
