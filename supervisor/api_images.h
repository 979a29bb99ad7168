/* api_images: what the handlers of /v1/images have in common. */
#ifndef SBXD_SUPERVISOR_API_IMAGES_H
#define SBXD_SUPERVISOR_API_IMAGES_H

#include <jansson.h>
#include <stdbool.h>

#include "wire/json.h"

struct client;
struct sbxd;

#define IMAGE_JSON_MAX (4U * 1024U * 1024U)

/* Writes the members of an ImageInfo, of a row of what an image process answers. */
void api_put_image(struct json_out *j, const json_t *row);

/* True when the row is the image of that name or digest. */
bool api_image_is(const json_t *row, const char *name);

/* The rows of an answer. */
const json_t *api_image_rows(const json_t *result);

/* Answers with what an order has removed. */
void api_reply_removed(struct client *c, const json_t *result);

/*
 * The configured image as a row of its own, when it is not of the store; NULL when it is. The
 * caller's to json_decref().
 */
json_t *api_configured_image(const struct sbxd *s);

#endif
