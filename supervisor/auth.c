/* auth: the token of TCP clients. Runs in sbxd, which keeps only its digest; its successor reads
 * the file anew. */
#include "supervisor/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

#define AUTH_SCHEME "Bearer"
#define AUTH_FILE_MAX (AUTH_TOKEN_MAX + 2U) /* with a line end of another system */

static int check_file(int fd, const char *path, uid_t self, uid_t *owner, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "token_file %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "token_file %s: must be a regular file", path);
	if (st.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))
		return err_set(err, EPERM,
		    "token_file %s: group or others may read or write it (mode %04o): chmod 600 %s",
		    path, (unsigned int)st.st_mode & 07777, path);
	if (self != 0 && st.st_uid != self && st.st_uid != 0)
		return err_set(err, EPERM,
		    "token_file %s: belongs to uid %u; it must be of root or of uid %u, who runs "
		    "sbxd",
		    path, (unsigned int)st.st_uid, (unsigned int)self);
	*owner = st.st_uid;
	return 0;
}

/* Reads all there is, at most size bytes. Their number or -errno. */
static ssize_t read_all(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, out + len, size - len);
		if (n > 0)
			len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : (ssize_t)len;
}

static int take_token(
    const char *path, const char *text, size_t len, struct auth *a, struct err *err)
{
	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (len > 0 && text[len - 1] == '\r')
		len--;
	if (len < AUTH_TOKEN_MIN || len > AUTH_TOKEN_MAX)
		return err_set(err, EINVAL,
		    "token_file %s: the token must have %u to %u characters, this one has %s", path,
		    AUTH_TOKEN_MIN, AUTH_TOKEN_MAX, len < AUTH_TOKEN_MIN ? "less" : "more");
	for (size_t i = 0; i < len; i++) {
		if (text[i] < 0x21 || text[i] > 0x7e)
			return err_set(err, EINVAL,
			    "token_file %s: the token must be printable ASCII without blanks, in "
			    "one line",
			    path);
	}
	if (digest_sha256(&(struct digest_part){text, len}, 1, a->digest) < 0)
		return err_set(err, EIO, "token_file %s: SHA-256 is not to be had", path);
	return 0;
}

int auth_load(const char *path, uid_t self, struct auth *out, struct err *err)
{
	/* A pipe or a device must not stop us. */
	FD_SCOPED int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct auth a = {.set = true};
	char text[AUTH_FILE_MAX + 1];
	ssize_t len;
	int rc;

	if (fd < 0)
		return err_sys(err, errno, "token_file %s: cannot be opened", path);
	rc = check_file(fd, path, self, &a.uid, err);
	if (rc < 0)
		return rc;
	len = read_all(fd, text, sizeof(text));
	if (len < 0)
		rc = err_sys(err, (int)-len, "token_file %s: cannot be read", path);
	else
		rc = take_token(path, text, (size_t)len, &a, err);
	explicit_bzero(text, sizeof(text));
	if (rc == 0)
		*out = a;
	return rc;
}

/* The token of "Bearer TOKEN", or NULL. */
static const char *bearer_token(const char *authorization)
{
	size_t len = strlen(AUTH_SCHEME);
	const char *p = authorization + len;

	if (strncasecmp(authorization, AUTH_SCHEME, len) != 0 || *p != ' ')
		return NULL;
	p += strspn(p, " ");
	return *p ? p : NULL;
}

enum auth_result auth_check(const struct auth *a, const char *authorization)
{
	const char *token = bearer_token(authorization);
	uint8_t digest[DIGEST_LEN];

	if (!token)
		return AUTH_MISSING;
	/* Digests are of one length, so that only they are compared. */
	if (digest_sha256(&(struct digest_part){token, strlen(token)}, 1, digest) < 0)
		return AUTH_WRONG;
	return digest_equal(digest, a->digest, sizeof(digest)) && a->set ? AUTH_RIGHT : AUTH_WRONG;
}
