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

#define FAULTS_MAX 512
#define FAULT_SPEC 65536
#define FAULT_SLOW_MAX 100U
#define FAULT_FILE 4096 /* bytes of a file that can be named */

/* A piece of fault_spec; not NUL-terminated. */
struct fault_text {
	const char *p;
	size_t len;
};

struct fault {
	struct fault_text role; /* empty: of any */
	struct fault_text name;
	struct fault_text action;
	_Atomic char *once; /* the byte of its file, NULL when it acts always */
	bool broken;	    /* it has a file, and the file is not there */
};

static struct fault faults[FAULTS_MAX];
static size_t fault_count;
static char fault_spec[FAULT_SPEC]; /* the value that faults[] was made of */
static const char *fault_own_role = "";
static char fault_file[PATH_MAX]; /* what is mapped at fault_page: most faults have the same */
static _Atomic char *fault_page;

static bool text_is(struct fault_text t, const char *s)
{
	return t.len == strlen(s) && !memcmp(t.p, s, t.len);
}

static struct fault_text text_between(const char *from, const char *to)
{
	return (struct fault_text){from, (size_t)(to - from)};
}

static _Atomic char *fault_map(struct fault_text path)
{
	FD_SCOPED int fd = -1;
	void *page;

	if (fault_page && text_is(path, fault_file))
		return fault_page;
	(void)snprintf(fault_file, sizeof(fault_file), "%.*s", (int)path.len, path.p);
	fd = open(fault_file, O_RDWR | O_CLOEXEC);
	page =
	    fd < 0 ? MAP_FAILED : mmap(NULL, FAULT_FILE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fault_page = page == MAP_FAILED ? NULL : page;
	return fault_page;
}

/* "FILE" or "FILE+N" */
static void fault_watch(struct fault *f, const char *path, const char *end)
{
	const char *plus = memrchr(path, '+', (size_t)(end - path));
	unsigned long at = plus ? strtoul(plus + 1, NULL, 10) : 0;
	_Atomic char *page = fault_map(text_between(path, plus ? plus : end));

	f->broken = !page || at >= FAULT_FILE;
	if (!f->broken)
		f->once = page + at;
}

/* "[role/]name=action[@...]" */
static void fault_parse(const char *spec, const char *end)
{
	const char *eq = memchr(spec, '=', (size_t)(end - spec));
	const char *slash = eq ? memchr(spec, '/', (size_t)(eq - spec)) : NULL;
	const char *at = eq ? memchr(eq, '@', (size_t)(end - eq)) : NULL;
	const char *name = slash ? slash + 1 : spec;
	struct fault *f;

	if (!eq || fault_count == FAULTS_MAX)
		return;
	f = &faults[fault_count++];
	*f = (struct fault){
	    .role = text_between(spec, slash ? slash : spec),
	    .name = text_between(name, eq),
	    .action = text_between(eq + 1, at ? at : end),
	};
	if (at)
		fault_watch(f, at + 1, end);
}

/* Tests change the variable as they go. */
static void fault_prepare(void)
{
	const char *value = getenv("SBX_FAULT");
	const char *spec = fault_spec;

	if (!strcmp(value ? value : "", fault_spec))
		return;
	fault_count = 0;
	fault_page = NULL;
	(void)snprintf(fault_spec, sizeof(fault_spec), "%s", value ? value : "");
	while (*spec) {
		const char *end = spec + strcspn(spec, ",");

		fault_parse(spec, end);
		spec = end + (*end == ',');
	}
}

static bool fault_is_here(const struct fault *f, const char *name)
{
	return text_is(f->name, name) && (f->role.len == 0 || text_is(f->role, fault_own_role));
}

static bool fault_armed(const struct fault *f)
{
	char armed = '1';

	return !f->broken && (!f->once || atomic_compare_exchange_strong(f->once, &armed, '0'));
}

void fault_role(const char *role)
{
	fault_own_role = role;
}

bool fault_hit(const char *name)
{
	bool fails = false;

	fault_prepare();
	for (size_t i = 0; i < fault_count; i++) {
		const struct fault *f = &faults[i];

		if (!fault_is_here(f, name) || !fault_armed(f))
			continue;
		if (text_is(f->action, "kill"))
			(void)kill(getpid(), SIGKILL);
		while (text_is(f->action, "hang"))
			(void)pause();
		fails = fails || text_is(f->action, "fail");
	}
	return fails;
}

unsigned int fault_slow(void)
{
	const char *text = getenv("SBX_TEST_SLOW");
	unsigned long factor = text ? strtoul(text, NULL, 10) : 1;

	return factor < 1 ? 1 : factor > FAULT_SLOW_MAX ? FAULT_SLOW_MAX : (unsigned int)factor;
}

#else

/* ISO C wants a declaration in every translation unit. */
typedef int fault_is_compiled_out;

#endif
