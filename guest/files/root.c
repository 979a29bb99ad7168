/* root: where a command begins. sbx-files; opens, and changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "guest/files/files.h"
#include "guest/path.h"

/* The root of the box, or -errno. */
static int open_box(void)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool check(const char *path, int *status)
{
	struct text why;

	if (path != NULL && path_is_valid(path, strlen(path)))
		return true;
	text_clear(&why);
	text_add(&why, PATH_INVALID ": ");
	text_add_quoted(&why, path != NULL ? path : "", 256);
	*status = emit_failure(AGENT_E_INVALID_PATH, &why);
	return false;
}

/* fd, or -1 after saying what its errno means. */
static int explain(int fd, const char *what, const char *path, int *status)
{
	if (fd >= 0)
		return fd;
	*status = emit_errno(what, path, -fd);
	return -1;
}

int root_open(const char *path, int *status)
{
	int box;
	int fd;

	if (!check(path, status))
		return -1;
	box = open_box();
	fd = box < 0 ? box : path_open(box, path, O_RDONLY | O_DIRECTORY, 0);
	if (box >= 0)
		(void)close(box); /* names a place only */
	return explain(fd, "cannot read", path, status);
}

int root_open_parent(const char *path, const char **name, int *status)
{
	int box;
	int fd;

	if (!check(path, status))
		return -1;
	box = open_box();
	fd = box < 0 ? box : path_open_parent(box, path, name);
	if (box >= 0)
		(void)close(box); /* names a place only */
	return explain(fd, "cannot reach", path, status);
}
