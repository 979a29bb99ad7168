/*
 * runtime: a local one owns its home directory and the lives of the boxes that are not detached; a
 * remote one stands for a server, which the settings describe: url, key, prefix, and remote_home,
 * where its boxes are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/fake.h"

#define FREE_WAIT_S 2 /* for the threads to end, so that nothing of them is left at exit */

const char *boxlite_version(void)
{
	static char version[32];

	return knob_text("version", "0.10.1", version, sizeof(version));
}

struct runtime *runtime_ref(struct runtime *rt)
{
	(void)pthread_mutex_lock(&rt->lock);
	rt->refs++;
	(void)pthread_mutex_unlock(&rt->lock);
	return rt;
}

void runtime_unref_locked(struct runtime *rt)
{
	bool last = --rt->refs == 0;

	(void)pthread_mutex_unlock(&rt->lock);
	if (!last)
		return;
	fd_close(&rt->home_lock);
	(void)pthread_cond_destroy(&rt->change);
	(void)pthread_mutex_destroy(&rt->lock);
	free(rt);
}

void runtime_unref(struct runtime *rt)
{
	if (!rt)
		return;
	(void)pthread_mutex_lock(&rt->lock);
	runtime_unref_locked(rt);
}

unsigned int runtime_random(struct runtime *rt, unsigned int below)
{
	unsigned int n;

	(void)pthread_mutex_lock(&rt->lock);
	rt->random = rt->random * 1103515245U + 12345U;
	n = rt->random / 65536U;
	(void)pthread_mutex_unlock(&rt->lock);
	return n % below;
}

static struct runtime *runtime_make(void)
{
	struct runtime *rt = calloc(1, sizeof(*rt));
	pthread_condattr_t attr;

	if (!rt)
		abort();
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&rt->change, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&rt->lock, NULL);
	rt->tail = &rt->head;
	rt->refs = 1;
	rt->home_lock = -1;
	rt->random = (unsigned int)knob_number("seed", (int)getpid());
	return rt;
}

/* Makes home and what leads to it. */
static int make_path(const char *home)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/boxes", home);
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static enum blx_code lock_home(struct runtime *rt, struct blx_error *err)
{
	char path[PATH_MAX + 8];

	(void)snprintf(path, sizeof(path), "%s/.lock", rt->home);
	rt->home_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (rt->home_lock < 0)
		return error_sys(err, BLX_STORAGE, errno, path);
	if (flock(rt->home_lock, LOCK_EX | LOCK_NB) < 0)
		return error_set(err, BLX_INTERNAL,
		    "internal error: cannot lock the runtime at %s: another runtime uses it",
		    rt->home);
	return BLX_OK;
}

static enum blx_code open_home(struct runtime *rt, const char *home, struct blx_error *err)
{
	char yes[8];
	int rc;

	if (!strcmp(knob_text("kvm", "yes", yes, sizeof(yes)), "no"))
		return error_set(err, BLX_UNSUPPORTED_ENGINE, "unsupported engine: no KVM here");
	if (home)
		(void)snprintf(rt->home, sizeof(rt->home), "%s", home);
	else
		(void)snprintf(rt->home, sizeof(rt->home), "%s/.boxlite",
		    getenv("HOME") ? getenv("HOME") : "/root");
	if (rt->home[0] != '/')
		return error_set(
		    err, BLX_INTERNAL, "home_dir must be an absolute path, got: %s", rt->home);
	rc = make_path(rt->home);
	if (rc < 0)
		return error_sys(err, BLX_STORAGE, rc, rt->home);
	return lock_home(rt, err);
}

enum blx_code boxlite_runtime_new(const char *home, const struct blx_registry *registries,
    int registry_count, struct runtime **out, struct blx_error *err)
{
	struct runtime *rt;
	enum blx_code code = call_check(out, "out_runtime", NULL, false, err);

	if (code == BLX_OK && (registry_count < 0 || (registry_count > 0 && !registries)))
		code = error_set(err, BLX_INVALID_ARGUMENT, "image_registries: wrong count");
	if (code == BLX_OK)
		code = call_begin(KNOB_RUNTIME, err);
	if (code != BLX_OK)
		return code;
	rt = runtime_make();
	code = open_home(rt, home, err);
	if (code != BLX_OK) {
		runtime_unref(rt);
		return code;
	}
	record_recover(rt);
	*out = rt;
	return BLX_OK;
}

static bool same_url(const char *a, const char *b)
{
	size_t la = strlen(a);
	size_t lb = strlen(b);

	while (la && a[la - 1] == '/')
		la--;
	while (lb && b[lb - 1] == '/')
		lb--;
	return la == lb && !memcmp(a, b, la);
}

/* What a server at o->url would answer to any request. */
static void meet_server(struct runtime *rt, const struct rest_options *o)
{
	char want[256];

	if (!same_url(knob_text("url", "", want, sizeof(want)), o->url)) {
		rt->refused = BLX_NETWORK;
		(void)snprintf(rt->refusal, sizeof(rt->refusal),
		    "network error: error sending request for url (%s)", o->url);
	} else if (strcmp(knob_text("key", "", want, sizeof(want)), o->key ? o->key : "") != 0) {
		rt->refused = BLX_CONFIG;
		(void)snprintf(rt->refusal, sizeof(rt->refusal),
		    "configuration error: auth: unauthorized (HTTP 401)");
	} else if (strcmp(
		       knob_text("prefix", "", want, sizeof(want)), o->prefix ? o->prefix : "")) {
		rt->refused = BLX_CONFIG;
		(void)snprintf(rt->refusal, sizeof(rt->refusal),
		    "configuration error: auth: forbidden (HTTP 403)");
	}
}

enum blx_code boxlite_rest_runtime_new_with_options(
    const struct rest_options *o, struct runtime **out, struct blx_error *err)
{
	struct runtime *rt;
	enum blx_code code = call_check(o, "options", NULL, false, err);

	if (code == BLX_OK)
		code = call_check(out, "out_runtime", NULL, false, err);
	if (code == BLX_OK)
		code = call_begin(KNOB_REST, err);
	if (code == BLX_OK && strncmp(o->url, "http://", 7) && strncmp(o->url, "https://", 8))
		code = error_set(err, BLX_CONFIG, "configuration error: no such url: %s", o->url);
	if (code != BLX_OK)
		return code;
	rt = runtime_make();
	rt->remote = true;
	(void)knob_text("remote_home", "/nonexistent", rt->home, sizeof(rt->home));
	meet_server(rt, o);
	if (!rt->refused && make_path(rt->home) < 0) {
		rt->refused = BLX_STORAGE;
		(void)snprintf(rt->refusal, sizeof(rt->refusal), "storage error: no remote_home");
	}
	*out = rt;
	return BLX_OK;
}

void runtime_watch(struct runtime *rt, const char *id, int fd)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	(void)snprintf(w->id, sizeof(w->id), "%s", id);
	w->fd = fd;
	(void)pthread_mutex_lock(&rt->lock);
	w->next = rt->watches;
	rt->watches = w;
	(void)pthread_mutex_unlock(&rt->lock);
}

/* Of one box, or of all. */
static void drop_watches(struct runtime *rt, const char *id)
{
	struct watch **p = &rt->watches;
	struct watch *w;

	(void)pthread_mutex_lock(&rt->lock);
	while ((w = *p)) {
		if (id && strcmp(w->id, id) != 0) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		fd_close(&w->fd);
		free(w);
	}
	(void)pthread_mutex_unlock(&rt->lock);
}

void runtime_unwatch(struct runtime *rt, const char *id)
{
	drop_watches(rt, id);
}

static enum blx_code stop_one(void *ctx, const struct record *r)
{
	struct runtime *rt = ctx;

	return r->pid && !r->detach ? boot_stop(rt, r, NULL) : BLX_OK;
}

static enum blx_code work_shutdown(struct job *j)
{
	return j->lie || j->rt->remote ? BLX_OK
				       : record_each(j->rt, stop_one, j->rt, &j->event->err);
}

enum blx_code boxlite_runtime_shutdown(
    struct runtime *rt, int timeout_s, blx_done_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", (const void *)cb, true, err);

	(void)timeout_s;
	if (code != BLX_OK)
		return code;
	code =
	    job_post(job_new(rt, KNOB_SHUTDOWN, call_done, (void *)cb, user, work_shutdown), err);
	rt->shut = true;
	return code;
}

/* Whoever drains comes back; what is on its way is dropped; boxes that are not detached end. */
void boxlite_runtime_free(struct runtime *rt)
{
	struct event *pending;
	struct event *e;
	struct timespec until;

	if (!rt || call_begin(KNOB_FREE, NULL) != BLX_OK)
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FREE_WAIT_S;
	(void)pthread_mutex_lock(&rt->lock);
	rt->closed = true;
	rt->shut = true;
	pending = rt->head;
	rt->head = NULL;
	rt->tail = &rt->head;
	rt->queued = 0;
	(void)pthread_cond_broadcast(&rt->change);
	(void)pthread_mutex_unlock(&rt->lock);
	while ((e = pending)) {
		pending = e->next;
		event_free(e);
	}
	drop_watches(rt, NULL);
	(void)pthread_mutex_lock(&rt->lock);
	while (rt->jobs && pthread_cond_timedwait(&rt->change, &rt->lock, &until) != ETIMEDOUT)
		continue;
	(void)pthread_mutex_unlock(&rt->lock);
	runtime_unref(rt);
}
