/* templates: the templates there are, seen from outside. `sbx-worker image`. */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATES_H
#define SBXD_DRIVERS_QEMU_TEMPLATES_H

#include "drivers/template.h"

extern const struct driver_templates qemu_templates;

/* templates_look.c: as in struct driver_templates. */
int templates_each(const struct driver_site *site, int guest, int helper, driver_template_fn *fn,
    void *ctx, struct err *err);

#endif
