/* caller: a thread for calls that may hang. sbx-boxlite; lost with it. */
#include "drivers/boxlite/program/caller.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct caller {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct call *first;
	struct call **last;
	bool end;
	struct inbox *in;
};

static struct call *caller_next(struct caller *k)
{
	struct call *c;

	(void)pthread_mutex_lock(&k->lock);
	while (!k->first && !k->end)
		(void)pthread_cond_wait(&k->more, &k->lock);
	c = k->first;
	if (c) {
		k->first = c->next;
		if (!k->first)
			k->last = &k->first;
	}
	(void)pthread_mutex_unlock(&k->lock);
	return c;
}

static void *caller_run(void *arg)
{
	struct caller *k = arg;
	struct call *c;

	while ((c = caller_next(k))) {
		struct note *n;

		c->fn(c);
		n = note_new(NOTE_CALLED, 0, NULL, 0);
		if (n)
			n->handle = c;
		inbox_put(k->in, n);
	}
	return NULL;
}

struct caller *caller_create(struct inbox *in)
{
	struct caller *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return NULL;
	k->in = in;
	k->last = &k->first;
	(void)pthread_mutex_init(&k->lock, NULL); /* with default attributes neither fails */
	(void)pthread_cond_init(&k->more, NULL);
	rc = pthread_create(&k->thread, NULL, caller_run, k);
	if (rc == 0)
		return k;
	free(k);
	errno = rc;
	return NULL;
}

void caller_post(struct caller *k, struct call *c)
{
	c->next = NULL;
	c->done = false;
	(void)pthread_mutex_lock(&k->lock);
	*k->last = c;
	k->last = &c->next;
	(void)pthread_cond_signal(&k->more);
	(void)pthread_mutex_unlock(&k->lock);
}

void caller_free(struct caller *k)
{
	if (!k)
		return;
	(void)pthread_mutex_lock(&k->lock);
	k->end = true;
	(void)pthread_cond_signal(&k->more);
	(void)pthread_mutex_unlock(&k->lock);
	(void)pthread_join(k->thread, NULL);
	(void)pthread_cond_destroy(&k->more);
	(void)pthread_mutex_destroy(&k->lock);
	free(k);
}
