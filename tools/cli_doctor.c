/* cli_doctor: sbxctl doctor: what is wrong with this host or was left on it, and how to mend it.
 * Changes nothing. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli.h"
#include "tools/cli_grid.h"
#include "tools/cli_view.h"
#include "tools/doctor.h"

static const char *const verdicts[DOCTOR_VERDICTS] = {
    [DOCTOR_FINE] = "ok",
    [DOCTOR_NOTE] = "note",
    [DOCTOR_WRONG] = "wrong",
};

void doctor_say(
    struct doctor *d, enum doctor_verdict verdict, const char *fix, const char *fmt, ...)
{
	char text[512];
	json_t *o = json_object();
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut text is still a text */
	va_end(ap);
	d->wrong |= verdict == DOCTOR_WRONG;
	(void)json_object_set_new(o, "check", json_string(d->check));
	(void)json_object_set_new(o, "verdict", json_string(verdicts[verdict]));
	(void)json_object_set_new(o, "text", cli_text_json(text));
	(void)json_object_set_new(o, "fix", fix ? cli_text_json(fix) : json_null());
	(void)json_array_append_new(d->findings, o);
}

static void check_service(struct doctor *d)
{
	const struct httpc_request req = {.method = "GET", .path = "/v1/pool"};
	uint64_t deadline = cli_deadline(10);
	const struct http_head *head = NULL;
	struct httpc *c = NULL;
	struct err err;
	int rc = cli_connect(d->cli, &c, &err);

	if (rc == -ENOENT || rc == -ECONNREFUSED)
		doctor_say(d, DOCTOR_WRONG, "start it: sbxd", "%s", err.text);
	else if (rc == -EACCES)
		doctor_say(d, DOCTOR_WRONG, "run sbxctl as a user or group that may use the socket",
		    "%s", err.text);
	else if (rc < 0 || httpc_send(c, &req, deadline, &head, &err) < 0)
		doctor_say(
		    d, DOCTOR_WRONG, "look at the log of sbxd; start it again", "%s", err.text);
	else if (head->status != 200)
		doctor_say(d, DOCTOR_WRONG, "look at the log of sbxd",
		    "the service answers %u to a simple question", head->status);
	else
		doctor_say(d, DOCTOR_FINE, NULL, "sbxd answers");
	httpc_close(c);
}

static const struct {
	const char *name;
	void (*check)(struct doctor *d);
} checks[] = {
    {"service", check_service},
    {"configuration", doctor_config},
    {"access", doctor_access},
    {"user namespaces", doctor_namespaces},
    {"namespaces", doctor_namespace_counts},
    {"overlayfs", doctor_overlay},
    {"seccomp", doctor_seccomp},
    {"landlock", doctor_landlock},
    {"memfd", doctor_memfd},
    {"cgroups", doctor_cgroups},
    {"processes", doctor_pids},
    {"descriptors", doctor_files},
    {"/dev/shm", doctor_shm_space},
    {"drivers", doctor_drivers},
    {"driver auto", doctor_choice},
    {"images", doctor_images},
    {"instances", doctor_left},
};

static void put_finding(const struct cli_screen *screen, const json_t *f)
{
	static const enum cli_style styles[DOCTOR_VERDICTS] = {
	    [DOCTOR_FINE] = CLI_GOOD,
	    [DOCTOR_NOTE] = CLI_WARN,
	    [DOCTOR_WRONG] = CLI_BAD,
	};
	struct cli_cell verdict = {cli_text_at(f, "verdict"), CLI_PLAIN};
	const struct cli_cell check = {cli_text_at(f, "check"), CLI_PLAIN};

	for (size_t i = 0; i < DOCTOR_VERDICTS; i++) {
		if (!strcmp(verdict.text, verdicts[i]))
			verdict.style = styles[i];
	}
	cli_put_cell(stdout, screen, &verdict, 6, false, false);
	cli_put_cell(stdout, screen, &check, 16, false, false);
	cli_put_text(stdout, cli_text_at(f, "text"));
	(void)fputc('\n', stdout);
	if (!json_is_string(json_object_get(f, "fix")))
		return;
	(void)printf("%-23s fix: ", "");
	cli_put_text(stdout, cli_text_at(f, "fix"));
	(void)fputc('\n', stdout);
}

static void put_findings(const json_t *findings)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	json_t *f;
	size_t i;

	json_array_foreach(cli_walk(findings), i, f)
	{
		put_finding(&screen, f);
	}
}

static int doctor_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	struct doctor d = {.cli = cli};

	if (status != CLI_OK)
		return status;
	d.findings = json_array();
	d.options = json_array();
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		d.check = checks[i].name;
		checks[i].check(&d);
	}
	if (cli->json) {
		json_t *all = json_pack("{s:b, s:O}", "healthy", !d.wrong, "findings", d.findings);

		(void)cli_put_json(all); /* cli_finish() looks for errors */
		json_decref(all);
	} else {
		put_findings(d.findings);
	}
	json_decref(d.findings);
	json_decref(d.options);
	json_decref(d.drivers);
	return cli_finish(d.wrong ? CLI_WRONG : CLI_OK);
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .args = "",
    .help = "find what is wrong with this host and how to mend it",
    .run = doctor_run,
};
