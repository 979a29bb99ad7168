/*
 * crc32c: the cyclic checksum of iSCSI and ext4 (RFC 3720, appendix B.4). It tells what has been
 * damaged by accident, and nothing about what somebody has changed on purpose.
 */
#ifndef SBXD_LIB_CRC32C_H
#define SBXD_LIB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, the checksum of what came before (0: nothing), over n bytes. */
typedef uint32_t crc32c_fn(uint32_t crc, const void *bytes, size_t n);

/* The fastest that this processor has. To find out costs more than a short checksum: the caller
 * keeps it. */
crc32c_fn *crc32c_pick(void);

/* The one that every processor has. */
uint32_t crc32c_plain(uint32_t crc, const void *bytes, size_t n);

#endif
