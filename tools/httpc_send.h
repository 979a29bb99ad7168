/*
 * httpc_send: the sending half of httpc, for httpc.c only.
 */
#ifndef SBXD_TOOLS_HTTPC_SEND_H
#define SBXD_TOOLS_HTTPC_SEND_H

#include "tools/httpc.h"

/* Where to; both stay the caller's. */
struct httpc_line {
	int fd;
	int cancel_fd;
	uint64_t box_generation; /* 0: not said */
};

/* Sends a request, as much of it as the service takes before it answers. 0 or as httpc_send(). */
int httpc_put_request(const struct httpc_line *l, const struct httpc_request *req,
    uint64_t deadline, struct err *err);

/* Says what the result of httpc_wait() means to who waited for the service to `what`. Returns rc's
 * meaning as -errno. */
int httpc_fail_wait(int rc, const char *what, struct err *err);

#endif
