/*
 * file: AGENT_READ, AGENT_WRITE, AGENT_PATH and AGENT_SYNC. sbx-guest.
 *
 * If we die here PID 1 is dead and the kernel ends the box; a temporary name (".sbx-<hex>.tmp") may
 * be left in it.
 */
#ifndef SBXD_GUEST_FILE_H
#define SBXD_GUEST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/out.h"

struct guest;
struct operation;
struct shim;

struct file_reader {
	int fd;
	bool lines;
	bool sized; /* what is left is what the file said that it has */
	struct out_told told;
	uint64_t offset; /* of the next byte */
	uint64_t left;	 /* bytes that may still be sent */
	uint64_t line;	 /* number of the line at offset, from 1 */
	uint64_t first;
	uint64_t last;
	uint64_t sent;
};

#define FILE_TEMPORARY_MAX 24

struct file_writer {
	int fd;
	int dir_fd; /* of the file's directory, O_PATH; -1 when appending */
	bool append;
	bool set_mode;
	uint32_t mode;
	uint32_t uid; /* UINT32_MAX: a new file, our own */
	uint32_t gid;
	uint64_t size; /* announced; UINT64_MAX: not known */
	uint64_t done;
	size_t piped;	      /* bytes that came and lie in the pipe */
	int pipe[2];	      /* -1: not poured */
	uint64_t before;      /* appending: the size that it had */
	struct shim *flusher; /* has been told to fsync */
	char temporary[FILE_TEMPORARY_MAX];
	char name[256]; /* in the directory */
};

/*
 * What is written to, by w->append, set_mode and mode (all set before; fd and dir_fd -1): a new
 * file beside the one at path, which is opened in its directory, or that one. 0 or an errno; what
 * was opened is file_target_close()'s in both cases.
 */
int file_target_open(int root_fd, struct file_writer *w, const char *path);

/* Gives it the mode and the owner that it shall have. 0 or an errno. */
int file_target_dress(struct file_writer *w);

/* Its content is complete: gives it its name. 0 or an errno. */
int file_target_name(struct file_writer *w);

/* Closes it; what has no name yet is removed, an append taken back. */
void file_target_close(struct file_writer *w);

/* Writes n bytes. 0 or an errno. */
int file_put(struct file_writer *w, const uint8_t *bytes, size_t n);

/* True: enough is to come, and can be poured; w->pipe is open then. */
bool file_pour_begin(struct file_writer *w);

/*
 * Takes at most n bytes from the stream into the pipe, as read(2), but -errno; -EAGAIN also when
 * the pipe had no room, and has now; -EINVAL: it is a stream that this cannot be done with. *err:
 * an errno when writing the file failed.
 */
ssize_t file_pour(struct file_writer *w, int stream, size_t n, int *err);

/* Writes what is in the pipe. 0 or an errno. */
int file_pour_end(struct file_writer *w);

extern const struct operation file_read_operation;
extern const struct operation file_write_operation;
extern const struct operation file_path_operation;

#define FILE_PING_MAX 64U

/* The AGENT_SYNC that is being done. */
struct file_sync {
	struct shim *flusher;
	int fd;
	size_t len;
	uint8_t payload[FILE_PING_MAX]; /* to be echoed */
};

/* Flushes the file system of the box, then answers PONG with the payload. */
void file_sync_begin(struct guest *g, const uint8_t *payload, size_t n);

/* A child changed: perhaps the flush is done. */
void file_sync_step(struct guest *g);

#endif
