/* bench_calls: requests that several sections make. */
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define REQUEST 512
#define PATH 128

size_t call_build_acquire(char *out, size_t size, const char *thread)
{
	char body[128];

	(void)snprintf(body, sizeof(body), "{\"user_id\":\"bench\",\"thread_id\":\"%s\"}", thread);
	return wire_build(out, size, "POST", "/v1/acquire", body);
}

void call_read_acquired(const struct wire *w, struct acquired *out)
{
	if (w->status != 200 || !wire_json_text(w, "box_id", out->id, sizeof(out->id)) ||
	    !wire_json_text(w, "source", out->source, sizeof(out->source))) {
		(void)fprintf(stderr, "%.*s\n", (int)w->body_len, w->buf + w->body_off);
		bench_give_up("no box is given");
	}
	out->generation = wire_json_int(w, "generation");
}

void call_acquire(struct wire *w, const char *thread, struct acquired *out)
{
	char request[REQUEST];
	size_t len = call_build_acquire(request, sizeof(request), thread);
	uint64_t begin = clock_now_ns();

	wire_call(w, request, len);
	out->ns = clock_now_ns() - begin;
	call_read_acquired(w, out);
}

void call_release(struct wire *w, const char *id)
{
	char request[REQUEST];
	char path[PATH];

	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/release", id);
	wire_call(w, request, wire_build(request, sizeof(request), "POST", path, "{}"));
	if (w->status != 200)
		bench_give_up("the box is not released");
}

void call_remove(struct wire *w, const char *id)
{
	char request[REQUEST];
	char path[PATH];

	(void)snprintf(path, sizeof(path), "/v1/boxes/%s?force=true", id);
	wire_call(w, request, wire_build(request, sizeof(request), "DELETE", path, ""));
	if (w->status != 204)
		bench_give_up("the box is not removed");
}

long call_box_number(struct wire *w, const char *id, const char *key)
{
	char request[REQUEST];
	char path[PATH];

	(void)snprintf(path, sizeof(path), "/v1/boxes/%s", id);
	wire_call(w, request, wire_build(request, sizeof(request), "GET", path, ""));
	return wire_json_int(w, key);
}
