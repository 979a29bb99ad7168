/*
 * images: an image is its name in the home directory. The registry has every image whose name does
 * not begin with "missing"; with registry=none there is no registry. A server sees to its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/fake.h"

struct images {
	struct runtime *rt;
};

static void image_path(const struct runtime *rt, const char *reference, char out[2 * PATH_MAX])
{
	size_t len = (size_t)snprintf(out, 2 * PATH_MAX, "%s/images", rt->home);

	(void)mkdir(out, 0755);
	(void)snprintf(out + len, PATH_MAX, "/%s", reference);
	for (char *p = out + len + 1; *p; p++) {
		if (*p == '/')
			*p = '+';
	}
}

enum blx_code image_need(struct runtime *rt, const char *reference, struct blx_error *err)
{
	char path[2 * PATH_MAX];
	char way[16];
	struct stat st;
	int fd;

	if (reference[0] == '/') {
		if (stat(reference, &st) == 0 && S_ISDIR(st.st_mode))
			return BLX_OK;
		return error_set(err, BLX_IMAGE, "image error: %s is no directory", reference);
	}
	if (!*reference || strpbrk(reference, " \n"))
		return error_set(err, BLX_IMAGE, "image error: not a reference: \"%s\"", reference);
	image_path(rt, reference, path);
	if (access(path, F_OK) == 0)
		return BLX_OK;
	if (!strcmp(knob_text("registry", "all", way, sizeof(way)), "none"))
		return error_set(err, BLX_NETWORK, "network error: %s: no registry", reference);
	if (!strncmp(reference, "missing", 7))
		return error_set(err, BLX_IMAGE, "image error: %s: not in any registry", reference);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return error_sys(err, BLX_STORAGE, errno, path);
	fd_close(&fd);
	return BLX_OK;
}

enum blx_code boxlite_runtime_images(struct runtime *rt, struct images **out, struct blx_error *err)
{
	enum blx_code code = call_check(rt, "runtime", NULL, false, err);

	if (code == BLX_OK)
		code = call_check(out, "out_handle", NULL, false, err);
	if (code == BLX_OK && rt->remote)
		code = error_set(err, BLX_UNSUPPORTED, "unsupported: images of a server");
	if (code == BLX_OK)
		code = call_begin(KNOB_IMAGES, err);
	if (code != BLX_OK)
		return code;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		abort();
	(*out)->rt = runtime_ref(rt);
	return BLX_OK;
}

void boxlite_image_free(struct images *images)
{
	if (!images)
		return;
	runtime_unref(images->rt);
	free(images);
}

void boxlite_free_image_pull_result(struct blx_pulled *pulled)
{
	if (!pulled)
		return;
	free(pulled->reference);
	free(pulled->config_digest);
	free(pulled);
}

static void free_pulled(struct event *e)
{
	boxlite_free_image_pull_result(e->object);
}

static void call_pulled(struct event *e)
{
	struct blx_pulled *pulled = e->object;

	e->object = NULL;
	((blx_pulled_fn *)e->cb)(pulled, &e->err, e->user);
}

static enum blx_code work_pull(struct job *j)
{
	struct blx_pulled *pulled;
	enum blx_code code = j->lie ? BLX_OK : image_need(j->rt, j->a, &j->event->err);

	if (code != BLX_OK || j->lie)
		return code;
	pulled = calloc(1, sizeof(*pulled));
	if (!pulled)
		abort();
	pulled->reference = strdup(j->a);
	pulled->config_digest = strdup("sha256:0");
	pulled->layer_count = 1;
	j->event->object = pulled;
	return BLX_OK;
}

enum blx_code boxlite_image_pull(struct images *images, const char *reference, blx_pulled_fn *cb,
    void *user, struct blx_error *err)
{
	enum blx_code code = call_check(images, "handle", (const void *)cb, true, err);
	struct job *j;

	if (code == BLX_OK)
		code = call_check(reference, "image_ref", NULL, false, err);
	if (code != BLX_OK)
		return code;
	j = job_new(images->rt, KNOB_PULL, call_pulled, (void *)cb, user, work_pull);
	j->event->free_fn = free_pulled;
	j->a = strdup(reference);
	return job_post(j, err);
}
