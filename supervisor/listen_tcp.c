/* listen_tcp: the TCP socket, when the configuration wants one. Runs in sbxd; its successor can
 * bind the same port at once, also while connections of ours live on in workers. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/listen.h"
#include "supervisor/sbxd.h"

#define ADDRESS_MAX 64 /* "[...]:65535" */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t fill_address(const struct config_listen *l, union address *a)
{
	*a = (union address){.v6 = {.sin6_family = AF_UNSPEC}};
	if (!l->v6) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(l->port);
		memcpy(&a->v4.sin_addr, l->addr, sizeof(a->v4.sin_addr));
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(l->port);
	memcpy(&a->v6.sin6_addr, l->addr, sizeof(a->v6.sin6_addr));
	return sizeof(a->v6);
}

/* Where it listens, for people. */
static void describe(const struct config_listen *l, char out[ADDRESS_MAX])
{
	struct buf b;

	buf_init(&b, ADDRESS_MAX);
	if (config_listen_print(l, &b) == 0 && buf_terminate(&b) == 0)
		memcpy(out, buf_head(&b), b.len + 1);
	else
		out[0] = '\0';
	buf_free(&b);
}

/* The options that make an address ours again at once, and no more ours than it says. */
static int set_options(int fd, bool v6)
{
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}

int listen_tcp(const struct sbxd *s, struct err *err)
{
	const struct config_listen *l = &s->config.listen_tcp;
	FD_SCOPED int fd = -1;
	char where[ADDRESS_MAX];
	union address addr;
	socklen_t len = fill_address(l, &addr);
	int rc;

	describe(l, where);
	fd = socket(addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "listen_tcp %s: socket", where);
	rc = set_options(fd, l->v6);
	if (rc < 0)
		return err_sys(err, -rc, "listen_tcp %s: set options", where);
	if (bind(fd, &addr.any, len) < 0)
		return err_sys(err, errno, "listen_tcp %s: bind", where);
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return err_sys(err, errno, "listen_tcp %s: listen", where);
	return fd_take(&fd);
}

void listen_tcp_log(const struct sbxd *s)
{
	struct config_listen l = s->config.listen_tcp;
	union address addr = {.v6 = {.sin6_family = AF_UNSPEC}};
	socklen_t len = sizeof(addr);
	char where[ADDRESS_MAX];

	if (getsockname(s->tcp_listener.fd, &addr.any, &len) == 0)
		l.port = ntohs(l.v6 ? addr.v6.sin6_port : addr.v4.sin_port);
	describe(&l, where);
	log_info(
	    "serving on http://%s: who has the token is uid %u", where, (unsigned int)s->auth.uid);
}
