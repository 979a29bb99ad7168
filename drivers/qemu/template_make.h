/* template_make: the making of a template. Worker. */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATE_MAKE_H
#define SBXD_DRIVERS_QEMU_TEMPLATE_MAKE_H

#include "drivers/qemu/template.h"
#include "drivers/qemu/template_note.h"
#include "drivers/qemu/template_parts.h"

/* Makes it of these parts, whose digest is its key, at e->new_path, and keeps it or gives it up. 0,
 * -EDQUOT with *err: there is no room to keep it; or -errno with *err. */
int template_make(const struct driver_site *site, const struct qemu_plan *plan,
    const struct template_parts *parts, const uint8_t digest[DIGEST_LEN],
    const struct driver_spec *spec, uid_t base, struct store_entry *e, struct err *err);

#endif
