/*
 * shim: the process that is a box to the host. It builds the box's root, has an init in the box's
 * pid namespace, and starts commands there. It dies, and the box with it, when its watch ends.
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_SHIM_H
#define SBXD_TESTS_FAKE_BOXLITE_SHIM_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/drivers/fake_boxlite/proto.h"

/* The step that failed is told and the process ends. */
_Noreturn void shim_fail(const char *step, int number);
void shim_need(bool ok, const char *step);

/* Namespaces of its own, with the caller as their root. */
void shim_enter_namespaces(void);

/* The init: started before the root is built, because procfs wants a process of the namespace. It
 * ends when the descriptor behind *alive is closed by all. */
pid_t shim_start_init(const char *root, int *alive);

/* Builds the box's root from the host's programs below `root`, an empty directory. */
void shim_build_root(const char *root, int disk_gb);

/* Makes it the root of the box. */
void shim_enter_root(const char *root);

/* Starts a command; its pid or -errno. A terminal's master goes to *terminal, else -1. */
pid_t shim_run(const struct shim_ask *ask, size_t len, const int fds[3], int *terminal);

#endif
