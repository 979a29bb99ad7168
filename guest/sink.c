/*
 * sink: throws away what background processes write to a command's old pipes. sbx-guest; if we die
 * here PID 1 is dead and the kernel ends the box.
 */
#include "guest/sink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SINK_REST_NS 10000000ULL
#define SINK_CHUNK 4096U

static void sink_forget(struct sinks *s, unsigned int i)
{
	(void)close(s->all[i].fd); /* only a reader's end: nothing to lose */
	memmove(&s->all[i], &s->all[i + 1], (s->count - i - 1) * sizeof(s->all[0]));
	s->count--;
}

void sink_add(struct sinks *s, int fd)
{
	if (s->count == SINKS_MAX)
		sink_forget(s, 0);
	s->all[s->count++] = (struct sink){.fd = fd};
}

unsigned int sink_wait(const struct sinks *s, struct pollfd *p, uint64_t now, uint64_t *at)
{
	for (unsigned int i = 0; i < s->count; i++) {
		bool rests = s->all[i].rest_until > now;

		p[i] = (struct pollfd){.fd = rests ? -1 : s->all[i].fd, .events = POLLIN};
		if (rests && s->all[i].rest_until < *at)
			*at = s->all[i].rest_until;
	}
	return s->count;
}

void sink_step(struct sinks *s, const struct pollfd *p, unsigned int count, uint64_t now)
{
	/* From the end, so that forgetting one moves none that is still to come. */
	for (unsigned int i = count; i-- > 0;) {
		char chunk[SINK_CHUNK];
		size_t room = 16 * SINK_CHUNK;
		ssize_t n = 1;

		if (p[i].fd < 0 || p[i].revents == 0)
			continue;
		while (n > 0 && room > 0) {
			n = read(s->all[i].fd, chunk, sizeof(chunk));
			room -= sizeof(chunk);
		}
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			sink_forget(s, i);
		else
			s->all[i].rest_until = now + SINK_REST_NS;
	}
}
