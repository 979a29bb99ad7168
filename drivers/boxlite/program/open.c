/* open: from the order ENG_OPEN to a runtime of the library. sbx-boxlite. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/boxlite/program/program.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define REGISTRIES_MAX 8
#define OPEN_LOCKED_NS (2 * NS_PER_S)
#define OPEN_LOCKED_TRY_NS (20 * NS_PER_MS)

/* ---- call thread ---- */

struct open_call {
	struct call call; /* first */
	struct program *p;
	const char *home;
	const char *url;
	int rc; /* of abi_load() */
	int code;
	char why[INBOX_TEXT];
	struct err err;
};

/* "quay.io,http://localhost:5000" into entries; `text` is cut apart. */
static int parse_registries(char *text, struct blx_registry out[REGISTRIES_MAX])
{
	static const char plain[] = "http://";
	int n = 0;
	char *rest;

	for (char *host = strtok_r(text, ", ", &rest); host && n < REGISTRIES_MAX;
	     host = strtok_r(NULL, ", ", &rest)) {
		bool http = !strncmp(host, plain, strlen(plain));

		out[n++] = (struct blx_registry){
		    .host = http ? host + strlen(plain) : host,
		    .transport = http,
		    .search = 1,
		};
	}
	return n;
}

static int open_local(struct open_call *o, struct blx_error *error)
{
	const char *given = driver_option(&o->p->options, "boxlite.registries");
	struct blx_registry registries[REGISTRIES_MAX];
	char text[256];
	int n;

	(void)snprintf(text, sizeof(text), "%s", given ? given : "");
	n = parse_registries(text, registries);
	return o->p->api.runtime_new(o->home, n ? registries : NULL, n, &o->p->runtime, error);
}

static int open_remote(struct open_call *o, struct blx_error *error)
{
	const struct blx_api *api = &o->p->api;
	const char *key = driver_option(&o->p->options, "boxlite.api_key");
	const char *prefix = driver_option(&o->p->options, "boxlite.path_prefix");
	struct blx_credential *credential = NULL;
	struct blx_rest *rest = NULL;
	int code = api->rest_new(o->url, &rest, error);

	if (code == BLX_OK && key)
		code = api->credential_new(key, &credential, error);
	if (code == BLX_OK && credential)
		api->rest_set_credential(rest, credential);
	if (code == BLX_OK && prefix)
		api->rest_set_path_prefix(rest, prefix);
	if (code == BLX_OK)
		code = api->rest_runtime_new(rest, &o->p->runtime, error);
	if (credential)
		api->credential_free(credential);
	if (rest)
		api->rest_free(rest);
	return code;
}

static void load_run(struct call *c)
{
	struct open_call *o = (struct open_call *)(void *)c;

	o->rc = abi_load(
	    driver_option(&o->p->options, "boxlite.library"), o->url != NULL, &o->p->api, &o->err);
}

static void open_run(struct call *c)
{
	struct open_call *o = (struct open_call *)(void *)c;
	struct blx_error error = {0};

	o->code = o->url ? open_remote(o, &error) : open_local(o, &error);
	(void)snprintf(o->why, sizeof(o->why), "%s", error.message ? error.message : "");
	if (error.message)
		o->p->api.error_free(&error);
}

/* ---- drain thread ---- */

struct drain {
	struct inbox *inbox;
	struct blx_runtime *runtime;
	int (*drain)(struct blx_runtime *r, int timeout_ms, struct blx_error *error);
};

/* Waits within the library, without end. What returns without having had anything is closed. */
static void *drain_run(void *arg)
{
	struct drain *d = arg;
	struct blx_error error = {0};

	while (d->drain(d->runtime, -1, &error) > 0)
		continue;
	inbox_put(d->inbox, note_new(NOTE_CLOSED, 0, NULL, 0));
	free(d);
	return NULL;
}

static int drain_start(struct program *p)
{
	struct drain *d = malloc(sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	*d = (struct drain){.inbox = p->inbox, .runtime = p->runtime, .drain = p->api.drain};
	rc = pthread_create(&p->drain, NULL, drain_run, d);
	if (rc != 0)
		free(d);
	return -rc;
}

/* ---- the loop ---- */

static int take_options(struct program *p, struct err *err)
{
	const struct eng_msg *m = &p->order;
	char *copy = malloc(m->tail_len + 1);
	const char *detach;

	if (!copy)
		return err_sys(err, ENOMEM, "take BoxLite's settings");
	memcpy(copy, m->tail, m->tail_len);
	p->options = (struct driver_options){.data = copy, .len = m->tail_len};
	detach = driver_option(&p->options, "boxlite.detach");
	p->detach = detach && !strcmp(detach, "true");
	p->remote = driver_option(&p->options, "boxlite.url") != NULL;
	return 0;
}

static const char *kvm_path(void)
{
#ifdef SBX_FAULTS
	if (getenv("SBX_TEST_KVM")) /* a test has no virtual machines, nor needs them */
		return getenv("SBX_TEST_KVM");
#endif
	return "/dev/kvm";
}

/* What the local runtime needs and would complain about only when a box starts. */
static int check_local(const struct eng_open *order, struct err *err)
{
	const char *kvm = kvm_path();
	FD_SCOPED int fd = open(kvm, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		return err_set(
		    err, EACCES, "%s is not ours to open: add this user to its group", kvm);
	if (fd < 0)
		return err_set(err, ENODEV,
		    "%s: %s: BoxLite needs a host with KVM (modprobe kvm_intel or kvm_amd; in a "
		    "virtual machine, nested virtualization), or a BoxLite server in boxlite.url",
		    kvm, strerror(errno));
	if (mkdir(order->home, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make BoxLite's home directory %s", order->home);
	return 0;
}

/* In the call thread, as all that is the library's: even loading it runs its code. */
static void open_call(struct open_call *o, void (*fn)(struct call *c), const char *what)
{
	o->call.fn = fn;
	caller_post(o->p->caller, &o->call);
	if (program_await(o->p, &o->call.done) < 0)
		program_stuck(o->p, what, "");
}

/* One runtime has a home at a time. One whose process was just killed may have it for a moment
   yet, and BoxLite has no code of its own for that. */
static void open_runtime(struct open_call *o)
{
	uint64_t until = clock_now_ns() + OPEN_LOCKED_NS;

	open_call(o, open_run, "open BoxLite's runtime");
	while (o->code == BLX_INTERNAL && !o->url && !o->p->hung_up && clock_now_ns() < until &&
	       clock_now_ns() < o->p->deadline_ns) {
		program_pause(o->p, OPEN_LOCKED_TRY_NS);
		open_call(o, open_run, "open BoxLite's runtime");
	}
}

int order_open(struct program *p, struct eng_done *done, struct err *err)
{
	const struct eng_open *order = &p->order.body.open;
	struct open_call o = {.p = p, .home = order->home};
	char text[INBOX_TEXT];
	int rc;

	if (p->runtime)
		return err_set(err, EBUSY, "the library is open already");
	rc = take_options(p, err);
	if (rc < 0)
		return rc;
	o.url = driver_option(&p->options, "boxlite.url");
	open_call(&o, load_run, "load BoxLite's library");
	if (o.rc < 0)
		return err_set(err, o.err.code, "%s", o.err.text);
	(void)snprintf(done->version, sizeof(done->version), "%s", p->api.version_text);
	if (!o.url && check_local(order, err) < 0)
		return -err->code;
	open_runtime(&o);
	if (o.code != BLX_OK) {
		blx_error_text(o.code, o.why, text, sizeof(text));
		done->library = o.code;
		return err_set(err, blx_meaning(o.code)->error, "open BoxLite's runtime: %s", text);
	}
	rc = drain_start(p);
	return rc < 0 ? err_sys(err, -rc, "start a thread") : 0;
}
