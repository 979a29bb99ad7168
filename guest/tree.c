/*
 * tree: reads /proc and finds descendants. sbx-guest; if we die here PID 1 is dead and the kernel
 * ends the box.
 */
#include "guest/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/text.h"

#define STAT_MAX 1024U
#define STAT_FIELD_STATE 3
#define STAT_FIELD_PARENT 4
#define STAT_FIELD_THREADS 20
#define STAT_FIELD_START 22

/* As the kernel fills it; glibc's and musl's own names for it differ. */
struct kernel_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static bool parse_number(const char *s, size_t n, uint64_t max, uint64_t *out)
{
	return text_parse_uint(s, n, max, out) == 0;
}

int tree_parse_stat(const char *text, size_t n, struct tree_entry *e)
{
	const char *end = text + n;
	const char *name = memchr(text, ' ', n);
	const char *at = memrchr(text, ')', n); /* a process may have any name */
	struct tree_entry got = {0};
	uint64_t pid;
	uint64_t parent = 0;
	uint64_t threads = 0;

	if (name == NULL || at == NULL || at < name)
		return -EBADMSG;
	if (!parse_number(text, (size_t)(name - text), INT32_MAX, &pid))
		return -EBADMSG;
	at++;
	for (int field = STAT_FIELD_STATE; field <= STAT_FIELD_START; field++) {
		const char *word = at + 1;
		const char *stop;
		size_t len;
		bool ok = true;

		if (at >= end || *at != ' ')
			return -EBADMSG;
		stop = memchr(word, ' ', (size_t)(end - word));
		len = (size_t)((stop != NULL ? stop : end) - word);
		if (field == STAT_FIELD_STATE) {
			ok = len == 1;
			got.state = ok ? *word : '?';
		} else if (field == STAT_FIELD_PARENT) {
			ok = parse_number(word, len, INT32_MAX, &parent);
		} else if (field == STAT_FIELD_THREADS) {
			ok = parse_number(word, len, INT32_MAX, &threads);
		} else if (field == STAT_FIELD_START) {
			ok = parse_number(word, len, UINT64_MAX, &got.start);
		}
		if (!ok)
			return -EBADMSG;
		at = word + len;
	}
	got.pid = (int32_t)pid;
	got.parent = (int32_t)parent;
	/* The leader of a process may be dead while its other threads run on. */
	got.inert = got.state == 'T' || got.state == 't' || got.state == 'X' ||
		    (got.state == 'Z' && threads <= 1);
	*e = got;
	return 0;
}

int tree_begin(struct tree *t)
{
	t->count = 0;
	t->dir_at = 0;
	t->dir_len = 0;
	t->dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->dir >= 0 ? 0 : -errno;
}

void tree_end(struct tree *t)
{
	if (t->dir >= 0)
		(void)close(t->dir); /* was only read */
	t->dir = -1;
}

static void tree_find(const struct tree *t, int32_t pid, uint32_t *at)
{
	uint32_t low = 0;
	uint32_t high = t->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (t->entries[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	*at = low;
}

void tree_add(struct tree *t, const struct tree_entry *e)
{
	uint32_t at = t->count;

	if (t->count == TREE_MAX)
		return; /* found in a later round, when others are gone */
	if (at > 0 && t->entries[at - 1].pid >= e->pid)
		tree_find(t, e->pid, &at);
	if (at < t->count && t->entries[at].pid == e->pid)
		return;
	memmove(&t->entries[at + 1], &t->entries[at], (t->count - at) * sizeof(*e));
	t->entries[at] = *e;
	t->count++;
}

/* Reads /proc/PID/stat by the name of the directory. 0 or -errno. */
static int read_stat(int proc, const char *pid, struct tree_entry *e)
{
	char path[32];
	char text[STAT_MAX];
	size_t len = strlen(pid);
	ssize_t n;
	int fd;

	if (len > 10)
		return -EINVAL;
	memcpy(path, pid, len);
	memcpy(path + len, "/stat", sizeof("/stat"));
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	(void)close(fd); /* was only read */
	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	return tree_parse_stat(text, (size_t)n, e);
}

int tree_read(struct tree *t, unsigned int slice)
{
	while (slice > 0) {
		const struct kernel_dirent *d;
		struct tree_entry e;

		if (t->dir_at == t->dir_len) {
			long n =
			    syscall(SYS_getdents64, t->dir, t->dir_bytes, sizeof(t->dir_bytes));

			if (n < 0)
				return -errno;
			if (n == 0)
				return 0;
			t->dir_len = (uint32_t)n;
			t->dir_at = 0;
		}
		d = (const struct kernel_dirent *)(const void *)(t->dir_bytes + t->dir_at);
		t->dir_at += d->len;
		if (d->name[0] < '1' || d->name[0] > '9')
			continue;
		slice--;
		if (read_stat(t->dir, d->name, &e) == 0)
			tree_add(t, &e);
	}
	return 1;
}

void tree_mark(struct tree *t, int32_t root)
{
	bool changed;

	/* Parents mostly have lower pids: one pass, and one that finds nothing more. */
	do {
		changed = false;
		for (uint32_t i = 0; i < t->count; i++) {
			struct tree_entry *e = &t->entries[i];
			uint32_t at;

			if (e->root != 0 || e->pid == root)
				continue;
			tree_find(t, e->parent, &at);
			if (e->parent != root &&
			    (at == t->count || t->entries[at].pid != e->parent ||
				t->entries[at].root != root))
				continue;
			e->root = root;
			changed = true;
		}
	} while (changed);
}

int tree_signal(const struct tree *t, const struct tree_entry *e, int sig)
{
	struct tree_entry now;
	struct text pid;
	int rc = 0;
	int fd = (int)syscall(SYS_pidfd_open, e->pid, 0);

	if (fd < 0 && errno != ENOSYS && errno != EMFILE && errno != ENFILE)
		return -errno;
	if (fd < 0)
		return kill(e->pid, sig) == 0 ? 0 : -errno;
	/* The descriptor holds one process; if that is still the one that was read, it is hit. */
	text_clear(&pid);
	text_add_uint(&pid, (uint64_t)e->pid);
	rc = read_stat(t->dir, pid.s, &now);
	if (rc == 0 && now.start != e->start)
		rc = -ESRCH;
	if (rc == 0 && syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) != 0)
		rc = -errno;
	(void)close(fd); /* a pidfd */
	return rc;
}
