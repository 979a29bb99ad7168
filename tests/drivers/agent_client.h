/*
 * agent_client: a small blocking client of sbx-guest, for tests. One operation at a time.
 */
#ifndef SBXD_TESTS_DRIVERS_AGENT_CLIENT_H
#define SBXD_TESTS_DRIVERS_AGENT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/agent.h"

#define CLIENT_OUT 65536

struct agent_client {
	int fd; /* the stream, not owned */
	uint32_t channel;
	uint8_t payload[AGENT_DATA_MAX];
};

/* What a command did. */
struct agent_result {
	struct agent_end end;
	uint32_t error;	      /* enum agent_code when it could not be started, else 0 */
	char out[CLIENT_OUT]; /* first bytes of stdout and stderr, or the error; NUL-terminated */
	size_t len;
};

void agent_client_init(struct agent_client *c, int fd);

/* All return 0, -ETIMEDOUT, -EPIPE (the stream ended), -EBADMSG or -errno. */

/* Reads the guest's first frame. */
int agent_client_hello(struct agent_client *c, int timeout_ms);

/* A ping and its answer. */
int agent_client_ping(struct agent_client *c, int timeout_ms);

/* Runs argv (NULL-terminated) as `user` ("" is the default) to its end. After timeout_ms it is
 * closed, and should end soon (patience_soon()). */
int agent_client_run(struct agent_client *c, const char *user, const char *const *argv,
    int timeout_ms, struct agent_result *out);

/* The same for a line of sh. */
int agent_client_shell(struct agent_client *c, const char *user, const char *line, int timeout_ms,
    struct agent_result *out);

/* Runs sbx-files with argv (NULL-terminated, its command first). */
int agent_client_files(
    struct agent_client *c, const char *const *argv, int timeout_ms, struct agent_result *out);

#endif
