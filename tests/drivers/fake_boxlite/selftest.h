/*
 * selftest: the double tested through its interface, as the driver would use it: calls, and one
 * thread that drains until what it waits for was told.
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_SELFTEST_H
#define SBXD_TESTS_FAKE_BOXLITE_SELFTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/drivers/fake_boxlite/abi.h"

#define OUT_MAX (2 << 20)

/* What a callback told. */
struct told {
	int count;
	enum blx_code code;
	char message[256];
	struct box *box;
	bool made;
	int number;
	struct blx_info info; /* strings copied below */
	char status[32];
	char name[64];
};

struct output {
	char out[OUT_MAX];
	size_t len;
	size_t err_len;
	int chunks;
	int exits;
	int exit_code;
	bool late; /* something came after the exit */
};

extern char self_home[64];

struct runtime *self_runtime(void);
struct runtime *self_remote(const char *url, const char *key, const char *prefix);

/* Drains until t was told; fails the test when that takes too long. */
void self_await(struct runtime *rt, const struct told *t);

void told_done(struct blx_error *err, void *user);
void told_box(struct box *box, struct blx_error *err, void *user);
void told_made(struct box *box, bool made, struct blx_error *err, void *user);
void told_info(struct blx_info *info, struct blx_error *err, void *user);
void told_list(struct blx_info_list *list, struct blx_error *err, void *user);
void told_pulled(struct blx_pulled *pulled, struct blx_error *err, void *user);
void told_exit_of_wait(int code, struct blx_error *err, void *user);

struct options *self_options(const char *name, bool detach);

/* A started box. */
struct box *self_box(struct runtime *rt, const char *name, bool detach);
enum blx_code self_start(struct runtime *rt, struct box *box);
enum blx_code self_stop(struct runtime *rt, struct box *box);
enum blx_code self_remove(struct runtime *rt, const char *name, bool force);
enum blx_code self_info(struct runtime *rt, const char *name, struct told *t);

/* Runs a line of sh to its end, `input` to its stdin. Its exit code. */
int self_shell(
    struct runtime *rt, struct box *box, const char *line, const char *input, struct output *o);
struct execution *self_exec(struct box *box, const struct blx_command *cmd, struct output *o);
void self_await_exit(struct runtime *rt, const struct output *o);

/* The knobs from now on. */
void self_knobs(const char *text);

int selftest_life(void);
int selftest_exec(void);
int selftest_knobs(void);

#endif
