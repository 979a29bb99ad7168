/*
 * modules: the modules that a machine needs, in the order in which the kernel takes them. Janitor;
 * what is half done is not found again.
 *
 * There need be no modules.dep: a module says itself what it depends on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/cpio.h"
#include "drivers/qemu/kernel.h"
#include "drivers/qemu/program.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/store.h"
#include "lib/fd.h"

#define MODULES_MAX 48
#define MODULE_NAME 64
#define DEPTH_MAX 16
#define INDEX_MAX (1024UL * 1024)
#define DEPENDS "depends="

/* Those that are not built in. Without the optional ones a kernel can do it otherwise, or can do
 * less. */
static const struct {
	const char *name;
	bool optional;
} wanted[] = {
    {"crc32c_generic", true}, /* libcrc32c asks for it by another name */
    {"virtio_mmio", false},
    {"virtio_console", false},
    {"virtio_blk", false},
    {"overlay", false},
    {"erofs", false},
    {"ext4", true},
};

struct packing {
	const struct kernel_files *files;
	uint64_t deadline_ns;
	struct cpio cpio;
	char *order;   /* modules.order: paths, one a line */
	char *builtin; /* modules.builtin, likewise */
	char taken[MODULES_MAX][MODULE_NAME];
	size_t count;
	unsigned int depth; /* of modules that wait for what they depend on */
	struct err *err;
};

static char *read_index(const char *dir, const char *name)
{
	char path[QEMU_PATH];
	char *text = calloc(1, INDEX_MAX);

	if (text && qemu_path_join(path, dir, name, "") == 0)
		(void)fd_read_file_at(AT_FDCWD, path, text, INDEX_MAX); /* none: nothing is in it */
	return text;
}

/* Names have _ where files may have -. */
static bool is_same(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((a[i] == '-' ? '_' : a[i]) != (b[i] == '-' ? '_' : b[i]))
			return false;
	}
	return true;
}

/* The line of the index whose file is NAME.ko. NULL when there is none. */
static const char *find_line(const char *index, const char *name, size_t *len)
{
	size_t n = strlen(name);

	for (const char *line = index; *line; line += *len + (line[*len] == '\n')) {
		const char *base;

		*len = strcspn(line, "\n");
		base = memrchr(line, '/', *len);
		base = base ? base + 1 : line;
		if ((size_t)(line + *len - base) >= n + 3 && is_same(base, name, n) &&
		    !strncmp(base + n, ".ko", 3))
			return line;
	}
	return NULL;
}

static int unpack_module(const char *path, int from, struct packing *p)
{
	char program[QEMU_PATH];
	const char *const argv[] = {program, "-dc", NULL};
	FD_SCOPED int to = memfd_create("module", MFD_CLOEXEC);
	const char *end = strrchr(path, '.');
	const char *name = !strcmp(end, ".xz") ? "xz" : !strcmp(end, ".zst") ? "zstd" : "gzip";
	int rc;

	if (to < 0)
		return err_sys(p->err, errno, "unpack %s", path);
	if (program_find(name, program, sizeof(program)) < 0)
		return err_set(p->err, ENOENT,
		    "%s is packed and there is no program %s: install %s", path, name,
		    strcmp(name, "xz") ? name : "xz-utils");
	rc = program_run(argv, from, to, p->deadline_ns, p->err);
	return rc < 0 ? rc : fd_take(&to);
}

/* The module's own bytes: a descriptor (caller's) or -errno. */
static int open_module(struct packing *p, const char *line, size_t len)
{
	static const char *const endings[] = {"", ".xz", ".zst", ".gz"};
	char path[QEMU_PATH];

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		FD_SCOPED int fd = -1;
		int n = snprintf(
		    path, sizeof(path), "%s/%.*s%s", p->files->modules, (int)len, line, endings[i]);

		if (n < 0 || (size_t)n >= sizeof(path))
			break;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return strcmp(strrchr(path, '.'), ".ko") ? unpack_module(path, fd, p)
								 : fd_take(&fd);
	}
	return err_set(
	    p->err, ENOENT, "the module %.*s is not in %s", (int)len, line, p->files->modules);
}

static int take_module(struct packing *p, const char *name);

/* "depends=a,b" stands among the texts of a module. */
static int take_depends(struct packing *p, const char *data, size_t size)
{
	const char *at = memmem(data, size, "\0" DEPENDS, sizeof(DEPENDS));
	const char *end = data + size;
	char name[MODULE_NAME];
	int rc = 0;

	if (!at)
		return 0;
	at += sizeof(DEPENDS);
	while (rc == 0 && at < end && *at) {
		size_t n = 0;

		while (at + n < end && at[n] && at[n] != ',')
			n++;
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, at);
		rc = take_module(p, name);
		at += n + (at + n < end && at[n] == ',');
	}
	return rc;
}

static int pack_module(struct packing *p, const char *name, int fd)
{
	char path[MODULE_NAME + 16];
	struct stat st;
	char *data;
	int rc;

	if (fstat(fd, &st) < 0)
		return err_sys(p->err, errno, "look at the module %s", name);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return err_sys(p->err, errno, "read the module %s", name);
	rc = p->depth++ < DEPTH_MAX
		 ? take_depends(p, data, (size_t)st.st_size)
		 : err_set(p->err, ELOOP, "modules depend on each other: %s", name);
	p->depth--;
	if (rc == 0 && p->count == MODULES_MAX)
		rc = err_set(p->err, E2BIG, "more than %d modules", MODULES_MAX);
	if (rc == 0) {
		(void)snprintf(p->taken[p->count++], MODULE_NAME, "%s", name);
		(void)snprintf(path, sizeof(path), "modules/%s", name);
		rc = cpio_put_data(&p->cpio, path, 0400, data, (size_t)st.st_size);
		if (rc < 0)
			(void)err_sys(p->err, -rc, "pack the module %s", name);
	}
	(void)munmap(data, (size_t)st.st_size);
	return rc;
}

static int take_module(struct packing *p, const char *name)
{
	FD_SCOPED int fd = -1;
	const char *line;
	size_t len = 0;

	for (size_t i = 0; i < p->count; i++) {
		if (!strcmp(p->taken[i], name))
			return 0;
	}
	if (find_line(p->builtin, name, &len))
		return 0;
	line = find_line(p->order, name, &len);
	if (!line)
		return err_set(p->err, ENOENT, "kernel %s has no module %s (looked in %s)",
		    p->files->version, name, p->files->modules);
	fd = open_module(p, line, len);
	return fd < 0 ? fd : pack_module(p, name, fd);
}

static int put_order(struct packing *p)
{
	char text[MODULES_MAX * MODULE_NAME] = "";
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", p->taken[i]);
	return cpio_put_data(&p->cpio, "modules/order", 0400, text, n);
}

static int pack(struct packing *p, const char *path)
{
	FD_SCOPED int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	int rc = fd < 0 ? -errno : 0;

	if (rc == 0) {
		cpio_begin(&p->cpio, fd);
		rc = cpio_put_dir(&p->cpio, "modules", 0700);
	}
	for (size_t i = 0; rc == 0 && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		size_t len;

		if (wanted[i].optional && !find_line(p->order, wanted[i].name, &len))
			continue;
		rc = take_module(p, wanted[i].name);
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		rc = put_order(p);
	if (rc == 0)
		rc = cpio_end(&p->cpio);
	return rc < 0 ? err_sys(p->err, -rc, "write %s", path) : 0;
}

static int pack_into(struct packing *p, struct store_entry *e, struct err *err)
{
	int rc;

	p->err = err;
	p->order = read_index(p->files->modules, "modules.order");
	p->builtin = read_index(p->files->modules, "modules.builtin");
	rc = p->order && p->builtin ? pack(p, e->new_path)
				    : err_sys(err, ENOMEM, "read the index of modules");
	free(p->order);
	free(p->builtin);
	if (rc == 0)
		return store_keep(e, err);
	store_give_up(e);
	return rc;
}

int kernel_pack_modules(const struct driver_site *site, const struct kernel_files *files,
    struct qemu_plan *plan, uint64_t deadline_ns, struct err *err)
{
	char path[QEMU_PATH];
	uint64_t id[STORE_IDENTITY];
	const struct digest_part parts[] = {
	    {"modules 1", 9}, {files->modules, strlen(files->modules)}, {id, sizeof(id)}};
	struct packing *p;
	uint8_t digest[DIGEST_LEN];
	struct store_entry e;
	int rc = qemu_path_join(path, files->modules, "modules.order", "");

	if (rc == 0)
		rc = store_identity(path, id);
	if (rc == 0)
		rc = digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), digest);
	if (rc < 0)
		return err_sys(err, -rc, "look at %s", path);
	rc = store_get(site, "modules", digest, deadline_ns, &e, err);
	if (rc < 0)
		return rc;
	(void)snprintf(plan->modules, sizeof(plan->modules), "%s", e.path);
	if (rc == 1)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p) {
		store_give_up(&e);
		return err_sys(err, ENOMEM, "pack the kernel's modules");
	}
	p->files = files;
	p->deadline_ns = deadline_ns;
	rc = pack_into(p, &e, err);
	free(p);
	return rc;
}
