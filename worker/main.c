/*
 * sbx-worker: one process per box (or the janitor), exec'ed by sbxd with the descriptors of
 * wire/control.h.
 *
 *   sbx-worker box SLOT    boots a box, serves its clients until it ends
 *   sbx-worker janitor     prepares drivers and cleans up after dead boxes
 *   sbx-worker image       pulls, lists or removes images, once
 *   sbx-worker probe ...   by sbxctl, see worker/offline.h
 *
 * If it dies, sbxd answers its clients, and the janitor proves that nothing of the box is left.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fault.h"
#include "lib/log.h"
#include "shm/layout.h"
#include "worker/box.h"
#include "worker/image_order.h"
#include "worker/janitor.h"
#include "worker/offline.h"

#define MAIN_USAGE 2
#define MAIN_MMAP_THRESHOLD (32 * 1024 * 1024)

/* A page that was paid for once serves the next request too; service_trim() returns them. */
static void main_keep_memory(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, MAIN_MMAP_THRESHOLD);
	(void)mallopt(M_TRIM_THRESHOLD, MAIN_MMAP_THRESHOLD);
}

static int main_box(const char *text)
{
	struct box *b;
	char *end;
	unsigned long slot = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || slot >= SHM_MAX_SLOTS)
		return MAIN_USAGE;
	main_keep_memory();
	b = calloc(1, sizeof(*b));
	if (!b || box_boot(b, (uint32_t)slot) < 0)
		return 1;
	return box_serve(b);
}

int main(int argc, char **argv)
{
	const char *format = getenv("SBX_LOG_FORMAT");
	int status = MAIN_USAGE;

	FAULT_ROLE(argc == 2 ? argv[1] : "worker");
	log_init("sbx-worker", format && !strcmp(format, "json") ? LOG_JSON : LOG_TEXT, LOG_INFO);
	if (argc == 3 && !strcmp(argv[1], "box"))
		status = main_box(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "janitor"))
		status = janitor_main();
	else if (argc == 2 && !strcmp(argv[1], "image"))
		status = image_order_main();
	else if (argc > 3)
		status = offline_main(argc, argv);
	if (status < 0)
		status = MAIN_USAGE;
	if (status == MAIN_USAGE)
		(void)fputs("usage: sbx-worker box SLOT | sbx-worker janitor | sbx-worker image\n"
			    "       sbx-worker probe | list | sweep INSTANCE RUNTIME_DIR STATE_DIR "
			    "UID_BASE\n"
			    "       (probe: [IMAGE [SECTION.KEY=VALUE...]])\n"
			    "Started by sbxd and sbxctl; see sbx-worker(8).\n",
		    stderr);
	/* Nothing is buffered, and the kernel gives everything back faster than we could. */
	_exit(status);
}
