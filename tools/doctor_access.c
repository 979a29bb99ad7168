/* doctor_access: may sbxd's directories and socket be used, and by whom? Reads only. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/doctor.h"

#define GROUPS_MAX 1024

static const char *group_name(gid_t gid, char number[24])
{
	const struct group *g = getgrgid(gid);

	(void)snprintf(number, 24, "%u", (unsigned int)gid);
	return g ? g->gr_name : number;
}

/* As its processes run now, which is not what the group's list says since the last login. */
static bool is_in_group(gid_t gid)
{
	gid_t groups[GROUPS_MAX];
	int n = getgroups(GROUPS_MAX, groups);

	for (int i = 0; i < n; i++) {
		if (groups[i] == gid)
			return true;
	}
	return getegid() == gid;
}

static bool is_listed(gid_t gid)
{
	const struct group *g = getgrgid(gid);
	const struct passwd *pw = getpwuid(getuid());

	for (char **m = g ? g->gr_mem : NULL; m && *m; m++) {
		if (pw && !strcmp(*m, pw->pw_name))
			return true;
	}
	return false;
}

static void check_folder(struct doctor *d, const char *path, uid_t uid)
{
	char fix[PATHS_LEN + 64];
	struct stat st;

	if (lstat(path, &st) < 0)
		return; /* sbxd makes it */
	if (!S_ISDIR(st.st_mode) || st.st_uid != uid) {
		(void)snprintf(
		    fix, sizeof(fix), "rm -r %s, or sbxd --runtime-dir with another", path);
		doctor_say(d, DOCTOR_WRONG, fix, "%s: %s of uid %u: sbxd does not start there",
		    path, S_ISDIR(st.st_mode) ? "a directory" : "no directory, but",
		    (unsigned int)st.st_uid);
	} else if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		(void)snprintf(fix, sizeof(fix), "chmod go-w %s", path);
		doctor_say(d, DOCTOR_WRONG, fix,
		    "%s: others may write there (mode %04o): sbxd does not start there", path,
		    (unsigned int)st.st_mode & 07777U);
	} else {
		doctor_say(d, DOCTOR_FINE, NULL, "%s", path);
	}
}

/* Why we may not use the socket, and what would let us. */
static void say_refused(struct doctor *d, const char *path, const struct stat *st)
{
	char number[24];
	const char *group = group_name(st->st_gid, number);
	char fix[160];

	if (st->st_gid != 0 && is_listed(st->st_gid))
		(void)snprintf(fix, sizeof(fix), "log in again, or: newgrp %s", group);
	else if (st->st_gid != 0)
		(void)snprintf(fix, sizeof(fix), "usermod -aG %s USER, and log in again", group);
	else
		(void)snprintf(fix, sizeof(fix),
		    "set admin_group in /etc/sbxd.yaml to a group of yours, or start an sbxd of "
		    "your own");
	doctor_say(d, DOCTOR_WRONG, fix, "%s: only for uid %u and group %s (mode %04o)", path,
	    (unsigned int)st->st_uid, group, (unsigned int)st->st_mode & 07777U);
}

static void check_socket(struct doctor *d, const char *path)
{
	char fix[PATHS_SOCKET_LEN + 64];
	char number[24];
	struct stat st;

	if (lstat(path, &st) < 0)
		return; /* the service's check has said it */
	(void)snprintf(fix, sizeof(fix), "chmod 0660 %s; start sbxd again", path);
	if (!S_ISSOCK(st.st_mode))
		doctor_say(d, DOCTOR_WRONG, "remove it", "%s: no socket", path);
	else if (st.st_mode & S_IRWXO)
		doctor_say(d, DOCTOR_WRONG, fix, "%s: every user may use it (mode %04o)", path,
		    (unsigned int)st.st_mode & 07777U);
	else if (getuid() != 0 && getuid() != st.st_uid && !is_in_group(st.st_gid))
		say_refused(d, path, &st);
	else
		doctor_say(d, DOCTOR_FINE, NULL, "%s: for uid %u and group %s", path,
		    (unsigned int)st.st_uid, group_name(st.st_gid, number));
}

void doctor_access(struct doctor *d)
{
	struct paths p;
	struct err err;

	if (d->cli->socket) {
		check_socket(d, d->cli->socket);
		return;
	}
	if (cli_paths(d->cli, &p, &err) < 0) {
		doctor_say(d, DOCTOR_WRONG, "set HOME or XDG_STATE_HOME", "%s", err.text);
		return;
	}
	check_folder(d, p.runtime_dir, getuid());
	check_folder(d, p.state_dir, getuid());
	check_socket(d, p.socket);
	if (getuid() != 0 && access(p.socket, F_OK) < 0)
		check_socket(d, "/run/sbxd/sbxd.sock");
}
