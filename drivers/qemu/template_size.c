/* template_size: a number in the store for each template that had no room. Who dies while he writes
 * it leaves a smaller one, or none: then that template is made in vain once more. */
#include "drivers/qemu/template_size.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "drivers/qemu/store.h"
#include "lib/fd.h"

#define KIND "size"

uint64_t template_size_read(const struct driver_site *site, const uint8_t digest[DIGEST_LEN])
{
	char path[QEMU_PATH];
	char text[24];

	if (store_path(site, KIND, digest, path, NULL) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	store_touch(path);
	return strtoull(text, NULL, 10);
}

void template_size_note(
    const struct driver_site *site, const uint8_t digest[DIGEST_LEN], uint64_t bytes)
{
	char path[QEMU_PATH];
	FD_SCOPED int fd = -1;

	if (store_path(site, KIND, digest, path, NULL) < 0)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)dprintf(fd, "%" PRIu64, bytes); /* it saves a boot, no more */
}
