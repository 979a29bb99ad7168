/* dial: connecting to the service, wherever it listens. sbxctl, sbxtop, sbx-mcp; holds no state. */
#include "tools/dial.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd.h"

#define DIAL_SEND_BUFFER (1 << 20) /* asked for; the kernel may give less */

static int paths_of(const struct dial_where *where, uid_t uid, struct paths *out, struct err *err)
{
	const struct passwd *pw = uid == 0 ? NULL : getpwuid(uid);
	const struct paths_query q = {.uid = uid,
	    .instance = where->instance,
	    .env = where->env,
	    .home = pw ? pw->pw_dir : "/"}; /* only the runtime directory matters here */

	return paths_resolve(&q, out, err);
}

int dial_paths(const struct dial_where *where, struct paths *out, struct err *err)
{
	return paths_of(where, getuid(), out, err);
}

int dial_socket(const char *path, struct err *err)
{
	const int buffer = DIAL_SEND_BUFFER;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	FD_SCOPED int fd = -1;

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, ENAMETOOLONG, "%s: longer than a socket path can be", path);
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "socket");
	/* It only makes large uploads faster. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_sys(err, errno, "cannot connect to %s", path);
	return fd_take(&fd);
}

/* Below /tmp whoever was first could listen for our commands and their input. */
static int refuse_stranger(int fd, const char *socket, struct err *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return err_sys(err, errno, "%s: who listens", socket);
	if (peer.uid != getuid())
		return err_set(err, EPERM, "%s: it is user %u who listens there", socket,
		    (unsigned int)peer.uid);
	return 0;
}

static int dial_own(const struct dial_where *where, struct err *err)
{
	FD_SCOPED int fd = -1;
	struct paths p;
	int rc = dial_paths(where, &p, err);

	if (rc < 0)
		return rc;
	fd = dial_socket(p.socket, err);
	if (fd < 0)
		return fd;
	rc = p.shared_tmp ? refuse_stranger(fd, p.socket, err) : 0;
	return rc < 0 ? rc : fd_take(&fd);
}

static bool nobody_listens(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED;
}

int dial_service(const struct dial_where *where, struct err *err)
{
	struct err others;
	struct paths p;
	int rc;

	if (where->socket)
		return dial_socket(where->socket, err);
	rc = dial_own(where, err);
	if (nobody_listens(rc) && getuid() != 0) {
		int root = paths_of(where, 0, &p, &others);

		if (root == 0)
			root = dial_socket(p.socket, &others);
		if (!nobody_listens(root)) { /* else ours is the one to start */
			if (root < 0)
				*err = others;
			return root;
		}
	}
	if (nobody_listens(rc)) {
		struct err plain = *err;

		(void)err_set(err, -rc, "%.180s; is sbxd running?", plain.text);
	}
	return rc;
}
