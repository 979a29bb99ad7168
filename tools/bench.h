/*
 * bench: what the measurements of sbxbench share: private daemons, baselines, times and tables.
 *
 * What fails in here ends the program, and the daemons with it: a measurement that is not as it has
 * to be is none. Turns (bench_turn.h) are other: there a failure is a result.
 */
#ifndef SBXD_TOOLS_BENCH_H
#define SBXD_TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/bench_private.h"

/* Exit statuses of sbxbench. */
enum bench_exit {
	BENCH_OK = 0,
	BENCH_WRONG = 1, /* measured, and there are errors, or a ratio misses its aim */
	BENCH_USAGE = 2,
	BENCH_FAILED = 125, /* not measured */
	BENCH_SIGNAL = 128, /* plus the signal's number */
};

/* ---- sections: each starts daemons of its own, prints its rows, and returns how many of them
 * missed what is asked. `boxes`: how many it shall have, 0 for its own number. ---- */

int bench_warm(uint32_t boxes);
int bench_cold(uint32_t boxes);
int bench_run(uint32_t boxes);
int bench_exec(uint32_t boxes);
int bench_read(uint32_t boxes);
int bench_write(uint32_t boxes);
int bench_files(uint32_t boxes);
int bench_tar(uint32_t boxes);
int bench_memory(uint32_t boxes);
int bench_events(uint32_t boxes);
int bench_recovery(uint32_t boxes);
int bench_restart(uint32_t boxes);
int bench_flat(uint32_t boxes);
int bench_top(uint32_t boxes);
int bench_qemu(uint32_t boxes);

/* ---- bench_samples.c: numbers and how they are shown ---- */

/* Times of one thing, in ns. */
struct samples {
	uint64_t *ns;
	size_t count;
	size_t cap;
};

void samples_add(struct samples *s, uint64_t ns);

/* q from 0 to 1; sorts them. 0 without any. */
uint64_t samples_quantile(struct samples *s, double q);
double samples_ms(struct samples *s, double q);
void samples_free(struct samples *s);

struct row {
	const char *what;
	const char *unit;
	const char *baseline;
	double value;
	double base;
	double p95;   /* 0: there is none */
	double bound; /* the ratio that is asked for; 0: none is */
	bool at_least;
};

void print_table_head(void);

/* 1 when the row misses its bound, else 0. */
int print_row(const struct row *r);

/* A row of two times in us or ms, by their medians. */
int print_times(const char *what, const char *unit, struct samples *s, const char *baseline,
    struct samples *base, double bound);

/* What is said behind the table, in lines of their own. */
void bench_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void bench_print_notes(void);

double bench_us(uint64_t ns);
double bench_ms(uint64_t ns);

/* Zeroed, from the beginning of a page. Some processors copy three times slower to a place that is
 * 1 to 31 bytes further into its page than what is copied, and large pieces of malloc(3)'s are 16.
 */
char *bench_buffer(size_t bytes);

/* Of the client's socket and of the bare stream that it is held against alike; the kernel may give
 * less. What does not fit in makes the writer sleep. */
#define BENCH_SEND_BUFFER (4 << 20)

/* ---- bench_base.c: what the kernel alone costs. Each adds `n` samples (for streams: one sample
 * each for the whole size). ---- */

void base_ping_pong(struct samples *s, size_t n, size_t bytes);
/* As vfork(), the guest and the namespace driver do: fn runs in a new process that shares our
 * memory, while we wait, until it execs or ends. flags: CLONE_NEW*. For one thread. The pid, -1
 * with errno. */
pid_t base_vfork(int (*fn)(void *arg), void *arg, int flags);

void base_spawn(struct samples *s, size_t n, const char *const argv[]); /* vfork, exec, wait */

/* A process that ends at once, in new namespaces (CLONE_NEW*), made as the namespace driver makes
 * it. 0, or -EPERM when this user may not. */
int base_namespaces(struct samples *s, size_t n, int flags);
bool base_bwrap(struct samples *s, size_t n); /* false: bwrap is not installed */
void base_stream(struct samples *s, size_t n, size_t total, size_t chunk);

/* ---- bench_dir.c: where daemons have their files ---- */

/* A new directory, in memory if there is such a place, as /run is; its path into out. */
void bench_dir_make(char out[BENCH_DIR]);

/* With all that is in it. */
void bench_dir_remove(const char *dir);

/* ---- bench_daemon.c: a private sbxd. What fails ends the program. ---- */

struct daemon {
	struct bench_private p;
	char socket[108];
	uint64_t launched_ns; /* just before it was forked */
	off_t log_from;	      /* where the log of its last (re)start begins */
};

void daemon_start(struct daemon *d, const char *config);

/* The same again, after daemon_kill(); answers nothing yet. */
void daemon_launch(struct daemon *d);

/* Waits until somebody listens. */
void daemon_await(struct daemon *d);
void daemon_kill(struct daemon *d);

/* It takes another configuration, which differs in what can be reloaded. */
void daemon_configure(struct daemon *d, const char *config);
void daemon_stop(struct daemon *d);

/* Waits until the text stands in its log, from log_from on. */
void daemon_await_log(const struct daemon *d, const char *text);

/* Proportional set size of a process in KiB. */
uint64_t daemon_pss_kib(pid_t pid);

/* A pause of so many ms, for what goes on in the background to end. */
void bench_settle(long ms);

/* ---- bench_http.c: the smallest blocking client ---- */

struct wire {
	int fd;
	char *buf;
	size_t cap;
	size_t body_off;
	size_t body_len;
	int status;
};

/* Does somebody listen there? */
bool wire_try(const struct daemon *d);

void wire_open(struct wire *w, const struct daemon *d);
void wire_close(struct wire *w);

/* The same connection anew, as after a restart. */
void wire_disconnect(struct wire *w);
void wire_connect(struct wire *w, const struct daemon *d);

/* Answers of up to so many bytes are kept whole; it is 256 KiB at first. */
void wire_keep(struct wire *w, size_t bytes);

/* Sends the request text as it is and reads the whole answer. Ends the program on failure. */
void wire_call(struct wire *w, const char *request, size_t len);

/* The two halves of it. */
void wire_send(const struct wire *w, const char *request, size_t len);
void wire_receive(struct wire *w);

/* A request with a JSON body, built into out. Its length. */
size_t wire_build(char *out, size_t size, const char *method, const char *path, const char *body);

/* The text value of "key" in the last answer's JSON body, into out; false when it is not there. */
bool wire_json_text(const struct wire *w, const char *key, char *out, size_t size);
long wire_json_int(const struct wire *w, const char *key);

/* Both end the program, and the daemons with it: a call failed, with errno; or what is measured is
 * not as it has to be. */
void bench_die(const char *what) __attribute__((noreturn));
void bench_give_up(const char *what) __attribute__((noreturn));

/* ---- bench_calls.c: requests that several sections make ---- */

struct acquired {
	char id[64];
	char source[16];
	long generation;
	uint64_t ns; /* from the first byte sent to the last byte of the answer */
};

/* The request for the box of (bench, thread). Its length. */
size_t call_build_acquire(char *out, size_t size, const char *thread);

/* What the answer to such a request says. */
void call_read_acquired(const struct wire *w, struct acquired *out);

void call_acquire(struct wire *w, const char *thread, struct acquired *out);
void call_release(struct wire *w, const char *id);
void call_remove(struct wire *w, const char *id);

/* A number of the box's description. */
long call_box_number(struct wire *w, const char *id, const char *key);

/* ---- bench_counter.c: a command that counts, and a process that reads what it says ---- */

struct counter;

/* Runs in that box from now on; returns when the first numbers have come. */
struct counter *counter_start(const struct daemon *d, const char *id);

/* The longest time that nothing came since the last call. */
uint64_t counter_silence_ns(struct counter *c);

/* Ends it. How many numbers came; 0 when one was missing or twice there, or the end was. */
uint64_t counter_stop(struct counter *c, struct wire *w, const char *id);

/* ---- bench_fleet.c: many boxes ---- */

/* As many of the asked boxes as this machine bears; says why when it is fewer. */
uint32_t fleet_fit(uint32_t asked);

/* The name of the i-th thread. */
#define FLEET_THREAD 24
void fleet_thread(uint32_t i, char out[FLEET_THREAD]);

/* Makes warm boxes of the threads from `from` to before `to`; says how long that took. */
void fleet_open(struct wire *w, uint32_t from, uint32_t to);

/* The first number after `label` in a file of /proc; 0 without. */
uint64_t proc_number(const char *path, const char *label);

#endif
