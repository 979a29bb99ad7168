/*
 * layer: our own layer of an image, which lies in every box that is made of it. Janitor. To make
 * one is hundreds of files; so a supervisor that finds boxes of an earlier one goes on with its
 * layers too. If the janitor dies half-way, the next layer_get() removes what it made.
 */
#include "drivers/namespace/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/image_host.h"
#include "drivers/namespace/layer_note.h"
#include "drivers/namespace/site.h"
#include "drivers/namespace/userns.h"
#include "lib/fault.h"
#include "lib/fd.h"

/* Where the instance has its layers. */
struct layer_dirs {
	char run[NS_PATH];
	char state[NS_PATH];
};

static int layer_dirs_of(const struct driver_site *site, struct layer_dirs *dirs)
{
	int rc = site_dir_path(site, dirs->run);

	return rc == 0 ? site_state_path(site, dirs->state) : rc;
}

/* The name under which our layer is kept: that of `host` has what the host has. */
static const char *layer_kind(const char *image)
{
	return strcmp(image, IMAGE_HOST) ? IMAGE_ROOTED : IMAGE_HOST;
}

int layer_make(const char *dir, const char *image, struct ns_prepared *prep, struct err *err)
{
	char path[NS_PATH];
	FD_SCOPED int fd = -1;

	if (snprintf(path, sizeof(path), "%s/" LAYER_PREFIX LAYER_RANDOM, dir) >= (int)sizeof(path))
		return err_sys(err, ENAMETOOLONG, "directory %s", dir);
	if (!mkdtemp(path))
		return err_sys(err, errno, "make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	(void)snprintf(prep->image, sizeof(prep->image), "%s", image);
	(void)snprintf(prep->lower[0], NS_PATH, "%s", path);
	if (strcmp(image, IMAGE_HOST) != 0)
		return image_build_base(fd, err);
	(void)snprintf(prep->lower[1], NS_PATH, "/usr");
	prep->flags |= NS_F_USR;
	return image_build_host(fd, prep, err);
}

/* Where the layer's files can be every box's own, if there is such a place; else in `run`. */
static const char *layer_choose_dir(const struct driver_site *site, const struct layer_dirs *dirs)
{
	if (!site->uid_base || userns_can_map_layer(dirs->run, site->uid_base))
		return dirs->run;
	if (mkdir(dirs->state, 0700) < 0 && errno != EEXIST)
		return dirs->run;
	return userns_can_map_layer(dirs->state, site->uid_base) ? dirs->state : dirs->run;
}

static int layer_find(const struct driver_site *site, const struct layer_dirs *dirs,
    const char *image, struct ns_prepared *prep)
{
	int rc = layer_note_find(site, dirs->run, image, prep);

	return rc == -ENOENT ? layer_note_find(site, dirs->state, image, prep) : rc;
}

/* Boxes use a layer only after it was noted. */
static int layer_make_noted(const struct driver_site *site, const struct layer_dirs *dirs,
    const char *image, struct ns_prepared *prep, struct err *err)
{
	uint64_t stamp = image_stamp(image);
	int rc = layer_make(layer_choose_dir(site, dirs), image, prep, err);

	FAULT_POINT("driver.namespace.prepare.layer");
	return rc == 0 ? layer_note_write(site, prep, stamp, err) : rc;
}

/* What of the layers is the image's. */
static int layer_set_image(
    const struct driver_site *site, const char *image, struct ns_prepared *prep, struct err *err)
{
	if (strlen(image) >= sizeof(prep->image) || (site->root && strlen(site->root) >= NS_PATH))
		return err_sys(err, ENAMETOOLONG, "image %s", image);
	(void)snprintf(prep->image, sizeof(prep->image), "%s", image);
	if (!strcmp(image, IMAGE_HOST))
		return 0;
	if (!site->root)
		return err_set(err, EINVAL, "image %s has no root", image);
	(void)snprintf(prep->lower[1], NS_PATH, "%s", site->root);
	return 0;
}

int layer_get(
    const struct driver_site *site, const char *image, struct ns_prepared *prep, struct err *err)
{
	struct layer_dirs dirs;
	int rc = layer_dirs_of(site, &dirs);

	if (rc == 0)
		rc = layer_note_sweep(dirs.run);
	if (rc == 0)
		rc = layer_note_sweep(dirs.state);
	FAULT_POINT("driver.namespace.prepare.swept");
	if (rc < 0)
		return err_sys(err, -rc, "look through the layers of instance %s", site->instance);
	rc = layer_find(site, &dirs, layer_kind(image), prep);
	if (rc == -ENOENT)
		rc = layer_make_noted(site, &dirs, layer_kind(image), prep, err);
	else if (rc < 0)
		(void)err_sys(err, -rc, "find the layer of image %s", image);
	return rc == 0 ? layer_set_image(site, image, prep, err) : rc;
}

int layer_find_any(const struct driver_site *site, struct ns_prepared *prep)
{
	struct layer_dirs dirs;
	int rc = layer_dirs_of(site, &dirs);

	return rc == 0 ? layer_find(site, &dirs, NULL, prep) : rc;
}
