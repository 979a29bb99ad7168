/*
 * qmp: QEMU's monitor. Worker, also when it has no privilege left. QEMU may have been taken over:
 * what it says is bounded, and believed only in so far as an answer is yes or no.
 */
#ifndef SBXD_DRIVERS_QEMU_QMP_H
#define SBXD_DRIVERS_QEMU_QMP_H

#include <stddef.h>
#include <stdint.h>

#include "drivers/qemu/machine.h"

/* Memory that is shared is where it is: neither written nor read with the state. */
#define QMP_IGNORE_SHARED                                                             \
	"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":[" \
	"{\"capability\":\"x-ignore-shared\",\"state\":true}]}}"

#define QMP_LINE 8192 /* an answer that is longer is none */

struct qmp {
	const struct machine *m; /* whose stream it is */
	size_t len;
	char line[QMP_LINE];
};

/* Waits for QEMU to run and agrees on how to speak. 0, -ETIMEDOUT, -EPIPE, -EBADMSG or -errno with
 * *err. */
int qmp_begin(struct qmp *q, const struct machine *m, uint64_t deadline_ns, struct err *err);

/* Gives an order, a JSON object in one line, and waits for its answer; events are dropped. 0,
 * -EREMOTEIO: it was refused (*err has QEMU's words), or as above. */
int qmp_order(struct qmp *q, const char *order, uint64_t deadline_ns, struct err *err);

/* The same, for an order that comes with a descriptor, which stays the caller's. */
int qmp_give(struct qmp *q, const char *order, int fd, uint64_t deadline_ns, struct err *err);

/* As qmp_order(), and writes the text of the answer's member `key`; "" when it has none. */
int qmp_ask(struct qmp *q, const char *order, const char *key, char *out, size_t size,
    uint64_t deadline_ns, struct err *err);

#endif
