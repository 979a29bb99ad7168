/* emit: what sbx-files says, in few writes. If it dies here, the worker misses ENTRY_DONE. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guest/files/files.h"
#include "guest/path.h"

#define EMIT_PROBLEM_TEXT 128U
#define EMIT_MAX 65536U /* as much as a pipe takes at once */

#define EMIT_ALIVE_NS 500000000ULL /* how long it says nothing while it works */

static struct {
	uint64_t problems;
	uint64_t steps;
	uint64_t written_ns; /* when something was last written, or the first step made */
	size_t len;
	uint8_t bytes[EMIT_MAX];
} out;
_Static_assert(ENTRY_HEAD_LEN + ENTRY_SIZE_MAX <= EMIT_MAX, "any record fits");

static void emit_flush(void)
{
	size_t done = 0;

	while (done < out.len) {
		ssize_t n = write(STDOUT_FILENO, out.bytes + done, out.len - done);

		if (n < 0 && errno != EINTR)
			_exit(AGENT_E_IO); /* there is nobody to tell */
		done += n > 0 ? (size_t)n : 0;
	}
	out.len = 0;
}

/* What a step costs is next to nothing: so is what the clock does. */
static uint64_t now_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* there is always one */
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void emit_part(const void *p, size_t n)
{
	if (n > 0)
		memcpy(out.bytes + out.len, p, n);
	out.len += n;
}

void emit_record(enum entry_type type, const void *fixed, size_t n, const void *a, size_t a_len,
    const void *b, size_t b_len)
{
	const struct entry_head h = {
	    .size = (uint32_t)(n + a_len + b_len),
	    .type = (uint16_t)type,
	};

	if (sizeof(h) + h.size > EMIT_MAX - out.len)
		emit_flush();
	emit_part(&h, sizeof(h));
	emit_part(fixed, n);
	emit_part(a, a_len);
	emit_part(b, b_len);
}

void emit_problem(const char *path, size_t len, int err)
{
	const char *text = strerror(err);
	struct entry_problem p = {
	    .code = path_code(err),
	    .path_len = (uint32_t)(len < ENTRY_PATH_MAX ? len : ENTRY_PATH_MAX),
	    .text_len = (uint32_t)strnlen(text, EMIT_PROBLEM_TEXT),
	};

	if (out.problems++ < ENTRY_PROBLEMS_MAX)
		emit_record(ENTRY_PROBLEM, &p, sizeof(p), path, p.path_len, text, p.text_len);
}

uint64_t emit_problems(void)
{
	return out.problems;
}

void emit_step(void)
{
	const struct entry_alive alive = {.steps = ++out.steps};
	uint64_t now = now_ns();

	if (out.written_ns == 0)
		out.written_ns = now;
	if (now - out.written_ns < EMIT_ALIVE_NS)
		return;
	if (out.len == 0)
		emit_record(ENTRY_ALIVE, &alive, sizeof(alive), NULL, 0, NULL, 0);
	emit_flush();
	out.written_ns = now;
}

int emit_done(uint32_t flags, uint64_t count)
{
	const struct entry_done done = {.version = AGENT_VERSION, .flags = flags, .count = count};

	emit_record(ENTRY_DONE, &done, sizeof(done), NULL, 0, NULL, 0);
	emit_flush();
	return AGENT_OK;
}

int emit_failure(enum agent_code code, const struct text *why)
{
	size_t done = 0;

	while (done < why->len) {
		ssize_t n = write(STDERR_FILENO, why->s + done, why->len - done);

		if (n < 0 && errno != EINTR)
			break; /* the exit status says what matters */
		done += n > 0 ? (size_t)n : 0;
	}
	return (int)code;
}

int emit_errno(const char *what, const char *path, int err)
{
	struct text why;

	text_clear(&why);
	path_explain(&why, what, path, err);
	return emit_failure(path_code(err), &why);
}
