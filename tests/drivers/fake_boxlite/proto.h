/*
 * proto: between the library and a box's process: messages over a SOCK_SEQPACKET connection, one
 * request each. An execution's stays open and ends with its exit.
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_PROTO_H
#define SBXD_TESTS_FAKE_BOXLITE_PROTO_H

#include <stdint.h>

#define SHIM_TEXT (160 * 1024) /* bytes of a request's strings */
#define SHIM_STRINGS 4096
#define SHIM_UID_BASE 1610612736U /* host uid of the box's root, when root starts it */
#define SHIM_UIDS 65536U

/* What the box's process gets as descriptors. */
#define SHIM_FD_WATCH 3 /* at its end the box ends; /dev/null: never */
#define SHIM_FD_READY 4 /* a struct shim_ready goes here */
#define SHIM_FD_DIR 5	/* the box's directory */

enum shim_ask_kind {
	SHIM_EXEC,   /* a: tty, b: arguments; text: workdir, user, arguments, KEY=VALUE ...;
			descriptors: stdin, stdout, stderr */
	SHIM_SIGNAL, /* a: pid, b: signal */
	SHIM_RESIZE, /* a: pid, b: rows, c: columns */
	SHIM_STOP,
};

struct shim_ask {
	uint32_t kind;
	int32_t a;
	int32_t b;
	int32_t c;
	char text[SHIM_TEXT]; /* NUL-terminated strings */
};

enum shim_answer_kind {
	SHIM_ANSWER, /* value: a pid, 0, or -errno; a terminal comes with it as a descriptor */
	SHIM_EXIT,   /* value: exit status, or -signal */
};

struct shim_answer {
	uint32_t kind;
	int32_t value;
};

struct shim_ready {
	int32_t error; /* errno, or 0 */
	char step[60];
};

#endif
