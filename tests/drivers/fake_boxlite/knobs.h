/*
 * knobs: what the double is told to do wrong. From FAKE_BOXLITE and, before it, from the file that
 * FAKE_BOXLITE_FILE names, else one named control beside the library, read at every call:
 *
 *   OP:ACTION[=ARGUMENT][@N|@N+|@FILE],...   at each call of OP; only the N-th of this process;
 * from the N-th on; once, when byte 0 of FILE is 1 (made 0) NAME=VALUE,... settings
 *
 * ACTION: fail=CODE (the callback says so), refuse=CODE (the call itself does), mute=CODE (fails
 * without a message), stall (no callback ever; a call that has none does not return), late=MS,
 * abort, kill (SIGKILL), exit, lie (says that it did, and did not; what else, says the call); of
 * what a stream brings: twice (it comes again), flip (a bit of it is another).
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_KNOBS_H
#define SBXD_TESTS_FAKE_BOXLITE_KNOBS_H

#include <stdbool.h>
#include <stddef.h>

enum knob_op {
	KNOB_RUNTIME,
	KNOB_REST,
	KNOB_SHUTDOWN,
	KNOB_DRAIN,
	KNOB_IMAGES,
	KNOB_PULL,
	KNOB_OPTIONS,
	KNOB_CREATE,
	KNOB_GET_OR_CREATE,
	KNOB_GET,
	KNOB_START,
	KNOB_STOP,
	KNOB_REMOVE,
	KNOB_LIST,
	KNOB_INFO,
	KNOB_METRICS,
	KNOB_COPY_INTO,
	KNOB_COPY_OUT,
	KNOB_EXEC,
	KNOB_STDOUT,
	KNOB_STDIN,
	KNOB_STDIN_CLOSE,
	KNOB_WAIT,
	KNOB_EXIT,
	KNOB_KILL,
	KNOB_SIGNAL,
	KNOB_RESIZE,
	KNOB_FREE,
	KNOB_OPS
};

enum knob_action {
	KNOB_NONE,
	KNOB_FAIL,
	KNOB_REFUSE,
	KNOB_MUTE,
	KNOB_STALL,
	KNOB_LATE,
	KNOB_ABORT,
	KNOB_KILLED,
	KNOB_EXITED,
	KNOB_LIE,
	KNOB_TWICE,
	KNOB_FLIP,
	KNOB_ACTIONS
};

struct knob {
	enum knob_action action;
	int number; /* the code, or milliseconds */
};

/* Counts the call, and says what it shall do. The deadly actions do not return. */
struct knob knob_turn(enum knob_op op);

/* A setting, or `fallback`. */
const char *knob_text(const char *name, const char *fallback, char *out, size_t size);
int knob_number(const char *name, int fallback);

#endif
