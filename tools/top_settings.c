/* top_settings: how sbxtop looks to this user. If we die while saving, the file is as it was. */
#include "tools/top_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

#define FILE_MAX 4096 /* more than any file that we write */
#define LAYOUT_TEXT 512

void top_settings_default(struct top_settings *s)
{
	*s = (struct top_settings){
	    .interval = 1.0,
	    .sort = top_column_find("cpu"),
	    .descending = true,
	    .event_lines = 4,
	};
	top_layout_default(&s->layout);
}

static const char *find_env(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++) {
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=' && (*env)[n + 1] == '/')
			return *env + n + 1;
	}
	return NULL;
}

int top_settings_path(char *const *env, char *out, size_t size)
{
	const char *config = find_env(env, "XDG_CONFIG_HOME");
	const char *home = find_env(env, "HOME");
	int n;

	if (config)
		n = snprintf(out, size, "%s/sbxtop.conf", config);
	else if (home)
		n = snprintf(out, size, "%s/.config/sbxtop.conf", home);
	else
		return -ENOENT;
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* ---- the values ---- */

int top_parse_interval(const char *text, double *out)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end || errno || !isfinite(value) || value < TOP_INTERVAL_MIN ||
	    value > TOP_INTERVAL_MAX)
		return -EINVAL;
	*out = value;
	return 0;
}

static void read_interval(struct top_settings *s, const char *text)
{
	(void)top_parse_interval(text, &s->interval); /* a wrong one leaves the default */
}

static void read_columns(struct top_settings *s, const char *text)
{
	(void)top_layout_parse(text, &s->layout, NULL, 0); /* likewise */
}

static void read_sort(struct top_settings *s, const char *text)
{
	int column = top_column_find(text);

	if (column >= 0)
		s->sort = column;
}

static void read_descending(struct top_settings *s, const char *text)
{
	s->descending = strcmp(text, "yes") == 0;
}

static void read_event_lines(struct top_settings *s, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end != text && *end == '\0' && n >= 0 && n <= TOP_EVENT_LINES_MAX)
		s->event_lines = (int)n;
}

static void write_interval(const struct top_settings *s, char *out, size_t size)
{
	(void)snprintf(out, size, "%g", s->interval);
}

static void write_columns(const struct top_settings *s, char *out, size_t size)
{
	top_layout_format(&s->layout, out, size);
}

static void write_sort(const struct top_settings *s, char *out, size_t size)
{
	(void)snprintf(out, size, "%s", top_column_at((size_t)s->sort)->key);
}

static void write_descending(const struct top_settings *s, char *out, size_t size)
{
	(void)snprintf(out, size, "%s", s->descending ? "yes" : "no");
}

static void write_event_lines(const struct top_settings *s, char *out, size_t size)
{
	(void)snprintf(out, size, "%d", s->event_lines);
}

static const struct {
	const char *key;
	void (*read)(struct top_settings *s, const char *text);
	void (*write)(const struct top_settings *s, char *out, size_t size);
} values[] = {
    {"interval", read_interval, write_interval},
    {"columns", read_columns, write_columns},
    {"sort", read_sort, write_sort},
    {"descending", read_descending, write_descending},
    {"event_lines", read_event_lines, write_event_lines},
};

#define VALUES (sizeof(values) / sizeof(values[0]))

/* ---- the file ---- */

static void read_line(struct top_settings *s, char *line)
{
	char *value = strchr(line, '=');

	if (!value || *line == '#')
		return;
	*value++ = '\0';
	for (size_t i = 0; i < VALUES; i++) {
		if (strcmp(values[i].key, line) == 0)
			values[i].read(s, value);
	}
}

int top_settings_load(struct top_settings *s, const char *path)
{
	char text[FILE_MAX];
	char *rest = text;
	char *line;
	ssize_t n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));

	if (n < 0)
		return n == -ENOENT ? 0 : (int)n;
	while ((line = strsep(&rest, "\n")))
		read_line(s, line);
	return 0;
}

static int write_values(const struct top_settings *s, FILE *f)
{
	(void)fprintf(f, "# Written by sbxtop.\n"); /* the stream remembers errors */
	for (size_t i = 0; i < VALUES; i++) {
		char text[LAYOUT_TEXT];

		values[i].write(s, text, sizeof(text));
		(void)fprintf(f, "%s=%s\n", values[i].key, text);
	}
	return fflush(f) == 0 && !ferror(f) ? 0 : -EIO;
}

static void make_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (!slash || slash == path)
		return;
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	(void)mkdir(dir, 0700); /* whether it is there, opening the file tells */
}

int top_settings_save(struct top_settings *s, const char *path)
{
	char target[PATH_MAX]; /* what a link points to, if it is one */
	char temporary[PATH_MAX];
	FILE *f;
	int fd;
	int rc;

	make_directory(path);
	if (realpath(path, target))
		path = target;
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "w");
	if (!f) {
		rc = -errno;
		fd_close(&fd);
	} else {
		rc = write_values(s, f);
		if (fclose(f) != 0 && rc == 0)
			rc = -errno;
	}
	if (rc == 0 && rename(temporary, path) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlink(temporary); /* the first error is the one to report */
	else
		s->changed = false;
	return rc;
}
