/* errors: the table of BoxLite's error codes. Any process; constant. */
#include "drivers/boxlite/errors.h"

#include <errno.h>
#include <stdio.h>

static const struct blx_meaning meanings[BLX_CODES] = {
    [0] = {"Ok", 0, false, false},
    [1] = {"Internal", EIO, false, false},
    [2] = {"NotFound", ENOENT, true, false},
    [3] = {"AlreadyExists", EEXIST, false, false},
    [4] = {"InvalidState", EBUSY, false, false},
    [5] = {"InvalidArgument", EINVAL, false, false},
    [6] = {"Config", EINVAL, false, false},
    [7] = {"Storage", EIO, false, false},
    [8] = {"Image", ENOMEDIUM, false, false},
    [9] = {"Network", ENETUNREACH, false, true},
    [10] = {"Execution", ENOEXEC, false, false},
    [11] = {"Stopped", ESHUTDOWN, true, false},
    [12] = {"Engine", EIO, true, false}, /* the virtual machine itself */
    [13] = {"Unsupported", EOPNOTSUPP, false, false},
    [14] = {"Database", EIO, false, true},	/* another has it locked */
    [15] = {"Portal", ECONNRESET, true, false}, /* nobody answers in the box */
    [16] = {"Rpc", EPROTO, false, false},
    [17] = {"RpcTransport", ECONNREFUSED, false, true},
    [18] = {"Metadata", EIO, false, false},
    [19] = {"UnsupportedEngine", EOPNOTSUPP, false, false},
    [20] = {"ResourceExhausted", ENOMEM, false, true},
    [21] = {"SessionReaped", EPIPE, true, false}, /* the agent with it */
};

static const struct blx_meaning unknown = {"Unknown", EIO, false, false};

const struct blx_meaning *blx_meaning(int code)
{
	return code >= 0 && code < BLX_CODES ? &meanings[code] : &unknown;
}

void blx_error_text(int code, const char *message, char *out, size_t size)
{
	const struct blx_meaning *m = blx_meaning(code);

	if (m == &unknown)
		(void)snprintf(out, size, "error %d: %s", code, message ? message : "no message");
	else
		(void)snprintf(out, size, "%s: %s", m->name, message ? message : "no message");
	for (; *out; out++) {
		if ((unsigned char)*out < 0x20 || *out == 0x7f)
			*out = ' ';
	}
}
