/*
 * main: runs seeds, on all cores, and says how many steps and crashes that was. A violation prints
 * the last events of its seed and ends everything.
 *
 *   pool_sim [-v] [-j PROCESSES] [FIRST [COUNT]]
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define SEED_SECONDS 20U /* no seed takes that long */
#define JOBS_MAX 64U

struct totals {
	uint64_t seeds;
	uint64_t steps;
	uint64_t crashes;
};

static struct sim *world; /* for the handler below: the seed that is being run */

/* The pool aborts on a broken invariant of its own; a loop without end is a violation, too. */
static void on_fatal(int signo)
{
	(void)signal(signo, SIG_DFL);
	sim_print_end(world, signo == SIGALRM ? "the seed does not end" : strsignal(signo));
	_exit(EXIT_FAILURE);
}

static void watch_signals(void)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGFPE, SIGALRM};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)signal(signals[i], on_fatal);
}

/* Every `stride`-th seed. */
static void run_seeds(
    uint64_t first, uint64_t count, uint64_t stride, bool verbose, struct totals *totals)
{
	world = calloc(1, sizeof(*world));
	if (!world)
		exit(EXIT_FAILURE);
	watch_signals();
	for (uint64_t i = 0; i < count; i += stride) {
		(void)alarm(SEED_SECONDS);
		sim_run_seed(world, first + i, verbose);
		totals->seeds++;
	}
	totals->steps = world->steps;
	totals->crashes = world->crashes;
	free(world);
}

static void print_totals(const struct totals *all, uint32_t jobs, uint64_t began)
{
	double seconds = (double)(clock_now_ns() - began) / 1e9;
	uint64_t seeds = 0;
	uint64_t steps = 0;
	uint64_t crashes = 0;

	for (uint32_t i = 0; i < jobs; i++) {
		seeds += all[i].seeds;
		steps += all[i].steps;
		crashes += all[i].crashes;
	}
	(void)printf("sim: %" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64
		     " supervisor crashes, %.1f s, %.1f million steps a minute, no violation\n",
	    seeds, steps, crashes, seconds, (double)steps * 60 / seconds / 1e6);
}

/* True when every process ended well; when one did not, the others are ended. */
static bool await(pid_t *pids, uint32_t jobs)
{
	bool good = true;
	int status;

	for (uint32_t i = 0; i < jobs; i++) {
		pid_t pid = wait(&status);

		if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		for (uint32_t k = 0; good && k < jobs; k++) {
			if (pids[k] != pid)
				(void)kill(pids[k], SIGTERM);
		}
		good = false;
	}
	return good;
}

int main(int argc, char **argv)
{
	uint64_t began = clock_now_ns();
	struct totals *all = mmap(NULL, JOBS_MAX * sizeof(*all), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[JOBS_MAX];
	uint64_t first;
	uint64_t count;
	uint32_t jobs = 1;
	bool verbose = false;
	int option;

	while ((option = getopt(argc, argv, "vj:")) != -1) {
		if (option == 'v')
			verbose = true;
		else if (option == 'j')
			jobs = (uint32_t)strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	first = optind < argc ? strtoull(argv[optind], NULL, 10) : 1;
	count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : 1;
	if (all == MAP_FAILED || jobs == 0 || jobs > JOBS_MAX)
		return 2;
	for (uint32_t i = 0; i < jobs; i++) {
		pids[i] = jobs > 1 ? fork() : 0;
		if (pids[i] < 0)
			return 2;
		if (pids[i] == 0)
			run_seeds(first + i, count > i ? count - i : 0, jobs, verbose, &all[i]);
		if (pids[i] == 0 && jobs > 1)
			return EXIT_SUCCESS;
	}
	if (jobs > 1 && !await(pids, jobs))
		return EXIT_FAILURE;
	print_totals(all, jobs, began);
	return EXIT_SUCCESS;
}
