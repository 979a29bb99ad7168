/*
 * image_job: orders about the image store. Runs in sbxd; when sbxd dies, the processes see their
 * control socket end and exit, and what they were making is removed by the next one.
 */
#include "supervisor/image_job_int.h"

#include <bsd/string.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "supervisor/images.h"
#include "supervisor/sbxd.h"
#include "wire/json.h"

#define JOBS_AT_ONCE 8
#define PULLS_AT_ONCE 2
#define BUILDS_AT_ONCE 1 /* each boots a machine, under uids that are one machine's */
#define RESULT_MAX (4L * 1024 * 1024)

/* ---- the end of one ---- */

static json_t *read_result(const struct image_job *j)
{
	struct err err = {0};
	struct stat st;
	uint8_t *text;
	json_t *o = NULL;

	if (fstat(j->result, &st) < 0 || st.st_size <= 0 || st.st_size > RESULT_MAX)
		return NULL;
	text = malloc((size_t)st.st_size);
	if (text && pread(j->result, text, (size_t)st.st_size, 0) == st.st_size)
		o = json_parse_object(text, (size_t)st.st_size, &err);
	free(text);
	return o;
}

void image_job_free(struct image_job *j)
{
	struct job_hook *h;
	struct loop *l = j->s->loop;

	TAILQ_REMOVE(&j->s->image_jobs->list, j, link);
	j->s->image_jobs->count--;
	while ((h = TAILQ_FIRST(&j->hooks))) {
		TAILQ_REMOVE(&j->hooks, h, link);
		free(h);
	}
	loop_del(l, &j->ctl_watch);
	loop_del(l, &j->pid_watch);
	loop_timer_clear(l, &j->timer);
	fd_close(&j->ctl);
	fd_close(&j->pidfd);
	fd_close(&j->result);
	fd_close(&j->prepared);
	fd_close(&j->hold);
	free(j);
}

/* Whoever is told may order again, or unhook another. */
static void tell_all(struct image_job *j)
{
	struct sbxd *s = j->s;
	struct job_hook *h;
	json_t *result = j->done.code == 0 ? read_result(j) : NULL;

	while ((h = TAILQ_FIRST(&j->hooks))) {
		struct image_hook hook = h->hook;

		TAILQ_REMOVE(&j->hooks, h, link);
		free(h);
		hook.done(s, hook.ctx, &j->done, result);
	}
	json_decref(result);
}

/* So that whoever reads it knows what it was about. */
static void name_failure(struct image_job *j)
{
	char text[CTL_WHY + sizeof(j->image) + 32]; /* what is too long is cut when it is copied */

	if (j->op == CTL_IMAGE_PULL && j->done.code != ECANCELED) {
		(void)snprintf(
		    text, sizeof(text), "%s cannot be pulled: %s", j->image, j->done.text);
		(void)strlcpy(j->done.text, text, sizeof(j->done.text));
	} else if (j->op == CTL_TEMPLATE_BUILD && j->done.code != ECANCELED) {
		(void)snprintf(text, sizeof(text), "no template of %s could be made: %s", j->image,
		    j->done.text);
		(void)strlcpy(j->done.text, text, sizeof(j->done.text));
	}
	if (j->done.code != ECANCELED)
		log_warn("images: %s", j->done.text);
}

static void ignore_done(
    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	(void)s;
	(void)ctx;
	(void)done; /* a failure is logged */
	(void)result;
}

void image_job_sweep(struct sbxd *s)
{
	/* If there are too many orders, a later one does it. */
	(void)image_job_order(s, CTL_IMAGE_SWEEP, "", &(struct image_hook){.done = ignore_done});
}

void image_job_end(struct image_job *j)
{
	struct sbxd *s = j->s;
	bool left = j->done.code && (j->op == CTL_TEMPLATE_BUILD || j->op == CTL_TEMPLATE_REMOVE);

	j->running = false;
	if (j->op == CTL_IMAGE_PULL && j->done.code == 0) {
		log_info("image %s is here", j->image);
		images_renew(s, j->image);
	} else if (j->done.code) {
		name_failure(j);
	}
	/* One that comes now begins another. */
	j->normal[0] = '\0';
	tell_all(j);
	image_job_free(j);
	if (left)
		image_job_sweep(s); /* it may have died in the middle */
	image_jobs_start_waiting(s);
}

void image_job_set_done(struct image_job *j, int code, const char *text)
{
	j->answered = true;
	j->done = (struct ctl_done){.code = code};
	(void)strlcpy(j->done.text, text, sizeof(j->done.text));
}

static uint32_t at_once(enum ctl_image_op op)
{
	return op == CTL_IMAGE_PULL	  ? PULLS_AT_ONCE
	       : op == CTL_TEMPLATE_BUILD ? BUILDS_AT_ONCE
					  : JOBS_AT_ONCE;
}

void image_jobs_start_waiting(struct sbxd *s)
{
	uint32_t running[CTL_IMAGE_OPS] = {0};
	uint32_t all = 0;
	struct image_job *j;

	if (s->image_jobs->canceled)
		return;
	TAILQ_FOREACH (j, &s->image_jobs->list, link) {
		all += j->running;
		running[j->op] += j->running;
	}
	TAILQ_FOREACH (j, &s->image_jobs->list, link) {
		if (j->running || all >= JOBS_AT_ONCE || running[j->op] >= at_once(j->op))
			continue;
		all++;
		running[j->op]++;
		image_job_start(j);
	}
}

/* ---- all of them ---- */

struct image_jobs *image_jobs_create(void)
{
	struct image_jobs *jobs = calloc(1, sizeof(*jobs));

	if (jobs)
		TAILQ_INIT(&jobs->list);
	return jobs;
}

void image_jobs_cancel(struct sbxd *s)
{
	struct image_job *j;
	struct image_job *next;

	if (!s->image_jobs)
		return;
	s->image_jobs->canceled = true;
	TAILQ_FOREACH_SAFE (j, &s->image_jobs->list, link, next) {
		if (!j->answered)
			image_job_set_done(j, ECANCELED, "sbxd is shutting down");
		if (j->pidfd >= 0) /* its exit ends the order */
			(void)proc_signal(j->pidfd, SIGKILL);
		else
			image_job_end(j);
	}
}

void image_jobs_free(struct sbxd *s)
{
	struct image_job *j;

	if (!s->image_jobs)
		return;
	while ((j = TAILQ_FIRST(&s->image_jobs->list))) {
		if (j->pidfd >= 0)
			(void)proc_signal(j->pidfd, SIGKILL); /* init reaps it */
		image_job_free(j);
	}
	free(s->image_jobs);
	s->image_jobs = NULL;
}

/* What a client is told of what an order came to: one about images, one about templates. */
static const struct job_error {
	int32_t code;
	enum api_error image;
	enum api_error template;
} job_errors[] = {
    {0, API_OK, API_OK},
    {ENOENT, API_IMAGE_PULL_FAILED, API_NOT_FOUND},
    {EBUSY, API_IMAGE_PULL_FAILED, API_INVALID_STATE},
    {EOPNOTSUPP, API_IMAGE_PULL_FAILED, API_UNSUPPORTED},
    {ENOSPC, API_NO_SPACE, API_NO_SPACE},
    {EDQUOT, API_NO_SPACE, API_NO_SPACE},
    {ECANCELED, API_SHUTTING_DOWN, API_SHUTTING_DOWN},
    {ENOMEM, API_INTERNAL, API_INTERNAL},
    {EMFILE, API_TOO_MANY, API_TOO_MANY},
    {EAGAIN, API_TOO_MANY, API_TOO_MANY},
};

static const struct job_error *find_error(int32_t code)
{
	static const struct job_error other = {
	    .image = API_IMAGE_PULL_FAILED, .template = API_BOOT_FAILED};

	for (size_t i = 0; i < sizeof(job_errors) / sizeof(job_errors[0]); i++) {
		if (job_errors[i].code == code)
			return &job_errors[i];
	}
	return &other;
}

enum api_error image_job_error(int32_t code)
{
	return find_error(code)->image;
}

enum api_error template_error(int32_t code)
{
	return find_error(code)->template;
}
