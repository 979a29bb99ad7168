/*
 * image_host: our own layer of a box's root. Janitor, in prepare(); if it fails half-way the layer
 * is thrown away.
 */
#include "drivers/namespace/image_host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/image_copy.h"
#include "lib/fd.h"
#include "lib/hash.h"

#define BOX_USER 1000 /* an ordinary account for commands that shall not be root */

struct image_dir {
	const char *path;
	mode_t mode;
	uid_t owner;
};

/* The shared directories are not sticky: fs.protected_regular would keep root from writing files
 * that another user of the box has made in them. */
static const struct image_dir base_dirs[] = {
    {"dev", 0755, 0},
    {"dev/pts", 0755, 0},
    {"dev/shm", 0755, 0},
    {"home", 0755, 0},
    {"mnt", 0755, 0},
    {"mnt/skills", 0777, 0},
    {"mnt/user-data", 0755, 0},
    {"mnt/user-data/outputs", 0777, 0},
    {"mnt/user-data/uploads", 0777, 0},
    {"mnt/user-data/workspace", 0777, 0},
    {"proc", 0555, 0},
    {"root", 0755, 0}, /* a box makes it 0700 for itself: it must be able to look into ours */
    {"run", 0755, 0},
    {"sys", 0555, 0},
    {"tmp", 01777, 0},
    {"var", 0755, 0},
    {"var/tmp", 01777, 0},
};

static const struct image_dir host_dirs[] = {
    {"etc", 0755, 0},
    {"etc/ssl", 0755, 0},
    {"home/user", 0755, BOX_USER},
    {"opt", 0755, 0},
    {"srv", 0755, 0},
    {"usr", 0755, 0},
    {"var/cache", 0755, 0},
    {"var/lib", 0755, 0},
    {"var/log", 0755, 0},
    {"var/spool", 0755, 0},
};

/* Bound over by the real ones. */
static const char *const device_files[] = {
    "dev/full", "dev/null", "dev/random", "dev/tty", "dev/urandom", "dev/zero"};

struct image_link {
	const char *path;
	const char *target;
};

static const struct image_link base_links[] = {
    {"dev/fd", "/proc/self/fd"},
    {"dev/ptmx", "pts/ptmx"},
    {"dev/stderr", "/proc/self/fd/2"},
    {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"},
};

static const struct image_link host_links[] = {
    {"etc/mtab", "../proc/self/mounts"},
    {"var/lock", "/run"},
    {"var/run", "/run"},
};

struct image_text {
	const char *path;
	const char *text;
};

static const struct image_text host_texts[] = {
    {"etc/group",
	"root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nmail:x:8:\n"
	"staff:x:50:\nusers:x:100:\nuser:x:1000:\nnogroup:x:65534:\n"},
    {"etc/hostname", "box\n"},
    {"etc/hosts", "127.0.0.1\tlocalhost\n127.0.1.1\tbox\n::1\tlocalhost ip6-localhost\n"},
    {"etc/nsswitch.conf",
	"passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\n"
	"protocols: files\nservices: files\nethers: files\nrpc: files\n"},
    {"etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
		   "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
		   "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
		   "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
		   "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
		   "user:x:1000:1000:user:/home/user:/bin/bash\n"
		   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/resolv.conf", ""},
};

/* What the host's programs look for; nothing that an administrator would write a secret into. */
static const char *const etc_copies[] = {
    "alternatives",
    "bash.bashrc",
    "debian_version",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "login.defs",
    "magic",
    "mime.types",
    "os-release",
    "perl",
    "profile",
    "profile.d",
    "protocols",
    "rpc",
    "services",
    "shells",
    "terminfo",
    "timezone",
};

static const char *const etc_prefixes[] = {"java-", "ld-musl-", "python"};

static const char *const ssl_copies[] = {"certs", "openssl.cnf"};

static const char *const top_level[] = {
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int image_make_dirs(int dirfd, const struct image_dir *dirs, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (mkdirat(dirfd, dirs[i].path, 0700) < 0 ||
		    fchmodat(dirfd, dirs[i].path, dirs[i].mode, 0) < 0)
			return err_sys(err, errno, "make /%s of the image", dirs[i].path);
		/* An ordinary user cannot give directories away, and has one id anyway. */
		if (dirs[i].owner && geteuid() == 0 &&
		    fchownat(dirfd, dirs[i].path, dirs[i].owner, dirs[i].owner, 0) < 0)
			return err_sys(err, errno, "give away /%s of the image", dirs[i].path);
	}
	return 0;
}

static int image_make_links(
    int dirfd, const struct image_link *links, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (symlinkat(links[i].target, dirfd, links[i].path) < 0)
			return err_sys(err, errno, "make /%s of the image", links[i].path);
	}
	return 0;
}

static int image_write_text(int dirfd, const char *path, const char *text, struct err *err)
{
	FD_SCOPED int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	size_t len = strlen(text);

	if (fd < 0 || fchmod(fd, 0644) < 0)
		return err_sys(err, errno, "make /%s of the image", path);
	if (write(fd, text, len) != (ssize_t)len)
		return err_sys(err, EIO, "write /%s of the image", path);
	return 0;
}

int image_build_base(int dirfd, struct err *err)
{
	int rc = 0;

	if (fchmod(dirfd, 0755) < 0)
		return err_sys(err, errno, "set the mode of the image");
	rc = image_make_dirs(dirfd, base_dirs, COUNT(base_dirs), err);
	for (size_t i = 0; rc == 0 && i < COUNT(device_files); i++)
		rc = image_write_text(dirfd, device_files[i], "", err);
	if (rc == 0)
		rc = image_make_links(dirfd, base_links, COUNT(base_links), err);
	return rc;
}

/* /bin and its like: the same link as on the host, or a mount point for the real directory. */
static int image_make_top_level(int dirfd, struct ns_prepared *prep, struct err *err)
{
	char path[16];
	char target[64];
	struct stat st;
	ssize_t n;

	for (size_t i = 0; i < COUNT(top_level); i++) {
		(void)snprintf(path, sizeof(path), "/%s", top_level[i]);
		if (lstat(path, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode)) {
			n = readlink(path, target, sizeof(target) - 1);
			if (n < 0)
				return err_sys(err, errno, "read the link %s", path);
			target[n] = '\0';
			if (symlinkat(target, dirfd, top_level[i]) < 0)
				return err_sys(err, errno, "make %s of the image", path);
		} else if (S_ISDIR(st.st_mode) && prep->bind_count < NS_BINDS) {
			if (mkdirat(dirfd, top_level[i], 0755) < 0)
				return err_sys(err, errno, "make %s of the image", path);
			(void)snprintf(
			    prep->binds[prep->bind_count++], sizeof(prep->binds[0]), "%s", path);
		}
	}
	return 0;
}

static int image_copy_list(
    int src, int dst, const char *const *names, size_t count, struct err *err)
{
	int rc;

	for (size_t i = 0; i < count; i++) {
		rc = image_copy(src, dst, names[i]);
		if (rc < 0)
			return err_sys(err, -rc, "copy /etc/%s into the image", names[i]);
	}
	return 0;
}

static int image_copy_etc(int dirfd, struct err *err)
{
	FD_SCOPED int src = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_SCOPED int dst = openat(dirfd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_SCOPED int ssl = src < 0 ? -1 : openat(src, "ssl", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_SCOPED int ssl_dst =
	    dst < 0 ? -1 : openat(dst, "ssl", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (src < 0 || dst < 0 || ssl_dst < 0)
		return err_sys(err, errno, "open /etc");
	rc = image_copy_list(src, dst, etc_copies, COUNT(etc_copies), err);
	for (size_t i = 0; rc == 0 && i < COUNT(etc_prefixes); i++) {
		rc = image_copy_prefix(src, dst, etc_prefixes[i]);
		if (rc < 0)
			return err_sys(err, -rc, "copy /etc/%s* into the image", etc_prefixes[i]);
	}
	if (rc == 0 && ssl >= 0)
		rc = image_copy_list(ssl, ssl_dst, ssl_copies, COUNT(ssl_copies), err);
	return rc;
}

int image_build_host(int dirfd, struct ns_prepared *prep, struct err *err)
{
	int rc = image_build_base(dirfd, err);

	if (rc == 0)
		rc = image_make_dirs(dirfd, host_dirs, COUNT(host_dirs), err);
	if (rc == 0)
		rc = image_make_top_level(dirfd, prep, err);
	for (size_t i = 0; rc == 0 && i < COUNT(host_texts); i++)
		rc = image_write_text(dirfd, host_texts[i].path, host_texts[i].text, err);
	if (rc == 0)
		rc = image_make_links(dirfd, host_links, COUNT(host_links), err);
	if (rc == 0)
		rc = image_copy_etc(dirfd, err);
	return rc;
}

static void stamp_add(uint64_t *stamp, uint64_t number)
{
	*stamp = hash64(*stamp, &number, sizeof(number));
}

/* Which file it is; with `contents` also when it, or which entries a directory has, changed. */
static void stamp_add_file(uint64_t *stamp, const char *dir, const char *name, bool contents)
{
	char path[PATH_MAX];
	struct stat st = {0};

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)stat(path, &st); /* what is not there stays 0 */
	stamp_add(stamp, st.st_dev);
	stamp_add(stamp, st.st_ino);
	if (contents) {
		stamp_add(stamp, (uint64_t)st.st_mtim.tv_sec);
		stamp_add(stamp, (uint64_t)st.st_mtim.tv_nsec);
	}
}

uint64_t image_stamp(const char *image)
{
	uint64_t stamp = HASH64_START;

	if (strcmp(image, IMAGE_HOST) != 0)
		return stamp;
	stamp_add_file(&stamp, "/usr", ".", false);
	for (size_t i = 0; i < COUNT(top_level); i++)
		stamp_add_file(&stamp, "", top_level[i], false);
	for (size_t i = 0; i < COUNT(etc_copies); i++)
		stamp_add_file(&stamp, "/etc", etc_copies[i], true);
	for (size_t i = 0; i < COUNT(ssl_copies); i++)
		stamp_add_file(&stamp, "/etc/ssl", ssl_copies[i], true);
	return stamp;
}
