/*
 * command_plan: from a request to what the child will do. sbx-guest; if we die here PID 1 is dead
 * and the kernel ends the box.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/command.h"
#include "guest/mux.h"
#include "guest/path.h"
#include "guest/users.h"

#define PLAN_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PLAN_WORKSPACE "/mnt/user-data/workspace"
#define PLAN_BASH "/bin/bash"
#define PLAN_SH "/bin/sh"

/* Everything of a plan that is not in the request; lies right before the request's copy. */
struct plan_extra {
	char home[USERS_PATH_MAX + 8];
	char user[USERS_NAME_MAX + 8];
	char logname[USERS_NAME_MAX + 8];
	char shell[USERS_PATH_MAX + 8];
	char *shell_argv[4];
};

static const char *env_get(const struct agent_exec_request *r, const char *name)
{
	size_t n = strlen(name);

	for (char **e = r->envp; *e != NULL; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

static void env_add(struct agent_exec_request *r, uint32_t *count, char *entry)
{
	r->envp[r->head.envc + (*count)++] = entry;
}

/* "NAME=value" in place, added unless NAME is set. */
static void env_fill(
    struct agent_exec_request *r, uint32_t *count, char *to, const char *name, const char *value)
{
	size_t n = strlen(name);

	if (env_get(r, name) != NULL)
		return;
	memcpy(to, name, n);
	to[n] = '=';
	memcpy(to + n + 1, value, strlen(value) + 1);
	env_add(r, count, to);
}

static void plan_env(struct agent_exec_request *r, struct plan_extra *x, const struct user *u)
{
	static char path[] = "PATH=" PLAN_PATH;
	static char term[] = "TERM=xterm";
	uint32_t count = 0;

	env_fill(r, &count, x->home, "HOME", u->home);
	env_fill(r, &count, x->user, "USER", u->name);
	env_fill(r, &count, x->logname, "LOGNAME", u->name);
	env_fill(r, &count, x->shell, "SHELL", u->shell);
	if (env_get(r, "PATH") == NULL)
		env_add(r, &count, path);
	if ((r->head.flags & AGENT_EXEC_TTY) != 0 && env_get(r, "TERM") == NULL)
		env_add(r, &count, term);
}

static size_t longest_element(const char *search)
{
	size_t longest = 0;

	for (;;) {
		size_t n = strcspn(search, ":");

		if (n > longest)
			longest = n;
		if (search[n] == '\0')
			return longest;
		search += n + 1;
	}
}

static void plan_shell(struct shim_plan *p, struct agent_exec_request *r, struct plan_extra *x)
{
	static char name_bash[] = PLAN_BASH;
	static char name_sh[] = PLAN_SH;
	static char flag[] = "-c";

	x->shell_argv[0] = access(PLAN_BASH, X_OK) == 0 ? name_bash : name_sh;
	x->shell_argv[1] = flag;
	x->shell_argv[2] = r->argv[0];
	x->shell_argv[3] = NULL;
	p->argv = x->shell_argv;
	p->file = x->shell_argv[0];
}

static void plan_cwd(struct shim_plan *p, const struct agent_exec_request *r)
{
	memset(p->cwd, 0, sizeof(p->cwd));
	p->cwd[0] = r->cwd;
	if (*r->cwd != '\0')
		return;
	p->cwd[0] = PLAN_WORKSPACE;
	p->cwd[1] = env_get(r, "HOME");
	p->cwd[2] = "/";
}

static int plan_user(struct guest *g, struct shim_plan *p, const char *spec, struct user *u,
    enum agent_code *code, struct text *why)
{
	int rc = users_resolve(g->root_fd, spec, u);

	if (rc != 0) {
		*code = rc == -ENOENT ? AGENT_E_NO_USER : AGENT_E_INVALID;
		text_add(why, rc == -ENOENT ? "no such user or group in the box: "
					    : "not a user, uid, user:group or uid:gid: ");
		text_add_quoted(why, spec, 64);
		return rc;
	}
	p->uid = u->uid;
	p->gid = u->gid;
	p->group_count = u->group_count;
	memcpy(p->groups, u->groups, sizeof(p->groups));
	/* A guest that is not root itself has no choice. */
	p->set_user = (u->uid != 0 || u->gid != 0) && !(*spec == '\0' && geteuid() != 0);
	return 0;
}
_Static_assert(USERS_GROUPS == SHIM_GROUPS, "the plan holds what users finds");

/* Room in the shim's arena, or else from malloc(). NULL: no memory. */
static void *plan_memory(struct command *cmd, size_t used, size_t n)
{
	if (used + n <= sizeof(cmd->shim->arena))
		return cmd->shim->arena + used;
	cmd->memory = malloc(n);
	return cmd->memory;
}

/* What to execute, and room for the places where it is looked for. 0 or -ENOMEM. */
static int plan_file(
    struct command *cmd, struct agent_exec_request *r, struct plan_extra *x, size_t used)
{
	struct shim_plan *p = &cmd->shim->plan;

	p->envp = r->envp;
	p->search = NULL;
	p->candidate = NULL;
	p->program = -1;
	if ((r->head.flags & AGENT_EXEC_SHELL) != 0) {
		plan_shell(p, r, x);
		return 0;
	}
	p->argv = r->argv;
	p->file = r->argv[0];
	if (strchr(p->file, '/') != NULL)
		return 0;
	p->search = env_get(r, "PATH");
	p->candidate = cmd->memory != NULL ? (char *)cmd->memory + used
					   : plan_memory(cmd, used,
						 longest_element(p->search) + strlen(p->file) + 2);
	return p->candidate != NULL ? 0 : -ENOMEM;
}

static int plan_no_memory(enum agent_code *code, struct text *why)
{
	*code = AGENT_E_RESOURCES;
	text_add(why, "no memory for the command line");
	return -ENOMEM;
}

/* sbx-files as we are ourselves: nothing of the request but its arguments. 0 or an errno value. */
static int plan_helper(const struct guest *g, struct shim_plan *p, struct agent_exec_request *r,
    enum agent_code *code, struct text *why)
{
	if (*r->user != '\0' || *r->cwd != '\0') {
		*code = AGENT_E_INVALID;
		text_add(why, "the file helper has no user and no directory of its own");
		return -EINVAL;
	}
	if (g->helper_fd < 0) {
		*code = AGENT_E_EXEC;
		text_add(why, "this box has no file helper (sbx-files)");
		return -ENOENT;
	}
	p->file = "sbx-files";
	p->program = g->helper_fd;
	p->argv = r->argv;
	p->envp = r->envp;
	p->set_user = false;
	memset(p->cwd, 0, sizeof(p->cwd));
	p->cwd[0] = "/";
	return 0;
}

int command_plan(struct guest *g, struct command *cmd, const uint8_t *request, size_t n,
    enum agent_code *code, struct text *why)
{
	struct agent_exec_request *r;
	struct plan_extra *x;
	struct user u;
	size_t bytes;
	int rc = agent_exec_measure(request, n, &bytes);

	if (rc != 0)
		return rc;
	/* A request that is too large for the arena gets room for the candidates at once: these are
	 * two of its texts, or one and an element of PLAN_PATH. */
	if (sizeof(*x) + bytes <= sizeof(cmd->shim->arena))
		x = plan_memory(cmd, 0, sizeof(*x) + bytes);
	else
		x = plan_memory(cmd, 0, sizeof(*x) + 2 * bytes + sizeof(PLAN_PATH));
	if (x == NULL)
		return plan_no_memory(code, why);
	r = agent_exec_copy(request, n, x + 1);
	if ((r->head.flags & AGENT_EXEC_HELPER) != 0)
		return plan_helper(g, &cmd->shim->plan, r, code, why);
	if (*r->cwd != '\0' && !path_is_valid(r->cwd, strlen(r->cwd))) {
		*code = AGENT_E_INVALID_PATH;
		text_add(why, PATH_INVALID ": ");
		text_add_quoted(why, r->cwd, 256);
		return -EINVAL;
	}
	rc = plan_user(g, &cmd->shim->plan, r->user, &u, code, why);
	if (rc != 0)
		return rc;
	plan_env(r, x, &u);
	plan_cwd(&cmd->shim->plan, r);
	if (plan_file(cmd, r, x, sizeof(*x) + bytes) != 0)
		return plan_no_memory(code, why);
	return 0;
}

static enum agent_code explain_exec(const struct shim_plan *p, int err, struct text *why)
{
	switch (err) {
	case ENOENT:
		text_add(why, p->file[0] == '/' && access(p->file, F_OK) == 0
				  ? "its interpreter is missing: "
				  : "no such file: ");
		break;
	case E2BIG:
		text_add(why, "the kernel takes no arguments and variables that are so long: ");
		break;
	case ENOEXEC:
		text_add(why, "not an executable file: ");
		break;
	default:
		text_add(why, strerror(err));
		text_add(why, ": ");
		break;
	}
	text_add_quoted(why, p->file, 256);
	if (err == EAGAIN || err == ENOMEM)
		return AGENT_E_RESOURCES;
	return err == E2BIG ? AGENT_E_TOO_LARGE : AGENT_E_EXEC;
}

static enum agent_code explain_user(const struct shim_plan *p, int err, struct text *why)
{
	text_add(why, "cannot become uid ");
	text_add_uint(why, p->uid);
	text_add(why, " gid ");
	text_add_uint(why, p->gid);
	text_add(why, err == EINVAL ? ": not mapped in this box" : ": ");
	if (err == EINVAL)
		return AGENT_E_NO_USER;
	text_add(why, strerror(err));
	return err == EAGAIN ? AGENT_E_RESOURCES : AGENT_E_PERMISSION;
}

enum agent_code command_explain(const struct command *cmd, struct text *why)
{
	const struct shim_plan *p = &cmd->shim->plan;
	int err = cmd->shim->err;

	switch ((enum shim_step)cmd->shim->step) {
	case SHIM_STEP_FORK:
		text_add(why, "no process can be started in the box: ");
		text_add(why, strerror(err));
		return AGENT_E_RESOURCES;
	case SHIM_STEP_STDIO:
	case SHIM_STEP_TTY:
		text_add(why, "cannot set up standard input and output: ");
		text_add(why, strerror(err));
		return AGENT_E_IO;
	case SHIM_STEP_USER:
		return explain_user(p, err, why);
	case SHIM_STEP_CWD:
		path_explain(why, "cannot enter", p->cwd[0], err);
		return path_code(err);
	case SHIM_STEP_EXEC:
		break;
	}
	return explain_exec(p, err, why);
}
