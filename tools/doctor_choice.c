/* doctor_choice: which driver `driver: auto` takes here for the configured image, and what would
 * have it take one before that. sbxctl; reads only what others have found out. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli_view.h"
#include "tools/doctor.h"

#define KVM "/dev/kvm"
#define OR_EMULATED "; or set driver: qemu to have them emulated"

/* Of its configuration, the value of an option; NULL: it is not given. */
static const char *option_of(const struct doctor *d, const char *key)
{
	size_t n = strlen(key);
	json_t *o;
	size_t i;

	json_array_foreach(cli_walk(d->options), i, o)
	{
		const char *text = json_string_value(o);

		if (text && !strncmp(text, key, n) && text[n] == '=')
			return text + n + 1;
	}
	return NULL;
}

static bool is_true(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static void pass(struct doctor *d, const char *fix, const char *name, const char *why)
{
	doctor_say(d, DOCTOR_NOTE, fix, "%s is passed over: %s", name, why);
}

/* It works, but emulated; said: why, by the driver. */
static void pass_emulated(struct doctor *d, const char *name, const char *said)
{
	const char *accel = option_of(d, "qemu.accel");
	const struct passwd *self = getpwuid(geteuid());
	char fix[256];
	char why[256];

	if (accel && !strcmp(accel, "tcg")) {
		pass(d, "set qemu.accel: auto" OR_EMULATED, name,
		    "its machines would be emulated, as qemu.accel: tcg wants");
	} else if (access(KVM, F_OK) < 0) {
		pass(d,
		    "switch on virtualization in the firmware (in a virtual machine: nested "
		    "virtualization), then modprobe kvm_intel or kvm_amd" OR_EMULATED,
		    name, "its machines would be emulated: there is no " KVM);
	} else if (access(KVM, R_OK | W_OK) < 0) {
		(void)snprintf(fix, sizeof(fix),
		    "usermod -aG kvm %.64s, and log in anew" OR_EMULATED,
		    self ? self->pw_name : "USER");
		(void)snprintf(why, sizeof(why), "its machines would be emulated: " KVM ": %s",
		    strerror(errno));
		pass(d, fix, name, why);
	} else {
		(void)snprintf(why, sizeof(why), "its machines would be emulated: %.200s", said);
		pass(d,
		    "switch on nested virtualization on the host of this virtual machine, or ask "
		    "again in ten minutes when this host was too busy" OR_EMULATED,
		    name, why);
	}
}

static void pass_image(struct doctor *d, const char *name)
{
	bool root = !strcmp(name, "qemu");
	char why[320];

	(void)snprintf(why, sizeof(why), "it makes no boxes of image %s", d->image);
	pass(d,
	    root ? "set image to one of a registry, or to a directory that holds a root"
		 : "set image to one of a registry",
	    name, why);
}

static void pass_error(struct doctor *d, const char *name, const char *said)
{
	char fix[256];
	char why[320];
	size_t n = doctor_split_fix(said, fix, sizeof(fix));

	(void)snprintf(why, sizeof(why), "%.*s", (int)n, said);
	pass(d, fix, name, why);
}

static void choose(struct doctor *d, const json_t *o)
{
	bool is_auto = !strcmp(d->driver, "auto");

	if (is_auto)
		doctor_say(d, DOCTOR_FINE, NULL, "%s makes the boxes of image %s: isolation %s",
		    cli_text_at(o, "driver"), d->image, cli_text_at(o, "isolation"));
	else
		doctor_say(d, DOCTOR_FINE, NULL,
		    "driver: %s is configured; auto would take %s for image %s: isolation %s",
		    d->driver, cli_text_at(o, "driver"), d->image, cli_text_at(o, "isolation"));
}

void doctor_choice(struct doctor *d)
{
	json_t *o;
	size_t i;

	if (!json_array_size(d->drivers) || !*d->image)
		return; /* the checks before have said why */
	json_array_foreach(cli_walk(d->drivers), i, o)
	{
		const char *error = json_string_value(json_object_get(o, "error"));
		const char *name = cli_text_at(o, "driver");

		if (!is_true(o, "takes")) {
			pass_image(d, name);
		} else if (error) {
			pass_error(d, name, error);
		} else if (is_true(o, "only_if_asked")) {
			pass_emulated(d, name, cli_text_at(o, "why_asked"));
		} else {
			choose(d, o);
			return;
		}
	}
	doctor_say(d, strcmp(d->driver, "auto") ? DOCTOR_NOTE : DOCTOR_WRONG,
	    "mend one of these, or choose another image", "auto finds no driver for image %s",
	    d->image);
}
