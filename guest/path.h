/*
 * path: paths that a client gave, and how they are opened. sbx-guest.
 *
 * A path is absolute, has no "..", no empty and no "." component, and is not longer than the kernel
 * takes. It is resolved with openat2(RESOLVE_IN_ROOT), so symlinks stay in the box, and never
 * through the magic links of /proc.
 */
#ifndef SBXD_GUEST_PATH_H
#define SBXD_GUEST_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/text.h"
#include "wire/agent.h"

#define PATH_LEN_MAX 4095U
#define PATH_INVALID "not an absolute path without empty, \".\" or \"..\" components"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1U
#endif

struct open_how;

/* Checks n bytes (not NUL-terminated). A slash at the end is allowed only for "/" itself. */
bool path_is_valid(const char *path, size_t n);

/* openat2() of dir, again when renames elsewhere spoil it. The descriptor or -errno. */
int path_openat2(int dir, const char *path, const struct open_how *how);

/* Below root_fd, as above. The descriptor (CLOEXEC, NOCTTY, NONBLOCK) or -errno. */
int path_open(int root_fd, const char *path, int flags, unsigned int mode);

/*
 * Opens the directory that the last component of path is in (O_PATH); *name is that component, in
 * path. The descriptor, or -errno; -EBUSY for "/", which is in none.
 */
int path_open_parent(int root_fd, const char *path, const char **name);

/* Opens a regular file for reading, whatever may stand in its place. The descriptor or -errno. */
int path_open_regular(int root_fd, const char *path);

/* Closes what was only read, names a place, or is flushed; -1 afterwards. For PATH_SCOPED int fd =
 * ...; */
void path_close(int *fd);
#define PATH_SCOPED __attribute__((cleanup(path_close)))

/* Met on the way through a tree: what was seen there is not there any more, or is something else,
 * which is as good. */
bool path_is_gone(int err);

/* The code for an errno of a file operation. */
enum agent_code path_code(int err);

/* "<what> <path>: <reason>". */
void path_explain(struct text *t, const char *what, const char *path, int err);

#endif
