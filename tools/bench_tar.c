/* bench_tar: what it takes to bring many small files into a box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define ROUNDS 15
#define FILES 2000
#define FILE_BYTES 1024
#define BLOCK 512
#define ARCHIVE_BYTES (FILES * (BLOCK + FILE_BYTES) + 2 * BLOCK)
#define ASKED 10000.0 /* files each second */

/* A plain ustar archive of files in twenty directories. */
static void make_archive(char *to)
{
	memset(to, 0, ARCHIVE_BYTES);
	for (int i = 0; i < FILES; i++, to += BLOCK + FILE_BYTES) {
		unsigned int sum = 0;

		(void)snprintf(to, 100, "%d/file%d", i % 20, i);
		(void)snprintf(to + 100, 25, "%07o%c%07o%c%07o", 0644, 0, 0, 0, 0);
		(void)snprintf(to + 124, 12, "%011o", FILE_BYTES);
		(void)snprintf(to + 136, 12, "%011o", 1000000000);
		memset(to + 148, ' ', 8);
		to[156] = '0';
		memcpy(to + 257, "ustar\00000", 8);
		for (int k = 0; k < BLOCK; k++)
			sum += (unsigned char)to[k];
		(void)snprintf(to + 148, 8, "%06o", sum);
		memset(to + BLOCK, 'x', FILE_BYTES);
	}
}

/* A PUT with the archive as its body, in memory of its own. Its length. */
static size_t build_put(char **out, const char *path, const char *archive)
{
	size_t n = ARCHIVE_BYTES + 512;
	int head;

	*out = malloc(n);
	if (!*out)
		bench_die("malloc");
	head = snprintf(*out, n, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
	    path, ARCHIVE_BYTES);
	memcpy(*out + head, archive, ARCHIVE_BYTES);
	return (size_t)head + ARCHIVE_BYTES;
}

/* One request that must be answered with `status`; its time into s, if there is one. */
static void call(struct wire *w, struct samples *s, const char *request, size_t len, int status)
{
	uint64_t begin = clock_now_ns();

	wire_call(w, request, len);
	if (s)
		samples_add(s, clock_now_ns() - begin);
	if (w->status != status)
		bench_give_up("an archive does not arrive");
}

/* A command in the box that must succeed. */
static void run(struct wire *w, struct samples *s, const char *id, const char *argv)
{
	char request[512];
	char body[300];
	char path[96];

	(void)snprintf(body, sizeof(body), "{\"argv\":[%s]}", argv);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", id);
	call(w, s, request, wire_build(request, sizeof(request), "POST", path, body), 200);
	if (wire_json_int(w, "exit_code") != 0)
		bench_give_up("a command in the box fails");
}

static int print_rows(struct samples *upload, struct samples *native)
{
	int missed = print_row(&(struct row){
	    .what = "upload of 2000 files of 1 KiB as tar",
	    .unit = "1/s",
	    .baseline = "files each second that are asked",
	    .value = FILES * 1e9 / (double)samples_quantile(upload, 0.5),
	    .p95 = FILES * 1e9 / (double)samples_quantile(upload, 0.95),
	    .base = ASKED,
	    .bound = 1,
	    .at_least = true,
	});

	return missed +
	       print_times("the same upload", "ms", upload, "`tar -x` run in the box", native, 2);
}

int bench_tar(uint32_t boxes)
{
	struct samples upload = {0};
	struct samples native = {0};
	char *archive = malloc(ARCHIVE_BYTES);
	struct acquired a;
	struct daemon d;
	struct wire w;
	char path[160];
	char *put;
	size_t len;
	int missed;

	(void)boxes;
	if (!archive)
		bench_die("malloc");
	make_archive(archive);
	daemon_start(&d, "replicas: 1000\ndisk_mib: 256\n");
	wire_open(&w, &d);
	call_acquire(&w, "tar", &a);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/fs/write?path=/tmp/a.tar", a.id);
	len = build_put(&put, path, archive);
	call(&w, NULL, put, len, 200);
	free(put);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/files?path=/tmp/up", a.id);
	len = build_put(&put, path, archive);
	for (int i = 0; i < ROUNDS; i++) {
		run(&w, NULL, a.id, "\"mkdir\",\"/tmp/native\"");
		run(&w, &native, a.id, "\"tar\",\"-xf\",\"/tmp/a.tar\",\"-C\",\"/tmp/native\"");
		call(&w, &upload, put, len, 204);
		run(&w, NULL, a.id, "\"diff\",\"-r\",\"/tmp/native\",\"/tmp/up\"");
		run(&w, NULL, a.id, "\"rm\",\"-r\",\"/tmp/native\",\"/tmp/up\"");
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_rows(&upload, &native);
	samples_free(&upload);
	samples_free(&native);
	free(put);
	free(archive);
	return missed;
}
