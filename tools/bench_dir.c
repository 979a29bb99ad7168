/* bench_dir: where the daemons of the benchmark have their files: in memory, as those of a service
 * are in /run. */
#include <errno.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tools/bench.h"

#define TREE_FDS 16

static bool is_in_memory(const char *dir)
{
	struct statfs fs;

	return dir && access(dir, W_OK) == 0 && statfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* The first place that is in memory and ours to write to; /tmp without any. */
static const char *parent(void)
{
	const char *const places[] = {"/run", getenv("XDG_RUNTIME_DIR"), "/dev/shm"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (is_in_memory(places[i]))
			return places[i];
	}
	return "/tmp";
}

void bench_dir_make(char out[BENCH_DIR])
{
	int n = snprintf(out, BENCH_DIR, "%s/sbxd-bench-%d-XXXXXX", parent(), (int)getpid());

	if (n < 0 || n >= BENCH_DIR)
		errno = ENAMETOOLONG;
	if (n < 0 || n >= BENCH_DIR || !mkdtemp(out))
		bench_die(out);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

void bench_dir_remove(const char *dir)
{
	if (nftw(dir, remove_one, TREE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		perror(dir);
}
