/*
 * qemu: boxes that are virtual machines of QEMU. START HERE in drivers/qemu/.
 *
 * The janitor finds QEMU, a kernel and an accelerator (probe.c), and makes of an image a disk
 * (image.c), all of it kept in a store (store.h). A worker starts a box (start.c): it launches a
 * QEMU process (launch.h) that is the copy of a template (template.h), or boots; makes a box of its
 * own of it (talk.h), and from then on has two streams, to sbx-guest and to QEMU's monitor (qmp.h).
 * sweep.c is what is done to boxes by name.
 */
#ifndef SBXD_DRIVERS_QEMU_QEMU_H
#define SBXD_DRIVERS_QEMU_QEMU_H

#include "drivers/driver.h"
#include "lib/fault.h"

/* Another number when a template of before would not fit: its machine, its kernel's command line,
 * what is done in it before it is kept. */
#define TEMPLATE_FORMAT "template 2"

/* For all that probe() or prepare() does. */
#define PREPARE_NS (DRIVER_ANSWER_NS * FAULT_SLOW())

extern const struct driver driver_qemu;

int qemu_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err);
int qemu_prepare(const struct driver_site *site, const char *image, struct err *err);
int qemu_list(const struct driver_site *site, driver_list_fn *fn, void *ctx);
int qemu_adopt(const struct driver_site *site, const char *name, struct err *err);
int qemu_cleanup(
    const struct driver_site *site, const char *name, pid_t pid, uint64_t start, struct err *err);
int qemu_finish(const struct driver_site *site, struct err *err);
int qemu_start(const struct driver_site *site, const struct driver_spec *spec,
    struct driver_box **box, int *stream, struct err *err);

#endif
