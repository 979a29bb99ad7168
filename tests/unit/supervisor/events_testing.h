/*
 * events_testing: a stage with clients that follow the flight recorder, each with the far end of
 * its connection in the test's hands.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_EVENTS_TESTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_EVENTS_TESTING_H

#include <errno.h>
#include <sys/socket.h>

#include "shm/ring.h"
#include "supervisor/client_int.h"
#include "tests/unit/supervisor/sbxd_testing.h"

#define TOKEN "0123456789abcdef"

/* ---- a client ---- */

struct peer_end {
	int fd;
	struct client *c;
	size_t len;
	bool ended;
	char got[1 << 20];
};

static inline struct peer_end *connect_as(struct sbxd *s, uid_t uid)
{
	struct peer_end *p = calloc(1, sizeof(*p));
	int pair[2];

	assert_non_null(p);
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(seteuid(getuid()), 0);
	client_accept(s->clients, pair[0]);
	p->fd = pair[1];
	for (uint32_t i = 0; i < s->clients->max; i++) {
		if (s->clients->slots[i] && s->clients->slots[i]->fd == pair[0])
			p->c = s->clients->slots[i];
	}
	assert_non_null(p->c);
	return p;
}

static inline void hang_up(struct sbxd *s, struct peer_end *p)
{
	uint32_t before = clients_count(s->clients);

	if (p->fd >= 0)
		close(p->fd);
	if (p->c)
		stage_until(s, clients_count(s->clients) < before);
	free(p);
}

static inline void say(const struct peer_end *p, const char *text)
{
	assert_int_equal(send(p->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads what there is. */
static inline void take(struct peer_end *p)
{
	ssize_t n = read(p->fd, p->got + p->len, sizeof(p->got) - 1 - p->len);

	if (n > 0)
		p->len += (size_t)n;
	p->ended |= n == 0 || (n < 0 && errno != EAGAIN);
	p->got[p->len] = '\0';
}

static inline bool has(struct peer_end *p, const char *text)
{
	take(p);
	return strstr(p->got, text) != NULL;
}

static inline void ask(struct sbxd *s, struct peer_end *p, const char *query)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "GET /v1/events%s HTTP/1.1\r\nHost: x\r\n\r\n", query);
	say(p, text);
	stage_until(s, has(p, "\r\n\r\n"));
}

/* What was read until now is looked at no more. */
static inline void forget(struct peer_end *p)
{
	take(p);
	p->len = 0;
	p->got[0] = '\0';
}

static inline int count(const char *text, const char *part)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		n++;
	return n;
}

/* ---- the recorder ---- */

static inline uint64_t record(struct sbxd *s, uid_t uid, const char *token, const char *reason)
{
	struct shm_event ev = {.kind = EVENT_LEASE, .slot = 1, .generation = 5, .owner_uid = uid};

	(void)snprintf(ev.token, sizeof(ev.token), "%s", token);
	(void)snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
	return ring_append(&s->seg, &ev);
}

static inline void record_many(struct sbxd *s, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		(void)record(s, geteuid(), TOKEN, "many");
}

#endif
