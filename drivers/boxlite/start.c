/*
 * start: a box of BoxLite's, from its name to its stream. Worker, with privileges still. If it
 * dies, the record says which sbx-boxlite had the box, and its name finds the box itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/boxlite/boxlite.h"
#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define START_OPEN_MS 10000
#define START_UNDO_MS 5000

struct start {
	const struct driver_site *site;
	const struct driver_spec *spec;
	struct driver_options options;
	struct place place;
	struct driver_box *box;
	char home[PLACE_LEN];
	int stream[2];
	bool recorded;
};

static uint32_t start_left(const struct start *s, uint32_t most)
{
	uint64_t now = clock_now_ns();
	uint64_t deadline = s->spec->deadline_ns;
	uint64_t left = deadline > now ? (deadline - now) / NS_PER_MS : 0;

	return left < most ? (uint32_t)left : most;
}

static int start_home(struct start *s, struct err *err)
{
	char image[PLACE_LEN];

	s->home[0] = '\0';
	if (s->place.remote)
		return 0;
	if (place_home(&s->place, s->spec->name, s->home) < 0 ||
	    place_image(&s->place, s->spec->image, image) < 0)
		return err_set(
		    err, ENAMETOOLONG, "box %s: its home's path is too long", s->spec->name);
	return s->spec->take_over ? 0 : place_make_home(image, s->home, err);
}

/* The sbx-boxlite of the dead worker may be on its way out still, with the home locked. */
static int start_alone(struct start *s, struct err *err)
{
	const char *name = s->spec->name;
	struct stat st;
	int rc = boxlite_kill_recorded(&s->place, name);

	if (rc < 0)
		return err_sys(err, -rc, "end the sbx-boxlite of box %s", name);
	FAULT_POINT("driver.boxlite.alone");
	rc = record_remove(s->place.records, name);
	if (rc < 0)
		return err_sys(err, -rc, "take over the record of box %s", name);
	s->recorded = true; /* whatever becomes of it, the box is ours */
	if (!s->place.remote && place_home(&s->place, name, s->home) == 0 && stat(s->home, &st) < 0)
		return err_sys(err, errno, "take over box %s", name);
	return 0;
}

/* Before the box may be there, so that whatever is there of it is found. A record that is there
 * already is that of another: the name is in use. */
static int start_program(struct start *s, struct err *err)
{
	struct link *l = &s->box->link;
	int rc = link_open(l, err);

	if (rc < 0)
		return rc;
	rc = record_write(s->place.records, s->spec->name, l->pid, l->start);
	if (rc < 0)
		return err_sys(err, -rc, "leave a record of box %s", s->spec->name);
	s->recorded = true;
	if (s->spec->born)
		s->spec->born(s->spec->born_ctx, l->pid, l->start);
	FAULT_POINT("driver.boxlite.born");
	return 0;
}

static int start_order(struct start *s, struct err *err)
{
	const struct driver_spec *spec = s->spec;
	struct eng_start body = {
	    .memory_mib = spec->memory_mib,
	    .cpus_milli = spec->cpus_milli,
	    .disk_mib = spec->disk_mib,
	    .flags = (spec->helper >= 0 ? ENG_START_HELPER : 0) |
		     (spec->take_over ? ENG_START_TAKE_OVER : 0),
	    .time_ms = start_left(s, UINT32_MAX),
	};
	struct eng_done done = {0};
	int rc;

	if (strlen(spec->image) >= sizeof(body.image))
		return err_set(err, ENAMETOOLONG, "the image's name is too long");
	memcpy(body.name, spec->name, strlen(spec->name));
	memcpy(body.image, spec->image, strlen(spec->image));
	rc = link_order(&s->box->link,
	    &(struct link_order){
		.type = ENG_START,
		.body = &body,
		.time_ms = body.time_ms,
		.fd = s->stream[1],
	    },
	    &done, err);
	s->box->shell = (done.flags & ENG_DONE_SHELL) != 0;
	s->box->outlives = (done.flags & ENG_DONE_OUTLIVES) != 0;
	return rc;
}

static int start_run(struct start *s, struct err *err)
{
	struct eng_done done = {0};
	int rc = start_left(s, UINT32_MAX)
		     ? 0
		     : err_set(err, ETIMEDOUT, "the box was to have started already");

	if (rc == 0 && s->spec->take_over)
		rc = start_alone(s, err);
	if (rc == 0)
		rc = start_program(s, err);
	if (rc == 0)
		rc = start_home(s, err);
	if (FAULT_FAILS("driver.boxlite.started"))
		rc = err_set(err, EIO, "fault");
	if (rc == 0)
		rc = link_open_library(
		    &s->box->link, &s->options, s->home, start_left(s, START_OPEN_MS), &done, err);
	if (rc == 0)
		rc = start_order(s, err);
	if (rc < 0 && proc_was_killed(s->box->link.pidfd, s->box->link.control))
		rc = err_set(err, EOWNERDEAD, "sbx-boxlite was killed");
	FAULT_POINT("driver.boxlite.ordered");
	return rc;
}

/* It was not to wait past its deadline; but what it has begun must not stay. What bears its name
 * and has no record of ours is not ours. */
static void start_undo(struct start *s)
{
	struct err why = {0};

	link_close(&s->box->link, START_UNDO_MS);
	fd_close(&s->stream[0]);
	if (s->recorded &&
	    boxlite_remove_box(s->site, &s->place, &s->options, s->spec->name, &why) == 0)
		(void)record_remove(s->place.records, s->spec->name);
}

static int start_set_up(struct start *s, struct err *err)
{
	int rc = driver_options_load(s->site->prepared, &s->options, err);

	if (rc < 0)
		return rc;
	rc = place_fill(s->site, &s->options, &s->place, err);
	if (rc < 0)
		return rc;
	if (!place_in_use(&s->place))
		return err_set(err, EINVAL, "the boxlite driver was not prepared");
	s->box = calloc(1, sizeof(*s->box));
	if (!s->box)
		return err_sys(err, ENOMEM, "start box %s", s->spec->name);
	s->box->link.control = s->box->link.pidfd = -1;
	s->box->remote = s->place.remote;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s->stream) < 0)
		return err_sys(err, errno, "make a stream for box %s", s->spec->name);
	return 0;
}

int boxlite_start(const struct driver_site *site, const struct driver_spec *spec,
    struct driver_box **box, int *stream, struct err *err)
{
	struct start s = {.site = site, .spec = spec, .stream = {-1, -1}};
	int rc;

	if (!driver_owns_name(site, spec->name))
		return err_set(
		    err, EINVAL, "%s is no box name of instance %s", spec->name, site->instance);
	rc = start_set_up(&s, err);
	if (rc == 0) {
		rc = start_run(&s, err);
		if (rc < 0)
			start_undo(&s);
	}
	driver_options_free(&s.options);
	fd_close(&s.stream[1]);
	if (rc < 0) {
		fd_close(&s.stream[0]);
		free(s.box);
		return rc;
	}
	*box = s.box;
	*stream = s.stream[0];
	return 0;
}
