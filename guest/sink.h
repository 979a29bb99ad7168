/*
 * sink: pipes whose command is gone while a background process still holds them. sbx-guest.
 *
 * Closing our end would kill the process by SIGPIPE at its next line of log, and not reading would
 * block it. So what comes is thrown away, slowly, until the last writer is gone.
 */
#ifndef SBXD_GUEST_SINK_H
#define SBXD_GUEST_SINK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define SINKS_MAX 64U

struct sink {
	int fd;
	uint64_t rest_until; /* a busy writer is read only so often */
};

struct sinks {
	unsigned int count;
	struct sink all[SINKS_MAX];
};

/* Takes fd. When there are too many the oldest is closed. */
void sink_add(struct sinks *s, int fd);

/* Fills p (SINKS_MAX entries) and lowers *at to when one may be read again. Returns how many. */
unsigned int sink_wait(const struct sinks *s, struct pollfd *p, uint64_t now, uint64_t *at);

/* Throws away what is there; p as sink_wait() filled it and poll(2) left it. */
void sink_step(struct sinks *s, const struct pollfd *p, unsigned int count, uint64_t now);

#endif
