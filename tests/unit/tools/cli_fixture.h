/* cli_fixture: runs one command of sbxctl in a child and keeps what it prints. */
#ifndef SBXD_TESTS_UNIT_TOOLS_CLI_FIXTURE_H
#define SBXD_TESTS_UNIT_TOOLS_CLI_FIXTURE_H

#include "tests/unit/tools/fake_service.h"

#include <poll.h>
#include <sched.h>

#include "tools/cli.h"

#define CLI_ARGS 24

struct cli_run {
	pid_t pid;
	int out_fd;
	int err_fd;
	int stdout_fd; /* what its stdout is to be, -1: kept in out */
	int status;    /* exit status; 1000 + signal */
	char out[8192];
	char err[8192];
};

/* Begins command(args...) with the socket; input (may be NULL) is its stdin. */
static inline void cli_start(struct cli_run *r, const struct cli_command *command,
    const char *socket, const char *input, char *const *args)
{
	struct cli cli = {.command = command, .socket = socket, .signal_fd = -1};
	char *argv[CLI_ARGS] = {(char[]){"test"}};
	int argc = 1;
	int in = memfd_create("in", MFD_CLOEXEC);

	for (; *args; args++)
		argv[argc++] = *args;
	r->out_fd = memfd_create("out", MFD_CLOEXEC);
	r->err_fd = memfd_create("err", MFD_CLOEXEC);
	assert_true(in >= 0 && r->out_fd >= 0 && r->err_fd >= 0);
	if (input)
		assert_int_equal(write(in, input, strlen(input)), strlen(input));
	assert_int_equal(lseek(in, 0, SEEK_SET), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		int status;

		dup2(in, 0);
		dup2(r->stdout_fd < 0 ? r->out_fd : r->stdout_fd, 1);
		dup2(r->err_fd, 2);
		status = command->run(&cli, argc, argv);
		fflush(stdout);
		_exit(status);
	}
	close(in);
}

static inline void cli_collect(int fd, char *out, size_t size)
{
	ssize_t n = pread(fd, out, size - 1, 0);

	assert_true(n >= 0);
	out[n] = '\0';
	close(fd);
}

static inline void cli_end(struct cli_run *r)
{
	int status;

	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	cli_collect(r->out_fd, r->out, sizeof(r->out));
	cli_collect(r->err_fd, r->err, sizeof(r->err));
}

#define CLI_RUN(r, command, socket, input, ...)                                                   \
	do {                                                                                      \
		(r)->stdout_fd = -1;                                                              \
		cli_start(                                                                        \
		    r, command, socket, input, (char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL}); \
		cli_end(r);                                                                       \
	} while (0)

#endif
