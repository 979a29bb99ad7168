/*
 * image_job_order: orders about images and templates on their way to a process, and who waits for
 * them. Runs in sbxd; when sbxd dies, whoever waits sees its connection end.
 */
#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image_ref.h"
#include "supervisor/image_job_int.h"
#include "supervisor/sbxd.h"

#define JOBS_MAX 64   /* that run or wait */
#define BUILDS_MAX 16 /* of them: each takes minutes, and what others want pulled needs a place */

static struct image_job *find_pull(const struct sbxd *s, const char *image)
{
	char normal[IMAGE_NORMAL_LEN];
	struct image_ref ref;
	struct image_job *j;

	if (image_ref_parse(image, &ref, &(struct err){0}) < 0)
		return NULL;
	image_ref_print(&ref, normal);
	TAILQ_FOREACH (j, &s->image_jobs->list, link) {
		if (j->op == CTL_IMAGE_PULL && !strcmp(j->normal, normal))
			break;
	}
	return j;
}

static struct image_job *job_new(struct sbxd *s, enum ctl_image_op op, const char *image)
{
	struct image_job *j = calloc(1, sizeof(*j));
	struct image_ref ref;

	if (!j)
		return NULL;
	j->s = s;
	j->op = op;
	j->pidfd = j->ctl = j->result = j->pid_watch.fd = j->ctl_watch.fd = -1;
	j->prepared = j->hold = -1;
	TAILQ_INIT(&j->hooks);
	(void)strlcpy(j->image, image, sizeof(j->image));
	(void)strlcpy(j->progress.stage, "waiting", sizeof(j->progress.stage));
	if (op == CTL_IMAGE_PULL && image_ref_parse(image, &ref, &(struct err){0}) == 0)
		image_ref_print(&ref, j->normal);
	TAILQ_INSERT_TAIL(&s->image_jobs->list, j, link);
	s->image_jobs->count++;
	return j;
}

/* Somebody waits for it from now on; without memory a new one is none. */
static int job_hook(struct image_job *j, const struct image_hook *hook)
{
	struct job_hook *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->hook = *hook;
	TAILQ_INSERT_TAIL(&j->hooks, h, link);
	return 0;
}

static int job_begin(struct image_job *j, bool fresh, const struct image_hook *hook)
{
	struct sbxd *s = j->s;
	int rc = job_hook(j, hook);

	if (rc < 0 && fresh)
		image_job_free(j);
	if (rc == 0)
		image_jobs_start_waiting(s);
	return rc;
}

static bool is_full(const struct sbxd *s)
{
	return s->image_jobs->canceled || s->image_jobs->count >= JOBS_MAX;
}

int image_job_order(
    struct sbxd *s, enum ctl_image_op op, const char *image, const struct image_hook *hook)
{
	struct image_job *j = op == CTL_IMAGE_PULL ? find_pull(s, image) : NULL;
	bool fresh = !j;

	if (s->image_jobs->canceled || (fresh && is_full(s)))
		return -EAGAIN;
	if (fresh)
		j = job_new(s, op, image);
	return j ? job_begin(j, fresh, hook) : -ENOMEM;
}

static bool is_full_of_builds(const struct sbxd *s)
{
	const struct image_job *j;
	uint32_t builds = 0;

	TAILQ_FOREACH (j, &s->image_jobs->list, link)
		builds += j->op == CTL_TEMPLATE_BUILD;
	return builds >= BUILDS_MAX;
}

static int copy_fd(int fd, int *out)
{
	*out = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0 && *out < 0 ? -errno : 0;
}

int image_job_build(struct sbxd *s, const struct image_build *build, const struct image_hook *hook)
{
	struct image_job *j;
	int rc;

	if (is_full(s) || is_full_of_builds(s))
		return -EAGAIN;
	j = job_new(s, CTL_TEMPLATE_BUILD, build->spec->image);
	if (!j)
		return -ENOMEM;
	j->memory_mib = build->spec->memory_mib;
	j->cpus_milli = build->spec->cpus_milli;
	j->disk_mib = build->spec->disk_mib;
	rc = copy_fd(build->prepared, &j->prepared);
	if (rc == 0)
		rc = copy_fd(build->hold, &j->hold);
	if (rc < 0) {
		image_job_free(j);
		return rc;
	}
	return job_begin(j, true, hook);
}

void image_job_unhook(struct sbxd *s, uint64_t ctx)
{
	struct image_job *j;
	struct job_hook *h;
	struct job_hook *next;

	TAILQ_FOREACH (j, &s->image_jobs->list, link) {
		TAILQ_FOREACH_SAFE (h, &j->hooks, link, next) {
			if (h->hook.ctx != ctx)
				continue;
			TAILQ_REMOVE(&j->hooks, h, link);
			free(h);
		}
	}
}

bool image_job_progress(const struct sbxd *s, const char *image, struct ctl_progress *out)
{
	const struct image_job *j = find_pull(s, image);

	if (j)
		*out = j->progress;
	return j != NULL;
}
