/* doctor_drivers: what sbx-worker says of its drivers. It is run on a directory of ours, which is
 * removed afterwards. */
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli_view.h"
#include "tools/doctor.h"
#include "tools/host_program.h"
#include "wire/json.h"

#define PROGRAM_NS (150 * NS_PER_S) /* drivers have bounds of their own, qemu of 100 */
#define OUTPUT_MAX (1U << 20)
#define PATH_LEN 4096
#define TREE_FDS 16
#define ARGS_FIXED 7 /* up to the image */

/* What would mend it stands in parentheses at the end of what a driver says, or begins with
 * "install". */
size_t doctor_split_fix(const char *said, char *fix, size_t size)
{
	const char *open = strrchr(said, '(');
	const char *install = strstr(said, ": install ");
	size_t n = strlen(said);

	if (open && said[n - 1] == ')') {
		(void)snprintf(fix, size, "%.*s", (int)(n - 2 - (size_t)(open - said)), open + 1);
		return (size_t)(open - said);
	}
	if (install) {
		(void)snprintf(fix, size, "%s", install + 2);
		return (size_t)(install - said);
	}
	(void)snprintf(fix, size, "mend that, or set `driver` to another one");
	return n;
}

static void say_driver(
    struct doctor *d, enum doctor_verdict verdict, const char *name, const char *said)
{
	char fix[256];
	size_t n = doctor_split_fix(said, fix, sizeof(fix));

	doctor_say(d, verdict, fix, "%s: %.*s", name, (int)n, said);
}

static void put_drivers(struct doctor *d, const json_t *drivers)
{
	bool any = false;
	json_t *o;
	size_t i;

	json_array_foreach(cli_walk(drivers), i, o)
	{
		const char *warning = json_string_value(json_object_get(o, "warning"));

		if (json_is_string(json_object_get(o, "error")))
			continue;
		any = true;
		doctor_say(d, DOCTOR_FINE, NULL, "%s can run here: isolation %s",
		    cli_text_at(o, "driver"), cli_text_at(o, "isolation"));
		if (warning)
			say_driver(d, DOCTOR_NOTE, cli_text_at(o, "driver"), warning);
	}
	json_array_foreach(cli_walk(drivers), i, o)
	{
		const char *error = json_string_value(json_object_get(o, "error"));

		if (error)
			say_driver(
			    d, any ? DOCTOR_NOTE : DOCTOR_WRONG, cli_text_at(o, "driver"), error);
	}
}

/* One object a line. The caller's. */
static json_t *read_drivers(char *text)
{
	json_t *all = json_array();
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *o = json_loads(line, 0, NULL);

		if (json_is_object(o))
			(void)json_array_append_new(all, o);
		else
			json_decref(o);
	}
	return all;
}

/* The configured image, and what is configured for drivers, behind what is fixed. The caller's. */
static char **probe_args(const struct doctor *d, char *const fixed[ARGS_FIXED])
{
	size_t count = json_array_size(d->options);
	char **argv = calloc(ARGS_FIXED + count + 2, sizeof(*argv));
	size_t n = 0;

	for (; argv && n < ARGS_FIXED && fixed[n]; n++)
		argv[n] = fixed[n];
	for (size_t i = 0; argv && i < count; i++) /* exec() changes none */
		argv[n++] = (char *)(uintptr_t)json_string_value(json_array_get(d->options, i));
	return argv;
}

static void probe_in(struct doctor *d, char *worker, char *folder)
{
	char probe[] = "probe";
	char name[] = "doctor";
	char *const fixed[ARGS_FIXED] = {
	    worker, probe, name, folder, folder, d->uid_base, d->image};
	char **argv = probe_args(d, fixed);
	struct buf out;
	struct buf errors;
	int rc;

	if (!argv)
		return;
	buf_init(&out, OUTPUT_MAX);
	buf_init(&errors, OUTPUT_MAX);
	rc = host_program_run(argv, clock_now_ns() + PROGRAM_NS, &out, &errors);
	d->drivers = read_drivers(doctor_text(&out));
	if (json_array_size(d->drivers) > 0)
		put_drivers(d, d->drivers);
	else
		doctor_say(d, DOCTOR_WRONG,
		    rc == -ETIMEDOUT ? "ask again when the host has less to do"
				     : "install all of sbxd anew",
		    "sbx-worker could not ask them: %s",
		    rc == -ETIMEDOUT ? "it did not end in time" : doctor_complaint(&errors));
	buf_free(&out);
	buf_free(&errors);
	free(argv);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* Where sbxd's runtime directory would be: what can be mounted depends on the file system. */
static int make_folder(char *out, size_t size)
{
	const char *session = getenv("XDG_RUNTIME_DIR");
	const char *parent = getuid() == 0 ? "/run" : session ? session : "/tmp";

	(void)snprintf(out, size, "%s/sbxctl-doctor-XXXXXX", parent);
	if (mkdtemp(out))
		return 0;
	(void)snprintf(out, size, "/tmp/sbxctl-doctor-XXXXXX");
	return mkdtemp(out) ? 0 : -errno;
}

void doctor_drivers(struct doctor *d)
{
	char worker[PATH_LEN];
	char folder[PATHS_LEN];
	struct err err;

	if (host_program_find("sbx-worker", worker, sizeof(worker), &err) < 0) {
		doctor_say(d, DOCTOR_WRONG, "install all of sbxd", "%s", err.text);
		return;
	}
	if (make_folder(folder, sizeof(folder)) < 0) {
		doctor_say(d, DOCTOR_WRONG, "make /tmp writable", "no directory to try them in: %s",
		    strerror(errno));
		return;
	}
	if (getuid() == 0)
		(void)chmod(folder, 0755); /* as sbxd's own: boxes of other uids look into it */
	probe_in(d, worker, folder);
	/* Drivers keep there what they found out. */
	if (nftw(folder, remove_one, TREE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		doctor_say(d, DOCTOR_NOTE, "remove it", "%s: %s", folder, strerror(errno));
}
