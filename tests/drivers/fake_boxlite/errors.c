/* errors: codes and messages, and the strings that the caller frees. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/drivers/fake_boxlite/fake.h"

static const char *const code_names[] = {
    [BLX_OK] = "Ok",
    [BLX_INTERNAL] = "Internal",
    [BLX_NOT_FOUND] = "NotFound",
    [BLX_ALREADY_EXISTS] = "AlreadyExists",
    [BLX_INVALID_STATE] = "InvalidState",
    [BLX_INVALID_ARGUMENT] = "InvalidArgument",
    [BLX_CONFIG] = "Config",
    [BLX_STORAGE] = "Storage",
    [BLX_IMAGE] = "Image",
    [BLX_NETWORK] = "Network",
    [BLX_EXECUTION] = "Execution",
    [BLX_STOPPED] = "Stopped",
    [BLX_ENGINE] = "Engine",
    [BLX_UNSUPPORTED] = "Unsupported",
    [BLX_DATABASE] = "Database",
    [BLX_PORTAL] = "Portal",
    [BLX_RPC] = "Rpc",
    [BLX_RPC_TRANSPORT] = "RpcTransport",
    [BLX_METADATA] = "Metadata",
    [BLX_UNSUPPORTED_ENGINE] = "UnsupportedEngine",
    [BLX_RESOURCE_EXHAUSTED] = "ResourceExhausted",
    [BLX_SESSION_REAPED] = "SessionReaped",
};

_Static_assert(sizeof(code_names) / sizeof(code_names[0]) == BLX_CODES, "every code has a name");

int error_code(const char *name)
{
	for (int i = 0; i < BLX_CODES; i++) {
		if (!strcmp(code_names[i], name))
			return i;
	}
	return -1;
}

enum blx_code error_set(struct blx_error *err, enum blx_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	if (vasprintf(&err->message, fmt, ap) < 0)
		err->message = NULL;
	va_end(ap);
	return code;
}

enum blx_code error_sys(struct blx_error *err, enum blx_code code, int number, const char *what)
{
	return error_set(err, code, "%s: %s", what, strerror(number < 0 ? -number : number));
}

void boxlite_error_free(struct blx_error *err)
{
	if (!err)
		return;
	free(err->message);
	*err = (struct blx_error){BLX_OK, NULL};
}

void boxlite_free_string(char *s)
{
	free(s);
}
