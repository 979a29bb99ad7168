/* doctor_cgroup: can limits be enforced here, and which cgroups did dead instances leave? Reads
 * only. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/doctor.h"

#define TEXT_MAX (1U << 20)
#define MOUNTS_MAX 32
#define DEPTH_MAX 6
#define VISITS_MAX 20000

struct hierarchy {
	char dir[256];
	char controllers[256]; /* v1: mount options; v2: cgroup.controllers; with blanks around each
				*/
	bool v2;
};

static const struct {
	const char *name;
	const char *limits;
} wanted[] = {{"memory", "memory"}, {"pids", "processes"}, {"cpu", "cpu time"}};

/* " a b c " out of words that commas, blanks or newlines part. */
static void put_words(char *out, size_t size, char *words)
{
	char *save = NULL;
	size_t len = 1;

	(void)snprintf(out, size, " ");
	for (char *w = strtok_r(words, ", \n", &save); w && len < size;
	     w = strtok_r(NULL, ", \n", &save))
		len += (size_t)snprintf(out + len, size - len, "%s ", w);
}

/* One line of mountinfo: ... 4: mount point ... " - " type source options. */
static bool parse_mount(char *line, struct hierarchy *h)
{
	char *tail = strstr(line, " - ");
	char dir[sizeof(h->dir)];
	char type[32];
	char options[256];
	char path[300];
	char text[256];

	if (!tail || sscanf(line, "%*s %*s %*s %*s %255s", dir) != 1 ||
	    sscanf(tail + 3, "%31s %*s %255s", type, options) != 2)
		return false;
	if (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0)
		return false;
	h->v2 = strcmp(type, "cgroup2") == 0;
	(void)snprintf(h->dir, sizeof(h->dir), "%s", dir);
	if (h->v2) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", dir);
		if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
			text[0] = '\0';
		put_words(h->controllers, sizeof(h->controllers), text);
	} else {
		put_words(h->controllers, sizeof(h->controllers), options);
	}
	return true;
}

static size_t find_hierarchies(struct hierarchy out[MOUNTS_MAX])
{
	char *text = malloc(TEXT_MAX);
	char *save = NULL;
	size_t n = 0;

	if (!text || fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, TEXT_MAX) < 0) {
		free(text);
		return 0;
	}
	for (char *line = strtok_r(text, "\n", &save); line && n < MOUNTS_MAX;
	     line = strtok_r(NULL, "\n", &save))
		n += parse_mount(line, &out[n]);
	free(text);
	return n;
}

static const struct hierarchy *holder_of(
    const char *controller, const struct hierarchy *all, size_t count)
{
	char word[32];

	(void)snprintf(word, sizeof(word), " %s ", controller);
	for (size_t i = 0; i < count; i++) {
		if (strstr(all[i].controllers, word))
			return &all[i];
	}
	return NULL;
}

void doctor_cgroups(struct doctor *d)
{
	struct hierarchy all[MOUNTS_MAX];
	size_t count = find_hierarchies(all);

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct hierarchy *h = holder_of(wanted[i].name, all, count);

		if (!h)
			doctor_say(d, DOCTOR_NOTE,
			    "enable the controller on the kernel's command line, or mount its "
			    "hierarchy",
			    "no %s controller: %s of a box cannot be limited", wanted[i].name,
			    wanted[i].limits);
		else if (getuid() != 0)
			doctor_say(d, DOCTOR_NOTE,
			    "run sbxd as root, or by systemd with Delegate=yes",
			    "%s: %s; an ordinary user can limit only what was delegated",
			    wanted[i].name, h->v2 ? "v2" : "v1");
		else if (access(h->dir, W_OK) < 0)
			doctor_say(d, DOCTOR_NOTE, "mount it writable",
			    "%s: %s is read-only: %s of a box cannot be limited", wanted[i].name,
			    h->dir, wanted[i].limits);
		else
			doctor_say(d, DOCTOR_FINE, NULL, "%s: %s at %s", wanted[i].name,
			    h->v2 ? "v2" : "v1", h->dir);
	}
}

struct walk {
	struct doctor *d;
	unsigned int visits;
	unsigned int found;
};

/* An ordinary user cannot know which of the others' instances run. */
static bool is_ours(int dirfd, const char *name)
{
	struct stat st;

	return getuid() == 0 ||
	       (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == getuid());
}

/* Says which cgroups below dirfd bear our name and are nobody's. What vanishes meanwhile is fine.
 */
static void walk_cgroups(struct walk *w, int parent, const char *name, const char *path, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *e = readdir(dir); e && w->visits < VISITS_MAX; e = readdir(dir)) {
		char below[600];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		w->visits++;
		(void)snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
		if (strncmp(e->d_name, "sbxd-", 5) == 0 && !doctor_is_live(w->d, e->d_name) &&
		    is_ours(dirfd(dir), e->d_name)) {
			doctor_say(w->d, DOCTOR_WRONG,
			    "start sbxd with that instance, which cleans up; or end the processes "
			    "in it, then rmdir",
			    "%s is nobody's", below);
			w->found++;
		} else if (depth < DEPTH_MAX) {
			walk_cgroups(w, dirfd(dir), e->d_name, below, depth + 1);
		}
	}
	(void)closedir(dir); /* opened for reading only */
}

/* One hierarchy of v1 may be mounted once for each of its controllers. */
static bool seen_before(const struct hierarchy *all, size_t i)
{
	struct stat own;
	struct stat st;

	if (stat(all[i].dir, &own) < 0)
		return true;
	for (size_t j = 0; j < i; j++) {
		if (stat(all[j].dir, &st) == 0 && st.st_dev == own.st_dev)
			return true;
	}
	return false;
}

void doctor_left_cgroups(struct doctor *d)
{
	struct hierarchy all[MOUNTS_MAX];
	size_t count = find_hierarchies(all);
	struct walk w = {.d = d};

	for (size_t i = 0; i < count; i++) {
		if (!seen_before(all, i))
			walk_cgroups(&w, AT_FDCWD, all[i].dir, all[i].dir, 0);
	}
	if (w.found == 0)
		doctor_say(d, DOCTOR_FINE, NULL, "none");
}
