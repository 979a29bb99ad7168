/* manifest: the JSON of OCI and Docker images. `sbx-worker image`; holds no state. Members are
 * those of the OCI image specification, which has them from Docker's. */
#include "drivers/image/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "lib/digest.h"
#include "wire/json.h"

#define MANIFESTS_MAX 1000
#define LAYERS_MAX 1000

/* As Go calls them, and so images. */
static const char *host_architecture(char *buf, size_t size)
{
	static const struct {
		const char *machine;
		const char *name;
	} names[] = {
	    {"x86_64", "amd64"},
	    {"aarch64", "arm64"},
	    {"armv7l", "arm"},
	    {"i686", "386"},
	};
	struct utsname u = {0};

	(void)uname(&u);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(u.machine, names[i].machine))
			return names[i].name;
	}
	(void)snprintf(buf, size, "%s", u.machine);
	return buf;
}

static const char *member(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static int take_digest(const json_t *o, char out[IMAGE_DIGEST_LEN], struct err *err)
{
	const char *digest = member(o, "digest");

	if (!image_digest_is_sound(digest))
		return err_set(err, EINVAL, "the manifest names a digest that is no SHA-256");
	(void)snprintf(out, IMAGE_DIGEST_LEN, "%s", digest);
	return 0;
}

static int choose(const json_t *manifests, struct image_manifest *out, struct err *err)
{
	char buf[80];
	const char *arch = host_architecture(buf, sizeof(buf));
	json_t *one;
	size_t i;

	if (json_array_size(manifests) > MANIFESTS_MAX)
		return err_set(err, EINVAL, "the index has more than %d manifests", MANIFESTS_MAX);
	json_array_foreach(manifests, i, one)
	{
		const json_t *platform = json_object_get(one, "platform");

		if (!strcmp(member(platform, "os"), "linux") &&
		    !strcmp(member(platform, "architecture"), arch))
			return take_digest(one, out->chosen, err);
	}
	return err_set(err, EINVAL, "the image is not there for linux/%s", arch);
}

static int add_layers(const json_t *layers, struct image_manifest *out, struct err *err)
{
	json_t *layer;
	size_t i;

	if (json_array_size(layers) > LAYERS_MAX)
		return err_set(err, EINVAL, "the image has more than %d layers", LAYERS_MAX);
	json_array_foreach(layers, i, layer)
	{
		json_int_t size = json_integer_value(json_object_get(layer, "size"));

		if (size < 0 || (uint64_t)size > INT64_MAX - out->bytes)
			return err_set(err, EINVAL, "the manifest has a layer of no sound size");
		out->bytes += (uint64_t)size;
	}
	return 0;
}

static int take_manifest(const json_t *o, struct image_manifest *out, struct err *err)
{
	const json_t *manifests = json_object_get(o, "manifests");
	const json_t *config = json_object_get(o, "config");
	int rc;

	if (json_is_array(manifests))
		return choose(manifests, out, err);
	rc = add_layers(json_object_get(o, "layers"), out, err);
	return rc == 0 && config ? take_digest(config, out->config, err) : rc;
}

static json_t *parse(const char *what, const uint8_t *text, size_t n, struct err *err)
{
	struct err why = {0};
	json_t *o = json_parse_object(text, n, &why);

	if (!o)
		(void)err_set(err, EINVAL, "the image's %s: %s", what, why.text);
	return o;
}

int manifest_parse(const uint8_t *text, size_t n, struct image_manifest *out, struct err *err)
{
	struct image_manifest m = {0};
	json_t *o = parse("manifest", text, n, err);
	int rc = o ? take_manifest(o, &m, err) : -EINVAL;

	json_decref(o);
	if (rc == 0)
		*out = m;
	return rc;
}

int manifest_parse_layout(const uint8_t *text, size_t n, char id[IMAGE_DIGEST_LEN], struct err *err)
{
	json_t *o = parse("layout", text, n, err);
	const json_t *manifests = json_object_get(o, "manifests");
	int rc;

	if (!o)
		return -EINVAL;
	if (json_array_size(manifests) != 1)
		rc = err_set(err, EINVAL, "the copied layout has not one image");
	else
		rc = take_digest(json_array_get(manifests, 0), id, err);
	json_decref(o);
	return rc;
}

static int take_text(const json_t *config, const char *key, char *out, size_t size, struct err *err)
{
	const char *text = member(config, key);

	if (strlen(text) >= size)
		return err_set(
		    err, EINVAL, "the image's %s has more than %zu bytes", key, size - 1);
	(void)snprintf(out, size, "%s", text);
	return 0;
}

static int take_config(const json_t *config, struct image_note *note, struct err *err)
{
	json_t *entry;
	size_t i;
	int rc = take_text(config, "User", note->user, sizeof(note->user), err);

	if (rc == 0)
		rc = take_text(
		    config, "WorkingDir", note->working_dir, sizeof(note->working_dir), err);
	/* As for a command: a path that means nothing is none. */
	if (rc == 0 && note->working_dir[0] != '/')
		note->working_dir[0] = '\0';
	json_array_foreach(json_object_get(config, "Env"), i, entry)
	{
		if (rc == 0 && json_is_string(entry))
			rc = image_note_set_env(note, json_string_value(entry));
		if (rc == -ENOBUFS)
			rc = err_set(
			    err, EINVAL, "the image's Env has more than %u bytes", NOTE_ENV_MAX);
	}
	return rc == -ENOMEM ? err_sys(err, ENOMEM, "read the image's Env") : rc;
}

int manifest_parse_config(const uint8_t *text, size_t n, struct image_note *note, struct err *err)
{
	json_t *o = parse("configuration", text, n, err);
	int rc = o ? take_config(json_object_get(o, "config"), note, err) : -EINVAL;

	json_decref(o);
	return rc;
}

int manifest_digest(const void *bytes, size_t n, char out[IMAGE_DIGEST_LEN])
{
	const struct digest_part part = {bytes, n};
	uint8_t digest[DIGEST_LEN];

	if (digest_sha256(&part, 1, digest) < 0)
		return -EIO;
	memcpy(out, "sha256:", 7);
	digest_hex(digest, sizeof(digest), out + 7);
	return 0;
}
