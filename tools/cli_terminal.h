/*
 * cli_terminal: our terminal as the far end of one in a box: raw, and as it was afterwards. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_TERMINAL_H
#define SBXD_TOOLS_CLI_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

/* {.fd = -1} is none. */
struct cli_terminal {
	int fd; /* stdin, if that is a terminal; else -1 */
	bool raw;
	struct termios cooked;
	struct termios made_raw;
};

/* Looks at our terminal; changes nothing. */
void cli_terminal_look(struct cli_terminal *t);

/* Raw: every key is a byte for the far end, ^C and ^Z too. 0 or -errno. */
int cli_terminal_enter(struct cli_terminal *t);

/* As it was. Harmless when it is. */
void cli_terminal_leave(struct cli_terminal *t);

/* For another process after the death of who had entered: as cli_terminal_leave(), unless somebody
 * else has set it meanwhile. */
void cli_terminal_rescue(const struct cli_terminal *t);

/* Its size, of the first of our three descriptors that is a terminal. False: none is. */
bool cli_terminal_size(int *columns, int *rows);

#endif
