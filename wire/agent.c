/*
 * agent: encoding and checked decoding of what worker and guest say to each other. Linked into
 * sbx-worker and sbx-guest; pure functions over bytes, no state, so nothing is lost if we die here.
 */
#include "wire/agent.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are sent as they lie in memory");
_Static_assert(sizeof(struct agent_head) == AGENT_HEAD_LEN, "the head has no padding");
_Static_assert(sizeof(struct agent_hello) == 8, "no padding");
_Static_assert(sizeof(struct agent_stop) == 16, "no padding");
_Static_assert(sizeof(struct agent_exec) == 16, "no padding");
_Static_assert(sizeof(struct agent_read) == 24, "no padding");
_Static_assert(sizeof(struct agent_write) == 24, "no padding");
_Static_assert(sizeof(struct agent_stat) == 32, "no padding");
_Static_assert(sizeof(struct agent_path) == 24, "no padding");
_Static_assert(sizeof(struct agent_end) == 24, "no padding");
_Static_assert(sizeof(struct agent_error) == 8, "no padding");

static const char *const code_names[] = {
    [AGENT_OK] = "ok",
    [AGENT_E_NOT_FOUND] = "not_found",
    [AGENT_E_PERMISSION] = "permission_denied",
    [AGENT_E_IS_DIRECTORY] = "is_directory",
    [AGENT_E_NOT_A_DIRECTORY] = "not_a_directory",
    [AGENT_E_INVALID_PATH] = "invalid_path",
    [AGENT_E_INVALID] = "invalid_argument",
    [AGENT_E_TOO_LARGE] = "too_large",
    [AGENT_E_NO_SPACE] = "no_space",
    [AGENT_E_EXISTS] = "already_exists",
    [AGENT_E_NO_USER] = "invalid_argument",
    [AGENT_E_EXEC] = "execution_failed",
    [AGENT_E_RESOURCES] = "box_resources",
    [AGENT_E_SHORT] = "invalid_argument",
    [AGENT_E_IO] = "io",
    [AGENT_E_INVALID_PATTERN] = "invalid_pattern",
    [AGENT_E_NOT_EMPTY] = "not_empty",
    [AGENT_E_BUSY] = "busy",
    [AGENT_E_CROSS_DEVICE] = "cross_device",
};
_Static_assert(sizeof(code_names) / sizeof(code_names[0]) == AGENT_CODES, "every code has a name");

const char *agent_code_name(uint32_t code)
{
	return code < AGENT_CODES ? code_names[code] : code_names[AGENT_E_IO];
}

static int type_is_known(uint8_t type)
{
	return (type >= AGENT_PING && type <= AGENT_WAKE) ||
	       (type >= AGENT_DATA && type <= AGENT_CREDIT) ||
	       (type >= AGENT_HELLO && type <= AGENT_ERROR);
}

void agent_put_head(uint8_t out[AGENT_HEAD_LEN], enum agent_type type, uint8_t flags, uint8_t arg,
    uint32_t channel, uint32_t size)
{
	struct agent_head head = {
	    .size = size,
	    .type = (uint8_t)type,
	    .flags = flags,
	    .arg = arg,
	    .channel = channel,
	    .check = AGENT_CHECK ^ size ^ channel,
	};

	memcpy(out, &head, sizeof(head));
}

int agent_get_head(const uint8_t *bytes, size_t n, struct agent_head *head)
{
	struct agent_head h;

	if (n < AGENT_HEAD_LEN)
		return 0;
	memcpy(&h, bytes, sizeof(h));
	if (h.size > (h.type == AGENT_DATA ? AGENT_DATA_MAX : AGENT_PAYLOAD_MAX))
		return -EBADMSG;
	if (h.check != (AGENT_CHECK ^ h.size ^ h.channel) || !type_is_known(h.type) ||
	    (h.flags & ~AGENT_F_MORE) != 0)
		return -EBADMSG;
	if (h.arg >= AGENT_STREAMS || h.reserved != 0)
		return -EBADMSG;
	*head = h;
	return 1;
}

int agent_get_bytes(struct agent_cursor *c, void *out, size_t n)
{
	if (c->left < n)
		return -EBADMSG;
	memcpy(out, c->p, n);
	c->p += n;
	c->left -= n;
	return 0;
}

int agent_get_u32(struct agent_cursor *c, uint32_t *out)
{
	return agent_get_bytes(c, out, sizeof(*out));
}

int agent_get_string(struct agent_cursor *c, const char **out, size_t *len)
{
	struct agent_cursor at = *c;
	uint32_t n;

	if (agent_get_u32(&at, &n) != 0 || n > at.left)
		return -EBADMSG;
	if (n > 0 && memchr(at.p, '\0', n) != NULL)
		return -EBADMSG;
	*out = (const char *)at.p;
	*len = n;
	c->p = at.p + n;
	c->left = at.left - n;
	return 0;
}

#define AGENT_EXEC_FLAGS                                                               \
	(AGENT_EXEC_TTY | AGENT_EXEC_NO_STDIN | AGENT_EXEC_SHELL | AGENT_EXEC_NARROW | \
	    AGENT_EXEC_HELPER)

/* The helper has no terminal, no shell and no environment. */
static bool helper_is_plain(const struct agent_exec *head)
{
	if ((head->flags & AGENT_EXEC_HELPER) == 0)
		return true;
	return (head->flags & (AGENT_EXEC_TTY | AGENT_EXEC_SHELL)) == 0 && head->envc == 0;
}

int agent_exec_measure(const uint8_t *payload, size_t n, size_t *bytes)
{
	struct agent_cursor c = {.p = payload, .left = n};
	struct agent_exec head;
	size_t strings = 2; /* user and cwd */
	size_t text = 0;

	if (n > AGENT_REQUEST_MAX || agent_get_bytes(&c, &head, sizeof(head)) != 0)
		return -EBADMSG;
	if (head.argc == 0 || ((head.flags & AGENT_EXEC_SHELL) != 0 && head.argc != 1))
		return -EBADMSG;
	if ((head.flags & ~AGENT_EXEC_FLAGS) != 0 || !helper_is_plain(&head))
		return -EBADMSG;
	/* Every string takes at least its length field, so the counts are bounded before we loop.
	 */
	if (head.argc > c.left / sizeof(uint32_t) || head.envc > c.left / sizeof(uint32_t))
		return -EBADMSG;
	strings += (size_t)head.argc + head.envc;
	for (size_t i = 0; i < strings; i++) {
		const char *s;
		size_t len;

		if (agent_get_string(&c, &s, &len) != 0)
			return -EBADMSG;
		text += len + 1;
	}
	if (c.left != 0)
		return -EBADMSG;
	*bytes = sizeof(struct agent_exec_request) + text +
		 ((size_t)head.argc + 1 + head.envc + 1 + AGENT_ENV_SPARE) * sizeof(char *);
	return 0;
}

/* The next string, copied to *text, which is moved past it. */
static char *copy_string(struct agent_cursor *c, char **text)
{
	char *to = *text;
	const char *s = "";
	size_t len = 0;

	(void)agent_get_string(c, &s, &len); /* measured before: cannot fail */
	memcpy(to, s, len);
	to[len] = '\0';
	*text = to + len + 1;
	return to;
}

struct agent_exec_request *agent_exec_copy(const uint8_t *payload, size_t n, void *mem)
{
	struct agent_cursor c = {.p = payload, .left = n};
	struct agent_exec_request *r = mem;
	char *text;

	(void)agent_get_bytes(&c, &r->head, sizeof(r->head)); /* measured before: cannot fail */
	r->argv = (char **)(void *)(r + 1);
	r->envp = r->argv + r->head.argc + 1;
	text = (char *)(r->envp + r->head.envc + 1 + AGENT_ENV_SPARE);
	r->user = copy_string(&c, &text);
	r->cwd = copy_string(&c, &text);
	for (uint32_t i = 0; i < r->head.argc; i++)
		r->argv[i] = copy_string(&c, &text);
	r->argv[r->head.argc] = NULL;
	for (uint32_t i = 0; i < r->head.envc; i++)
		r->envp[i] = copy_string(&c, &text);
	for (uint32_t i = 0; i <= AGENT_ENV_SPARE; i++)
		r->envp[r->head.envc + i] = NULL;
	return r;
}

int agent_parse_exec(const uint8_t *payload, size_t n, struct agent_exec_request **out)
{
	size_t bytes;
	void *mem;
	int rc = agent_exec_measure(payload, n, &bytes);

	if (rc != 0)
		return rc;
	mem = malloc(bytes);
	if (mem == NULL)
		return -ENOMEM;
	*out = agent_exec_copy(payload, n, mem);
	return 0;
}
