/*
 * bench: speed of the whole service, as ratios to baselines that are measured in turn with it, in
 * one run. Not a test.
 */
#ifndef SBXD_TESTS_BENCH_H
#define SBXD_TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Times of one thing, in ns. */
struct samples {
	uint64_t *ns;
	size_t count;
	size_t cap;
};

void samples_add(struct samples *s, uint64_t ns);
uint64_t samples_quantile(struct samples *s, double q);
void samples_free(struct samples *s);

/* bench_base.c: what the kernel alone costs. Each adds `n` samples (for streams: one sample each
 * for the whole size). */
void base_ping_pong(struct samples *s, size_t n, size_t bytes);
void base_spawn(struct samples *s, size_t n, const char *const argv[]); /* vfork, exec, wait */
bool base_bwrap(struct samples *s, size_t n); /* false: bwrap is not installed */
void base_stream(struct samples *s, size_t n, size_t total, size_t chunk);

/* bench_daemon.c: a private sbxd. */
struct daemon {
	pid_t pid;
	char dir[64];
	char socket[108];
};

/* Ends the program with a message when it cannot be started. */
void daemon_start(struct daemon *d, const char *config);
void daemon_stop(struct daemon *d);

/* Proportional set size of a process in KiB. */
uint64_t daemon_pss_kib(pid_t pid);

/* bench_http.c: the smallest blocking client. */
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

/* Sends the request text as it is and reads the whole answer. Ends the program on failure. */
void wire_call(struct wire *w, const char *request, size_t len);

/* A request with a JSON body, built into out. Its length. */
size_t wire_build(char *out, size_t size, const char *method, const char *path, const char *body);

/* The text value of "key" in the last answer's JSON body, into out; false when it is not there. */
bool wire_json_text(const struct wire *w, const char *key, char *out, size_t size);
long wire_json_int(const struct wire *w, const char *key);

void die(const char *what) __attribute__((noreturn));

#endif
