/* files_json: how files are described in answers. sbx-worker; holds no state. */
#include "worker/files_json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/utf8.h"
#include "wire/json.h"

void files_put_name(struct json_out *j, const char *key, const void *name, size_t n)
{
	char text[PATH_MAX + 1];
	char other[32];

	if (utf8_valid_prefix(name, n, NULL) == n) {
		json_put_bytes(j, key, name, n);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.*s", (int)n, (const char *)name);
	(void)snprintf(other, sizeof(other), "%s_base64", key);
	json_put_string(j, key, text);
	json_put_base64(j, other, name, n);
}

static const char *type_name(uint32_t mode)
{
	static const struct {
		uint32_t type;
		const char *name;
	} names[] = {
	    {S_IFREG, "file"},
	    {S_IFDIR, "directory"},
	    {S_IFLNK, "symlink"},
	    {S_IFIFO, "fifo"},
	    {S_IFSOCK, "socket"},
	    {S_IFCHR, "char_device"},
	    {S_IFBLK, "block_device"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((mode & S_IFMT) == names[i].type)
			return names[i].name;
	}
	return "other";
}

/* RFC 3339, to the nanosecond. */
static void put_time(struct json_out *j, const char *key, int64_t ns)
{
	int64_t fraction = ns % (int64_t)NS_PER_S;
	time_t seconds = (time_t)(ns / (int64_t)NS_PER_S);
	char text[FILES_TIME_MAX];
	struct tm tm;
	size_t n;

	if (fraction < 0) {
		fraction += (int64_t)NS_PER_S;
		seconds--;
	}
	if (!gmtime_r(&seconds, &tm)) {
		json_put_null(j, key);
		return;
	}
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof(text) - n, ".%09uZ", (unsigned int)fraction);
	json_put_string(j, key, text);
}

void files_put_stat(struct json_out *j, const struct files_stat *st)
{
	char mode[8];

	(void)snprintf(mode, sizeof(mode), "%04o", st->mode & 07777U);
	json_put_string(j, "type", type_name(st->mode));
	json_put_uint(j, "size", st->size);
	json_put_string(j, "mode", mode);
	json_put_uint(j, "uid", st->uid);
	json_put_uint(j, "gid", st->gid);
	put_time(j, "modified_at", st->mtime_ns);
}
