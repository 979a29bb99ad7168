/*
 * file_sync: AGENT_SYNC. sbx-guest; if we die here the worker sees no PONG.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/mux.h"
#include "guest/path.h"

static void sync_answer(struct guest *g, const uint8_t *payload, size_t n)
{
	(void)out_put_quick(&g->out, AGENT_PONG, 0, 0, payload, n); /* has room */
}

void file_sync_begin(struct guest *g, const uint8_t *payload, size_t n)
{
	struct file_sync *s = &g->syncing;
	int err;
	int fd = path_open(g->root_fd, "/", O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0 && s->flusher == NULL) {
		s->flusher = shim_take(&g->shims, &err);
		if (s->flusher != NULL) {
			s->fd = fd;
			s->len = n;
			if (n > 0)
				memcpy(s->payload, payload, n);
			shim_start_flush(s->flusher, SHIM_JOB_SYNCFS, fd);
			return;
		}
	}
	if (fd >= 0) {
		(void)syncfs(fd); /* an fsync of the file tells an error */
		(void)close(fd);
	}
	sync_answer(g, payload, n);
}

void file_sync_step(struct guest *g)
{
	struct file_sync *s = &g->syncing;

	if (s->flusher == NULL)
		return;
	if (s->flusher->pid == 0) /* killed from within the box */
		(void)syncfs(s->fd);
	else if (shim_phase(s->flusher) != SHIM_DONE)
		return;
	shim_release(&g->shims, s->flusher);
	s->flusher = NULL;
	(void)close(s->fd); /* was only flushed */
	s->fd = -1;
	sync_answer(g, s->payload, s->len);
}
