/* access: who is at the other end of a socket, and which boxes are theirs. Runs in sbxd; holds no
 * state. */
#include "supervisor/access.h"

#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/client.h"
#include "supervisor/sbxd.h"

#define ACCESS_GROUPS 256

static bool peer_in_group(int fd, gid_t primary, gid_t wanted)
{
	gid_t groups[ACCESS_GROUPS];
	socklen_t len = sizeof(groups);

	if (primary == wanted)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false; /* more groups than anybody needs: not an admin */
	for (size_t i = 0; i < len / sizeof(gid_t); i++) {
		if (groups[i] == wanted)
			return true;
	}
	return false;
}

uid_t access_token_uid(const struct sbxd *s)
{
	return s->auth.set ? s->auth.uid : (uid_t)-1;
}

int access_read_peer(const struct sbxd *s, int fd, struct peer *out)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int domain = AF_UNSPEC;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){sizeof(domain)}) < 0)
		return -errno;
	if (domain != AF_UNIX) {
		*out =
		    (struct peer){.uid = access_token_uid(s), .gid = (gid_t)-1, .by_token = true};
		return 0;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	out->uid = cred.uid;
	out->gid = cred.gid;
	out->pid = cred.pid;
	out->admin = cred.uid == 0 || cred.uid == s->uid ||
		     (s->admin_gid != (gid_t)-1 && peer_in_group(fd, cred.gid, s->admin_gid));
	out->by_token = false;
	return 0;
}

int access_box_name(const struct client *c, const char *id, struct box_name *out)
{
	const char *colon = strchr(id, ':');
	const char *text = id;
	unsigned long uid = client_uid(c);
	char *end = NULL;

	if (colon) {
		if (!client_is_admin(c) || id[0] < '0' || id[0] > '9')
			return -ENOENT;
		uid = strtoul(id, &end, 10);
		if (end != colon || uid > UINT32_MAX)
			return -ENOENT;
		text = colon + 1;
	}
	if (*text == '\0' || strlen(text) >= sizeof(out->text))
		return -ENOENT;
	out->uid = (uid_t)uid;
	(void)strlcpy(out->text, text, sizeof(out->text));
	return 0;
}

const struct pool_box *access_find_box(const struct sbxd *s, const struct client *c, const char *id)
{
	const struct pool_box *b;
	struct box_name name;

	if (access_box_name(c, id, &name) < 0)
		return NULL;
	b = pool_box_find(s->pool, name.uid, name.text);
	return b ? b : pool_box_named(s->pool, name.uid, name.text);
}

void access_box_id(uid_t viewer, const struct pool_box *b, char *out, size_t size)
{
	if (b->uid == viewer)
		(void)snprintf(out, size, "%s", b->token);
	else
		(void)snprintf(out, size, "%u:%s", (unsigned int)b->uid, b->token);
}
