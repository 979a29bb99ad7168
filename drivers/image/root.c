/* root: from the name of an image to the directory that holds its root. Janitor; it only looks. */
#include "drivers/image/root.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

#define CONFIG_TAIL_MAX (NOTE_ENV_MAX + NOTE_USER_MAX + NOTE_DIR_MAX)

bool image_root_takes(const char *image)
{
	struct image_ref ref;

	return image_ref_parse(image, &ref, &(struct err){0}) == 0 && ref.kind != IMAGE_KIND_HOST;
}

static int take_dir(const char *path, struct image_root *out, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(err, errno, "image %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_sys(err, ENOTDIR, "image %s", path);
	if (access(path, R_OK | X_OK) < 0)
		return err_sys(err, errno, "read the image %s", path);
	(void)snprintf(out->path, sizeof(out->path), "%s", path);
	return 0;
}

static int take_stored(
    const char *state_dir, const struct image_ref *ref, struct image_root *out, struct err *err)
{
	struct image_found found;
	int rc = image_store_find(state_dir, ref, &found, err);

	if (rc < 0)
		return rc;
	out->hold = found.hold;
	(void)snprintf(out->path, sizeof(out->path), "%s", found.root);
	rc = image_note_put_tail(&found.note, &out->config);
	image_note_free(&found.note);
	return rc < 0 ? err_sys(err, -rc, "read the configuration of the image") : 0;
}

int image_root_get(
    const char *state_dir, const char *image, struct image_root *out, struct err *err)
{
	struct image_ref ref;
	int rc;

	*out = (struct image_root){.hold = -1};
	buf_init(&out->config, CONFIG_TAIL_MAX);
	rc = image_ref_parse(image, &ref, err);
	if (rc < 0 || ref.kind == IMAGE_KIND_HOST)
		return rc;
	if (ref.kind == IMAGE_KIND_DIR)
		return take_dir(ref.name, out, err);
	return take_stored(state_dir, &ref, out, err);
}

int image_root_peek(const char *state_dir, const char *image, char out[STORE_PATH], struct err *err)
{
	struct image_found found;
	struct image_ref ref;
	int rc = image_ref_parse(image, &ref, err);

	if (rc < 0)
		return rc;
	if (ref.kind == IMAGE_KIND_HOST)
		return err_set(err, EINVAL, "image %s has no root of its own", image);
	if (ref.kind == IMAGE_KIND_DIR) {
		(void)snprintf(out, STORE_PATH, "%s", ref.name);
		return 0;
	}
	rc = image_store_peek(state_dir, &ref, &found, err);
	if (rc < 0)
		return rc;
	(void)snprintf(out, STORE_PATH, "%s", found.root);
	image_note_free(&found.note);
	fd_close(&found.hold);
	return 0;
}

void image_root_free(struct image_root *r)
{
	fd_close(&r->hold);
	buf_free(&r->config);
}
