/*
 * driver_start: the janitor's first orders. Runs in sbxd before it serves; dying here at any point
 * leaves what the next start finds by the table and by name.
 */
#include "supervisor/driver_start.h"

#include <bsd/string.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/image_job.h"
#include "supervisor/images.h"
#include "supervisor/janitor_link.h"
#include "supervisor/notify.h"
#include "supervisor/programs.h"
#include "supervisor/reconcile.h"
#include "supervisor/restore.h"
#include "supervisor/sbxd.h"

/* The answer to what start-up waits for. */
struct awaited {
	bool done;
	struct ctl_done answer;
};

static void on_ordered(
    struct sbxd *s, void *ctx, const struct ctl_done *done, struct janitor_more *more)
{
	struct awaited *a = ctx;

	(void)s;
	(void)more;
	a->answer = *done;
	a->done = true;
}

static void on_image_ready(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done, enum api_error error)
{
	(void)prepared;
	(void)error;
	on_ordered(s, (void *)(uintptr_t)ctx, done, NULL);
}

/* Bounded: the janitor's link, and what pulls images, answer in any case. A service manager is told
 * that a pull may take longer than it would wait. */
static void on_start_up(struct sbxd *s)
{
	struct ctl_progress p;

	if (!image_job_progress(s, s->config.image, &p))
		return;
	(void)notify_try(&s->notify, "EXTEND_TIMEOUT_USEC=30000000"); /* again in a second */
	notify_status(&s->notify, "image %s: %s, %llu of %llu MiB", s->config.image, p.stage,
	    (unsigned long long)(p.done >> 20), (unsigned long long)(p.total >> 20));
}

static int await(struct sbxd *s, struct awaited *a, struct err *err)
{
	int rc = 0;

	while (rc == 0 && !a->done) {
		rc = loop_step(s->loop, NS_PER_S);
		on_start_up(s);
	}
	if (rc < 0)
		return err_sys(err, -rc, "wait for the janitor");
	if (a->answer.code)
		return err_set(err, a->answer.code, "driver %s: %s", s->driver, a->answer.text);
	return 0;
}

static int order_and_wait(
    struct sbxd *s, enum ctl_type type, int fd, struct awaited *a, struct err *err)
{
	struct ctl_prepare body = {0};
	int rc;

	*a = (struct awaited){0};
	sbxd_fill_site(s, &body.site);
	rc = janitor_order(s, &(struct janitor_order){
				  .type = type,
				  .body = &body,
				  .len = sizeof(body),
				  .fd = fd,
				  .fn = on_ordered,
				  .ctx = a,
			      });
	return rc < 0 ? err_sys(err, -rc, "%s", ctl_type_name(type)) : await(s, a, err);
}

/* Boxes that nobody knows go; and where there is none at all, what they had in common. */
static int clean_up(struct sbxd *s, struct err *err)
{
	FD_SCOPED int kept = reconcile_kept(s);
	struct awaited a;

	if (kept < 0)
		return err_sys(err, -kept, "list the boxes to keep");
	if (order_and_wait(s, CTL_SWEEP, kept, &a, err) < 0) {
		/* What cannot be cleaned up now keeps nobody from being served. */
		log_error("%s", err->text);
		*err = (struct err){0};
	}
	if (a.answer.count)
		log_warn("%u boxes that a dead supervisor left were cleaned up", a.answer.count);
	if (a.answer.missing)
		log_error("%u boxes of living workers are not there: their workers will say so",
		    a.answer.missing);
	FAULT_POINT("sbxd.start.swept");
	return segment_in_use(&s->seg) ? 0 : order_and_wait(s, CTL_FINISH, -1, &a, err);
}

static int prepare_image(struct sbxd *s, struct err *err)
{
	struct awaited a = {0};
	int rc;

	image_need(s, s->config.image, on_image_ready, (uint64_t)(uintptr_t)&a);
	rc = await(s, &a, err);
	if (rc < 0)
		return rc;
	if (a.answer.warning[0])
		log_warn("driver %s: %s", s->driver, a.answer.warning);
	return 0;
}

int driver_begin(struct sbxd *s, struct err *err)
{
	uint32_t alive;
	int rc;

	(void)strlcpy(s->driver, s->config.driver, sizeof(s->driver));
	rc = config_options(&s->config, &s->options);
	if (rc < 0)
		return err_sys(err, -rc, "the settings of drivers");
	rc = programs_find(s, err);
	if (rc == 0)
		rc = janitor_start(s, err);
	if (rc < 0)
		return rc;
	alive = restore_boxes(s);
	if (alive)
		log_info("%u boxes of the last supervisor live on", alive);
	reconcile_strays(s);
	image_job_sweep(s);
	FAULT_POINT("sbxd.start.restored");
	rc = clean_up(s, err);
	if (rc == 0 && !s->shutting_down &&
	    !s->leaving) /* who ends meanwhile wants no more of it */
		rc = prepare_image(s, err);
	if (rc == 0)
		sbxd_settle(s);
	return rc;
}

void driver_abandon(struct sbxd *s)
{
	struct awaited a;
	struct err err = {0};

	if (s->janitor && s->seg.header && !segment_in_use(&s->seg) &&
	    order_and_wait(s, CTL_FINISH, -1, &a, &err) < 0)
		log_error("%s", err.text);
}
