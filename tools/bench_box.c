/* bench_box: what it takes to work in a box, and to have one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define ROUNDS 20
#define IDLE_BOXES 100
#define STREAM_BYTES (64UL << 20)
#define STREAM_CHUNK (256UL << 10)

/* ---- commands ---- */

int bench_run(uint32_t boxes)
{
	static const char *const argv[] = {"/bin/true", NULL};
	struct samples spawn = {0};
	struct samples run = {0};
	struct acquired a;
	struct daemon d;
	struct wire w;
	char request[512];
	char path[160];
	size_t len;
	int missed;

	(void)boxes;
	daemon_start(&d, "replicas: 1000\n");
	wire_open(&w, &d);
	call_acquire(&w, "run", &a);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", a.id);
	len = wire_build(request, sizeof(request), "POST", path, "{\"argv\":[\"/bin/true\"]}");
	for (int i = 0; i < ROUNDS; i++) {
		base_spawn(&spawn, 25, argv);
		for (int k = 0; k < 25; k++) {
			uint64_t begin = clock_now_ns();

			wire_call(&w, request, len);
			samples_add(&run, clock_now_ns() - begin);
			if (wire_json_int(&w, "exit_code") != 0)
				bench_give_up("`true` fails");
		}
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_times(
	    "run `true` in a live box", "us", &run, "vfork+exec+wait /bin/true", &spawn, 1.5);
	samples_free(&spawn);
	samples_free(&run);
	return missed;
}

/* ---- files ---- */

static double mib_per_s(uint64_t ns)
{
	return (double)STREAM_BYTES / (double)(1 << 20) / ((double)ns / 1e9);
}

/* How fast 64 MiB went through the box, against the same through a bare stream. */
static int print_stream(const char *what, struct samples *through, struct samples *stream)
{
	int missed = print_row(&(struct row){
	    .what = what,
	    .unit = "MiB/s",
	    .baseline = "unix stream, 256 KiB writes",
	    .value = mib_per_s(samples_quantile(through, 0.5)),
	    .p95 = mib_per_s(samples_quantile(through, 0.95)),
	    .base = mib_per_s(samples_quantile(stream, 0.5)),
	    .bound = 0.5,
	    .at_least = true,
	});

	samples_free(stream);
	samples_free(through);
	return missed;
}

int bench_read(uint32_t boxes)
{
	struct samples stream = {0};
	struct samples read = {0};
	struct acquired a;
	struct daemon d;
	struct wire w;
	char request[512];
	char path[160];

	(void)boxes;
	daemon_start(&d, "replicas: 1000\ndisk_mib: 256\n");
	wire_open(&w, &d);
	call_acquire(&w, "read", &a);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", a.id);
	wire_call(&w, request,
	    wire_build(request, sizeof(request), "POST", path,
		"{\"command\":\"head -c 67108864 /dev/urandom > /tmp/f\"}"));
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/fs/read?path=/tmp/f", a.id);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin;

		base_stream(&stream, 1, STREAM_BYTES, STREAM_CHUNK);
		begin = clock_now_ns();
		wire_call(&w, request, wire_build(request, sizeof(request), "GET", path, ""));
		samples_add(&read, clock_now_ns() - begin);
		if (w.status != 200 || w.body_len != STREAM_BYTES)
			bench_give_up("the file is not read whole");
	}
	wire_close(&w);
	daemon_stop(&d);
	return print_stream("fs/read of 64 MiB", &read, &stream);
}

int bench_write(uint32_t boxes)
{
	struct samples stream = {0};
	struct samples write = {0};
	struct acquired a;
	struct daemon d;
	struct wire w;
	char *body = calloc(1, STREAM_BYTES);
	char head[512];
	size_t len;

	(void)boxes;
	if (!body)
		bench_give_up("no memory for a body");
	daemon_start(&d, "replicas: 1000\ndisk_mib: 256\n");
	wire_open(&w, &d);
	call_acquire(&w, "write", &a);
	len = (size_t)snprintf(head, sizeof(head),
	    "PUT /v1/boxes/%s/fs/write?path=/tmp/f HTTP/1.1\r\nHost: localhost\r\n"
	    "Content-Length: %lu\r\n\r\n",
	    a.id, STREAM_BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin;

		base_stream(&stream, 1, STREAM_BYTES, STREAM_CHUNK);
		begin = clock_now_ns();
		wire_send(&w, head, len);
		wire_send(&w, body, STREAM_BYTES);
		wire_receive(&w);
		samples_add(&write, clock_now_ns() - begin);
		if (w.status != 200)
			bench_give_up("the file is not written");
	}
	wire_close(&w);
	daemon_stop(&d);
	free(body);
	return print_stream("fs/write of 64 MiB", &write, &stream);
}

/* ---- memory ---- */

int bench_memory(uint32_t boxes)
{
	struct acquired a;
	struct daemon d;
	struct wire w;
	char thread[FLEET_THREAD];
	uint64_t boxes_kib = 0;
	uint64_t daemon_kib;

	(void)boxes;
	daemon_start(&d, "replicas: 1000\n");
	wire_open(&w, &d);
	for (uint32_t i = 0; i < IDLE_BOXES; i++) {
		fleet_thread(i, thread);
		call_acquire(&w, thread, &a);
	}
	daemon_kib = daemon_pss_kib(d.p.pid);
	for (uint32_t i = 0; i < IDLE_BOXES; i++) {
		fleet_thread(i, thread);
		call_acquire(&w, thread, &a);
		boxes_kib += daemon_pss_kib((pid_t)call_box_number(&w, a.id, "pid"));
		boxes_kib += daemon_pss_kib((pid_t)wire_json_int(&w, "box_pid"));
	}
	wire_close(&w);
	daemon_stop(&d);
	bench_note(
	    "sbxd itself with %d idle boxes: %.1f MiB", IDLE_BOXES, (double)daemon_kib / 1024.0);
	return print_row(&(struct row){
	    .what = "memory of an idle box (PSS)",
	    .unit = "MiB",
	    .baseline = "worker + guest, each",
	    .value = (double)(boxes_kib + daemon_kib) / IDLE_BOXES / 1024.0,
	    .base = 1.0,
	    .bound = 1.5,
	});
}
