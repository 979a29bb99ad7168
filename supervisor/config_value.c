/* config_value: one value of the configuration from text and back. sbxd, at start and on SIGHUP;
 * holds no state. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "supervisor/config_table.h"
#include "wire/json.h"

#define SHOWN 40 /* bytes of a wrong value that a message repeats */

static void *member(const struct config_key *key, struct config *c)
{
	return (char *)c + key->offset;
}

static const void *member_const(const struct config_key *key, const struct config *c)
{
	return (const char *)c + key->offset;
}

static bool plain_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	}
	return utf8_valid_prefix((const uint8_t *)text, len, NULL) == len;
}

/*
 * Reads digits[.digits] as a whole number of 1/scale (a power of ten). 0, or -EINVAL: no such
 * number, more decimals than scale has, or past 64 bits.
 */
static int parse_decimal(const char *s, uint64_t scale, uint64_t *out)
{
	uint64_t value = 0;
	uint64_t unit = scale;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10U, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -EINVAL;
	}
	if (p == s || __builtin_mul_overflow(value, scale, &value))
		return -EINVAL;
	if (*p == '.') {
		p++;
		if (*p == '\0')
			return -EINVAL;
		for (; *p >= '0' && *p <= '9'; p++) {
			if (unit == 1 && *p != '0')
				return -EINVAL;
			unit = unit == 1 ? 1 : unit / 10;
			if (__builtin_add_overflow(value, unit * (uint64_t)(*p - '0'), &value))
				return -EINVAL;
		}
	}
	if (*p)
		return -EINVAL;
	*out = value;
	return 0;
}

static uint64_t decimal_scale(enum config_type type)
{
	return type == CONFIG_SECONDS ? NS_PER_S : type == CONFIG_MILLI ? 1000 : 1;
}

/* digits[.digits] without trailing zeros; out has at least 32 bytes. */
static void format_decimal(uint64_t value, uint64_t scale, char *out, size_t size)
{
	uint64_t rest = value % scale;
	int width = scale == NS_PER_S ? 9 : 3;
	size_t len;

	if (rest == 0) {
		(void)snprintf(out, size, "%llu", (unsigned long long)(value / scale));
		return;
	}
	(void)snprintf(out, size, "%llu.%0*llu", (unsigned long long)(value / scale), width,
	    (unsigned long long)rest);
	len = strlen(out);
	while (out[len - 1] == '0')
		out[--len] = '\0';
}

static int parse_number(const struct config_key *key, const char *text, struct config *c)
{
	uint64_t value = 0;

	if (parse_decimal(text, decimal_scale(key->type), &value) < 0)
		return -EINVAL;
	if ((key->type == CONFIG_UINT || key->type == CONFIG_SIZE) && strchr(text, '.'))
		return -EINVAL;
	if (value < key->min || value > key->max)
		return -EINVAL;
	if (config_value_size(key) == sizeof(uint64_t)) {
		*(uint64_t *)member(key, c) = value;
	} else {
		*(uint32_t *)member(key, c) = (uint32_t)value;
	}
	return 0;
}

static int parse_name(const struct config_key *key, const char *text, struct config *c)
{
	for (uint32_t i = 0; key->names[i]; i++) {
		if (strcmp(key->names[i], text) != 0)
			continue;
		if (key->type == CONFIG_ENUM) {
			*(uint32_t *)member(key, c) = i;
		} else {
			memset(member(key, c), 0, key->max);
			(void)snprintf(member(key, c), key->max, "%s", text);
		}
		return 0;
	}
	return -EINVAL;
}

static int parse_text(const struct config_key *key, const char *text, struct config *c)
{
	size_t len = strlen(text);

	if (len < key->min || len >= key->max || !plain_text(text, len))
		return -EINVAL;
	if (key->type == CONFIG_FILE && len > 0 && text[0] != '/')
		return -EINVAL;
	memset(member(key, c), 0, key->max); /* values are compared whole */
	memcpy(member(key, c), text, len);
	return 0;
}

/* "127.0.0.1:8080", "[::1]:8080", or "" for none. */
static int parse_listen(const struct config_key *key, const char *text, struct config *c)
{
	struct config_listen l = {.set = *text != '\0'};
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;
	size_t len;

	if (!l.set)
		goto done;
	if (!colon || colon[1] == '\0' || strchr(colon, '.'))
		return -EINVAL;
	if (parse_decimal(colon + 1, 1, &port) < 0 || port > 65535)
		return -EINVAL;
	l.port = (uint16_t)port;
	len = (size_t)(colon - text);
	l.v6 = text[0] == '[';
	if (l.v6 && text[len - 1] != ']')
		return -EINVAL;
	(void)snprintf(host, sizeof(host), "%.*s", (int)(l.v6 ? len - 2 : len), text + l.v6);
	if (inet_pton(l.v6 ? AF_INET6 : AF_INET, host, l.addr) != 1)
		return -EINVAL;
done:
	memcpy(member(key, c), &l, sizeof(l));
	return 0;
}

static int parse_nothing(const struct config_key *key, const char *text, struct config *c)
{
	(void)key;
	(void)text;
	(void)c;
	return -EINVAL; /* a map has no text form */
}

static int print_number(const struct config_key *key, const struct config *c, struct buf *out)
{
	char text[32];
	uint64_t value = config_value_size(key) == sizeof(uint64_t)
			     ? *(const uint64_t *)member_const(key, c)
			     : *(const uint32_t *)member_const(key, c);

	format_decimal(value, decimal_scale(key->type), text, sizeof(text));
	return buf_puts(out, text);
}

static int print_enum(const struct config_key *key, const struct config *c, struct buf *out)
{
	return buf_puts(out, key->names[*(const uint32_t *)member_const(key, c)]);
}

static int print_text(const struct config_key *key, const struct config *c, struct buf *out)
{
	return config_put_quoted(out, member_const(key, c));
}

bool config_listen_is_loopback(const struct config_listen *l)
{
	return l->v6 ? memcmp(l->addr, &in6addr_loopback, sizeof(in6addr_loopback)) == 0
		     : l->addr[0] == 127;
}

int config_listen_print(const struct config_listen *l, struct buf *out)
{
	char host[64];

	if (!inet_ntop(l->v6 ? AF_INET6 : AF_INET, l->addr, host, sizeof(host)))
		return -errno;
	return buf_printf(out, l->v6 ? "[%s]:%u" : "%s:%u", host, l->port);
}

static int put_text(const struct config_key *key, const struct config *c, struct buf *out)
{
	return buf_puts(out, member_const(key, c));
}

/* What is printed is read by people and ends in reports. */
static int print_secret(const struct config_key *key, const struct config *c, struct buf *out)
{
	const char *text = member_const(key, c);

	return buf_puts(out, *text ? "\"\" # is given, and not shown" : "\"\"");
}

static int print_listen(const struct config_key *key, const struct config *c, struct buf *out)
{
	const struct config_listen *l = member_const(key, c);
	int rc = buf_puts(out, "\"");

	if (rc == 0 && l->set)
		rc = config_listen_print(l, out);
	return rc == 0 ? buf_puts(out, "\"") : rc;
}

static int print_nothing(const struct config_key *key, const struct config *c, struct buf *out)
{
	(void)key;
	(void)c;
	(void)out;
	return -EINVAL;
}

static void allowed_number(const struct config_key *key, char *out, size_t size)
{
	static const char *const what[CONFIG_TYPES] = {
	    [CONFIG_UINT] = "a whole number",
	    [CONFIG_SIZE] = "a whole number",
	    [CONFIG_MILLI] = "a number (at most 3 decimals)",
	    [CONFIG_SECONDS] = "seconds, as a number",
	};
	char min[32];
	char max[32];

	format_decimal(key->min, decimal_scale(key->type), min, sizeof(min));
	format_decimal(key->max, decimal_scale(key->type), max, sizeof(max));
	(void)snprintf(out, size, "%s from %s to %s", what[key->type], min, max);
}

static void allowed_names(const struct config_key *key, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; key->names[i] && len < size; i++)
		len +=
		    (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "", key->names[i]);
}

static void allowed_text(const struct config_key *key, char *out, size_t size)
{
	(void)snprintf(out, size, "%s of %s%llu bytes, UTF-8, without control characters",
	    key->type == CONFIG_FILE ? "an absolute path" : "text", key->min ? "1 to " : "at most ",
	    (unsigned long long)key->max - 1);
}

static void allowed_listen(const struct config_key *key, char *out, size_t size)
{
	(void)key;
	(void)snprintf(
	    out, size, "127.0.0.1:PORT or [::1]:PORT, PORT from 0 (one that is free) to 65535");
}

static void allowed_map(const struct config_key *key, char *out, size_t size)
{
	(void)snprintf(out, size, "a mapping of variable names to text, at most %llu bytes in all",
	    (unsigned long long)key->max);
}

static const struct {
	int (*parse)(const struct config_key *key, const char *text, struct config *c);
	int (*print)(const struct config_key *key, const struct config *c, struct buf *out);
	int (*put)(const struct config_key *key, const struct config *c, struct buf *out);
	void (*allowed)(const struct config_key *key, char *out, size_t size);
	size_t size; /* 0: the row's max */
} types[] = {
    [CONFIG_UINT] = {parse_number, print_number, print_number, allowed_number, sizeof(uint32_t)},
    [CONFIG_SIZE] = {parse_number, print_number, print_number, allowed_number, sizeof(uint64_t)},
    [CONFIG_MILLI] = {parse_number, print_number, print_number, allowed_number, sizeof(uint32_t)},
    [CONFIG_SECONDS] = {parse_number, print_number, print_number, allowed_number, sizeof(uint64_t)},
    [CONFIG_ENUM] = {parse_name, print_enum, print_enum, allowed_names, sizeof(uint32_t)},
    [CONFIG_WORD] = {parse_name, print_text, put_text, allowed_names, 0},
    [CONFIG_TEXT] = {parse_text, print_text, put_text, allowed_text, 0},
    [CONFIG_SECRET] = {parse_text, print_secret, put_text, allowed_text, 0},
    [CONFIG_FILE] = {parse_text, print_text, put_text, allowed_text, 0},
    [CONFIG_LISTEN] = {parse_listen, print_listen, print_listen, allowed_listen,
	sizeof(struct config_listen)},
    [CONFIG_ENVIRONMENT] = {parse_nothing, print_nothing, print_nothing, allowed_map,
	sizeof(struct config_environment)},
};

_Static_assert(sizeof(types) / sizeof(types[0]) == CONFIG_TYPES, "every type has a row");

int config_value_parse(
    const struct config_key *key, const char *text, struct config *c, struct err *err)
{
	char allowed[120];
	size_t len = strlen(text);
	size_t shown = utf8_valid_prefix((const uint8_t *)text, len < SHOWN ? len : SHOWN, NULL);

	if (types[key->type].parse(key, text, c) == 0)
		return 0;
	config_value_allowed(key, allowed, sizeof(allowed));
	if (key->type == CONFIG_SECRET)
		return err_set(
		    err, EINVAL, "%s: its value is not allowed; give %s", key->name, allowed);
	return err_set(err, EINVAL, "%s: '%.*s%s' is not allowed; give %s", key->name, (int)shown,
	    text, shown < len ? "..." : "", allowed);
}

void config_value_allowed(const struct config_key *key, char *out, size_t size)
{
	types[key->type].allowed(key, out, size);
}

int config_value_print(const struct config_key *key, const struct config *c, struct buf *out)
{
	return types[key->type].print(key, c, out);
}

int config_value_put(const struct config_key *key, const struct config *c, struct buf *out)
{
	return types[key->type].put(key, c, out);
}

size_t config_value_size(const struct config_key *key)
{
	return types[key->type].size ? types[key->type].size : key->max;
}

bool config_value_equal(
    const struct config_key *key, const struct config *a, const struct config *b)
{
	if (key->type == CONFIG_ENVIRONMENT)
		return a->environment.len == b->environment.len &&
		       (a->environment.len == 0 || memcmp(a->environment.data, b->environment.data,
						       a->environment.len) == 0);
	return memcmp(member_const(key, a), member_const(key, b), config_value_size(key)) == 0;
}
