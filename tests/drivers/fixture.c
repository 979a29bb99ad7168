/* fixture: one prepared driver and boxes of it. In the test process. */
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fd.h"

/* Far from anybody's, and from those of another run of the suite: its boxes are counted by uid. */
#define FIXTURE_UID_BASE 1073741824U
#define FIXTURE_UID_BASES 24U

static uint32_t fixture_uid_base(void)
{
	return FIXTURE_UID_BASE +
	       (uint32_t)getpid() % FIXTURE_UID_BASES * HOST_STATE_SLOTS * DRIVER_UIDS;
}

/* cmocka hands state to tests, not to their setup: so the one global of the suite. */
static struct fixture *current;

struct fixture *fixture_current(void)
{
	return current;
}

/* Outside of a test there is nothing that cmocka could fail. */
static void need(int ok, const char *what, const char *why)
{
	if (ok)
		return;
	(void)fprintf(stderr, "conformance: %s: %s\n", what, why);
	exit(1);
}

/* The program that an environment variable names, or else the one at `path`; open for reading. */
static int fixture_program(const char *variable, const char *path)
{
	const char *other = getenv(variable);
	int fd = open(other ? other : path, O_RDONLY | O_CLOEXEC);

	need(fd >= 0, other ? other : path, strerror(errno));
	return fd;
}

/* A box that was, where the first leaves what all others find. */
static void fixture_warm_up(struct fixture *f)
{
	struct fixture_box *b = fixture_box_new(f, 0);
	struct err err = {0};

	need(f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err) == 0, "start",
	    err.text);
	need(f->driver->kill(b->box, patience_soon()) == 0, "kill", b->name);
	f->driver->free(b->box);
	need(f->driver->cleanup(&f->site, b->name, 0, 0, &err) == 0, "cleanup", err.text);
	fixture_box_free(b);
}

/* Some make boxes of a directory that is made for it: its path is in the environment. */
static int fixture_image(struct fixture *f, struct err *err)
{
	const struct target *t = f->target;

	f->image = t->image_variable ? getenv(t->image_variable) : t->image;
	if (!f->image)
		return err_set(err, ENOENT, "%s names no root directory", t->image_variable);
	if (f->driver->rooted && f->image[0] == '/')
		f->site.root = f->image;
	return 0;
}

int fixture_open(struct fixture *f, const struct target *target, struct err *err)
{
	struct err prepare_err = {0};
	int rc;

	*f = (struct fixture){.target = target, .driver = driver_find(target->driver)};
	need(f->driver != NULL, target->driver, "no such driver");
	f->guest = fixture_program("SBX_GUEST", "build/sbx-guest");
	f->helper = fixture_program("SBX_FILES", "build/sbx-files");
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/sbxd-conformance-XXXXXX");
	need(mkdtemp(f->dir) != NULL, f->dir, strerror(errno));
	(void)snprintf(f->state, sizeof(f->state), "%s.state", f->dir);
	need(mkdir(f->state, 0700) == 0, f->state, strerror(errno));
	(void)snprintf(f->instance, sizeof(f->instance), "conf%d", (int)getpid());
	f->site = (struct driver_site){
	    .instance = f->instance,
	    .state_dir = f->state,
	    .runtime_dir = f->dir,
	    .uid_base = geteuid() == 0 ? fixture_uid_base() : 0,
	    .prepared = memfd_create("prepared", MFD_CLOEXEC),
	};
	need(f->site.prepared >= 0, "memfd_create", strerror(errno));
	if (target->set_up)
		f->site.options = (struct driver_options){
		    f->options, target->set_up(f->dir, f->options, sizeof(f->options))};
	current = f;
	rc = fixture_image(f, err);
	if (rc == 0)
		rc = f->driver->probe(&f->site, &f->facts, err);
	if (rc == 0) {
		need(f->driver->prepare(&f->site, f->image, &prepare_err) == 0, "prepare",
		    prepare_err.text);
		if (target->traits & TARGET_WARM_UP)
			fixture_warm_up(f);
		host_state_take(&f->site, &f->quiet);
	}
	return rc;
}

void fixture_close(struct fixture *f)
{
	struct err err = {0};
	char store[112];

	for (int i = 0; i < 2; i++)
		need(f->driver->finish(&f->site, &err) == 0, "finish", err.text);
	fd_close(&f->site.prepared);
	fd_close(&f->guest);
	fd_close(&f->helper);
	if (f->target->tear_down)
		f->target->tear_down(f->dir);
	need(rmdir(f->dir) == 0, "finish left something", f->dir);
	(void)snprintf(store, sizeof(store), "%s/%s", f->state, f->driver->name);
	(void)record_remove_tree(AT_FDCWD, store); /* a cache, which is there for others, too */
	need(rmdir(f->state) == 0, "finish left something", f->state);
	current = NULL;
}

static void fixture_on_born(void *ctx, pid_t pid, uint64_t start)
{
	struct fixture_born *born = ctx;

	born->calls++;
	born->pid = pid;
	born->start = start;
}

struct fixture_box *fixture_box_new(struct fixture *f, uint32_t slot)
{
	struct fixture_box *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->born =
	    mmap(NULL, sizeof(*b->born), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(b->born != MAP_FAILED);
	(void)snprintf(b->name, sizeof(b->name), "sbxd-%s-%u-1f", f->instance, slot);
	b->stream = -1;
	b->spec = (struct driver_spec){
	    .name = b->name,
	    .image = f->image,
	    .slot = slot,
	    .memory_mib = 256,
	    .cpus_milli = 1000,
	    .disk_mib = 64,
	    .pids_max = 64,
	    .guest = f->guest,
	    .helper = f->helper,
	    .deadline_ns = patience_start(),
	    .born = fixture_on_born,
	    .born_ctx = b->born,
	};
	return b;
}

void fixture_box_free(struct fixture_box *b)
{
	if (!b)
		return;
	fd_close(&b->stream);
	(void)munmap(b->born, sizeof(*b->born));
	free(b);
}

void fixture_box_start(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};

	if (f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err) < 0)
		fail_msg("start: %s", err.text);
	agent_client_init(&b->client, b->stream);
	assert_int_equal(agent_client_hello(&b->client, patience_ms()), 0);
}

void fixture_box_kill(struct fixture *f, struct fixture_box *b)
{
	bool outlives = f->driver->outlives && f->driver->outlives(b->box);
	int rc = f->driver->kill(b->box, patience_soon());

	if (rc != 0 && !(outlives && rc == -EOWNERDEAD))
		fail_msg("kill: %s", strerror(-rc));
}

void fixture_box_end(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};

	fixture_box_kill(f, b);
	f->driver->free(b->box);
	if (f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err) < 0)
		fail_msg("cleanup: %s", err.text);
	fixture_box_free(b);
}

const char *fixture_shell(struct fixture_box *b, const char *user, const char *line, int status)
{
	int rc = agent_client_shell(&b->client, user, line, patience_ms(), &b->result);

	if (rc < 0)
		fail_msg("%s: %s", line, strerror(-rc));
	if (b->result.error || b->result.end.exit_code != status)
		fail_msg("%s: error %u, exit %d, signal %d: %s", line, b->result.error,
		    b->result.end.exit_code, b->result.end.signal, b->result.out);
	return b->result.out;
}

int fixture_setup_box(void **state)
{
	struct fixture_box *b = fixture_box_new(current, 1);

	fixture_box_start(current, b);
	*state = b;
	return 0;
}

int fixture_teardown_box(void **state)
{
	struct host_state now;

	fixture_box_end(current, *state);
	host_state_take(&current->site, &now);
	host_state_assert_same(&current->quiet, &now);
	return 0;
}

pid_t fixture_fork(struct fixture *f, struct fixture_box *b, fixture_worker_fn *fn)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(f, b));
	return pid;
}

int fixture_wait(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status = -1;
	int rc;

	assert_true(p.fd >= 0);
	rc = poll(&p, 1, patience_child_ms());
	(void)close(p.fd);
	if (rc == 0)
		(void)kill(pid, SIGKILL); /* ours and not reaped: it is there */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (rc == 0)
		fail_msg("a process of the test did not end in %d s", patience_child_ms() / 1000);
	return status;
}
