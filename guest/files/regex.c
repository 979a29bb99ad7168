/* regex: one pattern over many lines, by PCRE2. sbx-files; nothing is lost here. */
#include "guest/files/regex.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* A pattern such as (a+)+b takes exponential time on some lines. An ordinary one takes a few steps
 * for each character of a line. */
#define REGEX_STEPS_MAX 1000000U
#define REGEX_HEAP_KIB 8192U
#define REGEX_STACK_MIN (32U * 1024U)
#define REGEX_STACK_MAX (1024U * 1024U)

struct regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	pcre2_jit_stack *stack;
	bool jit; /* compiled to machine code: not everywhere is that allowed */
};

/* \C would cut characters in two; what it finds is then no text any more. */
static uint32_t regex_options(unsigned int flags)
{
	uint32_t options = PCRE2_UTF;

	options |=
	    (flags & REGEX_LITERAL) != 0 ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
	options |= (flags & REGEX_ANY_CASE) != 0 ? PCRE2_CASELESS : 0;
	return options;
}

static void explain(struct text *why, const char *pattern, int code, size_t offset)
{
	uint8_t message[256];
	uint64_t characters = 0;

	if (pcre2_get_error_message(code, message, sizeof(message)) < 0)
		message[0] = '\0';
	for (size_t i = 0; i < offset; i++)
		characters += ((unsigned char)pattern[i] & 0xc0U) != 0x80U;
	text_add(why, "invalid pattern: ");
	text_add(why, (const char *)message);
	text_add(why, " at offset ");
	text_add_uint(why, characters);
}

/* False: no memory. */
static bool prepare(struct regex *r)
{
	r->data = pcre2_match_data_create(1, NULL);
	r->limits = pcre2_match_context_create(NULL);
	if (r->data == NULL || r->limits == NULL)
		return false;
	(void)pcre2_set_match_limit(r->limits, REGEX_STEPS_MAX); /* these cannot fail */
	(void)pcre2_set_heap_limit(r->limits, REGEX_HEAP_KIB);
	r->jit = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
	if (!r->jit)
		return true;
	r->stack = pcre2_jit_stack_create(REGEX_STACK_MIN, REGEX_STACK_MAX, NULL);
	if (r->stack != NULL)
		pcre2_jit_stack_assign(r->limits, NULL, r->stack);
	return true;
}

struct regex *regex_compile(const char *pattern, unsigned int flags, struct text *why)
{
	struct regex *r = calloc(1, sizeof(*r));
	size_t offset = 0;
	int code = 0;

	if (r != NULL)
		r->code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), regex_options(flags),
		    &code, &offset, NULL);
	if (r != NULL && r->code == NULL)
		explain(why, pattern, code, offset);
	else if (r == NULL || !prepare(r))
		text_add(why, "no memory for the pattern");
	else
		return r;
	regex_free(r);
	return NULL;
}

int regex_find(struct regex *r, const uint8_t *line, size_t n)
{
	int rc = r->jit ? pcre2_jit_match(r->code, line, n, 0, 0, r->data, r->limits)
			: pcre2_match(r->code, line, n, 0, PCRE2_NO_UTF_CHECK, r->data, r->limits);

	if (rc >= 0)
		return 1;
	return rc == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

void regex_free(struct regex *r)
{
	if (r == NULL)
		return;
	pcre2_jit_stack_free(r->stack); /* all of these take NULL */
	pcre2_match_context_free(r->limits);
	pcre2_match_data_free(r->data);
	pcre2_code_free(r->code);
	free(r);
}
