/* doctor_config: what sbxd says of its configuration, and what is told of programs that were run.
 * sbxctl; changes nothing. */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli_view.h"
#include "tools/doctor.h"
#include "tools/host_program.h"

#define PROGRAM_NS (30 * NS_PER_S)
#define OUTPUT_MAX (1U << 20)
#define PATH_LEN 4096

char *doctor_text(struct buf *b)
{
	static char empty[] = "";

	return buf_terminate(b) == 0 ? (char *)b->data + b->off : empty;
}

/* The first line of what a program complained about. */
const char *doctor_complaint(struct buf *errors)
{
	char *text = doctor_text(errors);

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
	/* What is printed first has no line before it. */
	at = strncmp(yaml, begin + 1, strlen(begin) - 1) ? strstr(yaml, begin) : yaml;
	if (!at)
		return false;
	at += strlen(begin) - (at == yaml);
	n = strcspn(at, "\n");
	if (n >= 2 && at[0] == '"' && at[n - 1] == '"') {
		at++;
		n -= 2;
	}
	(void)snprintf(out, size, "%.*s", (int)n, at);
	return true;
}

/* "  KEY: VALUE" of a section as "SECTION.KEY=VALUE", unless it is empty; a secret is printed so.
 */
static void take_option(struct doctor *d, const char *section, const char *line)
{
	char text[PATH_LEN];
	size_t n = strcspn(line, ":");
	const char *value = line + n + 2;
	size_t len = strcspn(value, "\n");
	size_t at;

	if (line[n] != ':' || len == 0 || (value[0] == '"' && value[1] == '"'))
		return;
	if (value[0] == '"' && value[len - 1] == '"') {
		value++;
		len -= 2;
	}
	at = (size_t)snprintf(text, sizeof(text), "%s.%.*s=", section, (int)n, line);
	for (size_t i = 0; i < len && at + 1 < sizeof(text); i++) {
		text[at++] = value[i];
		i += value[i] == '$' && value[i + 1] == '$'; /* as it is printed */
	}
	text[at] = '\0';
	(void)json_array_append_new(d->options, cli_text_json(text));
}

/* What is configured for drivers, as sbxd would tell them. */
static void take_options(struct doctor *d, const char *yaml)
{
	static const char *const sections[] = {"boxlite", "images", "qemu"};
	const char *section = NULL;

	for (const char *line = yaml; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (*line == '\n')
			continue;
		if (*line == ' ' && section)
			take_option(d, section, line + strspn(line, " "));
		if (*line == ' ')
			continue;
		section = NULL;
		for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
			size_t n = strlen(sections[i]);

			if (!strncmp(line, sections[i], n) && line[n] == ':')
				section = sections[i];
		}
	}
}

static void take_config(struct doctor *d, const char *yaml)
{
	char group[64] = "";
	char base[32] = "";

	(void)value_of(yaml, "driver", d->driver, sizeof(d->driver));
	(void)value_of(yaml, "image", d->image, sizeof(d->image));
	take_options(d, yaml);

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
		take_config(d, doctor_text(&out));
	else
		doctor_say(d, DOCTOR_WRONG, "mend what it names, in the file or the environment",
		    "%s", doctor_complaint(&errors));
	buf_free(&out);
	buf_free(&errors);
}
