/*
 * Fuzz target of the names of images, and of the JSON that images bring. What is taken must mean
 * the same when it is written out and read again, and fits where it goes.
 *
 * Input: the text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/image/manifest.h"
#include "lib/image_ref.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))

static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text <= ' ' || (unsigned char)*text > '~')
			return false;
	}
	return true;
}

static void check_name(const char *text)
{
	struct image_ref ref;
	struct image_ref again;
	char normal[IMAGE_NORMAL_LEN];
	char twice[IMAGE_NORMAL_LEN];
	struct err err = {0};

	if (image_ref_parse(text, &ref, &err) < 0) {
		REQUIRE(err.code && *err.text);
		return;
	}
	image_ref_print(&ref, normal);
	REQUIRE(*normal && strlen(normal) < IMAGE_NORMAL_LEN - 1);
	REQUIRE(!ref.digest[0] || image_digest_is_sound(ref.digest));
	/* What is given to programs is no option of theirs, and nothing that a line could end in.
	 */
	if (ref.kind == IMAGE_KIND_REGISTRY)
		REQUIRE(is_plain(normal) && *ref.name != '-' && strchr(ref.name, '/'));
	if (strlen(normal) > IMAGE_REF_MAX)
		return;
	REQUIRE(image_ref_parse(normal, &again, &err) == 0 && again.kind == ref.kind);
	image_ref_print(&again, twice);
	REQUIRE(!strcmp(normal, twice) && again.loopback == ref.loopback);
}

static void check_json(const uint8_t *data, size_t n)
{
	struct image_manifest m = {0};
	struct image_note note;
	char id[IMAGE_DIGEST_LEN];
	struct err err = {0};

	if (manifest_parse(data, n, &m, &err) == 0)
		REQUIRE((!m.chosen[0] || image_digest_is_sound(m.chosen)) &&
			(!m.config[0] || image_digest_is_sound(m.config)));
	if (manifest_parse_layout(data, n, id, &err) == 0)
		REQUIRE(image_digest_is_sound(id));
	image_note_init(&note);
	if (manifest_parse_config(data, n, &note, &err) == 0)
		REQUIRE(note.env.len <= NOTE_ENV_MAX &&
			(!note.working_dir[0] || note.working_dir[0] == '/'));
	image_note_free(&note);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);

	REQUIRE(text != NULL);
	memcpy(text, data, n);
	text[n] = '\0';
	check_name(text);
	check_json(data, n);
	free(text);
	return 0;
}
