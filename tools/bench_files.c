/* bench_files: what it takes to find something in a box. */
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define ROUNDS 20
#define FILES 10000
#define FOUND 100 /* of them have the line that is looked for */

/* A hundred directories of a hundred files, each of 30 lines of some words. */
#define MAKE_TREE                                                                                \
	"mkdir /tmp/tree && cd /tmp/tree && awk 'BEGIN { srand(1); for (d = 0; d < 100; d++) {"  \
	" system(\"mkdir \" d); for (f = 0; f < 100; f++) { name = d \"/file\" f \".txt\";"      \
	" for (l = 0; l < 30; l++) { text = \"\"; for (w = 0; w < 8; w++) text = text \" word\"" \
	" int(rand() * 100000); print text > name }"                                             \
	" if (f == 7) print \"the Needle is here\" > name; close(name) } } }'"

/* Text as a JSON string may have it. */
static void quote(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			out[n++] = '\\';
		out[n++] = *text;
	}
	out[n] = '\0';
}

static void make_tree(struct wire *w, const char *id)
{
	char request[2048];
	char body[1024];
	char path[96];
	char line[900];

	quote(MAKE_TREE, line, sizeof(line));
	(void)snprintf(body, sizeof(body), "{\"command\":\"%s\"}", line);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", id);
	wire_call(w, request, wire_build(request, sizeof(request), "POST", path, body));
	if (w->status != 200 || wire_json_int(w, "exit_code") != 0)
		bench_give_up("the files are not made");
}

static size_t count_found(const struct wire *w, const char *text)
{
	const char *at = w->buf + w->body_off;
	const char *end = at + w->body_len;
	size_t n = 0;

	while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
		n++;
		at += strlen(text);
	}
	return n;
}

/* One request whose answer has each of the lines once. */
static void find(struct wire *w, struct samples *s, const char *request, size_t len)
{
	uint64_t begin = clock_now_ns();

	wire_call(w, request, len);
	samples_add(s, clock_now_ns() - begin);
	if (w->status != 200 || count_found(w, "the Needle is here") != FOUND)
		bench_give_up("not all is found");
}

int bench_files(uint32_t boxes)
{
	struct samples native = {0};
	struct samples grep = {0};
	struct acquired a;
	struct daemon d;
	struct wire w;
	char run[512];
	char ask[512];
	char path[160];
	size_t run_len;
	size_t ask_len;
	int missed;

	(void)boxes;
	daemon_start(&d, "replicas: 1000\ndisk_mib: 256\n");
	wire_open(&w, &d);
	call_acquire(&w, "files", &a);
	make_tree(&w, a.id);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", a.id);
	run_len = wire_build(run, sizeof(run), "POST", path,
	    "{\"argv\":[\"grep\",\"-rIi\",\"needle\",\"/tmp/tree\"]}");
	(void)snprintf(path, sizeof(path),
	    "/v1/boxes/%s/fs/grep?path=/tmp/tree&pattern=needle&max_results=%d", a.id, FILES);
	ask_len = wire_build(ask, sizeof(ask), "GET", path, "");
	for (int i = 0; i < ROUNDS; i++) {
		find(&w, &native, run, run_len);
		find(&w, &grep, ask, ask_len);
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_times(
	    "grep over 10000 small files", "ms", &grep, "`grep -rIi` run in the box", &native, 1.5);
	samples_free(&native);
	samples_free(&grep);
	return missed;
}
