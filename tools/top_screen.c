/*
 * top_screen: the terminal, through ncurses. sbxtop. If we die here the terminal is given back: an
 * ordinary end closes it, and the signals of a crash are caught for just that.
 */
#include "tools/top_screen.h"

#include <errno.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ESCAPE_MS 25 /* after an ESC, for the rest of a key's sequence */

/*
 * ncurses has one terminal a process, and a signal handler can be told nothing: so this is the one
 * thing here that lives outside of its caller.
 */
static struct {
	SCREEN *screen;
	int fd; /* of the output */
	bool color;
	struct termios before; /* how the terminal was set */
	bool has_termios;
	char restore[256]; /* what makes it an ordinary terminal again */
	size_t restore_len;
} term;

/* ---- styles ---- */

struct look {
	short foreground; /* -1: the terminal's own */
	short background;
	attr_t attr;
	attr_t mono; /* without colours */
};

#define STATE(state) [STYLE_STATE + (state)]

static const struct look looks[STYLES] = {
    [STYLE_PLAIN] = {-1, -1, A_NORMAL, A_NORMAL},
    [STYLE_LABEL] = {COLOR_CYAN, -1, A_NORMAL, A_NORMAL},
    [STYLE_STRONG] = {-1, -1, A_BOLD, A_BOLD},
    [STYLE_GOOD] = {COLOR_GREEN, -1, A_BOLD, A_BOLD},
    [STYLE_WARN] = {COLOR_YELLOW, -1, A_BOLD, A_BOLD},
    [STYLE_BAD] = {COLOR_RED, -1, A_BOLD, A_BOLD | A_REVERSE},
    [STYLE_FAINT] = {-1, -1, A_DIM, A_NORMAL},
    [STYLE_HEADING] = {COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_REVERSE},
    [STYLE_SORTED] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE | A_BOLD},
    [STYLE_SELECTED] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE},
    [STYLE_KEY] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE},
    STATE(SLOT_FREE) = {-1, -1, A_DIM, A_NORMAL},
    STATE(SLOT_RESERVED) = {COLOR_BLUE, -1, A_BOLD, A_NORMAL},
    STATE(SLOT_BOOTING) = {COLOR_BLUE, -1, A_BOLD, A_NORMAL},
    STATE(SLOT_STOCK) = {COLOR_CYAN, -1, A_NORMAL, A_NORMAL},
    STATE(SLOT_ACTIVE) = {COLOR_GREEN, -1, A_BOLD, A_BOLD},
    STATE(SLOT_CHECKING) = {COLOR_MAGENTA, -1, A_BOLD, A_NORMAL},
    STATE(SLOT_WARM) = {COLOR_YELLOW, -1, A_NORMAL, A_NORMAL},
    STATE(SLOT_CLOSING) = {COLOR_RED, -1, A_NORMAL, A_NORMAL},
    STATE(SLOT_QUARANTINED) = {COLOR_RED, -1, A_BOLD, A_BOLD | A_REVERSE},
};

static void make_colors(void)
{
	if (!term.color || start_color() == ERR || use_default_colors() == ERR) {
		term.color = false;
		return;
	}
	for (int i = 1; i < STYLES; i++) /* one that cannot be made is plain */
		(void)init_pair((short)i, looks[i].foreground, looks[i].background);
}

static void set_style(enum top_style style)
{
	const struct look *look = &looks[style];
	attr_t attr = term.color ? look->attr | (attr_t)COLOR_PAIR(style) : look->mono;

	(void)attrset((int)attr); /* cannot fail */
}

/* ---- giving it back ---- */

static void add_restore(const char *sequence)
{
	size_t n = sequence && sequence != (char *)-1 ? strlen(sequence) : 0;

	if (n == 0 || term.restore_len + n > sizeof(term.restore))
		return;
	memcpy(term.restore + term.restore_len, sequence, n);
	term.restore_len += n;
}

/* Got while there is time: a handler may call nothing that does it. */
static void prepare_restore(void)
{
	term.restore_len = 0;
	add_restore(tigetstr("sgr0"));
	add_restore(tigetstr("cnorm"));
	if (has_mouse())
		add_restore("\033[?1006l\033[?1000l");
	add_restore(tigetstr("rmkx"));
	add_restore(tigetstr("rmcup"));
}

static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

#define FATALS (sizeof(fatal) / sizeof(fatal[0]))

static struct sigaction before_fatal[FATALS];

/* Whoever was to be told before us is: by the code that failed, which fails again when we return;
 * or by the signal itself, when somebody sent it. */
static void on_fatal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	(void)!write(term.fd, term.restore, term.restore_len);
	if (term.has_termios)
		(void)tcsetattr(term.fd, TCSANOW, &term.before);
	for (size_t i = 0; i < FATALS; i++) {
		if (fatal[i] == sig)
			(void)sigaction(sig, &before_fatal[i], NULL);
	}
	if (info->si_code <= 0)
		(void)raise(sig); /* taken when we return */
}

static void catch_fatal(void)
{
	struct sigaction action = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO};

	for (size_t i = 0; i < FATALS; i++)
		(void)sigaction(fatal[i], &action, &before_fatal[i]); /* these can be caught */
}

static void uncatch_fatal(void)
{
	for (size_t i = 0; i < FATALS; i++)
		(void)sigaction(fatal[i], &before_fatal[i], NULL); /* as before */
}

/* ---- taking it ---- */

static void set_modes(void)
{
	/* What a terminal cannot do it does not do. */
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)intrflush(stdscr, FALSE);
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)set_escdelay(ESCAPE_MS);
	(void)curs_set(0);
	(void)mouseinterval(0);
	(void)mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

int top_screen_open(const char *type, FILE *out, FILE *in, bool color, struct err *err)
{
	memset(&term, 0, sizeof(term));
	term.fd = fileno(out);
	term.has_termios = tcgetattr(term.fd, &term.before) == 0;
	term.screen = newterm(type, out, in);
	if (!term.screen)
		return err_set(err, ENOTTY, "cannot use this terminal: TERM is '%.60s'",
		    type	     ? type
		    : getenv("TERM") ? getenv("TERM")
				     : "");
	term.color = color && has_colors();
	make_colors();
	set_modes();
	prepare_restore();
	catch_fatal();
	return 0;
}

void top_screen_close(void)
{
	if (!term.screen)
		return;
	uncatch_fatal();
	(void)curs_set(1);
	(void)endwin();
	delscreen(term.screen);
	term.screen = NULL;
}

void top_screen_suspend(void)
{
	(void)endwin();
}

void top_screen_resume(void)
{
	(void)clearok(curscr, TRUE); /* whatever was written meanwhile is not ours */
	(void)refresh();
	(void)top_screen_resize();
}

void top_screen_set_size(int rows, int columns)
{
	(void)resizeterm(rows, columns);
}

bool top_screen_resize(void)
{
	struct winsize size;

	if (ioctl(term.fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		return false;
	if (size.ws_row == LINES && size.ws_col == COLS)
		return false;
	top_screen_set_size(size.ws_row, size.ws_col);
	return true;
}

int top_screen_rows(void)
{
	return LINES;
}

int top_screen_columns(void)
{
	return COLS < TOP_LINE_COLUMNS ? COLS : TOP_LINE_COLUMNS;
}

/* ---- drawing ---- */

static void draw_span(const struct top_line *l, size_t i)
{
	size_t from = l->span[i].from;
	size_t end = i + 1 < l->spans ? l->span[i + 1].from : l->len;

	/* The last cell of the screen is drawn, too, though the cursor cannot go past it. */
	(void)addnstr(l->text + from, (int)(end - from));
}

void top_screen_line(int y, struct top_line *l, enum top_style over)
{
	int columns = top_screen_columns();

	if (y < 0 || y >= LINES)
		return;
	top_line_cut(l, columns);
	(void)move(y, 0);
	set_style(over);
	if (over != STYLE_PLAIN) {
		(void)addnstr(l->text, (int)l->len);
	} else {
		for (size_t i = 0; i < l->spans; i++) {
			set_style((enum top_style)l->span[i].style);
			draw_span(l, i);
		}
		set_style(STYLE_PLAIN);
	}
	if (l->columns < columns)
		(void)hline(' ', COLS - l->columns);
}

void top_screen_cursor(int y, int x)
{
	(void)curs_set(x >= 0);
	if (x >= 0)
		(void)move(y, x < COLS ? x : COLS - 1);
}

void top_screen_flush(void)
{
	(void)refresh();
}

/* ---- keys ---- */

int top_screen_key(void)
{
	wint_t c = 0;
	int rc = get_wch(&c);

	if (rc == ERR)
		return -1;
	if (rc == KEY_CODE_YES)
		return c == KEY_ENTER ? TOP_KEY_ENTER : TOP_KEY((int)c);
	if (c == '\r')
		return TOP_KEY_ENTER;
	if (c == 0x7f || c == '\b')
		return TOP_KEY(KEY_BACKSPACE);
	return (int)c;
}

void top_screen_mouse(struct top_mouse *out)
{
	MEVENT event;

	*out = (struct top_mouse){MOUSE_NONE, 0, 0};
	if (getmouse(&event) == ERR)
		return;
	out->y = event.y;
	out->x = event.x;
	if (event.bstate & BUTTON4_PRESSED)
		out->kind = MOUSE_WHEEL_UP;
	else if (event.bstate & BUTTON5_PRESSED)
		out->kind = MOUSE_WHEEL_DOWN;
	else if (event.bstate & BUTTON1_PRESSED)
		out->kind = MOUSE_CLICK;
}
