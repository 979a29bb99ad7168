/*
 * cli_events: sbxctl events: the flight recorder, read from the shared table, so that it works when
 * sbxd hangs or is dead. Read-only: dying here disturbs nobody.
 */
#include "tools/cli_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "shm/reader.h"
#include "shm/ring.h"
#include "tools/cli_show.h"
#include "tools/cli_view.h"

#define EVENTS_BATCH 256
#define EVENTS_MISSES 20 /* ticks until it is said why there is no table */

struct events {
	const struct cli *cli;
	const char *name;
	struct cli_screen screen; /* a window that grows later is not noticed */
	struct reader table;
	ino_t inode;
	uint64_t next; /* the record to be read */
	uint64_t lost; /* overwritten before it was read, and not yet said */
	int misses;    /* how often the table was looked for in vain */
};

void cli_events_put(const struct cli *cli, FILE *f, const struct cli_screen *s, const json_t *event)
{
	if (cli->json) {
		(void)json_dumpf(event, f, JSON_COMPACT); /* the stream remembers errors */
		(void)fputc('\n', f);
	} else {
		cli_put_event(f, s, event);
	}
}

int cli_events_pause(const struct cli *cli, uint64_t span)
{
	/* With no event asked for, only its end is told. */
	int rc = httpc_wait(STDOUT_FILENO, 0, cli->signal_fd, clock_now_ns() + span);

	if (rc == 0)
		return -EPIPE;
	return rc == -ETIMEDOUT ? 0 : rc;
}

int cli_events_end(int rc)
{
	struct err err;

	if (rc == 0 || rc == -EPIPE || rc == -ECANCELED)
		return CLI_OK;
	(void)err_sys(&err, -rc, "cannot write");
	return cli_fail("stdout", &err);
}

static void put_lost(struct events *e, FILE *f)
{
	json_t *o;

	if (e->lost == 0)
		return;
	o = json_pack("{s:s, s:I, s:s}", "kind", "lost", "count", (json_int_t)e->lost, "reason",
	    "overwritten before it was read");
	cli_events_put(e->cli, f, &e->screen, o);
	json_decref(o);
	e->lost = 0;
}

/* Prints some records. 1: there may be more; 0: that was all; or -errno of the output. */
static int print_some(struct events *e)
{
	struct shm_event ev;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int n = 0;
	int rc;

	if (!f)
		return -errno;
	while (n < EVENTS_BATCH && ring_follow(&e->table.seg, &e->next, &ev, &e->lost)) {
		json_t *o = cli_event_json(&ev);

		put_lost(e, f);
		cli_events_put(e->cli, f, &e->screen, o);
		json_decref(o);
		n++;
	}
	rc = fclose(f) == 0 ? cli_write(e->cli, STDOUT_FILENO, text, len) : -errno;
	free(text);
	return rc < 0 ? rc : n == EVENTS_BATCH;
}

static int print_all(struct events *e)
{
	int rc;

	do
		rc = print_some(e);
	while (rc > 0);
	return rc;
}

/* ---- the table, and the one that comes after it ---- */

static int find_inode(const char *name, ino_t *out)
{
	FD_SCOPED int fd = shm_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*out = st.st_ino;
	return 0;
}

/* Attaches to what stands under the name now, and begins with its oldest record. */
static int open_table(struct events *e, struct err *err)
{
	struct reader r;
	ino_t before = 0;
	ino_t after = 0;
	int rc = find_inode(e->name, &before);

	if (rc < 0)
		return err_sys(err, -rc, "shared table %s", e->name);
	rc = reader_open(&r, e->name, err);
	if (rc < 0)
		return rc;
	if (find_inode(e->name, &after) < 0 || after != before) {
		reader_close(&r);
		return err_set(err, EAGAIN, "shared table %s: replaced meanwhile", e->name);
	}
	reader_close(&e->table);
	e->table = r;
	e->inode = before;
	e->next = ring_oldest(&r.seg);
	e->misses = 0;
	return 0;
}

/* A table that is no more stays mapped until there is another one. -errno only of the output. */
static int renew_table(struct events *e)
{
	struct err err = {0};
	ino_t now = 0;
	int rc;

	if (find_inode(e->name, &now) == 0 && now == e->inode)
		return 0;
	rc = print_all(e); /* what was recorded to the very end */
	if (rc < 0)
		return rc;
	if (e->misses == 0)
		(void)fprintf(stderr, "sbxctl: events: the table is gone; waiting for the next\n");
	if (open_table(e, &err) == 0)
		(void)fprintf(stderr, "sbxctl: events: sbxd began a new table\n");
	else if (++e->misses == EVENTS_MISSES && err.code != ENOENT)
		(void)cli_fail("events", &err); /* it may still become better */
	return 0;
}

static int follow_table(struct events *e)
{
	int rc = print_all(e);

	while (rc == 0) {
		rc = cli_events_pause(e->cli, CLI_EVENTS_TICK);
		if (rc == 0)
			rc = print_all(e);
		if (rc == 0)
			rc = renew_table(e);
	}
	return rc;
}

static int show_table(struct events *e, bool follow)
{
	int rc = follow ? follow_table(e) : print_all(e);

	reader_close(&e->table);
	return cli_events_end(rc);
}

static int events_run(struct cli *cli, int argc, char **argv)
{
	struct events e = {.cli = cli, .table.seg.fd = -1};
	bool follow = false;
	int status = cli_parse_all(cli, &follow, argc, argv);
	struct paths p;
	struct err err = {0};

	if (status != CLI_OK)
		return status;
	status = cli_prepare(cli);
	if (status != CLI_OK)
		return status;
	e.name = p.shm_name;
	e.screen = cli_screen_of(STDOUT_FILENO);
	/* A socket alone does not say which table belongs to it. */
	if ((!cli->socket || cli->instance) && cli_paths(cli, &p, &err) == 0 &&
	    open_table(&e, &err) == 0)
		return show_table(&e, follow);
	return cli_events_ask(cli, follow);
}

static const struct cli_option options[] = {
    {"follow", 'f', CLI_OPTION_FLAG, 0, NULL, "go on with what happens", CLI_WORD_OTHER},
};

const struct cli_command cli_events = {
    .name = "events",
    .args = "",
    .help = "show what the flight recorder holds, newest last; -f: and go on",
    CLI_OPTIONS(options),
    .run = events_run,
};
