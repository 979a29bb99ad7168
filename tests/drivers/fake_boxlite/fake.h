/*
 * fake: what the files of the double share. A runtime is reference-counted: by its owner, by each
 * box and execution, and by each job, so that none outlives it.
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_FAKE_H
#define SBXD_TESTS_FAKE_BOXLITE_FAKE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/drivers/fake_boxlite/abi.h"
#include "tests/drivers/fake_boxlite/knobs.h"

#define FAKE_NAME 128 /* bytes of a box's name, with its NUL */
#define FAKE_ID 32

/* ---- errors.c ---- */

/* Writes to *err, which may be NULL. Returns code. */
enum blx_code error_set(struct blx_error *err, enum blx_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The error of a system call, as `code`. */
enum blx_code error_sys(struct blx_error *err, enum blx_code code, int number, const char *what);

/* The code of that name ("NotFound"), or -1. */
int error_code(const char *name);

/* ---- queue.c ---- */

/* What a callback gets, whichever it is. The members that are its own are freed by free_fn if it
 * is never called. */
struct event {
	struct event *next;
	void (*call)(struct event *e);
	void (*free_fn)(struct event *e);
	const void *stream; /* events of one stream stay in order; NULL: of no stream */
	void *cb;	    /* a blx_..._fn, that call() knows */
	void *user;
	struct blx_error err;
	void *object;
	int number;
	uint8_t *data;
	size_t len;
};

struct event *event_new(void (*call)(struct event *e), void *cb, void *user);
void event_free(struct event *e);

/* Queues it, late and not in the order in which things happened; waits while the queue is full.
 * Takes it. After the runtime is closed it is freed. */
void queue_push(struct runtime *rt, struct event *e);

/* ---- runtime.c ---- */

struct watch {
	struct watch *next;
	char id[FAKE_ID];
	int fd; /* while it is open, the box may live */
};

struct runtime {
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct event *head;
	struct event **tail;
	size_t queued;
	unsigned int refs;
	unsigned int jobs;
	unsigned int random;
	bool closed;
	bool shut;
	bool remote;
	enum blx_code refused; /* remote: what every call gets */
	char refusal[160];
	char home[PATH_MAX];
	int home_lock; /* local: the flock on it */
	struct watch *watches;
};

struct runtime *runtime_ref(struct runtime *rt);
void runtime_unref(struct runtime *rt);
void runtime_unref_locked(struct runtime *rt); /* with its lock, which goes */

/* 0 .. below-1, from the runtime's own sequence. */
unsigned int runtime_random(struct runtime *rt, unsigned int below);

/* Holds the box's life to the runtime's; takes fd. And lets go again. */
void runtime_watch(struct runtime *rt, const char *id, int fd);
void runtime_unwatch(struct runtime *rt, const char *id);

/* ---- job.c ---- */

/* Work that ends in a callback; work() is on a thread of its own and fills the event. */
struct job {
	struct runtime *rt;
	struct event *event;
	enum knob_op op;
	enum blx_code (*work)(struct job *j);
	struct box *box; /* owned */
	struct options *options;
	char *a; /* strings of the call, owned */
	char *b;
	int number;
	bool lie;		     /* work() shall say that it did, and not do it */
	struct execution *execution; /* owned */
};

/* A job with its event; the callback gets user. */
struct job *job_new(struct runtime *rt, enum knob_op op, void (*call)(struct event *e), void *cb,
    void *user, enum blx_code (*work)(struct job *j));

/* Starts it, or fails at once as told; what the call returns. Takes j. */
enum blx_code job_post(struct job *j, struct blx_error *err);
void job_free(struct job *j);

/* exec.c */
void exec_unref(struct execution *x);

/* Checks what every call checks: arguments that may not be NULL. */
enum blx_code call_check(const void *handle, const char *handle_name, const void *cb, bool has_cb,
    struct blx_error *err);

/* A call that is done when it returns: does what the knobs say. BLX_OK: go on. */
enum blx_code call_begin(enum knob_op op, struct blx_error *err);

/* The same for one that can lie: what it was told. */
enum blx_code call_begin_knob(enum knob_op op, struct knob *k, struct blx_error *err);

void call_done(struct event *e); /* blx_done_fn */

/* Starts a thread that counts as a job of rt, and holds it until thread_end(). 0 or -errno. */
int thread_start(struct runtime *rt, void *(*fn)(void *arg), void *arg);
void thread_end(struct runtime *rt);

/* ---- options.c ---- */

struct options {
	char *image;
	char *rootfs;
	char *workdir;
	char *env; /* KEY=VALUE lines, for the record */
	char name[FAKE_NAME];
	int cpus;
	int memory_mib;
	int disk_gb;
	bool network;
	bool command; /* one of its own, which is not run */
	bool auto_remove;
	bool detach;
};

struct rest_options {
	char *url;
	char *key;
	char *prefix;
};

struct credential {
	char *key;
};

/* ---- record.c: boxes as the home directory knows them ---- */

struct record {
	char id[FAKE_ID];
	char name[FAKE_NAME];
	char image[256];
	char status[16]; /* configured, running, stopped */
	int cpus;
	int memory_mib;
	int disk_gb;
	bool network;
	bool auto_remove;
	bool detach;
	int64_t created_at;
	pid_t pid;  /* of its process while it runs, else 0 */
	pid_t init; /* the first process in it */
	uint64_t init_start;
	uint64_t start;
};

typedef enum blx_code record_fn(void *ctx, const struct record *r);

/* By id, beginning of an id, or name. */
enum blx_code record_find(
    struct runtime *rt, const char *id, struct record *out, struct blx_error *err);
enum blx_code record_make(
    struct runtime *rt, const struct options *o, struct record *out, struct blx_error *err);
enum blx_code record_each(struct runtime *rt, record_fn *fn, void *ctx, struct blx_error *err);
enum blx_code record_remove(struct runtime *rt, const struct record *r, struct blx_error *err);

/* The box's directory, open; -errno. */
int record_open(struct runtime *rt, const char *id);

/* Notes that it was started. */
void record_started(int dir);

/* At the start of a local runtime: boxes that were to go with their process have gone. */
void record_recover(struct runtime *rt);

/* Between processes that use one home, remote ones: exclusive until record_unlock(fd). */
int record_lock(struct runtime *rt);
void record_unlock(int fd);

/* ---- images.c ---- */

/* Makes sure that the home has the image; `reference` or the path of a directory. */
enum blx_code image_need(struct runtime *rt, const char *reference, struct blx_error *err);

/* ---- boot.c ---- */

/* Where this library is: its box program and its control file are beside it. */
void library_dir(char out[PATH_MAX]);

/* Starts the box's process unless it runs. */
enum blx_code boot_start(struct runtime *rt, struct record *r, struct blx_error *err);

/* Ends it and sees it gone. */
enum blx_code boot_stop(struct runtime *rt, const struct record *r, struct blx_error *err);

/* A connection to the box's process; -errno. */
int boot_connect(struct runtime *rt, const char *id);

/* ---- box.c ---- */

struct box {
	struct runtime *rt;
	char id[FAKE_ID];
};

struct box *box_new(struct runtime *rt, const char *id);

/* The record of a handle's box, started if it was not. */
enum blx_code box_running(struct box *box, struct record *r, struct blx_error *err);

/* ---- text.c ---- */

/* UTF-8 as a text stream gives it: what is none becomes U+FFFD. */
struct text {
	uint8_t held[4];
	size_t held_len;
};

/* The text of the next bytes, malloc'ed, of *out_len bytes; of the tail at the end. */
uint8_t *text_decode(struct text *t, const uint8_t *data, size_t len, bool hold, size_t *out_len);
uint8_t *text_end(struct text *t, size_t *out_len);

#endif
