/*
 * tar_in_int: what tar_in.c (input, the coroutine) and tar_in_member.c (from libarchive's entries
 * to records) share.
 */
#ifndef SBXD_WORKER_TAR_IN_INT_H
#define SBXD_WORKER_TAR_IN_INT_H

#include "wire/entry.h"
#include "worker/tar_in.h"

#define TAR_IN_SIZE (128U * 1024U)
#define TAR_IN_RECORDS_HIGH (64U * 1024U) /* no further record is made above this */
#define TAR_IN_DATA SIZE_MAX

struct archive;
struct coro;

struct tar_in {
	struct coro *coro;
	struct archive *archive;
	enum tar_in_state state;
	bool ended;	/* tar_in_end() was called */
	bool cancelled; /* by tar_in_free(): everything is to unwind */
	size_t headers; /* bytes read for it; TAR_IN_DATA: the headers of the member are read */
	uint64_t members;
	enum api_error error;
	char why[512];
	char name[128]; /* of the last member, cut, for messages */
	struct buf records;
	size_t off; /* of bytes, the first that libarchive was not given */
	size_t len;
	uint8_t bytes[TAR_IN_SIZE];
};

/* Suspends the coroutine. */
void tar_in_wait(struct tar_in *t, enum tar_in_state why);

/* Both return false; the first failure counts. */
bool tar_in_fail(struct tar_in *t, enum api_error e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool tar_in_no_memory(struct tar_in *t);

/* libarchive can make nothing of what came: false. */
bool tar_in_damaged(struct tar_in *t);

/* tar_in_member.c: the next member. False: there is none, or it failed. */
bool tar_in_member(struct tar_in *t);

/* The last record. */
void tar_in_finish(struct tar_in *t);

#endif
