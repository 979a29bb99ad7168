/* files_json: how files are described in answers. sbx-worker. */
#ifndef SBXD_WORKER_FILES_JSON_H
#define SBXD_WORKER_FILES_JSON_H

#include <stddef.h>
#include <stdint.h>

struct json_out;

#define FILES_TIME_MAX 40

/*
 * A name of n bytes, none of them NUL, as the member `key`. If it is not UTF-8, what is not becomes
 * U+FFFD, and the member "<key>_base64" has the bytes as they are. At most PATH_MAX bytes.
 */
void files_put_name(struct json_out *j, const char *key, const void *name, size_t n);

/* What an inode says of itself. */
struct files_stat {
	uint64_t size;
	int64_t mtime_ns; /* since 1970 */
	uint32_t mode;	  /* st_mode */
	uint32_t uid;
	uint32_t gid;
};

/* As the members type, size, mode, uid, gid, modified_at of the object that is open. */
void files_put_stat(struct json_out *j, const struct files_stat *st);

#endif
