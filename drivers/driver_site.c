/*
 * driver_site: what drivers share: the names of an instance's boxes, and settings on their way from
 * sbxd to whoever needs them. Janitor and worker; holds no state.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/driver.h"

/* Other instances' names may begin like ours: `a` and `a-b`. So the rest counts to its end. */
bool driver_owns_name(const struct driver_site *site, const char *name)
{
	size_t len = strlen(site->instance);
	size_t digits;

	if (strlen(name) >= DRIVER_NAME_LEN || strncmp(name, "sbxd-", 5) != 0 ||
	    strncmp(name + 5, site->instance, len) != 0 || name[5 + len] != '-')
		return false;
	name += 5 + len + 1;
	digits = strspn(name, "0123456789");
	if (digits == 0 || name[digits] != '-')
		return false;
	name += digits + 1;
	return *name && name[strspn(name, "0123456789abcdef")] == '\0';
}

void driver_progress(
    const struct driver_spec *spec, const char *stage, uint64_t done, uint64_t total)
{
	if (spec->progress)
		spec->progress(spec->progress_ctx, stage, done, total);
}

const char *driver_option(const struct driver_options *o, const char *key)
{
	size_t len = strlen(key);

	for (size_t at = 0; at < o->len; at += strlen(o->data + at) + 1) {
		const char *entry = o->data + at;

		if (!strncmp(entry, key, len) && entry[len] == '=')
			return entry + len + 1;
	}
	return NULL;
}

static int options_write(int fd, const char *data, size_t len)
{
	ssize_t n = len ? write(fd, data, len) : 0;

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

int driver_options_save(const struct driver_site *site, const char *section,
    const struct driver_options *more, struct err *err)
{
	const struct driver_options *o = &site->options;
	int rc = 0;

	if (ftruncate(site->prepared, 0) < 0 || lseek(site->prepared, 0, SEEK_SET) < 0)
		rc = -errno;
	for (size_t at = 0; rc == 0 && at < o->len; at += strlen(o->data + at) + 1) {
		if (!strncmp(o->data + at, section, strlen(section)))
			rc = options_write(site->prepared, o->data + at, strlen(o->data + at) + 1);
	}
	if (rc == 0 && more)
		rc = options_write(site->prepared, more->data, more->len);
	return rc < 0 ? err_sys(err, -rc, "write what was prepared") : 0;
}

int driver_options_load(int prepared, struct driver_options *out, struct err *err)
{
	struct stat st;
	char *data;

	if (fstat(prepared, &st) < 0)
		return err_sys(err, errno, "look at what was prepared");
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return err_sys(err, ENOMEM, "read what was prepared");
	if (pread(prepared, data, (size_t)st.st_size, 0) != st.st_size ||
	    (st.st_size && data[st.st_size - 1] != '\0')) {
		free(data);
		return err_set(err, EINVAL, "what was prepared is not whole");
	}
	*out = (struct driver_options){.data = data, .len = (size_t)st.st_size};
	return 0;
}

void driver_options_free(struct driver_options *o)
{
	if (o->data)
		explicit_bzero((void *)(uintptr_t)o->data, o->len); /* it was ours from malloc() */
	free((void *)(uintptr_t)o->data);
	*o = (struct driver_options){0};
}
