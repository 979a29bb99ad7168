/* doctor_programs: what our own programs say: sbxd of its configuration, sbx-worker of its drivers.
 * They are run on a directory of ours, which is removed afterwards. */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli_view.h"
#include "tools/doctor.h"
#include "tools/host_program.h"
#include "wire/json.h"

#define PROGRAM_NS (30 * NS_PER_S)
#define OUTPUT_MAX (1U << 20)
#define PATH_LEN 4096

static char *text_of(struct buf *b)
{
	static char empty[] = "";

	return buf_terminate(b) == 0 ? (char *)b->data + b->off : empty;
}

/* The first line of what a program complained about. */
static const char *complaint(struct buf *errors)
{
	char *text = text_of(errors);

	text[strcspn(text, "\n")] = '\0';
	return *text ? text : "it said nothing";
}

/* The value of a line "KEY: VALUE", without quotes around it. False: there is none. */
static bool value_of(const char *yaml, const char *key, char *out, size_t size)
{
	char begin[64];
	const char *at;
	size_t n;

	(void)snprintf(begin, sizeof(begin), "\n%s: ", key);
	at = strstr(yaml, begin);
	if (!at)
		return false;
	at += strlen(begin);
	n = strcspn(at, "\n");
	if (n >= 2 && at[0] == '"' && at[n - 1] == '"') {
		at++;
		n -= 2;
	}
	(void)snprintf(out, size, "%.*s", (int)n, at);
	return true;
}

static void take_config(struct doctor *d, const char *yaml)
{
	char group[64] = "";
	char base[32] = "";

	if (value_of(yaml, "  uid_base", base, sizeof(base)) && getuid() == 0)
		(void)snprintf(d->uid_base, sizeof(d->uid_base), "%s", base);
	if (value_of(yaml, "admin_group", group, sizeof(group)) && *group && !getgrnam(group)) {
		char fix[96];

		(void)snprintf(fix, sizeof(fix), "groupadd --system %s", group);
		doctor_say(d, DOCTOR_WRONG, fix, "admin_group: there is no group '%s'", group);
		return;
	}
	doctor_say(
	    d, DOCTOR_FINE, NULL, "valid%s%s", *group ? "; admins are the members of " : "", group);
}

void doctor_config(struct doctor *d)
{
	char sbxd[PATH_LEN];
	char check[] = "--check-config";
	char *argv[] = {sbxd, check, NULL};
	struct buf out;
	struct buf errors;
	struct err err;
	int rc = host_program_find("sbxd", sbxd, sizeof(sbxd), &err);

	(void)snprintf(d->uid_base, sizeof(d->uid_base), "%s", getuid() == 0 ? "805306368" : "0");
	if (rc < 0) {
		doctor_say(d, DOCTOR_WRONG, "install all of sbxd", "%s", err.text);
		return;
	}
	buf_init(&out, OUTPUT_MAX);
	buf_init(&errors, OUTPUT_MAX);
	rc = host_program_run(argv, clock_now_ns() + PROGRAM_NS, &out, &errors);
	if (rc == 0)
		take_config(d, text_of(&out));
	else
		doctor_say(d, DOCTOR_WRONG, "mend what it names, in the file or the environment",
		    "%s", complaint(&errors));
	buf_free(&out);
	buf_free(&errors);
}

/* ---- drivers ---- */

/* What would mend it stands in parentheses at the end of what a driver says. */
static void say_driver(
    struct doctor *d, enum doctor_verdict verdict, const char *name, const char *said)
{
	const char *open = strrchr(said, '(');
	size_t n = strlen(said);
	char fix[256] = "mend that, or set `driver` to another one";

	if (open && said[n - 1] == ')') {
		(void)snprintf(
		    fix, sizeof(fix), "%.*s", (int)(n - 2 - (size_t)(open - said)), open + 1);
		n = (size_t)(open - said);
	}
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

static void probe_in(struct doctor *d, char *worker, char *folder)
{
	char probe[] = "probe";
	char name[] = "doctor";
	char *argv[] = {worker, probe, name, folder, folder, d->uid_base, NULL};
	struct buf out;
	struct buf errors;
	json_t *drivers;
	int rc;

	buf_init(&out, OUTPUT_MAX);
	buf_init(&errors, OUTPUT_MAX);
	rc = host_program_run(argv, clock_now_ns() + PROGRAM_NS, &out, &errors);
	drivers = read_drivers(text_of(&out));
	if (json_array_size(drivers) > 0)
		put_drivers(d, drivers);
	else
		doctor_say(d, DOCTOR_WRONG, "install all of sbxd anew",
		    "sbx-worker could not ask them: %s",
		    rc == -ETIMEDOUT ? "it did not end in time" : complaint(&errors));
	json_decref(drivers);
	buf_free(&out);
	buf_free(&errors);
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
	if (rmdir(folder) < 0)
		doctor_say(d, DOCTOR_NOTE, "remove it", "%s: %s", folder, strerror(errno));
}
