/* fault: named places where a test can make a process die, stop or fail. Test builds only. */
#include "lib/fault.h"

#ifdef SBX_FAULTS

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/fd.h"

#define FAULTS_MAX 64
#define FAULT_SPEC 4096

struct fault {
	const char *name;   /* in fault_spec; not NUL-terminated */
	const char *action; /* likewise */
	size_t name_len;
	size_t action_len;
	_Atomic char *once; /* the byte of its file, NULL when it acts always */
	bool broken;	    /* it has a file, and the file is not there */
};

static struct fault faults[FAULTS_MAX];
static size_t fault_count;
static char fault_spec[FAULT_SPEC]; /* the value that faults[] was made of */

static void fault_map(struct fault *f, const char *path, size_t len)
{
	char file[PATH_MAX];
	FD_SCOPED int fd = -1;
	void *page;

	(void)snprintf(file, sizeof(file), "%.*s", (int)len, path);
	fd = open(file, O_RDWR | O_CLOEXEC);
	page = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	f->broken = page == MAP_FAILED;
	if (!f->broken)
		f->once = page;
}

static void fault_parse(const char *spec, size_t len)
{
	const char *eq = memchr(spec, '=', len);
	const char *at;
	struct fault *f;

	if (!eq || fault_count == FAULTS_MAX)
		return;
	f = &faults[fault_count++];
	f->name = spec;
	f->name_len = (size_t)(eq - spec);
	f->action = eq + 1;
	f->action_len = len - f->name_len - 1;
	at = memchr(f->action, '@', f->action_len);
	if (!at)
		return;
	fault_map(f, at + 1, f->action_len - (size_t)(at - f->action) - 1);
	f->action_len = (size_t)(at - f->action);
}

/* Tests change the variable as they go. */
static void fault_prepare(void)
{
	const char *value = getenv("SBX_FAULT");
	const char *spec = fault_spec;

	if (!strcmp(value ? value : "", fault_spec))
		return;
	fault_count = 0;
	(void)snprintf(fault_spec, sizeof(fault_spec), "%s", value ? value : "");
	while (*spec) {
		size_t len = strcspn(spec, ",");

		fault_parse(spec, len);
		spec += len + (spec[len] == ',');
	}
}

static bool fault_is(const struct fault *f, const char *action)
{
	return f->action_len == strlen(action) && !memcmp(f->action, action, f->action_len);
}

static bool fault_armed(const struct fault *f)
{
	char armed = '1';

	return !f->broken && (!f->once || atomic_compare_exchange_strong(f->once, &armed, '0'));
}

bool fault_hit(const char *name)
{
	size_t len = strlen(name);
	bool fails = false;

	fault_prepare();
	for (size_t i = 0; i < fault_count; i++) {
		const struct fault *f = &faults[i];

		if (f->name_len != len || memcmp(f->name, name, len) != 0 || !fault_armed(f))
			continue;
		if (fault_is(f, "kill"))
			(void)kill(getpid(), SIGKILL);
		while (fault_is(f, "hang"))
			(void)pause();
		fails = fails || fault_is(f, "fail");
	}
	return fails;
}

#else

/* ISO C wants a declaration in every translation unit. */
typedef int fault_is_compiled_out;

#endif
