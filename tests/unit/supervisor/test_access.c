/*
 * access: who a peer is, by its socket alone, and which names of boxes it may use. Peers of other
 * uids are made by taking that uid while the socket is made, which only root may.
 */
#include <errno.h>
#include <grp.h>
#include <sys/socket.h>

#include "lib/fd.h"
#include "supervisor/access.h"
#include "supervisor/client_int.h"
#include "tests/unit/supervisor/sbxd_testing.h"

#define TOKEN "0123456789abcdef"
#define OTHER_UID 4711
#define OTHER_GID 4712
#define ADMINS 4713

static const struct pool_rules rules = {.slots = 2, .replicas = 2, .max_boots = 1};

static int setup(void **state)
{
	*state = stage_open(&rules);
	return 0;
}

static int teardown(void **state)
{
	stage_close(*state);
	return 0;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* A connection whose far end belongs to that uid, with these groups. */
static void connect_as(uid_t uid, gid_t gid, size_t count, const gid_t *groups, int pair[2])
{
	gid_t before[256];
	int n = getgroups(256, before);
	int rc;

	assert_true(n >= 0);
	if (uid != geteuid()) {
		assert_int_equal(setgroups(count, groups), 0);
		assert_int_equal(setegid(gid), 0);
		assert_int_equal(seteuid(uid), 0);
	}
	rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
	if (uid != getuid()) {
		assert_int_equal(seteuid(getuid()), 0);
		assert_int_equal(setegid(getgid()), 0);
		assert_int_equal(setgroups((size_t)n, before), 0);
	}
	assert_int_equal(rc, 0);
}

static struct peer peer_as(
    const struct sbxd *s, uid_t uid, gid_t gid, size_t count, const gid_t *groups)
{
	struct peer peer;
	int pair[2];

	connect_as(uid, gid, count, groups, pair);
	assert_int_equal(access_read_peer(s, pair[0], &peer), 0);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return peer;
}

/* A real client; the far end goes to *fd. */
static struct client *client_as(struct sbxd *s, uid_t uid, int *fd)
{
	int pair[2];

	connect_as(uid, uid, 0, NULL, pair);
	client_accept(s->clients, pair[0]);
	*fd = pair[1];
	for (uint32_t i = 0; i < s->clients->max; i++) {
		struct client *c = s->clients->slots[i];

		if (c && c->fd == pair[0])
			return c;
	}
	fail_msg("the connection was not taken");
	return NULL;
}

/* ---- peers ---- */

static void test_own_uid(void **state)
{
	const struct sbxd *s = *state;
	struct peer peer = peer_as(s, geteuid(), getegid(), 0, NULL);

	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.gid, getegid());
	assert_int_equal(peer.pid, getpid());
	assert_true(peer.admin);
}

static void test_not_a_socket(void **state)
{
	struct peer peer = {.uid = 77};
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, 0), 0);
	assert_int_equal(access_read_peer(*state, pipe_fds[0], &peer), -ENOTSOCK);
	assert_int_equal(access_read_peer(*state, -1, &peer), -EBADF);
	assert_int_equal(peer.uid, 77);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
}

static void test_who_is_admin(void **state)
{
	const gid_t some[] = {1, 2, ADMINS, 9};
	struct sbxd *s = *state;

	need_root();
	assert_false(peer_as(s, OTHER_UID, OTHER_GID, 0, NULL).admin);
	assert_int_equal(peer_as(s, OTHER_UID, OTHER_GID, 0, NULL).uid, OTHER_UID);
	assert_false(peer_as(s, OTHER_UID, OTHER_GID, 4, some).admin); /* no admin group is set */
	s->admin_gid = ADMINS;
	assert_false(peer_as(s, OTHER_UID, OTHER_GID, 0, NULL).admin);
	assert_false(peer_as(s, OTHER_UID, OTHER_GID, 2, some).admin);
	assert_true(peer_as(s, OTHER_UID, OTHER_GID, 4, some).admin);
	assert_true(peer_as(s, OTHER_UID, ADMINS, 0, NULL).admin);
	s->admin_gid = (gid_t)-1;
	s->uid = OTHER_UID; /* root stays one where sbxd itself is not root */
	assert_true(peer_as(s, OTHER_UID, OTHER_GID, 0, NULL).admin);
	assert_false(peer_as(s, OTHER_UID + 1, OTHER_GID, 0, NULL).admin);
	assert_true(peer_as(s, 0, 0, 0, NULL).admin);
}

/* More groups than are looked at: no admin, and nothing is written past the list. */
static void test_very_many_groups(void **state)
{
	struct sbxd *s = *state;
	gid_t many[300];

	need_root();
	for (gid_t i = 0; i < 300; i++)
		many[i] = 10000 + i;
	many[0] = ADMINS;
	s->admin_gid = ADMINS;
	assert_true(peer_as(s, OTHER_UID, OTHER_GID, 256, many).admin);
	assert_false(peer_as(s, OTHER_UID, OTHER_GID, 257, many).admin);
	assert_true(peer_as(s, OTHER_UID, ADMINS, 300, many).admin);
}

/* Over TCP it is whose the token is, and no admin: also not as root. */
static void test_a_peer_over_tcp(void **state)
{
	struct sbxd *s = *state;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct peer peer = {.admin = true};

	assert_true(fd >= 0);
	assert_int_equal(access_read_peer(s, fd, &peer), 0);
	assert_int_equal(peer.uid, (uid_t)-1); /* there is no token */
	assert_true(peer.by_token);
	assert_false(peer.admin);
	s->auth = (struct auth){.set = true, .uid = 0};
	assert_int_equal(access_read_peer(s, fd, &peer), 0);
	assert_int_equal(peer.uid, 0);
	assert_false(peer.admin);
	assert_false(peer_as(s, geteuid(), getegid(), 0, NULL).by_token);
	fd_close(&fd);
}

/* ---- names ---- */

static void assert_name(const struct client *c, const char *id, uid_t uid, const char *token)
{
	struct box_name name = {0};

	assert_int_equal(access_box_name(c, id, &name), 0);
	assert_int_equal(name.uid, uid);
	assert_string_equal(name.text, token);
}

static void assert_no_name(const struct client *c, const char *id)
{
	struct box_name name = {.uid = 5, .text = "as it was"};

	assert_int_equal(access_box_name(c, id, &name), -ENOENT);
	assert_int_equal(name.uid, 5);
	assert_string_equal(name.text, "as it was");
}

static void test_names_that_an_admin_may_use(void **state)
{
	int fd;
	struct client *c = client_as(*state, geteuid(), &fd);

	assert_true(client_is_admin(c));
	assert_name(c, TOKEN, geteuid(), TOKEN);
	assert_name(c, "1000:" TOKEN, 1000, TOKEN);
	assert_name(c, "0:" TOKEN, 0, TOKEN);
	assert_name(c, "4294967295:" TOKEN, UINT32_MAX, TOKEN);
	assert_name(c, "x", geteuid(), "x"); /* no such box: whoever looks for it finds that out */
	assert_name(c, "1:2:3", 1, "2:3");
	client_close(c);
	fd_close(&fd);
}

static void test_what_is_no_name(void **state)
{
	static const char *const ids[] = {
	    "",
	    ":",
	    ":" TOKEN,
	    "1000:",
	    "4294967296:" TOKEN,
	    "18446744073709551616:" TOKEN,
	    "99999999999999999999999999:" TOKEN,
	    "-1:" TOKEN,
	    "+1:" TOKEN,
	    " 1:" TOKEN,
	    "1 :" TOKEN,
	    "0x1:" TOKEN,
	    "1000a:" TOKEN,
	    "a:" TOKEN,
	};
	char longest[SHM_BOX_NAME_LEN + 1];
	int fd;
	struct client *c = client_as(*state, geteuid(), &fd);

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_no_name(c, ids[i]);
	memset(longest, 'x', sizeof(longest));
	longest[SHM_BOX_NAME_LEN] = '\0';
	assert_no_name(c, longest);
	longest[SHM_BOX_NAME_LEN - 1] = '\0'; /* one less does fit */
	assert_name(c, longest, geteuid(), longest);
	client_close(c);
	fd_close(&fd);
}

static void test_others_name_only_their_own(void **state)
{
	struct client *c;
	int fd;

	need_root();
	c = client_as(*state, OTHER_UID, &fd);
	assert_false(client_is_admin(c));
	assert_name(c, TOKEN, OTHER_UID, TOKEN);
	assert_no_name(c, "0:" TOKEN);
	assert_no_name(c, "4711:" TOKEN);
	assert_no_name(c, ":" TOKEN);
	client_close(c);
	fd_close(&fd);
}

static void assert_id(const struct client *c, uid_t uid, const char *expected)
{
	struct pool_box b = {.uid = uid, .token = TOKEN};
	struct box_name name;
	char id[64];

	access_box_id(client_uid(c), &b, id, sizeof(id));
	assert_string_equal(id, expected);
	assert_int_equal(access_box_name(c, id, &name), 0); /* and back */
	assert_int_equal(name.uid, uid);
	assert_string_equal(name.text, TOKEN);
}

static void test_ids_as_a_client_knows_them(void **state)
{
	struct pool_box b = {.uid = UINT32_MAX, .token = TOKEN};
	int fd;
	struct client *c = client_as(*state, geteuid(), &fd);
	char id[8];

	assert_id(c, geteuid(), TOKEN);
	assert_id(c, 1000, "1000:" TOKEN);
	assert_id(c, UINT32_MAX, "4294967295:" TOKEN);
	access_box_id(client_uid(c), &b, id, sizeof(id));
	assert_string_equal(id, "4294967");
	client_close(c);
	fd_close(&fd);
	if (geteuid() != 0)
		return;
	c = client_as(*state, OTHER_UID, &fd);
	assert_id(c, OTHER_UID, TOKEN);
	client_close(c);
	fd_close(&fd);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_own_uid),
	    staged(test_not_a_socket),
	    staged(test_who_is_admin),
	    staged(test_very_many_groups),
	    staged(test_a_peer_over_tcp),
	    staged(test_names_that_an_admin_may_use),
	    staged(test_what_is_no_name),
	    staged(test_others_name_only_their_own),
	    staged(test_ids_as_a_client_knows_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
