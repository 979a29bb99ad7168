/* ignore: names that a search passes over: version control, dependencies, builds, caches.
 * sbx-files.
 */
#ifndef SBXD_GUEST_FILES_IGNORE_H
#define SBXD_GUEST_FILES_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a name (not a path) is passed over, a directory with all that is in it. */
bool ignore_name(const char *name, size_t len);

#endif
