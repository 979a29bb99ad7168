/*
 * rendezvous: the socket of a worker, at which the successor of a dead sbxd finds it:
 * <runtime dir>/workers/<slot>, in a directory that only sbxd's user may enter.
 *
 * SOCK_SEQPACKET, as the pair it stands in for. Both ends look at SO_PEERCRED.
 */
#ifndef SBXD_WIRE_RENDEZVOUS_H
#define SBXD_WIRE_RENDEZVOUS_H

#include <stdint.h>
#include <sys/types.h>

#define RENDEZVOUS_DIR "workers"

/* Worker, with the right to write the directory. Listens in place of whatever was there. The
 * descriptor (caller's, non-blocking) or -errno. */
int rendezvous_listen(const char *runtime_dir, uint32_t slot);

/* Worker: the next connection that comes from a process of `uid`. The descriptor (caller's,
 * non-blocking), -EAGAIN: none; -EPERM: it was somebody else's and is closed; or -errno. */
int rendezvous_accept(int listener, uid_t uid);

/*
 * sbxd: connects to the worker of a slot, without waiting. *pid: who listens there. The descriptor
 * (caller's, non-blocking), -ENOENT or -ECONNREFUSED: nobody listens; or -errno.
 */
int rendezvous_connect(const char *runtime_dir, uint32_t slot, pid_t *pid);

/* sbxd: removes the socket of a slot; none is fine. 0 or -errno. */
int rendezvous_remove(const char *runtime_dir, uint32_t slot);

#endif
