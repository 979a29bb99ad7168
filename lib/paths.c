/* paths: where sbxd and its clients find each other. sbxd and sbxctl; holds no state. */
#include "lib/paths.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/env.h"

bool paths_instance_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t len = strlen(name);

	return len > 0 && len < PATHS_INSTANCE_LEN && strchr(letters, name[0]) &&
	       strspn(name, all) == len;
}

/* The XDG specification has relative directories ignored. */
static const char *env_dir(char *const *env, const char *name)
{
	const char *dir = env_get(env, name, strlen(name));

	return dir && dir[0] == '/' ? dir : NULL;
}

static int put(char *out, size_t size, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static int put(char *out, size_t size, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, size, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG, "%.60s...: longer than %zu bytes", out, size - 1);
	return 0;
}

/* A directory from the command line: made absolute, without a slash at its end. */
static int put_given(char *out, size_t size, const char *dir, struct err *err)
{
	char cwd[PATHS_LEN];
	size_t len;
	int rc;

	if (dir[0] == '\0')
		return err_set(err, EINVAL, "an empty directory name");
	if (dir[0] == '/') {
		rc = put(out, size, err, "%s", dir);
	} else {
		if (!getcwd(cwd, sizeof(cwd)))
			return err_sys(err, errno, "the current directory");
		rc = put(out, size, err, "%s/%s", cwd, dir);
	}
	if (rc < 0)
		return rc;
	for (len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	return 0;
}

/* Directory `name` in $variable, else in home/below. */
static int put_xdg(char *out, const struct paths_query *q, const char *variable, const char *below,
    const char *name, struct err *err)
{
	const char *dir = env_dir(q->env, variable);
	const char *home = env_dir(q->env, "HOME");

	if (dir)
		return put(out, PATHS_LEN, err, "%s/%s", dir, name);
	if (!home)
		home = q->home;
	if (!home)
		return err_set(err, EINVAL, "neither %s nor HOME is set", variable);
	return put(out, PATHS_LEN, err, "%s/%s/%s", home, below, name);
}

static int put_runtime(
    const struct paths_query *q, const char *name, struct paths *out, struct err *err)
{
	const char *xdg = env_dir(q->env, "XDG_RUNTIME_DIR");

	if (q->runtime_dir)
		return put_given(out->runtime_dir, sizeof(out->runtime_dir), q->runtime_dir, err);
	if (q->uid == 0)
		return put(out->runtime_dir, sizeof(out->runtime_dir), err, "/run/%s", name);
	if (xdg)
		return put(out->runtime_dir, sizeof(out->runtime_dir), err, "%s/%s", xdg, name);
	out->shared_tmp = true;
	/* sbxd-UID, or sbxd-UID-INSTANCE: the uid always stands first */
	return put(out->runtime_dir, sizeof(out->runtime_dir), err, "/tmp/sbxd-%u%s",
	    (unsigned int)q->uid, name + strlen("sbxd"));
}

static int put_state(
    const struct paths_query *q, const char *name, struct paths *out, struct err *err)
{
	if (q->state_dir)
		return put_given(out->state_dir, sizeof(out->state_dir), q->state_dir, err);
	if (q->uid == 0)
		return put(out->state_dir, sizeof(out->state_dir), err, "/var/lib/%s", name);
	return put_xdg(out->state_dir, q, "XDG_STATE_HOME", ".local/state", name, err);
}

static int put_config(const struct paths_query *q, struct paths *out, struct err *err)
{
	if (q->uid == 0)
		return put(out->config_file, sizeof(out->config_file), err, "/etc/sbxd.yaml");
	return put_xdg(out->config_file, q, "XDG_CONFIG_HOME", ".config", "sbxd.yaml", err);
}

int paths_shm_name(char *out, size_t size, uid_t uid, const char *instance)
{
	int n = snprintf(out, size, "/sbxd-%u-%s", (unsigned int)uid, instance);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int paths_resolve(const struct paths_query *q, struct paths *out, struct err *err)
{
	const char *instance = q->instance ? q->instance : PATHS_INSTANCE_DEFAULT;
	struct paths p = {.shared_tmp = false};
	char name[PATHS_INSTANCE_LEN + 8];
	int rc;

	if (!paths_instance_valid(instance))
		return err_set(err, EINVAL,
		    "instance '%.40s': give 1 to 31 of a-z, 0-9 and -, no - first", instance);
	(void)snprintf(name, sizeof(name),
	    strcmp(instance, PATHS_INSTANCE_DEFAULT) == 0 ? "sbxd" : "sbxd-%s", instance);
	rc = put_runtime(q, name, &p, err);
	if (rc == 0)
		rc = put_state(q, name, &p, err);
	if (rc == 0)
		rc = put_config(q, &p, err);
	if (rc == 0)
		rc = put(p.socket, sizeof(p.socket), err, "%s/sbxd.sock", p.runtime_dir);
	if (rc == 0 && paths_shm_name(p.shm_name, sizeof(p.shm_name), q->uid, instance) < 0)
		rc = err_set(err, ENAMETOOLONG, "the name of the shared memory");
	if (rc == 0)
		*out = p;
	return rc;
}
