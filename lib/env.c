/* env: variables of an environment that is handed in. Any process; holds no state. */
#include "lib/env.h"

#include <string.h>

const char *env_get(char *const *env, const char *name, size_t len)
{
	for (; env && *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

bool env_name_is_sound(const char *name)
{
	static const char allowed[] =
	    "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	return *name && !(*name >= '0' && *name <= '9') && name[strspn(name, allowed)] == '\0';
}
