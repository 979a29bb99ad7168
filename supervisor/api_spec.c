/* api_spec: what a box is to be like. Runs in sbxd; holds no state. */
#include "supervisor/api_spec.h"

#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "lib/digest.h"
#include "lib/image_ref.h"
#include "supervisor/client.h"
#include "supervisor/sbxd.h"

/* A directory as image shows what is in it, and the configuration may have chosen one so that it is
 * all that is shown. So does a layout: whoever names one has it read as root. */
static bool shows_host(const struct image_ref *ref)
{
	return ref->kind == IMAGE_KIND_HOST || ref->kind == IMAGE_KIND_DIR ||
	       ref->kind == IMAGE_KIND_OCI;
}

int api_spec_digest(struct pool_spec *spec)
{
	const struct digest_part parts[] = {
	    {spec->image, sizeof(spec->image)},
	    {&spec->memory_mib, sizeof(spec->memory_mib)},
	    {&spec->cpus_milli, sizeof(spec->cpus_milli)},
	    {&spec->disk_mib, sizeof(spec->disk_mib)},
	    {&spec->pids_max, sizeof(spec->pids_max)},
	};

	return digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), spec->digest);
}

int api_spec_choose(const struct sbxd *s, const struct client *c, const char *image,
    struct pool_spec *out, enum api_error *e, struct err *err)
{
	struct pool_spec spec = s->spec;
	struct image_ref ref;

	*e = API_INVALID_ARGUMENT;
	if (image && (!*image || strlen(image) >= sizeof(spec.image)))
		return err_set(
		    err, EINVAL, "\"image\": 1 to %zu bytes are expected", sizeof(spec.image) - 1);
	if (image && strcmp(image, spec.image) != 0) {
		if (image_ref_parse(image, &ref, err) < 0)
			return -EINVAL;
		*e = API_PERMISSION_DENIED;
		if (shows_host(&ref) && !client_is_admin(c))
			return err_set(err, EPERM,
			    "\"image\": only root, sbxd's own user and admin_group may choose a "
			    "directory of the host other than %s",
			    spec.image);
		*e = API_INTERNAL;
		memset(spec.image, 0, sizeof(spec.image)); /* the digest covers all of it */
		(void)strlcpy(spec.image, image, sizeof(spec.image));
		if (api_spec_digest(&spec) < 0)
			return err_set(err, EIO, "SHA-256 is not to be had");
	}
	*out = spec;
	return 0;
}
