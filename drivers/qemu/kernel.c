/*
 * kernel: the kernel's own image out of the file that boot loaders take: an emulated machine would
 * need longer to unpack it than to boot. Janitor; what is half done is not found again.
 */
#include "drivers/qemu/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/lz4.h"
#include "drivers/qemu/program.h"
#include "drivers/qemu/store.h"
#include "lib/fd.h"

/* Of the Linux/x86 boot protocol (Documentation/arch/x86/boot.rst), as offsets in the file. */
#define BOOT_SECTS 0x1f1U
#define BOOT_MAGIC 0x202U
#define BOOT_PAYLOAD 0x248U
#define BOOT_HEAD 0x250U
#define SECTOR 512U
#define KERNEL_MAX (512UL * 1024 * 1024) /* unpacked */
#define TAIL 4U				 /* the unpacked size, behind the packed data */

/* A file in memory. */
struct mapped {
	const uint8_t *data;
	size_t size;
};

struct format {
	const char *magic;
	size_t len;
	const char *program; /* NULL: done by ourselves */
};

static const struct format formats[] = {
    {"\x02\x21\x4c\x18", 4, NULL},
    {"\xfd\x37zXZ", 5, "xz"},
    {"\x28\xb5\x2f\xfd", 4, "zstd"},
    {"\x1f\x8b", 2, "gzip"},
};

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int map_file(const char *path, struct mapped *m)
{
	FD_SCOPED int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (st.st_size < (off_t)BOOT_HEAD)
		return -EBADMSG;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*m = (struct mapped){p, (size_t)st.st_size};
	return 0;
}

/* Where in the file the packed kernel is. 0 or -EBADMSG. */
static int find_payload(const struct mapped *file, struct mapped *payload)
{
	uint64_t sects = file->data[BOOT_SECTS] ? file->data[BOOT_SECTS] : 4;
	uint64_t at = (sects + 1) * SECTOR + get_u32(file->data + BOOT_PAYLOAD);
	uint64_t len = get_u32(file->data + BOOT_PAYLOAD + 4);

	if (memcmp(file->data + BOOT_MAGIC, "HdrS", 4) != 0 || len <= 2 * TAIL ||
	    at + len > file->size)
		return -EBADMSG;
	*payload = (struct mapped){file->data + at, len};
	return 0;
}

static const struct format *find_format(const struct mapped *payload)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (!memcmp(payload->data, formats[i].magic, formats[i].len))
			return &formats[i];
	}
	return NULL;
}

static int write_all(int fd, const uint8_t *data, size_t n)
{
	while (n > 0) {
		ssize_t put = write(fd, data, n);

		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		data += put;
		n -= (size_t)put;
	}
	return 0;
}

static int unpack_lz4(const struct mapped *payload, int to)
{
	size_t size = get_u32(payload->data + payload->size - TAIL);
	uint8_t *out;
	long n;
	int rc = -EBADMSG;

	if (size > KERNEL_MAX)
		return -EBADMSG;
	out = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		return -errno;
	n = lz4_unpack(payload->data, payload->size, out, size);
	if (n > 0)
		rc = write_all(to, out, (size_t)n);
	(void)munmap(out, size);
	return rc;
}

static int unpack_by_program(
    const struct format *f, const struct mapped *payload, int to, uint64_t deadline_ns)
{
	FD_SCOPED int from = memfd_create("kernel", MFD_CLOEXEC);
	char path[QEMU_PATH];
	const char *const argv[] = {path, "-dc", NULL};
	struct err ignored = {0};
	size_t n = payload->size - (strcmp(f->program, "gzip") ? TAIL : 0); /* gzip's own has it */

	if (from < 0 || program_find(f->program, path, sizeof(path)) < 0 ||
	    write_all(from, payload->data, n) < 0 || lseek(from, 0, SEEK_SET) < 0)
		return -ENOENT;
	return program_run(argv, from, to, deadline_ns, &ignored);
}

static int unpack(const struct mapped *file, int to, uint64_t deadline_ns)
{
	const struct format *f;
	struct mapped payload;
	int rc = find_payload(file, &payload);

	if (rc < 0)
		return rc;
	f = find_format(&payload);
	if (!f)
		return -EBADMSG;
	return f->program ? unpack_by_program(f, &payload, to, deadline_ns)
			  : unpack_lz4(&payload, to);
}

/* QEMU takes a kernel that is an ELF image, if it has an entry for machines without a BIOS. */
static int is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, "\177ELF", 4);
}

/* 0; -EBADMSG or -ENOENT: QEMU must take the file as it is; or -errno. */
static int unpack_to(const char *from, const char *path, uint64_t deadline_ns)
{
	FD_SCOPED int to = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	struct mapped file = {0};
	int rc = to < 0 ? -errno : map_file(from, &file);

	if (rc < 0 || !file.data)
		return rc;
	rc = unpack(&file, to, deadline_ns);
	(void)munmap((void *)(uintptr_t)file.data, file.size); /* our own mapping */
	return rc == 0 && !is_elf(to) ? -EBADMSG : rc;
}

int kernel_unpack(const struct driver_site *site, const struct kernel_files *files,
    struct qemu_plan *plan, uint64_t deadline_ns, struct err *err)
{
	uint64_t id[STORE_IDENTITY];
	const struct digest_part parts[] = {
	    {"kernel 1", 8}, {files->image, strlen(files->image)}, {id, sizeof(id)}};
	uint8_t digest[DIGEST_LEN];
	struct store_entry e;
	int rc = store_identity(files->image, id);

	if (rc == 0)
		rc = digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), digest);
	if (rc < 0)
		return err_sys(err, -rc, "look at the kernel %s", files->image);
	rc = store_get(site, "kernel", digest, deadline_ns, &e, err);
	if (rc < 0)
		return rc;
	(void)snprintf(plan->kernel, sizeof(plan->kernel), "%s", e.path);
	if (rc == 1)
		return 0;
	rc = unpack_to(files->image, e.new_path, deadline_ns);
	if (rc == 0)
		return store_keep(&e, err);
	store_give_up(&e);
	if (rc != -EBADMSG && rc != -ENOENT && rc != -EIO)
		return err_sys(err, -rc, "unpack the kernel %s", files->image);
	(void)snprintf(plan->kernel, sizeof(plan->kernel), "%s", files->image);
	return 0;
}
