/* boot: a machine that boots. Worker; if it dies, QEMU is killed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/qemu/cpio.h"
#include "drivers/qemu/talk.h"
#include "drivers/qemu/template.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define UNDO_NS (5 * NS_PER_S)

static int append_file(int to, const char *path)
{
	FD_SCOPED int from = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	if (from < 0)
		return -errno;
	while ((n = read(from, bytes, sizeof(bytes))) > 0) {
		if (write(to, bytes, (size_t)n) != n)
			return -errno;
	}
	return n < 0 ? -errno : 0;
}

/* The modules, and then what is ours. A memfd (caller's) or -errno. */
static int make_initrd(const struct qemu_plan *plan, const struct driver_spec *spec)
{
	FD_SCOPED int fd = memfd_create("initrd", MFD_CLOEXEC);
	struct cpio c;
	int rc = fd < 0 ? -errno : append_file(fd, plan->modules);

	if (rc < 0)
		return rc;
	cpio_begin(&c, fd);
	rc = cpio_put_dir(&c, "dev", 0755);
	if (rc == 0)
		rc = cpio_put_file(&c, "init", 0700, spec->guest);
	if (rc == 0 && spec->helper >= 0)
		rc = cpio_put_file(&c, "sbx-files", 0500, spec->helper);
	if (rc == 0)
		rc = cpio_end(&c);
	return rc < 0 ? rc : fd_take(&fd);
}

int template_boot(const struct machine_spec *like, const struct driver_spec *spec, uid_t base,
    const struct machine_hooks *hooks, struct machine *m, struct err *err)
{
	struct machine_spec s = *like;
	FD_SCOPED int initrd = make_initrd(like->plan, spec);
	FD_SCOPED int kernel = open(like->plan->kernel, O_RDONLY | O_CLOEXEC);
	int rc;

	if (initrd < 0)
		return err_sys(err, -initrd, "make the initial file system");
	if (kernel < 0)
		return err_sys(err, errno, "read the kernel %s", like->plan->kernel);
	s.boots = true;
	s.kernel = kernel;
	s.initrd = initrd;
	rc = machine_launch(&s, base, hooks, spec->deadline_ns, m, err);
	if (rc < 0)
		return rc;
	rc = talk_hello(m, spec->deadline_ns, err);
	if (rc < 0) {
		machine_explain(m, err);
		(void)machine_kill(m, clock_now_ns() + UNDO_NS); /* else it is the janitor's */
		machine_close(m);
	}
	return rc;
}
