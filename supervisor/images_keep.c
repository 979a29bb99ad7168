/*
 * images_keep: prepared images as others use them: what they say of commands, and when they are
 * held no more. Runs in sbxd; when it dies, its successor has them prepared anew.
 */
#include <string.h>

#include "lib/image_ref.h"
#include "supervisor/images_int.h"
#include "supervisor/sbxd.h"

/* The string at *at, which ends with the tail at the latest; "" past it. */
static const char *next_text(const char *tail, size_t len, size_t *at)
{
	const char *text = *at < len ? tail + *at : "";

	if (*at < len)
		*at += strlen(text) + 1;
	return text;
}

bool image_config_of(const struct sbxd *s, const char *image, struct image_config *out)
{
	const struct image *i = image_find(s, image);
	const char *tail;
	size_t at = 0;

	if (!i || i->state != IMAGE_READY)
		return false;
	tail = (const char *)buf_head(&i->config);
	out->user = next_text(tail, i->config.len, &at);
	out->working_dir = next_text(tail, i->config.len, &at);
	out->env = tail + at;
	out->env_len = i->config.len - at;
	out->hold = i->hold;
	return true;
}

static bool means_same(const char *a, const char *b)
{
	char normal[2][IMAGE_NORMAL_LEN];
	struct image_ref ref;
	struct err err = {0};

	if (image_ref_parse(a, &ref, &err) < 0)
		return false;
	image_ref_print(&ref, normal[0]);
	if (image_ref_parse(b, &ref, &err) < 0)
		return false;
	image_ref_print(&ref, normal[1]);
	return !strcmp(normal[0], normal[1]);
}

void images_renew(struct sbxd *s, const char *image)
{
	struct image *i;
	struct image *next;

	TAILQ_FOREACH_SAFE (i, &s->images, link, next) {
		if (image_is_idle(i) && means_same(i->name, image))
			image_drop(i);
	}
}

static bool has_box(const struct sbxd *s, const char *image)
{
	for (uint32_t slot = 0; slot < pool_rules(s->pool)->slots; slot++) {
		const struct pool_box *b = pool_box_at(s->pool, slot);

		if (b && b->state != SLOT_FREE && !strcmp(b->spec.image, image))
			return true;
	}
	return false;
}

void images_let_go(struct sbxd *s)
{
	struct image *i;
	struct image *next;

	TAILQ_FOREACH_SAFE (i, &s->images, link, next) {
		if (image_is_idle(i) && i->hold >= 0 && strcmp(i->name, s->config.image) != 0 &&
		    !has_box(s, i->name))
			image_drop(i);
	}
}
