/*
 * start_setup: what a box's first process is given before there is one. Worker; if it dies here
 * nothing is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/namespace/start.h"
#include "drivers/namespace/userns.h"
#include "lib/fd.h"

#define STREAM_BUFFER (512 * 1024) /* of what the guest sends; the kernel doubles it */
#define CHILD_FD_MIN 10 /* out of the way of the descriptors 0-2 that the child arranges */
#define INODES_BASE 8192U
#define INODES_PER_MIB 256U /* one for each 4 KiB */

static int start_make_pair(int pair[2], struct err *err)
{
	static const int size = STREAM_BUFFER;
	int theirs;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "make a socket pair");
	/* It only makes large transfers faster. */
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (pair[1] >= CHILD_FD_MIN)
		return 0;
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, CHILD_FD_MIN);
	(void)close(pair[1]);
	pair[1] = theirs;
	return theirs < 0 ? err_sys(err, errno, "make a socket pair") : 0;
}

/* The shared region: one page fault less for each page that is populated now. */
static struct child *start_map_child(struct start *s)
{
	void *p;

	s->region = CHILD_AREA + CHILD_STACK;
	p = mmap(NULL, s->region, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	s->child = p;
	*s->child =
	    (struct child){.sync = -1, .sync_peer = -1, .stream = -1, .guest = -1, .helper = -1};
	for (int i = 0; i < NS_LOWERS; i++)
		s->child->lower[i] = -1;
	return s->child;
}

static int start_open_layers(struct start *s, struct err *err)
{
	int fd;

	if (!s->base)
		return 0;
	for (int i = 0; i < NS_LOWERS; i++) {
		fd = userns_clone_layer(s->prep->lower[i]);
		if (fd < 0)
			return err_sys(err, -fd, "take the layer %s", s->prep->lower[i]);
		s->child->lower[i] = fd;
	}
	return 0;
}

int start_set_up(struct start *s, struct err *err)
{
	/* To tmpfs, 0 is no limit. */
	uint32_t disk_mib = s->spec->disk_mib ? s->spec->disk_mib : 1;
	struct child *c = start_map_child(s);
	int rc;

	if (!c)
		return err_sys(err, errno, "map the stack of a box's first process");
	c->prep = s->prep;
	c->hostname = "box";
	c->pids_max = s->spec->pids_max;
	c->flags = (s->base ? CHILD_PRIVILEGED : 0U) | (s->trial ? CHILD_TRIAL : 0U);
	(void)snprintf(c->scratch, sizeof(c->scratch),
	    CHILD_SCRATCH_HUGE "size=%um,nr_inodes=%u,mode=0755", disk_mib,
	    INODES_BASE + disk_mib * INODES_PER_MIB);
	rc = start_make_pair(s->sync, err);
	if (rc == 0)
		rc = start_make_pair(s->stream, err);
	if (rc < 0)
		return rc;
	c->sync = s->sync[1];
	c->sync_peer = s->sync[0];
	c->stream = s->stream[1];
	c->guest = fcntl(s->spec->guest, F_DUPFD_CLOEXEC, CHILD_FD_MIN);
	if (c->guest < 0 && !s->trial)
		return err_sys(err, errno, "duplicate the descriptor of sbx-guest");
	if (s->spec->helper >= 0) {
		c->helper = fcntl(s->spec->helper, F_DUPFD_CLOEXEC, CHILD_FD_MIN);
		if (c->helper < 0)
			return err_sys(err, errno, "duplicate the descriptor of sbx-files");
	}
	rc = fd_set_nonblock(s->stream[0]);
	if (rc < 0)
		return err_sys(err, -rc, "set up the stream");
	return start_open_layers(s, err);
}
