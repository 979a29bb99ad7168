/* note: what is kept of an image beside its root. Janitor and `sbx-worker image`; if one dies while
 * it writes, the image has no name yet and is removed. */
#include "drivers/image/note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/env.h"
#include "lib/fd.h"
#include "wire/json.h"

#define NOTE_BYTES_MAX (8U * NOTE_ENV_MAX)
#define NOTE_FORMAT 1

void image_note_init(struct image_note *n)
{
	*n = (struct image_note){0};
	buf_init(&n->env, NOTE_ENV_MAX);
}

void image_note_free(struct image_note *n)
{
	buf_free(&n->env);
}

static void env_remove(struct buf *env, const char *entry, size_t name_len)
{
	char *data;

	if (env->len == 0)
		return; /* there may be no memory yet */
	data = (char *)env->data + env->off;
	for (size_t at = 0; at < env->len;) {
		size_t len = strlen(data + at) + 1;

		if (!strncmp(data + at, entry, name_len) && data[at + name_len] == '=') {
			memmove(data + at, data + at + len, env->len - at - len);
			env->len -= len;
		} else {
			at += len;
		}
	}
}

int image_note_set_env(struct image_note *n, const char *entry)
{
	char name[256];
	size_t len = strcspn(entry, "=");

	if (entry[len] != '=' || len >= sizeof(name))
		return 0;
	memcpy(name, entry, len);
	name[len] = '\0';
	if (!env_name_is_sound(name))
		return 0;
	env_remove(&n->env, entry, len);
	return buf_append(&n->env, entry, strlen(entry) + 1);
}

static void put_note(struct json_out *j, const struct image_note *n)
{
	const char *env = (const char *)buf_head(&n->env);

	json_object_begin(j, NULL);
	json_put_uint(j, "format", NOTE_FORMAT);
	json_put_string(j, "id", n->id);
	json_put_string(j, "user", n->user);
	json_put_string(j, "working_dir", n->working_dir);
	json_put_uint(j, "size", n->size);
	json_put_uint(j, "files", n->files);
	json_put_uint(j, "made_wall_ms", n->made_wall_ms);
	json_array_begin(j, "env");
	for (size_t at = 0; at < n->env.len; at += strlen(env + at) + 1)
		json_put_string(j, NULL, env + at);
	json_array_end(j);
	json_object_end(j);
}

static int note_store(int dirfd, const struct buf *text)
{
	FD_SCOPED int fd =
	    openat(dirfd, NOTE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, buf_head(text), text->len);
	if (n != (ssize_t)text->len)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

int image_note_write(int dirfd, const struct image_note *n)
{
	struct json_out j;
	struct buf text;
	int rc;

	buf_init(&text, NOTE_BYTES_MAX);
	json_out_init(&j, &text);
	put_note(&j, n);
	rc = json_out_error(&j);
	if (rc == 0)
		rc = note_store(dirfd, &text);
	buf_free(&text);
	return rc;
}

static void take_text(const json_t *o, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(o, key));

	(void)snprintf(out, size, "%s", text ? text : "");
}

static uint64_t take_number(const json_t *o, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(o, key));

	return number > 0 ? (uint64_t)number : 0;
}

static int note_take(const json_t *o, struct image_note *n)
{
	json_t *entry;
	size_t i;
	int rc = 0;

	take_text(o, "id", n->id, sizeof(n->id));
	take_text(o, "user", n->user, sizeof(n->user));
	take_text(o, "working_dir", n->working_dir, sizeof(n->working_dir));
	n->size = take_number(o, "size");
	n->files = take_number(o, "files");
	n->made_wall_ms = take_number(o, "made_wall_ms");
	json_array_foreach(json_object_get(o, "env"), i, entry)
	{
		if (rc == 0 && json_is_string(entry))
			rc = image_note_set_env(n, json_string_value(entry));
	}
	return rc == 0 && (take_number(o, "format") != NOTE_FORMAT || !image_digest_is_sound(n->id))
		   ? -EBADMSG
		   : rc;
}

int image_note_read(int dirfd, struct image_note *n)
{
	FD_SCOPED int fd = openat(dirfd, NOTE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err err = {0};
	struct buf text;
	json_t *o = NULL;
	ssize_t got = 1;
	int rc;

	if (fd < 0)
		return -errno;
	buf_init(&text, NOTE_BYTES_MAX);
	while (got > 0)
		got = buf_read_fd(&text, fd, 65536);
	rc = got < 0 ? (int)got : 0;
	if (rc == 0)
		o = json_parse_object(buf_head(&text), text.len, &err);
	if (rc == 0)
		rc = o ? note_take(o, n) : -EBADMSG;
	json_decref(o);
	buf_free(&text);
	return rc;
}

int image_note_put_tail(const struct image_note *n, struct buf *out)
{
	int rc = buf_append(out, n->user, strlen(n->user) + 1);

	if (rc == 0)
		rc = buf_append(out, n->working_dir, strlen(n->working_dir) + 1);
	return rc == 0 ? buf_append(out, buf_head(&n->env), n->env.len) : rc;
}
