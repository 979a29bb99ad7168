/*
 * sbx-boxlite: BoxLite's library in a process of its own, started by the BoxLite driver with one
 * end of a socket pair (drivers/boxlite/engine.h) as descriptor 3. Of no use by itself.
 *
 * If it dies, its box dies with it or not, as `boxlite.detach` says; either way the driver sees the
 * end, and the janitor removes what is left by name. If the driver dies the socket ends: the box is
 * removed, or left where it is to outlive its worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "drivers/boxlite/program/program.h"
#include "drivers/boxlite/program/shell.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"

#define END_NS (4 * NS_PER_S) /* for the box to be removed when nobody asks for it */

/* ---- what the threads tell ---- */

static void take_answer(struct program *p, struct note *n)
{
	if (n->ticket != p->tickets || p->answered) { /* nobody waits for it any more */
		if (n->handle)
			p->api.box_free(n->handle);
		free(n);
		return;
	}
	p->answer = n;
	p->answered = true;
}

static void take_errors(struct program *p, const struct note *n)
{
	(void)snprintf(p->errors, sizeof(p->errors), "%.*s", (int)n->len, (const char *)n->bytes);
	for (char *c = p->errors; *c; c++) {
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = ' ';
	}
}

static void take_exit(struct program *p, const struct note *n)
{
	p->exit_code = n->code;
	p->ran = true;
}

static void take_called(struct call *c)
{
	c->done = true;
	if (c->then)
		c->then(c);
}

static void take_note(struct program *p, struct note *n)
{
	switch (n->kind) {
	case NOTE_CALLED:
		take_called(n->handle);
		break;
	case NOTE_ANSWER:
		take_answer(p, n);
		return;
	case NOTE_OUTPUT:
		if (n->ticket)
			shell_note(p->shell, n);
		else
			relay_output(&p->relay, n->bytes, n->len);
		break;
	case NOTE_ERRORS:
		take_errors(p, n);
		break;
	case NOTE_EXIT:
		if (n->ticket)
			shell_note(p->shell, n);
		else
			take_exit(p, n);
		break;
	case NOTE_CLOSED:
		log_error("BoxLite's library has closed its runtime");
		p->hung_up = true;
		break;
	}
	free(n);
}

static void on_inbox(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct program *p = LOOP_OWNER(w, struct program, inbox_watch);
	struct note *n = inbox_take(p->inbox);

	(void)l;
	(void)events;
	while (n) {
		struct note *next = n->next;

		take_note(p, n);
		n = next;
	}
	if (inbox_lost(p->inbox)) {
		log_error("no memory for what BoxLite's library said");
		_exit(EXIT_FAILURE);
	}
}

/* ---- the driver ---- */

/* One at a time: the next one waits in the socket. */
static void on_control(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct program *p = LOOP_OWNER(w, struct program, control);
	int rc = 0;

	if (events & EPOLLIN && !p->ordered) {
		rc = eng_recv(w->fd, p->packet, &p->order);
		p->ordered = rc == 1;
		if (rc == -EAGAIN)
			return;
	}
	if (p->ordered && !(events & (EPOLLHUP | EPOLLERR))) {
		(void)loop_mod(l, w, 0); /* its end is still told */
		return;
	}
	if (rc < 0)
		log_error("the driver's order: %s", strerror(-rc));
	p->hung_up = true;
	loop_del(l, w);
}

/* ---- waiting ---- */

int program_turn(struct program *p)
{
	uint64_t now = clock_now_ns();

	if (now >= p->deadline_ns)
		return -ETIMEDOUT;
	if (loop_step(p->loop, p->deadline_ns - now) < 0)
		return -ETIMEDOUT; /* it cannot be waited any more */
	return 0;
}

int program_await(struct program *p, const bool *flag)
{
	int rc = 0;

	while (!*flag && rc == 0)
		rc = program_turn(p);
	return *flag ? 0 : rc;
}

void program_pause(struct program *p, uint64_t ns)
{
	uint64_t until = clock_now_ns() + ns;

	if (until > p->deadline_ns)
		until = p->deadline_ns;
	for (uint64_t now = clock_now_ns(); now < until; now = clock_now_ns()) {
		if (loop_step(p->loop, until - now) < 0)
			return;
	}
}

void program_stuck(struct program *p, const char *what, const char *before)
{
	struct eng_done done = {.code = ETIMEDOUT};

	log_error("box %s: BoxLite's library hangs: %s", p->name, what);
	(void)snprintf(done.text, sizeof(done.text), "%s: BoxLite did not do it in time%s%s", what,
	    before[0] ? "; before, it said " : "", before);
	/* Whoever does not hear it sees us end. */
	(void)eng_send(ENG_FD_CONTROL, ENG_DONE, p->order.head.seq, &done, NULL, 0, -1);
	_exit(EXIT_FAILURE);
}

/* ---- its life ---- */

/* The box has no agent, or no driver any more. */
static bool is_over(const struct program *p)
{
	if (p->hung_up)
		return true;
	if (p->shell)
		return shell_is_over(p->shell);
	return p->box && (p->ran || p->relay.broken);
}

/* There is nothing to be said to anybody: what fails here, the janitor does. */
static void end(struct program *p)
{
	struct eng_done ignored = {0};
	struct err err = {0};

	if (p->box && p->ran && !p->hung_up)
		log_warn("box %s: its agent ended with status %d%s%s", p->name, p->exit_code,
		    p->errors[0] ? ": " : "", p->errors);
	if (!p->box || (p->hung_up && p->detach))
		return;
	p->order.head.seq = 0;
	p->deadline_ns = clock_now_ns() + END_NS;
	relay_close(&p->relay);
	if (order_remove_box(p, p->name, &ignored, &err) < 0)
		log_error("box %s: %s", p->name, err.text);
}

static int serve(struct program *p)
{
	int rc = 0;

	while (rc == 0 && !is_over(p)) {
		rc = loop_step(p->loop, CLOCK_NEVER);
		if (rc == 0 && p->ordered) {
			uint16_t type = p->order.head.type;

			order_serve(p);
			if (type == ENG_STOP && !p->box)
				return 0;
			if (!p->hung_up)
				rc = loop_mod(p->loop, &p->control, EPOLLIN);
		}
	}
	return rc;
}

static int begin(struct program *p)
{
	p->loop = loop_create();
	p->inbox = inbox_create();
	p->caller = p->inbox ? caller_create(p->inbox) : NULL;
	if (!p->loop || !p->inbox || !p->caller)
		return -errno;
	if (loop_add(p->loop, &p->inbox_watch, inbox_fd(p->inbox), EPOLLIN, on_inbox) < 0)
		return -errno;
	return loop_add(p->loop, &p->control, ENG_FD_CONTROL, EPOLLIN, on_control);
}

static void do_nothing(int sig)
{
	(void)sig;
}

/* Our end is the driver's to decide. Handlers, since what is ignored would be ignored by the
 * library's own processes too: it may want to end them. */
static int ward_signals(void)
{
	static const int signals[] = {SIGPIPE, SIGINT, SIGHUP, SIGTERM, SIGQUIT};
	const struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (sigaction(signals[i], &action, NULL) < 0)
			return -errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct program program = {.order.fd = -1, .relay.watch.fd = -1};
	const char *format = getenv("SBX_LOG_FORMAT");
	int rc;

	(void)argv;
	FAULT_ROLE("boxlite");
	log_init("sbx-boxlite", format && !strcmp(format, "json") ? LOG_JSON : LOG_TEXT, LOG_INFO);
	if (argc != 1 || fcntl(ENG_FD_CONTROL, F_GETFD) < 0) {
		(void)fputs(
		    "usage: sbx-boxlite\nStarted by sbx-worker; of no use by itself.\n", stderr);
		return 2;
	}
	rc = ward_signals();
	if (rc == 0)
		rc = begin(&program);
	if (rc == 0)
		rc = serve(&program);
	if (rc < 0)
		log_error("%s", strerror(-rc));
	end(&program);
	/* The library's threads run on until the process ends: it is not taken apart under them. */
	_exit(rc < 0);
}
