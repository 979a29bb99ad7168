/*
 * lz4: the format that a Debian kernel is packed in: LZ4's "legacy" frames, as `lz4 -l` writes
 * them.
 */
#ifndef SBXD_DRIVERS_QEMU_LZ4_H
#define SBXD_DRIVERS_QEMU_LZ4_H

#include <stddef.h>
#include <stdint.h>

#define LZ4_LEGACY_MAGIC 0x184c2102U

/*
 * Unpacks n bytes, magic included, into out. What comes after the last block is ignored. The
 * number of bytes written, or -EBADMSG: it is no such data, is cut, or does not fit.
 */
long lz4_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t size);

#endif
