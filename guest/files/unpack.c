/*
 * unpack: `sbx-files unpack path= overwrite= directory=`: the members of an archive, from records
 * on standard input (wire/entry.h), into the box. If it is killed, what was done stays.
 *
 * The path is a directory, made if it is missing, and the members go into it. Only when the archive
 * is one file and nothing else, of a name without directories, and the path is no directory and
 * need not be one, the path is that file, whatever it is called in the archive: so BoxLite's
 * clients send a file. That is known at the end: until then it is held under a temporary name.
 */
#include "guest/files/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/path.h"

#define UNPACK_READ 65536U

int unpack_fail(struct unpack *u, enum agent_code code, const char *name, const char *why)
{
	struct text t;

	if (u->status != 0)
		return -1;
	text_clear(&t);
	text_add(&t, "cannot unpack \"");
	text_add_quoted(&t, name, 256);
	text_add(&t, "\": ");
	text_add(&t, why);
	u->status = emit_failure(code, &t);
	return -1;
}

int unpack_fail_errno(struct unpack *u, const char *name, int err)
{
	const char *why = strerror(err);
	enum agent_code code = path_code(err);

	if (err == EXDEV)
		why = "it leads out of the destination";
	else if (err == ENOENT) /* whatever can be made is made */
		why = "a link leads to nothing";
	if (err == ENOENT)
		code = AGENT_E_INVALID_PATH;
	return unpack_fail(u, code, name, why);
}

/* ---- members ---- */

static int make_file(struct unpack *u, const struct unpack_spot *spot, const char *link)
{
	(void)link; /* it is none */
	return file_begin(u, spot);
}

static int make_directory(struct unpack *u, const struct unpack_spot *spot, const char *link)
{
	int fd;

	(void)link; /* it is none */
	if (mkdirat(spot->dir, spot->name, (u->member.mode & 0777U) | 0700U) == 0) {
		dirs_add(u, u->name, &u->member);
		return 0;
	}
	if (errno != EEXIST)
		return unpack_fail_errno(u, u->name, errno);
	fd = dest_open(u, u->name, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return unpack_fail_errno(u, u->name, -fd);
	(void)close(fd); /* names a place only */
	dirs_update(u->name, &u->member);
	return 0;
}

static int make_link(struct unpack *u, const struct unpack_spot *spot, const char *link)
{
	int rc = file_link(u, spot, link);

	dest_changed(u, u->name);
	return rc;
}

static int (*const makers[ENTRY_KINDS])(
    struct unpack *u, const struct unpack_spot *spot, const char *link) = {
    [ENTRY_FILE] = make_file,
    [ENTRY_DIRECTORY] = make_directory,
    [ENTRY_SYMLINK] = make_link,
    [ENTRY_HARDLINK] = make_link,
};

/* There is more than one file: the one that is held gets its name in the directory. */
static int release_held(struct unpack *u)
{
	struct unpack_spot spot;

	if (dest_make(u) < 0 || dest_open_spot(u, u->first, &spot) < 0)
		return -1;
	return file_place(u, &spot, u->first);
}

/* The first member decides what the path may become. 0, or -1. *held: it is a file. */
static int decide_target(struct unpack *u, bool *held)
{
	struct unpack_spot spot;

	*held = u->member.kind == ENTRY_FILE && !u->directory && u->name[0] != '\0' &&
		strchr(u->name, '/') == NULL;
	if (!*held)
		return dest_make(u);
	if (dest_find_spot(u, &spot) < 0)
		return -1;
	memcpy(u->first, u->name, sizeof(u->first));
	memcpy(u->name, spot.name, strlen(spot.name) + 1); /* as messages are to call it */
	u->target = UNPACK_HELD;
	return file_begin(u, &spot);
}

static int take_member(struct unpack *u, const struct entry *e)
{
	char path[ENTRY_PATH_MAX + 1];
	char link[ENTRY_PATH_MAX + 1];
	struct unpack_spot spot;
	bool held = false;

	u->member = e->u.member;
	memcpy(path, e->path, u->member.path_len);
	path[u->member.path_len] = '\0';
	memcpy(link, e->text, u->member.link_len);
	link[u->member.link_len] = '\0';
	if (dest_clean(u, path, path, u->name) < 0)
		return -1;
	u->members++;
	if (u->target == UNPACK_HELD && release_held(u) < 0)
		return -1;
	if (u->target == UNPACK_UNKNOWN && (decide_target(u, &held) < 0 || held))
		return held && u->status == 0 ? 0 : -1;
	if (u->name[0] != '\0')
		return dest_open_spot(u, u->name, &spot) < 0
			   ? -1
			   : makers[u->member.kind](u, &spot, link);
	if (u->member.kind != ENTRY_DIRECTORY)
		return unpack_fail(
		    u, AGENT_E_INVALID_PATH, ".", "the destination itself is a directory");
	dirs_update("", &u->member);
	return 0;
}

static int take_piece(struct unpack *u, const struct entry *e)
{
	struct unpack_spot spot = {.dir = u->file.dir};
	const char *slash = strrchr(u->name, '/');

	if (e->text_len > 0)
		return file_piece(u, e->u.piece.offset, e->text, e->text_len);
	if (file_end(u) < 0)
		return -1;
	if (u->target == UNPACK_HELD)
		return 0;
	spot.name = slash != NULL ? slash + 1 : u->name;
	if (file_place(u, &spot, u->name) < 0)
		return -1;
	dest_changed(u, u->name);
	return 0;
}

/* ---- the end ---- */

/* One file: it is flushed alone, and not all that the box has written. */
static int finish_file(struct unpack *u)
{
	struct unpack_spot spot = {.dir = u->spot_dir, .name = u->spot_name};

	if (fsync(u->file.fd) != 0)
		return unpack_fail_errno(u, u->path, errno);
	return file_place(u, &spot, u->path);
}

static int take_done(struct unpack *u, const struct entry *e)
{
	(void)e; /* says what we know */
	u->done = true;
	if (u->target == UNPACK_HELD)
		return finish_file(u);
	if (u->target == UNPACK_UNKNOWN && dest_make(u) < 0)
		return -1;
	dirs_settle(u);
	return dest_sync(u);
}

static const struct {
	bool growing; /* comes while a file has pieces to come, or while none has */
	int (*fn)(struct unpack *u, const struct entry *e);
} takers[ENTRY_TYPES] = {
    [ENTRY_MEMBER] = {false, take_member},
    [ENTRY_PIECE] = {true, take_piece},
    [ENTRY_DONE] = {false, take_done},
};

static int take(void *ctx, const struct entry *e)
{
	struct unpack *u = ctx;

	if (u->done || takers[e->type].fn == NULL || takers[e->type].growing != u->file.growing)
		return unpack_fail(u, AGENT_E_INVALID, u->path, "the records make no sense");
	return takers[e->type].fn(u, e);
}

/* ---- the command ---- */

/* Reads records until the last one, or until it fails. */
static void unpack_stdin(struct unpack *u)
{
	static struct entry_reader reader;
	static uint8_t bytes[UNPACK_READ];

	while (!u->done && u->status == 0) {
		ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			(void)unpack_fail(u, AGENT_E_SHORT, u->path, "the upload was broken off");
			return;
		}
		if (entry_feed(&reader, bytes, (size_t)n, take, u) != 0)
			(void)unpack_fail(u, AGENT_E_INVALID, u->path, "the records make no sense");
	}
}

static int unpack_begin(struct unpack *u)
{
	uint8_t random[7];

	if (u->path == NULL || !path_is_valid(u->path, strlen(u->path)))
		return unpack_fail(
		    u, AGENT_E_INVALID_PATH, u->path != NULL ? u->path : "", PATH_INVALID);
	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return unpack_fail_errno(u, u->path, EAGAIN);
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(u->random + 2 * i, 3, "%02x", random[i]);
	u->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (u->root < 0)
		return unpack_fail_errno(u, "/", errno);
	(void)umask(0); /* modes are what the archive says */
	return dest_find(u);
}

int unpack_run(char *const *args)
{
	static struct unpack u; /* without initial values: those would be pages of the program */
	const struct option_field fields[] = {
	    {"path", OPTION_TEXT, &u.path},
	    {"overwrite", OPTION_FLAG, &u.overwrite},
	    {"directory", OPTION_FLAG, &u.directory},
	};
	int rc = options_take(args, fields, sizeof(fields) / sizeof(fields[0]));

	if (rc != 0)
		return rc;
	u.root = -1;
	u.dest = -1;
	u.spot_dir = -1;
	u.parent = -1;
	u.file = (struct unpack_file){.fd = -1, .dir = -1};
	if (unpack_begin(&u) == 0)
		unpack_stdin(&u);
	file_drop(&u);
	if (u.dest >= 0)
		dirs_settle(&u); /* also of what a failure leaves */
	return u.status != 0 ? u.status : emit_done(0, u.members);
}
