/* bench_http: the smallest blocking HTTP client that measures the service and not itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/bench.h"

#define WIRE_BUF (256U * 1024U)
#define BOUND_S 120 /* for whatever is waited for */

bool wire_try(const struct daemon *d)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool answers;

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", d->socket);
	answers = fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0;
	(void)close(fd);
	return answers;
}

void wire_connect(struct wire *w, const struct daemon *d)
{
	const struct timeval bound = {.tv_sec = BOUND_S};
	const int buffer = BENCH_SEND_BUFFER;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", d->socket);
	w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(w->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	(void)setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	(void)setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
	if (w->fd < 0 || connect(w->fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		bench_die(d->socket);
}

void wire_disconnect(struct wire *w)
{
	(void)close(w->fd); /* nothing is on its way */
	w->fd = -1;
}

void wire_open(struct wire *w, const struct daemon *d)
{
	*w = (struct wire){.fd = -1};
	wire_keep(w, WIRE_BUF);
	wire_connect(w, d);
}

void wire_close(struct wire *w)
{
	wire_disconnect(w);
	free(w->buf);
}

void wire_keep(struct wire *w, size_t bytes)
{
	free(w->buf);
	w->buf = bench_buffer(bytes + 1);
	w->cap = bytes;
}

/* Reads to the end of the head; returns how many bytes there are. */
static size_t read_head(struct wire *w)
{
	size_t have = 0;

	for (;;) {
		ssize_t n = read(w->fd, w->buf + have, w->cap - have);
		char *end;

		if (n <= 0)
			bench_die("read an answer");
		have += (size_t)n;
		w->buf[have] = '\0';
		end = strstr(w->buf, "\r\n\r\n");
		if (end) {
			w->body_off = (size_t)(end - w->buf) + 4;
			return have;
		}
	}
}

void wire_send(const struct wire *w, const char *request, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(w->fd, request + done, len - done);

		if (n <= 0)
			bench_die("write a request");
		done += (size_t)n;
	}
}

void wire_receive(struct wire *w)
{
	size_t have = read_head(w);
	const char *field = strcasestr(w->buf, "content-length:");

	w->status = atoi(w->buf + 9);
	w->body_len = field && field < w->buf + w->body_off ? strtoul(field + 15, NULL, 10) : 0;
	/* A body that fits is kept; a longer one is read and dropped, as a client that writes it
	 * elsewhere would. */
	for (size_t got = have - w->body_off; got < w->body_len;) {
		size_t room =
		    w->body_len <= w->cap - w->body_off ? w->cap - w->body_off - got : w->cap;
		char *to =
		    w->body_len <= w->cap - w->body_off ? w->buf + w->body_off + got : w->buf;
		ssize_t n = read(w->fd, to, room);

		if (n <= 0)
			bench_die("read a body");
		got += (size_t)n;
	}
	if (w->body_len <= w->cap - w->body_off)
		w->buf[w->body_off + w->body_len] = '\0';
}

void wire_call(struct wire *w, const char *request, size_t len)
{
	wire_send(w, request, len);
	wire_receive(w);
}

size_t wire_build(char *out, size_t size, const char *method, const char *path, const char *body)
{
	int n = snprintf(out, size,
	    "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", method, path,
	    strlen(body), body);

	if (n < 0 || (size_t)n >= size)
		bench_give_up("a request is too long");
	return (size_t)n;
}

bool wire_json_text(const struct wire *w, const char *key, char *out, size_t size)
{
	char pattern[64];
	const char *at;
	size_t len;

	(void)snprintf(pattern, sizeof(pattern), "\"%s\":\"", key);
	at = strstr(w->buf + w->body_off, pattern);
	if (!at)
		return false;
	at += strlen(pattern);
	len = strcspn(at, "\"");
	(void)snprintf(out, size, "%.*s", (int)len, at);
	return true;
}

long wire_json_int(const struct wire *w, const char *key)
{
	char pattern[64];
	const char *at;

	(void)snprintf(pattern, sizeof(pattern), "\"%s\":", key);
	at = strstr(w->buf + w->body_off, pattern);
	return at ? strtol(at + strlen(pattern), NULL, 10) : -1;
}
