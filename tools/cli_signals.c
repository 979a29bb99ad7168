/* cli_signals: signals as a descriptor, so that what was begun in the service is also ended there.
 * sbxctl; SIGKILL leaves it to the service, which sees the connections close. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/cli.h"

int cli_catch_signals(struct cli *cli)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these fail only for numbers that are no signals */
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	cli->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return cli->signal_fd < 0 ? -errno : 0;
}

int cli_prepare(struct cli *cli)
{
	struct err err;
	int rc = cli_catch_signals(cli);

	(void)signal(SIGPIPE, SIG_IGN); /* fails only for numbers that are no signals */
	if (rc == 0)
		return CLI_OK;
	(void)err_sys(&err, -rc, "cannot catch signals");
	return cli_fail("sbxctl", &err);
}

int cli_caught_signal(const struct cli *cli)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t pending;

	/* Left pending, not read, so that every later wait is cancelled by it too. */
	if (cli->signal_fd < 0 || sigpending(&pending) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
		if (sigismember(&pending, caught[i]) == 1)
			return caught[i];
	}
	return 0;
}
