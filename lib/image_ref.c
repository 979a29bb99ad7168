/* image_ref: what an image is called. Holds no state. The grammar of names is that of
 * the OCI distribution specification and of Docker's short names. */
#include "lib/image_ref.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OCI_PREFIX "oci:"
#define DIGEST_PREFIX "sha256:"
#define DIGEST_DIGITS 64
#define DEFAULT_REGISTRY "docker.io"
#define DEFAULT_SPACE "library/" /* where docker.io has names of one part */
#define DEFAULT_TAG "latest"
#define TAG_MAX 128

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool image_digest_is_sound(const char *text)
{
	size_t len = strlen(DIGEST_PREFIX);

	return !strncmp(text, DIGEST_PREFIX, len) &&
	       strspn(text + len, DIGITS "abcdef") == DIGEST_DIGITS &&
	       text[len + DIGEST_DIGITS] == '\0';
}

static bool tag_is_sound(const char *tag)
{
	size_t len = strlen(tag);

	return len > 0 && len <= TAG_MAX && strspn(tag, LOWER UPPER DIGITS "_.-") == len &&
	       *tag != '.' && *tag != '-';
}

/* Words of lowercase letters and digits; between them one dot, one or two underscores, or dashes.
 */
static bool part_is_sound(const char *part, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t word = strspn(part + at, LOWER DIGITS);
		size_t gap;

		if (word == 0)
			return false;
		at += word;
		if (at >= len)
			return at == len;
		gap = strspn(part + at, "-");
		if (gap == 0 && part[at] == '.')
			gap = 1;
		if (gap == 0)
			gap = strspn(part + at, "_");
		if (gap == 0 || (part[at] == '_' && gap > 2))
			return false;
		at += gap;
	}
	return false;
}

static bool path_is_sound(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		if (!part_is_sound(path, len))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

/* HOST, HOST:PORT or [ADDRESS]:PORT. */
static bool registry_is_sound(const char *name, size_t len)
{
	size_t at = 0;
	size_t port;

	if (*name == '[') {
		at = 1 + strspn(name + 1, DIGITS "abcdefABCDEF:.");
		if (at == 1 || name[at] != ']')
			return false;
		at++;
	} else {
		at = strspn(name, LOWER UPPER DIGITS ".-");
		if (at == 0 || strchr(".-", name[0]) || strchr(".-", name[at - 1]))
			return false;
	}
	if (at >= len)
		return at == len;
	if (name[at++] != ':')
		return false;
	port = strspn(name + at, DIGITS);
	return port > 0 && port <= 5 && at + port == len;
}

/* What stands before the first slash is a registry when no name of docker.io can be like that. */
static bool begins_with_registry(const char *text, size_t first)
{
	return text[first] == '/' &&
	       (memchr(text, '.', first) || memchr(text, ':', first) || *text == '[' ||
		   (first == 9 && !memcmp(text, "localhost", 9)));
}

static bool registry_is_loopback(const char *name, size_t len)
{
	static const char *const begins[] = {"localhost", "[::1]"};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(begins[i]);

		if (len >= n && !memcmp(name, begins[i], n) && (len == n || name[n] == ':'))
			return true;
	}
	/* An address and no name that only begins like one. */
	return len > 4 && !memcmp(name, "127.", 4) && strspn(name, DIGITS ".:") >= len;
}

static int refuse(const char *text, const char *why, struct err *err)
{
	return err_set(err, EINVAL, "image %s: %s", text, why);
}

/* Cuts off what follows `mark`, which is the last of its kind behind the last slash. */
static const char *cut(char *text, char mark)
{
	char *slash = strrchr(text, '/');
	char *at = strrchr(slash ? slash : text, mark);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int parse_oci(const char *text, struct image_ref *ref, struct err *err)
{
	char path[IMAGE_PART_LEN];
	const char *tag;

	(void)snprintf(path, sizeof(path), "%s", text + strlen(OCI_PREFIX));
	if (*path != '/')
		return refuse(text, "an absolute path is expected after \"" OCI_PREFIX "\"", err);
	tag = cut(path, ':');
	if (tag && !tag_is_sound(tag))
		return refuse(text,
		    "a tag has 1 to 128 of A-Z a-z 0-9 _ . - and begins with none "
		    "of the last two",
		    err);
	(void)snprintf(ref->name, sizeof(ref->name), "%s", path);
	(void)snprintf(ref->tag, sizeof(ref->tag), "%s", tag ? tag : "");
	ref->kind = IMAGE_KIND_OCI;
	return 0;
}

static int parse_registry(const char *text, struct image_ref *ref, struct err *err)
{
	char rest[IMAGE_PART_LEN];
	const char *digest;
	const char *tag;
	const char *path = rest;
	size_t first;

	(void)snprintf(rest, sizeof(rest), "%s", text);
	digest = strchr(rest, '@') ? strchr(rest, '@') + 1 : NULL;
	if (digest)
		*strchr(rest, '@') = '\0';
	if (digest && !image_digest_is_sound(digest))
		return refuse(text, "after the \"@\" sha256: and 64 hex digits are expected", err);
	first = strcspn(rest, "/");
	if (begins_with_registry(rest, first)) {
		if (!registry_is_sound(rest, first))
			return refuse(
			    text, "what stands before the first \"/\" is no registry", err);
		path = rest + first + 1;
		ref->loopback = registry_is_loopback(rest, first);
	} else {
		first = 0;
	}
	tag = cut(rest + (path - rest), ':');
	if (tag && !tag_is_sound(tag))
		return refuse(text,
		    "a tag has 1 to 128 of A-Z a-z 0-9 _ . - and begins with none "
		    "of the last two",
		    err);
	if (!path_is_sound(path))
		return refuse(text,
		    "that is no name of an image: lowercase letters and digits are "
		    "expected, with . _ - or / between them",
		    err);
	if (snprintf(ref->name, sizeof(ref->name), "%.*s/%s%s",
		first ? (int)first : (int)strlen(DEFAULT_REGISTRY), first ? rest : DEFAULT_REGISTRY,
		!first && !strchr(path, '/') ? DEFAULT_SPACE : "", path) >= (int)sizeof(ref->name))
		return refuse(text, "the name is too long", err);
	(void)snprintf(ref->tag, sizeof(ref->tag), "%s", tag ? tag : digest ? "" : DEFAULT_TAG);
	(void)snprintf(ref->digest, sizeof(ref->digest), "%s", digest ? digest : "");
	ref->kind = IMAGE_KIND_REGISTRY;
	return 0;
}

int image_ref_parse(const char *text, struct image_ref *out, struct err *err)
{
	struct image_ref ref = {0};
	int rc = 0;

	if (!*text || strlen(text) > IMAGE_REF_MAX)
		return err_set(
		    err, EINVAL, "the name of an image has 1 to %d bytes", IMAGE_REF_MAX);
	if (!strcmp(text, "host")) {
		ref.kind = IMAGE_KIND_HOST;
	} else if (*text == '/') {
		ref.kind = IMAGE_KIND_DIR;
		(void)snprintf(ref.name, sizeof(ref.name), "%s", text);
	} else if (!strncmp(text, OCI_PREFIX, strlen(OCI_PREFIX)) && strchr(text, '/')) {
		rc = parse_oci(text, &ref, err);
	} else if (image_digest_is_sound(text)) {
		ref.kind = IMAGE_KIND_ID;
		memcpy(ref.digest, text, sizeof(ref.digest)); /* it is of that length */
	} else {
		rc = parse_registry(text, &ref, err);
	}
	if (rc == 0)
		*out = ref;
	return rc;
}

void image_ref_print(const struct image_ref *ref, char out[IMAGE_NORMAL_LEN])
{
	static const char *const begin[] = {
	    [IMAGE_KIND_HOST] = "host",
	    [IMAGE_KIND_DIR] = "",
	    [IMAGE_KIND_OCI] = OCI_PREFIX,
	    [IMAGE_KIND_ID] = "",
	    [IMAGE_KIND_REGISTRY] = "",
	};
	bool both = ref->name[0] && ref->digest[0];

	(void)snprintf(out, IMAGE_NORMAL_LEN, "%s%s%s%s%s%s", begin[ref->kind], ref->name,
	    ref->tag[0] && !both ? ":" : "", both ? "" : ref->tag, both ? "@" : "", ref->digest);
}

void image_ref_registry(const struct image_ref *ref, char out[IMAGE_PART_LEN])
{
	(void)snprintf(out, IMAGE_PART_LEN, "%.*s", (int)strcspn(ref->name, "/"), ref->name);
}
