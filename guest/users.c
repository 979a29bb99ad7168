/*
 * users: parses the box's passwd and group. sbx-guest; if we die here PID 1 is dead and the kernel
 * ends the box.
 */
#include "guest/users.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/path.h"
#include "guest/text.h"

/* Called for each line, NUL-terminated and the callee's to change. True: enough. */
typedef bool line_fn(void *ctx, char *line);

static void users_each_line(int root_fd, const char *path, line_fn *fn, void *ctx)
{
	char buf[USERS_LINE_MAX + 1];
	size_t len = 0;
	size_t total = 0;
	bool skip = false; /* within the rest of a line that was cut */
	bool done = false;
	int fd = path_open_regular(root_fd, path);

	if (fd < 0)
		return;
	while (!done && total < USERS_FILE_MAX) {
		ssize_t n = read(fd, buf + len, USERS_LINE_MAX - len);
		char *line = buf;
		char *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		total += (size_t)n;
		len += (size_t)n;
		while (!done && (end = memchr(line, '\n', len)) != NULL) {
			*end = '\0';
			len -= (size_t)(end - line) + 1;
			if (!skip)
				done = fn(ctx, line);
			skip = false;
			line = end + 1;
		}
		memmove(buf, line, len);
		if (len == USERS_LINE_MAX) {
			buf[len] = '\0';
			if (!done && !skip)
				done = fn(ctx, buf);
			skip = true;
			len = 0;
		}
	}
	buf[len] = '\0';
	if (!done && len > 0 && !skip)
		(void)fn(ctx, buf); /* the last line, without its newline */
	(void)close(fd);	    /* was only read */
}

bool users_split_line(char *line, char **fields, unsigned int want)
{
	for (unsigned int i = 0; i < want; i++) {
		char *colon = strchr(line, ':');

		fields[i] = line;
		if (colon == NULL)
			return i + 1 == want;
		*colon = '\0';
		line = colon + 1;
	}
	return true;
}

static bool parse_id(const char *s, size_t len, uint32_t *id)
{
	uint64_t n;

	if (text_parse_uint(s, len, UINT32_MAX - 1, &n) != 0)
		return false;
	*id = (uint32_t)n;
	return true;
}

static void copy_field(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n == 0 || n >= size)
		return; /* the default stays */
	memcpy(to, from, n + 1);
}

static void set_unknown(struct user *u, uint32_t uid)
{
	struct text digits;

	text_clear(&digits);
	text_add_uint(&digits, uid);
	*u = (struct user){.uid = uid, .home = "/", .shell = "/bin/sh"};
	if (uid == 0)
		memcpy(u->home, "/root", sizeof("/root"));
	memcpy(u->name, uid == 0 ? "root" : digits.s, uid == 0 ? sizeof("root") : digits.len + 1);
}

bool users_match_passwd(char *line, const char *name, uint32_t uid, struct user *u)
{
	char *f[7];
	uint32_t id;
	uint32_t gid;

	if (!users_split_line(line, f, 7) || f[0][0] == '\0')
		return false;
	if (!parse_id(f[2], strlen(f[2]), &id) || !parse_id(f[3], strlen(f[3]), &gid))
		return false;
	if (name != NULL ? strcmp(name, f[0]) != 0 : id != uid)
		return false;
	set_unknown(u, id);
	u->gid = gid;
	copy_field(u->name, sizeof(u->name), f[0]);
	copy_field(u->home, sizeof(u->home), f[5]);
	copy_field(u->shell, sizeof(u->shell), f[6]);
	return true;
}

bool users_match_group(char *line, const char *name, uint32_t *gid)
{
	char *f[3];

	return users_split_line(line, f, 3) && strcmp(f[0], name) == 0 &&
	       parse_id(f[2], strlen(f[2]), gid);
}

bool users_match_member(char *line, const char *user, uint32_t *gid)
{
	char *f[4];
	size_t n = strlen(user);

	if (!users_split_line(line, f, 4) || n == 0)
		return false;
	for (const char *m = f[3]; *m != '\0';) {
		size_t len = strcspn(m, ",");

		if (len == n && memcmp(m, user, n) == 0)
			return parse_id(f[2], strlen(f[2]), gid);
		m += len;
		m += *m == ',';
	}
	return false;
}

struct lookup {
	const char *name; /* NULL: by uid */
	uint32_t id;
	struct user *u;
	bool found;
};

static bool find_passwd(void *ctx, char *line)
{
	struct lookup *l = ctx;

	l->found = users_match_passwd(line, l->name, l->id, l->u);
	return l->found;
}

static bool find_group(void *ctx, char *line)
{
	struct lookup *l = ctx;

	l->found = users_match_group(line, l->name, &l->id);
	return l->found;
}

static bool add_membership(void *ctx, char *line)
{
	struct user *u = ((struct lookup *)ctx)->u;
	uint32_t gid;

	if (users_match_member(line, u->name, &gid) && gid != u->gid)
		u->groups[u->group_count++] = gid;
	return u->group_count == USERS_GROUPS;
}

static int resolve_group(int root_fd, const char *spec, uint32_t *gid)
{
	struct lookup l = {.name = spec};

	if (*spec == '\0')
		return -EINVAL;
	if (parse_id(spec, strlen(spec), gid))
		return 0;
	users_each_line(root_fd, "/etc/group", find_group, &l);
	if (!l.found)
		return -ENOENT;
	*gid = l.id;
	return 0;
}

int users_resolve(int root_fd, const char *spec, struct user *u)
{
	char name[USERS_NAME_MAX];
	const char *colon = strchr(spec, ':');
	size_t n = colon != NULL ? (size_t)(colon - spec) : strlen(spec);
	struct lookup l = {.u = u};

	if (n >= sizeof(name) || (n == 0 && colon != NULL))
		return -EINVAL;
	memcpy(name, spec, n);
	name[n] = '\0';
	if (n != 0 && !parse_id(name, n, &l.id))
		l.name = name;
	set_unknown(u, l.id);
	users_each_line(root_fd, "/etc/passwd", find_passwd, &l);
	if (!l.found && l.name != NULL)
		return -ENOENT;
	if (colon != NULL)
		return resolve_group(root_fd, colon + 1, &u->gid);
	if (u->uid != 0)
		users_each_line(root_fd, "/etc/group", add_membership, &l);
	return 0;
}
