/* host_state: what boxes could leave behind on the host, counted. In the test process. */
#include "tests/drivers/host_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/patience.h"

#define STATE_UIDS (HOST_STATE_SLOTS * DRIVER_UIDS)

static int state_count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	int lines = 0;
	int c;

	assert_non_null(f);
	while ((c = fgetc(f)) != EOF)
		lines += c == '\n';
	(void)fclose(f);
	return lines;
}

/* Entries below path, links not followed; only directories whose path has `part`, if given. */
static int state_count_tree(const char *path, const char *part)
{
	DIR *dir = opendir(path);
	char sub[4096];
	int count = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		(void)snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
		count += !part || (e->d_type == DT_DIR && strstr(sub, part));
		if (e->d_type == DT_DIR)
			count += state_count_tree(sub, part);
	}
	if (dir)
		(void)closedir(dir);
	return count;
}

static void state_count_process(
    const struct driver_site *site, const char *pid, struct host_state *out)
{
	char path[300];
	char text[4096];
	const char *p;
	unsigned int uid = 0;
	int ppid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return;
	p = strstr(text, "\nPPid:");
	if (p)
		ppid = atoi(p + 6);
	p = strstr(text, "\nUid:");
	if (p)
		uid = (unsigned int)strtoul(p + 5, NULL, 10);
	out->children += ppid == getpid();
	out->box_uids +=
	    site->uid_base && uid >= site->uid_base && uid < site->uid_base + STATE_UIDS;
}

void host_state_take(const struct driver_site *site, struct host_state *out)
{
	DIR *dir = opendir("/proc");
	char part[80];

	*out = (struct host_state){0};
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			state_count_process(site, e->d_name, out);
	}
	(void)closedir(dir);
	(void)snprintf(part, sizeof(part), "/sbxd-%s", site->instance);
	out->cgroups = state_count_tree("/sys/fs/cgroup", part);
	out->files = state_count_tree(site->runtime_dir, NULL);
	out->mounts = state_count_lines("/proc/self/mountinfo");
	out->fds = fd_count_open();
}

void host_state_await_orphans(void)
{
	(void)alarm(patience_orphans_s());
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	(void)alarm(0);
}

void host_state_assert_same(const struct host_state *before, const struct host_state *after)
{
	assert_int_equal(before->fds, after->fds);
	assert_int_equal(before->mounts, after->mounts);
	assert_int_equal(before->children, after->children);
	assert_int_equal(before->box_uids, after->box_uids);
	assert_int_equal(before->cgroups, after->cgroups);
	assert_int_equal(before->files, after->files);
}
