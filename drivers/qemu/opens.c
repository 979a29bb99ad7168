/* opens: what QEMU gets when it opens a path for writing. Child (the filter) and worker. If the
 * worker dies its listener is closed, and QEMU can open nothing; it is killed anyway. */
#include "drivers/qemu/opens.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/qemu/machine.h"
#include "lib/fd.h"

#define KVM "/dev/kvm"

#if defined(__x86_64__)
#define OPENS_ARCH AUDIT_ARCH_X86_64
#define OPENS_OLD SYS_open
#define OPENS_CREAT SYS_creat
#else
#define OPENS_ARCH AUDIT_ARCH_AARCH64
#define OPENS_OLD SYS_openat /* has no other */
#define OPENS_CREAT SYS_openat
#endif

#define ARG(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define IF(op, k, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (yes), (no))
#define RETURN(k) BPF_STMT(BPF_RET | BPF_K, (k))

/* openat2() has its flags where no filter can look; who is told that there is none uses another. */
static struct sock_filter filter[] = {
    LOAD(offsetof(struct seccomp_data, arch)),
    IF(BPF_JEQ, OPENS_ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(offsetof(struct seccomp_data, nr)),
    IF(BPF_JEQ, SYS_openat2, 0, 1),
    RETURN(SECCOMP_RET_ERRNO | ENOSYS),
    IF(BPF_JEQ, OPENS_CREAT, 0, 1),
    RETURN(SECCOMP_RET_ERRNO | EACCES),
    IF(BPF_JEQ, SYS_openat, 3, 0),
    IF(BPF_JEQ, OPENS_OLD, 0, 5),
    LOAD(ARG(1)), /* open(path, flags) */
    IF(BPF_JSET, O_ACCMODE | O_CREAT | O_TRUNC, 2, 3),
    LOAD(ARG(2)), /* openat(dir, path, flags) */
    IF(BPF_JSET, O_ACCMODE | O_CREAT | O_TRUNC, 0, 1),
    RETURN(SECCOMP_RET_USER_NOTIF),
    RETURN(SECCOMP_RET_ALLOW),
};

int opens_listen(void)
{
	struct sock_fprog prog = {
	    .len = sizeof(filter) / sizeof(filter[0]),
	    .filter = filter,
	};
	long fd =
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);

	return fd < 0 ? -errno : (int)fd;
}

/* Whether the process that waits has that path for its argument. */
static bool asks_for(const struct seccomp_notif *call, const char *path)
{
	bool is_at = call->data.nr == SYS_openat;
	char name[32];
	char text[32] = "";
	FD_SCOPED int mem = -1;

	(void)snprintf(name, sizeof(name), "/proc/%u/mem", call->pid);
	mem = open(name, O_RDONLY | O_CLOEXEC);
	return mem >= 0 &&
	       pread(mem, text, strlen(path) + 1, (off_t)call->data.args[is_at ? 1 : 0]) ==
		   (ssize_t)strlen(path) + 1 &&
	       !memcmp(text, path, strlen(path) + 1);
}

/* Refuses when fd is none. It may be gone meanwhile: then nobody needs an answer. */
static int answer(int listener, const struct seccomp_notif *call, int fd)
{
	struct seccomp_notif_addfd add = {
	    .id = call->id, .srcfd = (uint32_t)fd, .newfd_flags = O_CLOEXEC};
	struct seccomp_notif_resp resp = {.id = call->id, .error = -EACCES};

	if (fd >= 0) {
		int given = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

		resp.error = given < 0 ? -errno : 0;
		resp.val = given < 0 ? 0 : given;
	}
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) < 0 && errno != ENOENT ? -errno : 0;
}

int opens_answer(int listener, int memory)
{
	struct seccomp_notif call = {0};
	FD_SCOPED int kvm = -1;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	if (asks_for(&call, MACHINE_MEMORY))
		return answer(listener, &call, memory);
	if (asks_for(&call, KVM))
		kvm = open(KVM, O_RDWR | O_CLOEXEC);
	return answer(listener, &call, kvm);
}
