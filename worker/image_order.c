/*
 * image_order: one order of sbxd's about the image store, or about templates. If it dies, sbxd
 * tells who waits, and what it was making is removed by the next one. If sbxd dies, the control
 * socket ends, and so does it.
 */
#include "worker/image_order.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/image/pull.h"
#include "drivers/image/trim.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "wire/control.h"
#include "worker/image_order_int.h"

#define RESULT_MAX (4U * 1024U * 1024U)
#define ORDER_MS 60000 /* to the order */

/* ---- results ---- */

static void put_image(
    struct json_out *j, const struct image_entry *e, const struct image_name *name)
{
	json_object_begin(j, NULL);
	json_put_string(j, "reference", name ? name->normal : NULL);
	json_put_string(j, "asked", name ? name->reference : NULL);
	json_put_string(j, "id", e->id);
	json_put_string(j, "source", name && name->source[0] ? name->source : NULL);
	json_put_uint(j, "size_bytes", e->size);
	json_put_uint(j, "files", e->files);
	json_put_uint(j, "made_wall_ms", e->made_wall_ms);
	json_put_uint(j, "used_wall_ms", e->used_wall_ms);
	json_put_bool(j, "in_use", e->in_use);
	json_object_end(j);
}

/* One row for each name, and one for each image that has none. only: "" all, else that name. */
static void put_census(struct json_out *j, const struct image_census *c, const char *only)
{
	json_object_begin(j, NULL);
	json_array_begin(j, "images");
	for (size_t i = 0; i < c->count; i++) {
		bool named = false;

		for (size_t k = 0; k < c->name_count; k++) {
			if (strcmp(c->names[k].id, c->images[i].id) != 0)
				continue;
			named = true;
			if (!*only || !strcmp(only, c->names[k].normal))
				put_image(j, &c->images[i], &c->names[k]);
		}
		if (!named && !*only)
			put_image(j, &c->images[i], NULL);
	}
	json_array_end(j);
	json_object_end(j);
}

static int put_list(const struct image_job *job, const char *only, struct err *err)
{
	struct image_census c = {0};
	struct image_store s;
	int rc = image_store_open(job->site->state_dir, false, &s, err);

	if (rc == 0) {
		rc = image_census_take(&s, &c);
		image_store_close(&s);
	} else if (rc == -ENOENT) { /* nothing was ever pulled */
		*err = (struct err){0};
		rc = 0;
	}
	if (rc < 0)
		return err_sys(err, -rc, "look through the images");
	put_census(job->result, &c, only);
	image_census_free(&c);
	return 0;
}

/* ---- pulling ---- */

void image_order_tell(const char *stage, uint64_t done, uint64_t total)
{
	struct ctl_progress body = {.done = done, .total = total};

	(void)snprintf(body.stage, sizeof(body.stage), "%s", stage);
	/* Where sbxd has not read the last one, this one is of no use to it. */
	(void)ctl_send(CTL_FD_CONTROL, CTL_PROGRESS, 0, 0, &body, NULL, 0, -1);
}

static void tell_progress(void *ctx, const struct pull_progress *p)
{
	(void)ctx;
	image_order_tell(pull_stage_name(p->stage), p->done, p->total);
}

static int job_pull(const struct image_job *job, struct err *err)
{
	struct pull_order order = {
	    .reference = job->order->image,
	    /* Below all that boxes have: nobody's else. */
	    .uid = job->site->uid_base ? job->site->uid_base - 1 : 0,
	    .hangup = CTL_FD_CONTROL,
	    .progress = tell_progress,
	};
	char normal[IMAGE_NORMAL_LEN];
	char id[IMAGE_DIGEST_LEN];
	int rc = image_ref_parse(order.reference, &order.ref, err);

	if (rc < 0)
		return rc;
	if (order.ref.kind != IMAGE_KIND_REGISTRY && order.ref.kind != IMAGE_KIND_OCI)
		return err_set(err, ENOENT,
		    "image %s is not here, and nothing says where it can be had", order.reference);
	image_settings_read(&job->site->options, &order.settings);
	rc = image_pull(job->site, &order, id, err);
	image_ref_print(&order.ref, normal);
	return rc == 0 ? put_list(job, normal, err) : rc;
}

static int job_list(const struct image_job *job, struct err *err)
{
	return put_list(job, "", err);
}

/* ---- the order ---- */

static int (*const jobs[CTL_IMAGE_OPS])(const struct image_job *job, struct err *err) = {
    [CTL_IMAGE_PULL] = job_pull,
    [CTL_IMAGE_LIST] = job_list,
    [CTL_IMAGE_REMOVE] = image_order_remove,
    [CTL_IMAGE_PRUNE] = image_order_prune,
    [CTL_IMAGE_SWEEP] = image_order_sweep,
    [CTL_TEMPLATE_LIST] = template_order_list,
    [CTL_TEMPLATE_BUILD] = template_order_build,
    [CTL_TEMPLATE_REMOVE] = template_order_remove,
};

static int write_result(int fd, const struct json_out *j, struct err *err)
{
	int rc = json_out_error(j);

	if (rc == 0 && j->b->len > 0 &&
	    pwrite(fd, buf_head(j->b), j->b->len, 0) != (ssize_t)j->b->len)
		rc = -EIO;
	return rc < 0 ? err_sys(err, -rc, "write the result") : 0;
}

static int carry_out(const struct ctl_msg *msg, struct image_job *job, struct err *err)
{
	const struct ctl_image *order = &msg->body.image;
	const struct driver_site site = {
	    .instance = order->site.instance,
	    .state_dir = order->site.state_dir,
	    .runtime_dir = order->site.runtime_dir,
	    .uid_base = order->site.uid_base,
	    .prepared = order->op == CTL_TEMPLATE_BUILD ? CTL_FD_PREPARED : -1,
	    .options = {.data = (const char *)msg->tail, .len = msg->tail_len},
	};
	struct json_out j;
	struct buf out;
	int rc;

	if (order->op >= CTL_IMAGE_OPS || !jobs[order->op])
		return err_set(err, EBADMSG, "there is no such order about images");
	buf_init(&out, RESULT_MAX);
	json_out_init(&j, &out);
	job->site = &site;
	job->order = order;
	job->result = &j;
	rc = jobs[order->op](job, err);
	if (rc == 0)
		rc = write_result(msg->fd, &j, err);
	buf_free(&out);
	return rc;
}

static int given(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

int image_order_main(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLIN};
	uint8_t *packet = malloc(CTL_MSG_MAX);
	/* Before anything else gets a number. */
	struct image_job job = {.guest = given(CTL_FD_GUEST), .helper = given(CTL_FD_HELPER)};
	struct ctl_done done = {0};
	struct err err = {0};
	struct ctl_msg msg;
	int rc;

	/* A terminal's interrupt is for sbxd, which ends us. */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	if (!packet || poll(&p, 1, ORDER_MS) <= 0 || ctl_recv(CTL_FD_CONTROL, packet, &msg) <= 0 ||
	    msg.head.type != CTL_IMAGE) {
		log_error("no order about images came");
		return 1;
	}
	rc = carry_out(&msg, &job, &err);
	FAULT_POINT("image.done");
	done.code = -rc;
	(void)snprintf(done.text, sizeof(done.text), "%s", rc < 0 ? err.text : "");
	p.events = POLLOUT;
	do {
		rc = ctl_send(CTL_FD_CONTROL, CTL_DONE, msg.head.seq, 0, &done, NULL, 0, -1);
	} while (rc == -EAGAIN && poll(&p, 1, -1) > 0);
	return rc < 0;
}
