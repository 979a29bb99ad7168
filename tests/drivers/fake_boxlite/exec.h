/*
 * exec: what the two halves of executions share. An execution is held by its owner and by each of
 * its threads: one writes stdin, one reads each output, one waits for the end.
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_EXEC_H
#define SBXD_TESTS_FAKE_BOXLITE_EXEC_H

#include "tests/drivers/fake_boxlite/fake.h"

#define EXEC_FORCED (-129) /* the exit code of one that was freed while it ran */

struct stream {
	int fd; /* -1: none */
	blx_data_fn *cb;
	void *user;
	bool wanted; /* a callback was asked for, or nobody will: then it is read and dropped */
	bool done;
	int late; /* chunks read after it was told to stop */
};

struct execution {
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned int refs;
	struct runtime *rt;
	char id[FAKE_ID]; /* of the box */
	int conn;	  /* the box's process says here when it ends */
	int stop[2];	  /* pipe: its end tells the readers to stop */
	int32_t pid;	  /* in the box's process's eyes */
	int timeout_ms;	  /* 0: none */
	bool tty;

	int in; /* where stdin goes; the terminal, if it has one */
	uint8_t *input;
	size_t input_len;
	bool input_closed;

	struct stream streams[2];
	blx_exit_fn *exit_cb;
	void *exit_user;
	bool exited;
	int code;
	bool told; /* the exit callback is on its way */
	bool freed;
};

struct execution *exec_ref(struct execution *x);

/* Starts the threads. 0 or -errno. */
int exec_io_start(struct execution *x);

/* Asks the box's process: kind is a shim_ask_kind. 0 or -errno. */
int exec_ask(struct execution *x, uint32_t kind, int a, int b);

#endif
