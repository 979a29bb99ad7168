/* host_cgroup_held: does anybody still own what is in a cgroup? sbxctl; only reads. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/host_cgroup.h"

#define DEPTH_MAX 6
#define TEXT_MAX 65536
#define INIT 1

struct pids {
	pid_t *list; /* owned */
	size_t count;
	bool hidden; /* some are of another pid namespace, or there was no memory for them */
};

static void add_pid(struct pids *p, pid_t pid)
{
	pid_t *more = realloc(p->list, (p->count + 1) * sizeof(*more));

	if (!more || pid <= 0) {
		p->hidden = true;
		p->list = more ? more : p->list;
		return;
	}
	p->list = more;
	p->list[p->count++] = pid;
}

static void collect(int parent, const char *name, int depth, struct pids *p)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char *text = malloc(TEXT_MAX);
	char *save = NULL;

	if (!dir)
		fd_close(&fd);
	if (dir && text && fd_read_file_at(dirfd(dir), "cgroup.procs", text, TEXT_MAX) > 0) {
		for (char *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			add_pid(p, atoi(line));
	}
	free(text);
	for (struct dirent *e = dir ? readdir(dir) : NULL; e && depth < DEPTH_MAX;
	     e = readdir(dir)) {
		if (e->d_type == DT_DIR && strncmp(e->d_name, "sbxd-", 5) == 0)
			collect(dirfd(dir), e->d_name, depth + 1, p);
	}
	if (dir)
		(void)closedir(dir); /* it was only read */
}

static pid_t parent_of(pid_t pid)
{
	char path[64];
	char text[1024];
	const char *p;
	int parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	p = strrchr(text, ')'); /* the command name may hold anything */
	return p && sscanf(p + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool has(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->count; i++) {
		if (p->list[i] == pid)
			return true;
	}
	return false;
}

pid_t host_cgroup_holder(const char *path)
{
	struct pids p = {.list = NULL};
	pid_t holder = 0;

	collect(AT_FDCWD, path, 0, &p);
	for (size_t i = 0; holder == 0 && i < p.count; i++) {
		pid_t parent = parent_of(p.list[i]);

		if (parent > INIT && !has(&p, parent))
			holder = parent;
	}
	if (holder == 0 && p.hidden)
		holder = -1;
	free(p.list);
	return holder;
}
