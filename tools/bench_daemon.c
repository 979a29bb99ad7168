/* bench_daemon: a private sbxd for a measurement. sbxbench; if that dies the keeper ends it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "tools/bench.h"

#define BOUND_NS (120 * NS_PER_S) /* for whatever is waited for */
#define TICK_NS 500000L
#define LOG_MAX (1U << 20)
#define LOG_SHOWN 2000
#define FILE_PATH (BENCH_DIR + 32)

/* Those that run; their owners wait in the stack while exit() ends the program. */
static struct daemon *running[BENCH_PRIVATES];

void bench_die(const char *what)
{
	perror(what);
	exit(BENCH_FAILED); /* stop_all() tells more */
}

void bench_give_up(const char *what)
{
	(void)fprintf(stderr, "%s\n", what);
	exit(BENCH_FAILED);
}

static void nap(long ns)
{
	const struct timespec t = {.tv_sec = ns / 1000000000L, .tv_nsec = ns % 1000000000L};

	(void)nanosleep(&t, NULL);
}

void bench_settle(long ms)
{
	nap(ms * 1000000L);
}

static void file_path(const struct daemon *d, const char *name, char out[FILE_PATH])
{
	(void)snprintf(out, FILE_PATH, "%s/%s", d->p.dir, name);
}

static void note_running(const struct daemon *old, struct daemon *new)
{
	for (size_t i = 0; i < BENCH_PRIVATES; i++) {
		if (running[i] == old) {
			running[i] = new;
			return;
		}
	}
}

/* The end of what it logged. */
static void show_log(const struct daemon *d)
{
	static char text[LOG_SHOWN + 1];
	char path[FILE_PATH];
	struct stat st = {0};
	ssize_t n;
	int fd;

	file_path(d, "log", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	n = pread(fd, text, LOG_SHOWN, st.st_size > LOG_SHOWN ? st.st_size - LOG_SHOWN : 0);
	(void)close(fd); /* opened for reading */
	(void)fprintf(stderr, "%.*s", n < 0 ? 0 : (int)n, text);
}

/* The program ends before its time. */
static void stop_all(void)
{
	for (size_t i = 0; i < BENCH_PRIVATES; i++) {
		if (!running[i])
			continue;
		show_log(running[i]);
		daemon_stop(running[i]);
	}
}

/* ---- starting ---- */

static void write_config(const struct daemon *d, const char *text)
{
	char path[FILE_PATH];
	FILE *f;

	file_path(d, "c.yaml", path);
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		bench_die(path);
}

static off_t log_size(const struct daemon *d)
{
	char path[FILE_PATH];
	struct stat st;

	file_path(d, "log", path);
	return stat(path, &st) < 0 ? 0 : st.st_size;
}

/* Before it can leave anything, the keeper knows of it. */
static void run_daemon(struct bench_private *p) __attribute__((noreturn));

static void run_daemon(struct bench_private *p)
{
	p->pid = getpid();
	keeper_note(p);
	bench_private_exec(p, true);
}

void daemon_launch(struct daemon *d)
{
	d->log_from = log_size(d);
	d->launched_ns = clock_now_ns();
	d->p.pid = fork();
	if (d->p.pid < 0)
		bench_die("fork");
	if (d->p.pid == 0)
		run_daemon(&d->p);
}

void daemon_await(struct daemon *d)
{
	while (!wire_try(d)) {
		if (waitpid(d->p.pid, NULL, WNOHANG) == d->p.pid) {
			d->p.pid = 0;
			bench_give_up("sbxd does not start");
		}
		if (clock_now_ns() - d->launched_ns > BOUND_NS)
			bench_give_up("sbxd does not start in time");
		nap(TICK_NS);
	}
}

void bench_private_make(struct bench_private *p, bool daemon)
{
	static uint32_t serial;

	if (serial == 0)
		(void)atexit(stop_all); /* without it a failure leaves files */
	if (keeper_start() < 0)
		bench_die("keeper");
	*p = (struct bench_private){.serial = ++serial};
	if (daemon)
		(void)snprintf(
		    p->instance, sizeof(p->instance), "bench-%d-%u", (int)getpid(), serial);
	bench_dir_make(p->dir);
	keeper_note(p);
}

void daemon_start(struct daemon *d, const char *config)
{
	*d = (struct daemon){.log_from = 0};
	bench_private_make(&d->p, true);
	note_running(NULL, d);
	(void)snprintf(d->socket, sizeof(d->socket), "%s/run/sbxd.sock", d->p.dir);
	write_config(d, config);
	daemon_launch(d);
	daemon_await(d);
}

/* ---- while it runs ---- */

static bool log_has(const struct daemon *d, const char *text)
{
	static char log[LOG_MAX + 1];
	char path[FILE_PATH];
	ssize_t n;
	int fd;

	file_path(d, "log", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, log, LOG_MAX, d->log_from);
	(void)close(fd); /* opened for reading */
	log[n < 0 ? 0 : n] = '\0';
	return strstr(log, text) != NULL;
}

void daemon_await_log(const struct daemon *d, const char *text)
{
	uint64_t begin = clock_now_ns();

	while (!log_has(d, text)) {
		if (clock_now_ns() - begin > BOUND_NS)
			bench_give_up("sbxd does not log what is waited for");
		nap(TICK_NS);
	}
}

void daemon_configure(struct daemon *d, const char *config)
{
	write_config(d, config);
	d->log_from = log_size(d);
	(void)kill(d->p.pid, SIGHUP);
	daemon_await_log(d, "changed");
}

uint64_t daemon_pss_kib(pid_t pid)
{
	char path[64];
	char line[128];
	uint64_t kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	if (!f)
		bench_die(path);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Pss:", 4))
			kib = strtoull(line + 4, NULL, 10);
	}
	(void)fclose(f); /* opened for reading */
	return kib;
}

/* ---- its end ---- */

void daemon_kill(struct daemon *d)
{
	(void)kill(d->p.pid, SIGKILL);
	if (waitpid(d->p.pid, NULL, 0) != d->p.pid)
		bench_die("waitpid");
	d->p.pid = 0;
}

void daemon_stop(struct daemon *d)
{
	int pidfd = d->p.pid > 0 ? bench_pidfd(d->p.pid) : -1;
	int status = 0;

	if (bench_private_end(&d->p, pidfd) == 0)
		keeper_forget(d->p.serial);
	fd_close(&pidfd);
	if (d->p.pid > 0 && waitpid(d->p.pid, &status, WNOHANG) == d->p.pid && status != 0)
		(void)fprintf(stderr, "sbxbench: sbxd ended with status %d\n", status);
	note_running(d, NULL);
}
