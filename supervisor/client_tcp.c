/*
 * client_tcp: connections that came over TCP, and how their requests prove whose they are. Runs in
 * sbxd; when sbxd dies those that workers hold go on for the request they were handed over for.
 *
 * Anybody can connect. So who has proven nothing gets little time and no lasting place: it goes
 * when another one comes.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/log.h"
#include "supervisor/client_int.h"

/* A peer that has vanished without a word is noticed after about two minutes. */
#define TCP_IDLE_S 60
#define TCP_PROBE_S 15
#define TCP_PROBES 4

static void set_options(int fd)
{
	static const struct {
		int level;
		int name;
		int value;
	} options[] = {
	    {IPPROTO_TCP, TCP_NODELAY, 1},
	    {IPPROTO_TCP, TCP_KEEPIDLE, TCP_IDLE_S},
	    {IPPROTO_TCP, TCP_KEEPINTVL, TCP_PROBE_S},
	    {IPPROTO_TCP, TCP_KEEPCNT, TCP_PROBES},
	    {SOL_SOCKET, SO_KEEPALIVE, 1},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			sizeof(options[i].value)) < 0)
			log_debug("a TCP connection is served without option %d",
			    options[i].name); /* the peer may have left already */
	}
}

/* Half of all places are for those that come over the Unix socket. */
static uint32_t tcp_max(const struct clients *cs)
{
	uint32_t max = cs->s->config.limits.tcp_connections;

	return max < cs->max / 2 ? max : cs->max / 2;
}

void client_accept_tcp(struct clients *cs, int fd)
{
	struct client *oldest = TAILQ_FIRST(&cs->strangers);
	struct client *c = NULL;

	if (cs->tcp_count >= tcp_max(cs) && oldest)
		client_close(oldest);
	if (cs->tcp_count < tcp_max(cs))
		c = client_new(cs, fd);
	if (!c) {
		clients_refuse(cs, fd);
		return;
	}
	set_options(fd);
	c->stranger = true;
	TAILQ_INSERT_TAIL(&cs->strangers, c, stranger_link);
	client_await_request(c);
}

void client_no_stranger(struct client *c)
{
	if (c->stranger)
		TAILQ_REMOVE(&c->cs->strangers, c, stranger_link);
	c->stranger = false;
}

bool client_authenticate(struct client *c, const struct http_head *head, const struct route *route,
    struct route_error *error)
{
	static const struct {
		const char *text;
		const char *authenticate;
	} refusals[] = {
	    [AUTH_MISSING] = {"a token is needed: Authorization: Bearer TOKEN", "Bearer"},
	    [AUTH_WRONG] = {"the token is not valid", "Bearer error=\"invalid_token\""},
	};
	const struct sbxd *s = c->cs->s;
	enum auth_result result;

	if (!c->peer.by_token || (route && route->open))
		return true;
	result = auth_check(&s->auth, head->authorization);
	if (result != AUTH_RIGHT) {
		error->error = API_UNAUTHENTICATED;
		error->allow = NULL;
		error->authenticate = refusals[result].authenticate;
		(void)snprintf(error->text, sizeof(error->text), "%s", refusals[result].text);
		return false;
	}
	c->peer.uid = access_token_uid(s); /* the file may be another's by now */
	client_no_stranger(c);
	return true;
}
