/* inbox: notes from other threads to the loop. sbx-boxlite; lost with it. */
#include "drivers/boxlite/program/inbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/fd.h"

struct inbox {
	pthread_mutex_t lock;
	pthread_cond_t room; /* output was passed on */
	struct note *first;
	struct note **last;
	size_t output; /* bytes put and not yet passed on */
	bool lost;
	int fd;
};

struct inbox *inbox_create(void)
{
	struct inbox *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (in->fd < 0) {
		free(in);
		return NULL;
	}
	in->last = &in->first;
	(void)pthread_mutex_init(&in->lock, NULL); /* with default attributes neither fails */
	(void)pthread_cond_init(&in->room, NULL);
	return in;
}

void inbox_free(struct inbox *in)
{
	struct note *n;

	if (!in)
		return;
	while ((n = in->first)) {
		in->first = n->next;
		free(n);
	}
	(void)pthread_cond_destroy(&in->room);
	(void)pthread_mutex_destroy(&in->lock);
	fd_close(&in->fd);
	free(in);
}

int inbox_fd(const struct inbox *in)
{
	return in->fd;
}

struct note *note_new(enum note_kind kind, uint64_t ticket, const void *bytes, size_t len)
{
	struct note *n = calloc(1, sizeof(*n) + len);

	if (!n)
		return NULL;
	n->kind = kind;
	n->ticket = ticket;
	n->len = len;
	if (len)
		memcpy(n->bytes, bytes, len);
	return n;
}

void inbox_put(struct inbox *in, struct note *n)
{
	const uint64_t one = 1;
	bool wake;

	(void)pthread_mutex_lock(&in->lock);
	while (n && n->kind == NOTE_OUTPUT && in->output >= INBOX_OUTPUT_MAX)
		(void)pthread_cond_wait(&in->room, &in->lock);
	wake = !in->first;
	if (n) {
		if (n->kind == NOTE_OUTPUT)
			in->output += n->len;
		*in->last = n;
		in->last = &n->next;
	} else {
		in->lost = true;
	}
	(void)pthread_mutex_unlock(&in->lock);
	if (wake && write(in->fd, &one, sizeof(one)) < 0)
		return; /* full: so it is readable already */
}

struct note *inbox_take(struct inbox *in)
{
	struct note *all;
	uint64_t count;

	if (read(in->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return NULL;
	(void)pthread_mutex_lock(&in->lock);
	all = in->first;
	in->first = NULL;
	in->last = &in->first;
	(void)pthread_mutex_unlock(&in->lock);
	return all;
}

void inbox_passed(struct inbox *in, size_t n)
{
	(void)pthread_mutex_lock(&in->lock);
	in->output -= n < in->output ? n : in->output;
	(void)pthread_cond_broadcast(&in->room);
	(void)pthread_mutex_unlock(&in->lock);
}

bool inbox_lost(struct inbox *in)
{
	bool lost;

	(void)pthread_mutex_lock(&in->lock);
	lost = in->lost;
	(void)pthread_mutex_unlock(&in->lock);
	return lost;
}
