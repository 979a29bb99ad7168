/* env: looking a variable up in an environment that is handed in, not the process's own. */
#ifndef SBXD_LIB_ENV_H
#define SBXD_LIB_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* The value of the variable whose name is the first len bytes of `name`; NULL when env has none. */
const char *env_get(char *const *env, const char *name, size_t len);

/* A POSIX name: [A-Za-z_][A-Za-z0-9_]*. */
bool env_name_is_sound(const char *name);

#endif
