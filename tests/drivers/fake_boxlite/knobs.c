/* knobs: what the double is told to do wrong. Malformed knobs end the process: they are a test's
 * own mistake. */
#include "tests/drivers/fake_boxlite/knobs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/fake.h"

#define KNOBS_TEXT 4096

static const char *const op_names[] = {
    [KNOB_RUNTIME] = "runtime",
    [KNOB_REST] = "rest",
    [KNOB_SHUTDOWN] = "shutdown",
    [KNOB_DRAIN] = "drain",
    [KNOB_IMAGES] = "images",
    [KNOB_PULL] = "pull",
    [KNOB_OPTIONS] = "options",
    [KNOB_CREATE] = "create",
    [KNOB_GET_OR_CREATE] = "get_or_create",
    [KNOB_GET] = "get",
    [KNOB_START] = "start",
    [KNOB_STOP] = "stop",
    [KNOB_REMOVE] = "remove",
    [KNOB_LIST] = "list",
    [KNOB_INFO] = "info",
    [KNOB_METRICS] = "metrics",
    [KNOB_COPY_INTO] = "copy_into",
    [KNOB_COPY_OUT] = "copy_out",
    [KNOB_EXEC] = "exec",
    [KNOB_STDOUT] = "stdout",
    [KNOB_STDIN] = "stdin",
    [KNOB_STDIN_CLOSE] = "stdin_close",
    [KNOB_WAIT] = "wait",
    [KNOB_EXIT] = "exit",
    [KNOB_KILL] = "kill",
    [KNOB_SIGNAL] = "signal",
    [KNOB_RESIZE] = "resize",
    [KNOB_FREE] = "free",
};

_Static_assert(sizeof(op_names) / sizeof(op_names[0]) == KNOB_OPS, "every call has a name");

static const char *const action_names[] = {
    [KNOB_NONE] = "none",
    [KNOB_FAIL] = "fail",
    [KNOB_REFUSE] = "refuse",
    [KNOB_MUTE] = "mute",
    [KNOB_STALL] = "stall",
    [KNOB_LATE] = "late",
    [KNOB_ABORT] = "abort",
    [KNOB_KILLED] = "kill",
    [KNOB_EXITED] = "exit",
    [KNOB_LIE] = "lie",
    [KNOB_TWICE] = "twice",
    [KNOB_FLIP] = "flip",
};

_Static_assert(sizeof(action_names) / sizeof(action_names[0]) == KNOB_ACTIONS, "and each action");

static atomic_int turns[KNOB_OPS];

static void knobs_wrong(const char *what)
{
	(void)fprintf(stderr, "fake boxlite: no such knob: %s\n", what);
	abort();
}

/* The file's knobs come first, so that they win. */
static void knobs_read(char out[2 * KNOBS_TEXT])
{
	const char *path = getenv("FAKE_BOXLITE_FILE");
	const char *env = getenv("FAKE_BOXLITE");
	char beside[PATH_MAX + 16];
	ssize_t len;

	if (!path) {
		library_dir(beside);
		(void)strcat(beside, "/control");
		path = beside;
	}
	len = fd_read_file_at(AT_FDCWD, path, out, KNOBS_TEXT);
	if (len < 0)
		len = 0;
	while (len > 0 && out[len - 1] == '\n')
		len--;
	(void)snprintf(out + len, KNOBS_TEXT, "%s%s", len ? "," : "", env ? env : "");
}

static int find_name(const char *const *names, int count, const char *name, const char *whole)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	knobs_wrong(whole);
	return -1;
}

static bool once(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte = 0;
	bool yes;

	if (fd < 0)
		return false;
	yes = pread(fd, &byte, 1, 0) == 1 && byte == '1' && pwrite(fd, "0", 1, 0) == 1;
	(void)close(fd);
	return yes;
}

static bool is_due(const char *when, int turn)
{
	char *end;
	long n;

	if (!when)
		return true;
	if (*when == '/')
		return once(when);
	n = strtol(when, &end, 10);
	return *end == '+' ? turn >= n : turn == n;
}

/* "OP:ACTION=ARGUMENT@WHEN", taken to pieces. */
static bool knob_parse(char *text, enum knob_op op, int turn, struct knob *out)
{
	char whole[256];
	char *action = strchr(text, ':');
	char *argument;
	char *when;

	if (!action || memchr(text, '=', (size_t)(action - text)))
		return false; /* a setting */
	(void)snprintf(whole, sizeof(whole), "%s", text);
	*action++ = '\0';
	when = strchr(action, '@');
	if (when)
		*when++ = '\0';
	argument = strchr(action, '=');
	if (argument)
		*argument++ = '\0';
	if (find_name(op_names, KNOB_OPS, text, whole) != (int)op || !is_due(when, turn))
		return false;
	out->action = (enum knob_action)find_name(action_names, KNOB_ACTIONS, action, whole);
	out->number = 0;
	if (out->action == KNOB_LATE)
		out->number = argument ? atoi(argument) : 100;
	else if (argument)
		out->number = error_code(argument);
	else if (out->action == KNOB_FAIL || out->action == KNOB_REFUSE || out->action == KNOB_MUTE)
		out->number = BLX_INTERNAL;
	if (out->number < 0)
		knobs_wrong(whole);
	return true;
}

struct knob knob_turn(enum knob_op op)
{
	char text[2 * KNOBS_TEXT];
	struct knob k = {KNOB_NONE, 0};
	int turn = atomic_fetch_add(&turns[op], 1) + 1;
	char *save = NULL;

	knobs_read(text);
	for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (knob_parse(p, op, turn, &k))
			break;
	}
	if (k.action == KNOB_ABORT)
		abort();
	if (k.action == KNOB_KILLED)
		(void)raise(SIGKILL);
	if (k.action == KNOB_EXITED)
		_exit(3);
	return k;
}

const char *knob_text(const char *name, const char *fallback, char *out, size_t size)
{
	char text[2 * KNOBS_TEXT];
	size_t len = strlen(name);
	char *save = NULL;

	(void)snprintf(out, size, "%s", fallback);
	knobs_read(text);
	for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (strncmp(p, name, len) != 0 || p[len] != '=')
			continue;
		(void)snprintf(out, size, "%s", p + len + 1);
		break;
	}
	return out;
}

int knob_number(const char *name, int fallback)
{
	char text[32];
	char no[32];

	(void)snprintf(no, sizeof(no), "%d", fallback);
	return atoi(knob_text(name, no, text, sizeof(text)));
}
