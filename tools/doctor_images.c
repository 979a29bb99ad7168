/* doctor_images: can images be pulled? */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/doctor.h"

/* Where sbxd looks for them: the distribution's places, whatever PATH says. */
static bool is_installed(const char *name)
{
	static const char *const dirs[] = {"/usr/bin", "/usr/local/bin"};
	char path[64];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

void doctor_images(struct doctor *d)
{
	static const struct {
		const char *name;
		const char *fix;
		const char *what;
	} programs[] = {
	    {"skopeo", "apt install skopeo", "images of registries and layouts cannot be fetched"},
	    {"umoci", "apt install umoci", "images of registries and layouts cannot be unpacked"},
	};
	bool all = true;

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (is_installed(programs[i].name))
			continue;
		all = false;
		doctor_say(d, DOCTOR_NOTE, programs[i].fix, "there is no %s: %s", programs[i].name,
		    programs[i].what);
	}
	if (all)
		doctor_say(d, DOCTOR_FINE, NULL, "skopeo and umoci are installed");
}
