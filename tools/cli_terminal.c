/* cli_terminal: raw mode. sbxctl; if it dies its guard (cli_attach_guard.c) sets the terminal back.
 */
#include "tools/cli_terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void cli_terminal_look(struct cli_terminal *t)
{
	*t = (struct cli_terminal){.fd = -1};
	if (tcgetattr(STDIN_FILENO, &t->cooked) < 0)
		return;
	t->fd = STDIN_FILENO;
	t->made_raw = t->cooked;
	cfmakeraw(&t->made_raw);
}

int cli_terminal_enter(struct cli_terminal *t)
{
	if (t->fd < 0 || t->raw)
		return 0;
	if (tcsetattr(t->fd, TCSADRAIN, &t->made_raw) < 0)
		return -errno;
	t->raw = true;
	return 0;
}

void cli_terminal_leave(struct cli_terminal *t)
{
	if (t->raw)
		(void)tcsetattr(t->fd, TCSADRAIN, &t->cooked); /* it may be gone */
	t->raw = false;
}

void cli_terminal_rescue(const struct cli_terminal *t)
{
	struct termios now;

	if (t->fd < 0 || tcgetattr(t->fd, &now) < 0)
		return;
	if (now.c_iflag == t->made_raw.c_iflag && now.c_oflag == t->made_raw.c_oflag &&
	    now.c_cflag == t->made_raw.c_cflag && now.c_lflag == t->made_raw.c_lflag)
		(void)tcsetattr(t->fd, TCSANOW, &t->cooked); /* it may be gone */
}

bool cli_terminal_size(int *columns, int *rows)
{
	for (int fd = 0; fd <= 2; fd++) {
		struct winsize size = {.ws_col = 0};

		if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
			*columns = size.ws_col;
			*rows = size.ws_row;
			return true;
		}
	}
	return false;
}
