/*
 * target: what the suite runs over. BoxLite's library is its double, and so is its server, but for
 * the row that an environment variable brings in.
 */
#include "tests/drivers/target.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVER "http://127.0.0.1:8100"

/* The library beside this program; its full path into out. */
static void boxlite_library(char out[PATH_MAX])
{
	const char *other = getenv("FAKE_BOXLITE_LIBRARY");
	char self[PATH_MAX] = "";
	char *slash;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		perror("/proc/self/exe");
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	if (other)
		(void)snprintf(out, PATH_MAX, "%s", other);
	else
		(void)snprintf(out, PATH_MAX, "%.4000s/fake_boxlite/standard/libboxlite.so", self);
}

static size_t add_option(char *options, size_t size, size_t len, const char *key, const char *value)
{
	int n = snprintf(options + len, size - len, "%s=%s", key, value);

	return len + (size_t)n + 1;
}

/* The double needs no KVM. */
static size_t set_up_local(const char *dir, char *options, size_t size)
{
	char library[PATH_MAX];

	(void)dir;
	boxlite_library(library);
	(void)setenv("SBX_TEST_KVM", "/dev/null", 1);
	(void)setenv("FAKE_BOXLITE", "order=awkward", 1);
	return add_option(options, size, 0, "boxlite.library", library);
}

static size_t set_up_detached(const char *dir, char *options, size_t size)
{
	size_t len = set_up_local(dir, options, size);

	return add_option(options, size, len, "boxlite.detach", "true");
}

static size_t set_up_remote(const char *dir, char *options, size_t size)
{
	char server[PATH_MAX];
	size_t len = set_up_local(dir, options, size);

	(void)snprintf(server, sizeof(server),
	    "url=%s,key=secret,prefix=team,remote_home=%.200s/server", SERVER, dir);
	(void)setenv("FAKE_BOXLITE", server, 1);
	(void)setenv("SBX_TEST_KVM", "/no/kvm", 1);
	len = add_option(options, size, len, "boxlite.url", SERVER);
	len = add_option(options, size, len, "boxlite.api_key", "secret");
	return add_option(options, size, len, "boxlite.path_prefix", "team");
}

/* BoxLite's own library, and a server that the suite did not start. */
static size_t set_up_server(const char *dir, char *options, size_t size)
{
	static const char *const given[][2] = {
	    {"boxlite.library", "SBX_BOXLITE_LIBRARY"},
	    {"boxlite.url", "SBX_BOXLITE_URL"},
	    {"boxlite.api_key", "SBX_BOXLITE_API_KEY"},
	    {"boxlite.path_prefix", "SBX_BOXLITE_PATH_PREFIX"},
	    {"boxlite.detach", "SBX_BOXLITE_DETACH"},
	};
	size_t len = 0;

	(void)dir;
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		const char *value = getenv(given[i][1]);

		if (value)
			len = add_option(options, size, len, given[i][0], value);
	}
	return len;
}

static void tear_down_remote(const char *dir)
{
	static const char *const left[] = {"boxes", "images/debian:12", "images", ".records", ""};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		(void)snprintf(path, sizeof(path), "%.200s/server/%s", dir, left[i]);
		if (remove(path) < 0)
			perror(path);
	}
}

/* Debian's kernel is not on every host: SBX_KERNEL, as tools/guest_kernel.sh has it.
 * SBX_QEMU_ACCEL: emulated is what every host can have. */
static size_t set_up_qemu(const char *dir, char *options, size_t size)
{
	const char *kernel = getenv("SBX_KERNEL");
	const char *accel = getenv("SBX_QEMU_ACCEL");
	size_t len = add_option(options, size, 0, "qemu.accel", accel ? accel : "tcg");

	(void)dir;
	return kernel ? add_option(options, size, len, "qemu.kernel", kernel) : len;
}

static const char *const namespace_bad[] = {
    "", "no-such-image", "/no/such/directory", "/etc/passwd", NULL};
static const char *const qemu_bad[] = {"", "host", "no-such-image", NULL};
static const char *const boxlite_bad[] = {
    "", "host", "missing:1", "/no/such/directory", "/etc/passwd", NULL};
static const char *const server_bad[] = {"host", "/etc", NULL};

static const struct target targets[] = {
    {
	.name = "boxlite",
	.driver = "boxlite",
	.image = "debian:12",
	.steps = &faults_boxlite,
	.bad_images = boxlite_bad,
	.set_up = set_up_local,
    },
    {
	.name = "boxlite-detached",
	.driver = "boxlite",
	.image = "debian:12",
	.steps = &faults_boxlite,
	.traits = TARGET_OUTLIVES,
	.bad_images = boxlite_bad,
	.set_up = set_up_detached,
    },
    {
	.name = "boxlite-remote",
	.driver = "boxlite",
	.image = "debian:12",
	.traits = TARGET_WARM_UP | TARGET_OUTLIVES,
	.steps = &faults_boxlite,
	.bad_images = server_bad,
	.set_up = set_up_remote,
	.tear_down = tear_down_remote,
    },
    {
	.name = "boxlite-server",
	.variable = "SBX_BOXLITE_URL",
	.driver = "boxlite",
	.image = "debian:12",
	.traits = TARGET_WARM_UP | TARGET_OUTLIVES,
	.steps = &faults_boxlite,
	.bad_images = server_bad,
	.set_up = set_up_server,
    },
    {
	.name = "namespace",
	.driver = "namespace",
	.image = "host",
	.traits = TARGET_OWN_WORK,
	.steps = &faults_namespace,
	.bad_images = namespace_bad,
    },
    {
	.name = "qemu",
	.driver = "qemu",
	.image_variable = "SBX_ROOT", /* see tests/qemu/make_root.sh */
	.traits = TARGET_OWN_WORK | TARGET_WARM_UP,
	.steps = &faults_qemu,
	.bad_images = qemu_bad,
	.set_up = set_up_qemu,
    },
};

const struct target *target_at(unsigned int n)
{
	return n < sizeof(targets) / sizeof(targets[0]) ? &targets[n] : NULL;
}

bool target_is_there(const struct target *t)
{
	return !t->variable || getenv(t->variable);
}
