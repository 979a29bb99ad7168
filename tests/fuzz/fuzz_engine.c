/* fuzz_engine: one packet to the checker of the messages between the BoxLite driver and
 * sbx-boxlite. What it takes can be sent on, and is the same at the other end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/boxlite/engine.h"
#include "lib/fd.h"

#define REQUIRE(what)                                                   \
	do {                                                            \
		if (!(what)) {                                          \
			(void)fprintf(stderr, "not true: %s\n", #what); \
			abort();                                        \
		}                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int pair[2] = {-1, -1};
	static uint8_t buf[ENG_MSG_MAX];
	struct eng_msg msg;
	struct eng_msg back;
	int rc;

	if (pair[0] < 0)
		REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	rc = eng_parse(data, n, &msg);
	REQUIRE(rc == 0 || rc == -EBADMSG);
	if (rc < 0)
		return 0;
	REQUIRE(msg.tail + msg.tail_len == data + n);
	rc = eng_send(pair[0], (enum eng_type)msg.head.type, msg.head.seq, &msg.body, msg.tail,
	    msg.tail_len, msg.head.type == ENG_START ? STDERR_FILENO : -1);
	REQUIRE(rc == 0);
	REQUIRE(eng_recv(pair[1], buf, &back) == 1);
	REQUIRE(!memcmp(&msg.head, &back.head, sizeof(msg.head)));
	REQUIRE(!memcmp(&msg.body, &back.body, sizeof(msg.body)));
	REQUIRE(msg.tail_len == back.tail_len);
	REQUIRE(msg.tail_len == 0 || !memcmp(msg.tail, back.tail, msg.tail_len));
	fd_close(&back.fd);
	return 0;
}
