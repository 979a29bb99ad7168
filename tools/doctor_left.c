/* doctor_left: tables and processes that dead instances left. Reads only. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "shm/segment.h"
#include "tools/doctor.h"

/* "sbxd-UID-INSTANCE": *instance points into name. */
static bool parse_name(const char *name, unsigned int *uid, const char **instance)
{
	int used = 0;

	if (sscanf(name, "sbxd-%u-%n", uid, &used) != 1 || used == 0)
		return false;
	*instance = name + used;
	return paths_instance_valid(*instance);
}

static void check_segment(
    struct doctor *d, const char *file, const char *instance, unsigned int *left)
{
	char name[300];
	char fix[400];
	struct err why = {.text = ""};

	(void)snprintf(name, sizeof(name), "/%s", file);
	switch (segment_probe(name, &why)) {
	case SEGMENT_ABSENT: /* gone meanwhile */
		return;
	case SEGMENT_LIVE:
		if (d->live_count < DOCTOR_LIVE_MAX)
			(void)snprintf(
			    d->live[d->live_count++], PATHS_INSTANCE_LEN, "%s", instance);
		return;
	case SEGMENT_ORPHANED:
		(void)snprintf(fix, sizeof(fix),
		    "start sbxd --instance %s: it takes over what lives and removes the rest",
		    instance);
		doctor_say(d, DOCTOR_WRONG, fix, "%s: its sbxd is gone", name);
		break;
	case SEGMENT_FOREIGN:
		(void)snprintf(
		    fix, sizeof(fix), "if no other version of sbxd needs it: rm /dev/shm%s", name);
		doctor_say(d, DOCTOR_WRONG, fix, "%s: %s", name, why.text);
		break;
	}
	(*left)++;
}

void doctor_segments(struct doctor *d)
{
	DIR *dir = opendir("/dev/shm");
	unsigned int left = 0;

	if (!dir)
		return; /* doctor_shm_space() has said it */
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		const char *instance;
		unsigned int uid;

		if (parse_name(e->d_name, &uid, &instance) && (getuid() == 0 || uid == getuid()))
			check_segment(d, e->d_name, instance, &left);
	}
	(void)closedir(dir); /* opened for reading only */
	if (left == 0)
		doctor_say(d, DOCTOR_FINE, NULL, "%zu in use, none left behind", d->live_count);
}

/* Last component of a process's program, "" when it is not to be seen. */
static void program_of(const char *pid, char *out, size_t size)
{
	char path[64];
	char target[300];
	const char *base;
	ssize_t n;

	*out = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	base = strrchr(target, '/');
	(void)snprintf(out, size, "%.*s", (int)size - 1, base ? base + 1 : target);
	out[strcspn(out, " ")] = '\0'; /* "sbx-guest (deleted)" */
}

static long parent_of(const char *pid)
{
	char path[64];
	char text[1024];
	const char *p;
	long parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	p = strrchr(text, ')'); /* the command name may hold anything */
	if (!p || sscanf(p + 1, " %*c %ld", &parent) != 1)
		return 0;
	return parent;
}

/* A worker belongs below sbxd, a guest below its worker; whoever else is its parent took it over
 * when that died. */
static bool is_orphan(const char *pid, const char *program)
{
	char parent[24];
	char above[64];
	bool worker = strcmp(program, "sbx-worker") == 0;

	if (!worker && strcmp(program, "sbx-guest") != 0)
		return false;
	(void)snprintf(parent, sizeof(parent), "%ld", parent_of(pid));
	program_of(parent, above, sizeof(above));
	if (worker)
		return strcmp(above, "sbxd") != 0;
	return strncmp(above, "sbx-", 4) != 0;
}

void doctor_processes(struct doctor *d)
{
	DIR *dir = opendir("/proc");
	unsigned int left = 0;

	if (!dir) {
		doctor_say(
		    d, DOCTOR_WRONG, "mount -t proc proc /proc", "no /proc: %s", strerror(errno));
		return;
	}
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		char program[64];
		char fix[128];

		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		program_of(e->d_name, program, sizeof(program));
		if (!is_orphan(e->d_name, program))
			continue;
		(void)snprintf(fix, sizeof(fix),
		    "start sbxd again within orphan_grace, or end it: kill %.20s", e->d_name);
		doctor_say(
		    d, DOCTOR_WRONG, fix, "%s (pid %s) outlived its parent", program, e->d_name);
		left++;
	}
	(void)closedir(dir); /* opened for reading only */
	if (left == 0)
		doctor_say(d, DOCTOR_FINE, NULL, "none");
}
