/* fixture: one prepared driver and boxes of it. In the test process. */
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

static struct driver_spec fixture_spec(const struct fixture *f, uint32_t slot, const char *name)
{
	return (struct driver_spec){
	    .name = name,
	    .image = f->image,
	    .slot = slot,
	    .memory_mib = 256,
	    .cpus_milli = 1000,
	    .disk_mib = 64,
	    .pids_max = 64,
	    .guest = f->guest,
	    .helper = f->helper,
	    .deadline_ns = CLOCK_NEVER,
	};
}

/* A driver that does not know `host` needs a directory: SBX_ROOT, see tests/qemu/make_root.sh. */
static int fixture_image(struct fixture *f, struct err *err)
{
	const char *root = getenv("SBX_ROOT");
	const char *kernel = getenv("SBX_KERNEL");
	int n;

	f->image = "host";
	if (f->driver->takes(f->image))
		return 0;
	if (!root)
		return err_set(err, ENOENT, "SBX_ROOT names no root directory");
	f->image = root;
	n = snprintf(f->options, sizeof(f->options), "qemu.accel=tcg");
	if (kernel)
		n += 1 + snprintf(f->options + n + 1, sizeof(f->options) - (size_t)n - 1,
			     "qemu.kernel=%s", kernel);
	f->site.options = (struct driver_options){f->options, (size_t)n + 1};
	return 0;
}

/* What the first box makes for all, it has made then. */
static void fixture_use_once(struct fixture *f)
{
	struct driver_spec spec = fixture_spec(f, 0, "");
	struct driver_box *box;
	struct err err = {0};
	char name[64];
	int stream = -1;

	(void)snprintf(name, sizeof(name), "sbxd-%s-0-1", f->instance);
	spec.name = name;
	need(f->driver->start(&f->site, &spec, &box, &stream, &err) == 0, "first box", err.text);
	need(f->driver->kill(box, clock_now_ns() + 10 * NS_PER_S) == 0, "first box", "kill");
	f->driver->free(box);
	(void)close(stream);
	need(f->driver->cleanup(&f->site, name, 0, 0, &err) == 0, "first box", err.text);
}

int fixture_open(struct fixture *f, const struct driver *driver, struct err *err)
{
	struct err prepare_err = {0};
	int rc;

	*f = (struct fixture){.driver = driver};
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
	rc = fixture_image(f, err);
	if (rc == 0)
		rc = driver->probe(&f->site, &f->facts, err);
	if (rc == 0) {
		need(driver->prepare(&f->site, f->image, &prepare_err) == 0, "prepare",
		    prepare_err.text);
		fixture_use_once(f);
		host_state_take(&f->site, &f->quiet);
	}
	current = f;
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
	b->spec = fixture_spec(f, slot, b->name);
	b->spec.born = fixture_on_born;
	b->spec.born_ctx = b->born;
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
	assert_int_equal(agent_client_hello(&b->client, FIXTURE_WAIT_MS), 0);
}

void fixture_box_end(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};

	assert_int_equal(f->driver->kill(b->box, clock_now_ns() + 10 * NS_PER_S), 0);
	f->driver->free(b->box);
	if (f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err) < 0)
		fail_msg("cleanup: %s", err.text);
	fixture_box_free(b);
}

const char *fixture_shell(struct fixture_box *b, const char *user, const char *line, int status)
{
	int rc = agent_client_shell(&b->client, user, line, FIXTURE_WAIT_MS, &b->result);

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
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}
