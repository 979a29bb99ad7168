/*
 * template_about: what a template says of itself, for people and for who asks whether it is still
 * the one that a box would begin with. Worker writes it, `sbx-worker image` reads it.
 */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATE_ABOUT_H
#define SBXD_DRIVERS_QEMU_TEMPLATE_ABOUT_H

#include "drivers/qemu/template_parts.h"

#define TEMPLATE_ABOUT "about" /* the file of a template that has it: one JSON object */

struct template_about {
	char image[128];
	char accelerator[8]; /* kvm, tcg */
	char cpu[QEMU_CPU];
	char version[32]; /* of QEMU */
	char release[96]; /* of the kernel; "" unknown */
	struct template_parts parts;
};

/* That of a template of the plan, made of these parts. */
void template_about_fill(
    const struct qemu_plan *plan, const struct template_parts *parts, struct template_about *out);

/* 0 or -errno. */
int template_about_write(int fd, const struct template_about *about);

/* Reads back what was written; -EBADMSG: it is damaged, or -errno. */
int template_about_read(int fd, struct template_about *out);

#endif
