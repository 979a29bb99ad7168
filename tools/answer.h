/*
 * answer: what an answer of the service means, for whoever asked.
 */
#ifndef SBXD_TOOLS_ANSWER_H
#define SBXD_TOOLS_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* Sets *err to what an answer that is no success says, "MESSAGE (REASON)". Returns -EIO. */
int answer_error(unsigned int status, const uint8_t *body, size_t len, struct err *err);

#endif
