/* sbx-mcp: a server of the Model Context Protocol: an agent's tools, in a box of sbxd. When it
 * dies, however that is, the service ends its commands and takes the box back. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "tools/mcp_options.h"
#include "tools/mcp_stdio.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2

/* Descriptors 0 to 2 must not become something of ours. */
static int open_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	}
	return 0;
}

/* A descriptor that is readable when we are to end. -errno. */
static int catch_signals(void)
{
	sigset_t set;
	int fd;

	(void)signal(SIGPIPE, SIG_IGN); /* these fail only for numbers that are no signals */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int serve(const struct mcp_options *o, struct err *err)
{
	FD_SCOPED int stop_fd = catch_signals();
	struct loop *l = loop_create();
	struct mcp *m;
	int rc;

	if (stop_fd < 0 || !l) {
		loop_destroy(l);
		return err_set(err, ENOMEM, "no loop and no signals");
	}
	m = mcp_create(o, l, err);
	rc = m ? mcp_serve(m, STDIN_FILENO, STDOUT_FILENO, stop_fd, err) : -EINVAL;
	mcp_free(m);
	loop_destroy(l);
	return rc;
}

int main(int argc, char **argv)
{
	struct mcp_options o;
	struct err err;

	if (open_standard() < 0)
		return EXIT_FAILED;
	log_init("sbx-mcp", LOG_TEXT, LOG_INFO);
	switch (mcp_options_read(&o, argc, argv, environ, &err)) {
	case MCP_OPTIONS_HELP:
		return fputs(mcp_options_help(), stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILED
										    : 0;
	case MCP_OPTIONS_VERSION:
		return printf("sbx-mcp %s\n", SBX_VERSION) < 0 || fflush(stdout) != 0 ? EXIT_FAILED
										      : 0;
	case MCP_OPTIONS_BAD:
		(void)fprintf(stderr, "sbx-mcp: %s\n%s", err.text, mcp_options_help());
		return EXIT_USAGE;
	case MCP_OPTIONS_RUN:
		break;
	}
	if (serve(&o, &err) < 0) {
		(void)fprintf(stderr, "sbx-mcp: %s\n", err.text);
		return EXIT_FAILED;
	}
	return 0;
}
