/* template_about: the file that says what a template is. Worker and `sbx-worker image`; whoever is
 * shown it is root, but its bytes are checked as others are: it may be damaged. */
#include "drivers/qemu/template_about.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wire/json.h"

#define ABOUT_MAX 16384U

static const char *const part_keys[TEMPLATE_PARTS] = {
    [PART_FORMAT] = "format",
    [PART_QEMU] = "qemu",
    [PART_KERNEL] = "kernel",
    [PART_MODULES] = "modules",
    [PART_CPU] = "cpu",
    [PART_HOST] = "host",
    [PART_IMAGE] = "image",
    [PART_AGENT] = "agent",
};

void template_about_fill(
    const struct qemu_plan *plan, const struct template_parts *parts, struct template_about *out)
{
	struct template_about a = {.parts = *parts};

	(void)snprintf(a.image, sizeof(a.image), "%.127s", plan->image); /* as sbxd has room for */
	(void)snprintf(
	    a.accelerator, sizeof(a.accelerator), "%s", plan->flags & QEMU_F_KVM ? "kvm" : "tcg");
	(void)snprintf(a.cpu, sizeof(a.cpu), "%s", plan->cpu);
	(void)snprintf(a.version, sizeof(a.version), "%s", plan->version);
	(void)snprintf(a.release, sizeof(a.release), "%s", plan->release);
	*out = a;
}

int template_about_write(int fd, const struct template_about *about)
{
	char hex[2 * DIGEST_LEN + 1];
	struct json_out j;
	struct buf out;
	int rc;

	buf_init(&out, ABOUT_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "image", about->image);
	json_put_uint(&j, "memory_mib", about->parts.memory_mib);
	json_put_uint(&j, "cpus", about->parts.cpus);
	json_put_string(&j, "accelerator", about->accelerator);
	json_put_string(&j, "cpu_model", about->cpu);
	json_put_string(&j, "qemu_version", about->version);
	json_put_string(&j, "kernel_release", about->release);
	json_object_begin(&j, "parts");
	for (size_t i = 0; i < TEMPLATE_PARTS; i++) {
		digest_hex(about->parts.of[i], DIGEST_LEN, hex);
		json_put_string(&j, part_keys[i], hex);
	}
	json_object_end(&j);
	json_object_end(&j);
	rc = json_out_error(&j);
	if (rc == 0 && write(fd, buf_head(&out), out.len) != (ssize_t)out.len)
		rc = -EIO;
	buf_free(&out);
	return rc;
}

static bool take_text(const json_t *o, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text && (size_t)snprintf(out, size, "%s", text) < size;
}

static bool take_number(const json_t *o, const char *key, uint32_t *out)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	*out = n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
	return *out > 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_digest(const json_t *o, const char *key, uint8_t out[DIGEST_LEN])
{
	const char *text = json_string_value(json_object_get(o, key));

	if (!text || strlen(text) != 2 * DIGEST_LEN)
		return false;
	for (size_t i = 0; i < DIGEST_LEN; i++) {
		int high = hex_digit(text[2 * i]);
		int low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool take_all(const json_t *o, struct template_about *a)
{
	const json_t *parts = json_object_get(o, "parts");
	bool sound = take_text(o, "image", a->image, sizeof(a->image)) &&
		     take_text(o, "accelerator", a->accelerator, sizeof(a->accelerator)) &&
		     take_text(o, "cpu_model", a->cpu, sizeof(a->cpu)) &&
		     take_text(o, "qemu_version", a->version, sizeof(a->version)) &&
		     take_text(o, "kernel_release", a->release, sizeof(a->release)) &&
		     take_number(o, "memory_mib", &a->parts.memory_mib) &&
		     take_number(o, "cpus", &a->parts.cpus);

	for (size_t i = 0; sound && i < TEMPLATE_PARTS; i++)
		sound = take_digest(parts, part_keys[i], a->parts.of[i]);
	return sound;
}

int template_about_read(int fd, struct template_about *out)
{
	uint8_t text[ABOUT_MAX];
	struct template_about a = {0};
	struct err ignored = {0};
	ssize_t n = pread(fd, text, sizeof(text), 0);
	json_t *o;
	bool sound;

	if (n < 0)
		return -errno;
	o = n > 0 ? json_parse_object(text, (size_t)n, &ignored) : NULL;
	sound = o && take_all(o, &a);
	json_decref(o);
	if (!sound)
		return -EBADMSG;
	*out = a;
	return 0;
}
