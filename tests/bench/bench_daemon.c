/* bench_daemon: a private sbxd for the benchmark. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define START_BOUND_MS 20000

void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void write_config(const struct daemon *d, const char *text)
{
	char path[96];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/c.yaml", d->dir);
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		die(path);
}

static void exec_daemon(const struct daemon *d)
{
	char config[96];
	char run[96];
	char state[96];
	char instance[32];
	char log[96];
	int fd;

	(void)snprintf(config, sizeof(config), "%s/c.yaml", d->dir);
	(void)snprintf(run, sizeof(run), "%s/run", d->dir);
	(void)snprintf(state, sizeof(state), "%s/state", d->dir);
	(void)snprintf(instance, sizeof(instance), "bench-%d", (int)getpid());
	(void)snprintf(log, sizeof(log), "%s/log", d->dir);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* a benchmark that fails leaves nothing running */
	fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)dup2(fd, STDERR_FILENO);
	execl("build/sbxd", "sbxd", "--config", config, "--runtime-dir", run, "--state-dir", state,
	    "--instance", instance, (char *)NULL);
	_exit(127);
}

void daemon_start(struct daemon *d, const char *config)
{
	const struct timespec tick = {.tv_nsec = 2000000};

	(void)snprintf(d->dir, sizeof(d->dir), "/tmp/sbxd-bench-XXXXXX");
	if (!mkdtemp(d->dir))
		die("mkdtemp");
	(void)snprintf(d->socket, sizeof(d->socket), "%s/run/sbxd.sock", d->dir);
	write_config(d, config);
	d->pid = fork();
	if (d->pid < 0)
		die("fork");
	if (d->pid == 0)
		exec_daemon(d);
	for (int waited = 0; !wire_try(d); waited += 2) {
		if (waitpid(d->pid, NULL, WNOHANG) == d->pid || waited > START_BOUND_MS) {
			(void)fprintf(stderr, "sbxd does not start; see %s/log\n", d->dir);
			exit(EXIT_FAILURE);
		}
		(void)nanosleep(&tick, NULL);
	}
}

void daemon_stop(struct daemon *d)
{
	static const char *const names[] = {"c.yaml", "log"};
	char path[96];
	int status = 0;

	(void)kill(d->pid, SIGTERM);
	if (waitpid(d->pid, &status, 0) != d->pid || status != 0)
		(void)fprintf(stderr, "sbxd ended with status %d; see %s/log\n", status, d->dir);
	for (size_t i = 0; status == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", d->dir, names[i]);
		(void)unlink(path);
	}
	(void)snprintf(path, sizeof(path), "%s/run", d->dir);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/state", d->dir);
	(void)rmdir(path);
	(void)rmdir(d->dir);
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
		die(path);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Pss:", 4))
			kib = strtoull(line + 4, NULL, 10);
	}
	(void)fclose(f); /* opened for reading */
	return kib;
}
