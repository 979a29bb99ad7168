/* fault: named places where a test can make a process die, stop or fail. Test builds only. */
#include "lib/fault.h"

#ifdef SBX_FAULTS

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fault_act(const char *action, size_t len, bool *fails)
{
	char file[PATH_MAX];
	const char *at = memchr(action, '@', len);
	size_t verb = at ? (size_t)(at - action) : len;

	if (at) {
		(void)snprintf(file, sizeof(file), "%.*s", (int)(len - verb - 1), at + 1);
		if (unlink(file) < 0)
			return; /* not armed, or another process was first */
	}
	if (verb == 4 && !memcmp(action, "kill", 4))
		(void)kill(getpid(), SIGKILL);
	else if (verb == 4 && !memcmp(action, "hang", 4))
		for (;;)
			(void)pause();
	else if (verb == 4 && !memcmp(action, "fail", 4))
		*fails = true;
}

bool fault_hit(const char *name)
{
	const char *spec = getenv("SBX_FAULT");
	size_t name_len = strlen(name);
	bool fails = false;

	while (spec && *spec) {
		size_t len = strcspn(spec, ",");

		if (len > name_len && spec[name_len] == '=' && !memcmp(spec, name, name_len))
			fault_act(spec + name_len + 1, len - name_len - 1, &fails);
		spec += len + (spec[len] == ',');
	}
	return fails;
}

#else

/* ISO C wants a declaration in every translation unit. */
typedef int fault_is_compiled_out;

#endif
