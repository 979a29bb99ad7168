/*
 * cgroup_find: the cgroup hierarchies of this host and our own place in them. Janitor; reads only.
 */
#include "drivers/namespace/cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fd.h"

#define MOUNTINFO_MAX (1024UL * 1024)
#define OWN_MAX 16384

static const struct {
	const char *name;
	uint32_t bit;
} controllers[] = {
    {"memory", NS_CG_MEMORY},
    {"pids", NS_CG_PIDS},
    {"cpu", NS_CG_CPU},
    {"cpuacct", NS_CG_CPUACCT},
};

/* A line of /proc/self/mountinfo, cut in place. */
struct mount_line {
	char *root;
	char *place;
	char *type;
	char *options; /* of the superblock */
};

static bool find_split(char *line, struct mount_line *out)
{
	char *save = NULL;
	char *field = strtok_r(line, " ", &save);

	*out = (struct mount_line){0};
	for (int i = 0; field && strcmp(field, "-") != 0; i++) {
		if (i == 3)
			out->root = field;
		if (i == 4)
			out->place = field;
		field = strtok_r(NULL, " ", &save);
	}
	out->type = strtok_r(NULL, " ", &save);
	(void)strtok_r(NULL, " ", &save); /* source */
	out->options = strtok_r(NULL, " ", &save);
	return out->root && out->place && out->type && out->options;
}

static uint32_t find_controllers(char *list)
{
	char *save = NULL;
	uint32_t bits = 0;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
			if (!strcmp(word, controllers[i].name))
				bits |= controllers[i].bit;
		}
	}
	return bits;
}

/* The path of /proc/self/cgroup's line whose controllers are the given ones (0: v2's line). */
static bool find_own(const char *text, uint32_t bits, char *out, size_t size)
{
	char line[1024];
	size_t len;

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char *list;
		char *path;

		len = strcspn(p, "\n");
		if (len >= sizeof(line))
			continue;
		memcpy(line, p, len);
		line[len] = '\0';
		list = strchr(line, ':');
		path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		list++;
		if (bits == 0 ? *list != '\0' : find_controllers(list) != bits)
			continue;
		(void)snprintf(out, size, "%s", path);
		return true;
	}
	return false;
}

/* What /proc/self/cgroup says is relative to the hierarchy; the mount may show only a part. */
static void find_place(struct cgroup_hierarchy *h, const char *root, const char *path)
{
	size_t len = strlen(root);

	h->own[0] = '\0';
	if (strstr(path, "/.."))
		return;
	if (len == 1)
		len = 0;
	if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/'))
		return;
	path += len;
	if (snprintf(h->own, sizeof(h->own), "%s%s", h->top, strcmp(path, "/") ? path : "") >=
	    (int)sizeof(h->own))
		h->own[0] = '\0';
}

int cgroup_find_parse(
    char *mountinfo, const char *own, struct cgroup_hierarchy out[CGROUP_HIERARCHIES])
{
	struct mount_line m;
	char path[1024];
	char *save = NULL;
	int count = 0;

	for (char *line = strtok_r(mountinfo, "\n", &save); line && count < CGROUP_HIERARCHIES;
	     line = strtok_r(NULL, "\n", &save)) {
		struct cgroup_hierarchy h = {0};
		bool v2;

		if (!find_split(line, &m))
			continue;
		v2 = !strcmp(m.type, "cgroup2");
		if (!v2 && strcmp(m.type, "cgroup") != 0)
			continue;
		if (snprintf(h.top, sizeof(h.top), "%s", m.place) >= (int)sizeof(h.top))
			continue;
		h.controllers = v2 ? (uint32_t)NS_CG_V2 : find_controllers(m.options);
		if (!h.controllers || !find_own(own, v2 ? 0 : h.controllers, path, sizeof(path)))
			continue;
		find_place(&h, m.root, path);
		out[count++] = h;
	}
	return count;
}

int cgroup_find_all(struct cgroup_hierarchy out[CGROUP_HIERARCHIES])
{
	char *mountinfo = malloc(MOUNTINFO_MAX);
	char *own = malloc(OWN_MAX);
	ssize_t n = -ENOMEM;

	if (mountinfo && own)
		n = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", mountinfo, MOUNTINFO_MAX);
	if (n >= 0)
		n = fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", own, OWN_MAX);
	if (n >= 0)
		n = cgroup_find_parse(mountinfo, own, out);
	free(mountinfo);
	free(own);
	return (int)n;
}
