/*
 * boot: from exec to a box that is up. sbx-worker.
 *
 * Blocks, within the boot's deadline: nobody is served yet. The scope lock is held from before the
 * driver starts until the box is published: if we die in between, the next taker knows that we died
 * in the middle, and box_pid in the slot page, written before the box's first process may run, says
 * what must be ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "shm/scope_lock.h"
#include "shm/segment.h"
#include "worker/box.h"
#include "worker/confine.h"

#define BOOT_ORDER_MS 60000 /* to CTL_BOOT */
#define BOOT_PARTS 16	    /* the last of them is for saying why it failed, before sbxd kills us */

static int boot_hello(uint32_t slot)
{
	const struct ctl_hello hello = {.slot = slot, .pid = (int32_t)getpid()};

	return ctl_send(CTL_FD_CONTROL, CTL_HELLO, 0, 0, &hello, NULL, 0, -1);
}

/* The first order; the socket is kept as it is, so that later ones wait in it. */
static int boot_await_order(struct box *b, uint32_t slot)
{
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLIN};
	struct ctl_msg msg;
	int rc;

	do {
		rc = poll(&p, 1, BOOT_ORDER_MS);
	} while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc < 0 ? -errno : -ETIMEDOUT;
	rc = ctl_recv(CTL_FD_CONTROL, b->scratch, &msg);
	if (rc <= 0)
		return rc < 0 ? rc : -EPIPE;
	if (msg.head.type != CTL_BOOT || msg.body.boot.slot != slot) {
		fd_close(&msg.fd);
		return -EBADMSG;
	}
	b->ordered_ns = clock_now_ns();
	b->boot = msg.body.boot;
	b->gen = msg.head.gen;
	b->boot_seq = msg.head.seq;
	b->env = malloc(msg.tail_len + 1);
	if (!b->env)
		return -ENOMEM;
	memcpy(b->env, msg.tail, msg.tail_len);
	b->env[msg.tail_len] = '\0';
	b->env_len = msg.tail_len;
	return 0;
}

static void boot_born(void *ctx, pid_t box_pid, uint64_t box_start)
{
	struct box *b = ctx;

	report_set_box(&b->report, (int32_t)box_pid, box_start);
	FAULT_POINT("worker.boot.born");
}

static int boot_map_page(struct box *b, struct err *err)
{
	int fd = CTL_FD_SEGMENT;

	b->page = segment_map_page(fd, b->boot.slots_off, b->boot.slot);
	if (!b->page)
		return err_sys(err, errno, "map the page of slot %u", b->boot.slot);
	fd_close(&fd);
	if (b->page->slot != b->boot.slot)
		return err_set(
		    err, EBADMSG, "the page of slot %u is that of another", b->boot.slot);
	report_init(&b->report, b->loop, b->page, b->gen);
	return 0;
}

static int boot_lock(struct box *b, uint64_t deadline_ns, struct err *err)
{
	if (scope_lock_wait(b->page, deadline_ns, box_refuse_repair, NULL) != SCOPE_LOCKED)
		return err_set(err, EBUSY, "the scope lock of slot %u cannot be had", b->boot.slot);
	b->locked = true;
	FAULT_POINT("worker.boot.locked");
	return 0;
}

static int boot_start(struct box *b, uint64_t deadline_ns, int *stream, struct err *err)
{
	const struct driver_spec spec = {
	    .name = b->boot.name,
	    .image = b->boot.image,
	    .slot = b->boot.slot,
	    .memory_mib = b->boot.memory_mib,
	    .cpus_milli = b->boot.cpus_milli,
	    .disk_mib = b->boot.disk_mib,
	    .pids_max = b->boot.pids_max,
	    .guest = CTL_FD_GUEST,
	    .helper = fcntl(CTL_FD_HELPER, F_GETFD) < 0 ? -1 : CTL_FD_HELPER,
	    .deadline_ns = deadline_ns,
	    .born = boot_born,
	    .born_ctx = b,
	    .take_over = (b->boot.flags & CTL_BOOT_TAKE_OVER) != 0,
	};
	int rc;

	b->site = (struct driver_site){
	    .instance = b->boot.site.instance,
	    .state_dir = b->boot.site.state_dir,
	    .runtime_dir = b->boot.site.runtime_dir,
	    .uid_base = b->boot.site.uid_base,
	    .prepared = CTL_FD_PREPARED,
	};
	b->driver = driver_find(b->boot.site.driver);
	if (!b->driver)
		return err_set(err, ENOENT, "there is no driver \"%s\"", b->boot.site.driver);
	if (spec.take_over && !b->driver->outlives)
		return err_set(err, EOPNOTSUPP, "driver %s has boxes that end with their worker",
		    b->driver->name);
	if (FAULT_FAILS("worker.boot.start"))
		return err_set(err, EIO, "a test wants the boot to fail");
	rc = b->driver->start(&b->site, &spec, &b->handle, stream, err);
	if (rc < 0) {
		report_set_box(&b->report, 0, 0); /* nothing is left of it */
		return rc;
	}
	FAULT_POINT("worker.boot.started");
	return b->driver->unprivileged ? b->driver->unprivileged(b->handle, err) : 0;
}

/* Our life is sbxd's to decide, and a write to a closed stream is no reason to die. */
static int boot_ignore_signals(void)
{
	static const int signals[] = {SIGPIPE, SIGINT, SIGHUP, SIGTERM, SIGQUIT};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (sigaction(signals[i], &ignore, NULL) < 0)
			return -errno;
	}
	return 0;
}

/* After this the worker has no more than its page, its sockets, the driver's descriptors and the
 * guest's stream. */
static int boot_confine(struct box *b, struct err *err)
{
	const struct ctl_site *site = &b->boot.site;
	uid_t uid =
	    site->uid_base ? site->uid_base + b->boot.slot * DRIVER_UIDS + DRIVER_WORKER_UID : 0;
	int fds[] = {CTL_FD_PREPARED, CTL_FD_GUEST, CTL_FD_HELPER};
	int rc = boot_ignore_signals();

	if (rc < 0)
		return err_sys(err, -rc, "ignore signals");
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		fd_close(&fds[i]);
	rc = confine_self(uid, err);
	FAULT_POINT("worker.boot.confined");
	return rc;
}

static void boot_on_hello(void *ctx, const struct agent_hello *h)
{
	struct box *b = ctx;

	b->greeted = true;
	b->guest_fits = h->version == AGENT_VERSION;
}

static void boot_on_pong(void *ctx, const uint8_t *payload, size_t n)
{
	struct box *b = ctx;
	uint64_t nonce;

	if (n != BOX_NONCE)
		return; /* no answer to anything we asked */
	memcpy(&nonce, payload, sizeof(nonce));
	box_check_pong(b, nonce);
	box_stop_pong(b, nonce);
	box_close_pong(b, nonce);
}

static void boot_on_broken(void *ctx, int code, const char *why)
{
	struct box *b = ctx;

	if (b->state != BOX_BOOTING)
		box_die(b, code, why);
}

static int boot_on_rouse(void *ctx)
{
	return box_rouse(ctx);
}

static const struct agent_link_ops boot_link_ops = {
    .hello = boot_on_hello,
    .pong = boot_on_pong,
    .broken = boot_on_broken,
    .rouse = boot_on_rouse,
};

/* What ended for no reason that anybody knows was killed. */
static int boot_guest_ended(struct box *b, struct err *err)
{
	const char *why = box_known_why(b);
	bool killed = !why && b->link.why_code != EBADMSG;

	return err_set(
	    err, killed ? EOWNERDEAD : EPIPE, "the guest agent ended: %s", why ? why : b->link.why);
}

static int boot_greet(struct box *b, uint64_t deadline_ns, struct err *err)
{
	uint64_t now;
	int rc;

	while (!b->greeted && !b->link.broken) {
		now = clock_now_ns();
		if (now >= deadline_ns)
			return err_set(err, ETIMEDOUT, "the guest agent did not answer in time");
		rc = loop_step(b->loop, deadline_ns - now);
		if (rc < 0)
			return err_sys(err, -rc, "wait for the guest agent");
	}
	if (!b->greeted)
		return boot_guest_ended(b, err);
	if (!b->guest_fits)
		return err_set(err, EPROTO, "the guest agent speaks another version");
	return 0;
}

static int boot_up(struct box *b, struct err *err)
{
	uint64_t timeout_ns = b->boot.boot_timeout_ms * NS_PER_MS;
	uint64_t deadline_ns = b->ordered_ns + timeout_ns - timeout_ns / BOOT_PARTS;
	int stream = -1;
	int rc;

	if (boot_map_page(b, err) < 0 || boot_lock(b, deadline_ns, err) < 0 ||
	    boot_start(b, deadline_ns, &stream, err) < 0 || box_make_door(b, err) < 0) {
		fd_close(&stream);
		return -err->code;
	}
	rc = agent_link_init(&b->link, b->loop, stream, &boot_link_ops, b);
	if (rc < 0)
		return err_sys(err, -rc, "take the guest's stream");
	if (boot_confine(b, err) < 0 || boot_greet(b, deadline_ns, err) < 0)
		return -err->code;
	FAULT_POINT("worker.boot.ready");
	return 0;
}

/* Undoes all there is, and says why: a box that was killed, or whose image is to be prepared anew,
 * has died, and may be tried again. */
static void boot_fail(struct box *b, const struct err *err)
{
	struct ctl_failed failed = {.code = err->code};
	bool died = err->code == EOWNERDEAD || err->code == ESTALE;

	if (b->handle)
		(void)box_end_all(b); /* sbxd has the janitor prove it in any case */
	if (b->page)
		report_set_error(&b->report, err->text);
	box_unlock(b);
	log_error("box %s: boot failed: %s", b->boot.name, err->text);
	(void)snprintf(
	    failed.reason, sizeof(failed.reason), "%s", died ? "box_died" : "boot_failed");
	(void)snprintf(failed.text, sizeof(failed.text), "%.*s", CTL_TEXT - 1, err->text);
	/* If sbxd does not hear it, it sees us go. */
	(void)ctl_send(CTL_FD_CONTROL, died ? CTL_BOX_DIED : CTL_FAILED, b->boot_seq, b->gen,
	    &failed, NULL, 0, -1);
}

static void boot_tell(struct box *b)
{
	struct ctl_booted *booted = &b->booted;
	int rc;

	*booted = (struct ctl_booted){
	    .box_pid = b->report.work.box_pid,
	    .box_start = b->report.work.box_start,
	    .boot_ns = clock_now_ns() - b->ordered_ns,
	};
	if (b->driver->outlives && b->driver->outlives(b->handle))
		booted->flags |= CTL_BOOTED_OUTLIVES;
	if (b->driver->isolation && b->driver->isolation(b->handle))
		(void)snprintf(booted->isolation, sizeof(booted->isolation), "%s",
		    b->driver->isolation(b->handle));
	rc = ctl_send(CTL_FD_CONTROL, CTL_BOOTED, b->boot_seq, b->gen, booted, NULL, 0, -1);
	if (rc < 0) /* sbxd died meanwhile: the box waits for a successor as any other does */
		log_warn("box %s: is up, and nobody hears it: %s", b->boot.name, strerror(-rc));
}

int box_boot(struct box *b, uint32_t slot)
{
	struct err err = {0};
	int rc;

	b->watch.fd = -1;
	b->door.fd = -1;
	b->door.watch.fd = -1;
	b->scratch =
	    mmap(NULL, SERVICE_SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->scratch == MAP_FAILED)
		return -errno;
	/* Ours for life, and no box's: with the last of us the image may go. */
	(void)fcntl(CTL_FD_IMAGE, F_SETFD, FD_CLOEXEC); /* it may not be there */
	rc = boot_hello(slot);
	FAULT_POINT("worker.boot.hello_sent");
	if (rc == 0)
		rc = boot_await_order(b, slot);
	if (rc < 0) {
		if (rc != -EPIPE)
			log_error("worker of slot %u: no order to boot: %s", slot, strerror(-rc));
		return rc;
	}
	b->loop = loop_create();
	if (!b->loop)
		rc = err_sys(&err, errno, "create the loop");
	else
		rc = boot_up(b, &err);
	if (rc < 0) {
		boot_fail(b, &err);
		return rc;
	}
	report_publish(&b->report);
	FAULT_POINT("worker.boot.published");
	box_unlock(b);
	boot_tell(b);
	FAULT_POINT("worker.boot.told");
	return 0;
}
