/* gc_holders: processes of instances. sbxctl; only reads. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "tools/gc.h"

#define ARGUMENTS_MAX 65536U
#define LINE_MAX 4096

/* Next process of /proc, 0 past the last. */
static pid_t next_process(DIR *proc)
{
	for (struct dirent *e = readdir(proc); e; e = readdir(proc)) {
		if (isdigit((unsigned char)e->d_name[0]))
			return atoi(e->d_name);
	}
	return 0;
}

static bool read_of(pid_t pid, const char *file, char *out, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fd_read_file_at(AT_FDCWD, path, out, size) > 0;
}

static bool is_ours(pid_t pid)
{
	char comm[32];

	return read_of(pid, "comm", comm, sizeof(comm)) &&
	       (!strcmp(comm, "sbxd\n") || !strcmp(comm, "sbx-worker\n"));
}

/* The real uid; what a process is owned by in /proc may say less. */
static bool has_uid(pid_t pid, uid_t uid)
{
	char text[4096];
	const char *line;

	if (!read_of(pid, "status", text, sizeof(text)))
		return false;
	line = strstr(text, "\nUid:");
	return line && strtoul(line + 5, NULL, 10) == uid;
}

/* 1: the process maps a file of that name, 0: it does not, -1: it is not told. */
static int maps(pid_t pid, const char *file)
{
	char path[64];
	char line[LINE_MAX];
	size_t n = strlen(file);
	int found = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	while (found == 0 && fgets(line, sizeof(line), f)) {
		const char *at = strchr(line, '/'); /* others may make a path that ends so */

		found = at && strncmp(at, file, n) == 0 &&
			(at[n] == '\n' || at[n] == ' '); /* "... (deleted)" */
	}
	if (found == 0 && ferror(f))
		found = errno == ESRCH ? 0 : -1;
	(void)fclose(f); /* it was only read */
	return found;
}

pid_t gc_holder_of(uid_t uid, const char *instance)
{
	char file[96];
	DIR *proc = opendir("/proc");
	pid_t hidden = 0;
	pid_t pid = 0;

	if (!proc)
		return -1;
	(void)snprintf(file, sizeof(file), "/dev/shm/sbxd-%u-%s", (unsigned int)uid, instance);
	while ((pid = next_process(proc))) {
		int rc = is_ours(pid) ? maps(pid, file) : 0;

		if (rc > 0)
			break;
		if (rc < 0 && has_uid(pid, uid))
			hidden = -1;
	}
	(void)closedir(proc); /* it was only read */
	return pid ? pid : hidden;
}

/* sbxd-INSTANCE-SLOT-GENERATION, and nothing or a comma behind it. */
static bool is_box(const char *argument, const char *instance)
{
	size_t n = strlen(instance);
	const char *at = argument + 5;

	if (strncmp(argument, "sbxd-", 5) != 0 || strncmp(at, instance, n) != 0 || at[n] != '-')
		return false;
	at += n + 1;
	n = strspn(at, "0123456789");
	if (n == 0 || at[n] != '-')
		return false;
	at += n + 1;
	n = strspn(at, "0123456789abcdef");
	return n > 0 && (at[n] == '\0' || at[n] == ',');
}

/* A program of ours, or of a backend: anybody may have a box's name among his arguments. */
static bool is_program(pid_t pid)
{
	static const char *const names[] = {"sbx-", "qemu-"};
	char path[64];
	char exe[LINE_MAX];
	const char *name;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n <= 0)
		return false;
	exe[n] = '\0';
	name = strrchr(exe, '/');
	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(name + 1, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

static void look_at(
    const struct gc_instance *i, pid_t pid, char *text, gc_process_fn *fn, void *ctx)
{
	char path[64];
	uint64_t start;
	ssize_t n;

	/* Its start first: if the pid is given away meanwhile, the two do not fit. */
	if (pid == getpid() || !has_uid(pid, i->uid) || proc_start_time(pid, &start) < 0 ||
	    !is_program(pid))
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	n = fd_read_file_at(AT_FDCWD, path, text, ARGUMENTS_MAX);
	for (const char *at = text; n > 0 && at < text + n; at += strlen(at) + 1) {
		if (is_box(at, i->name)) {
			fn(ctx, pid, start, at);
			return;
		}
	}
}

void gc_named_processes(const struct gc_instance *i, gc_process_fn *fn, void *ctx)
{
	DIR *proc = opendir("/proc");
	char *text = malloc(ARGUMENTS_MAX);
	pid_t pid;

	while (proc && text && (pid = next_process(proc)))
		look_at(i, pid, text, fn, ctx);
	free(text);
	if (proc)
		(void)closedir(proc); /* it was only read */
}
