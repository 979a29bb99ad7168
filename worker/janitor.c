/*
 * janitor: the privileged helper of sbxd. A process of its own: drivers may block, sbxd may not.
 * If it dies, sbxd starts another and asks again; everything it does can be done twice. If sbxd
 * dies, the control socket ends and so does the janitor.
 */
#include "worker/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "drivers/driver.h"
#include "drivers/image/root.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"

#define LOCK_WAIT_MS 15000 /* less than sbxd waits for an order */
#define LOCK_TRY_MS 5

#define DRIVER_AUTO "auto"

/* A driver is at it still: sbxd is not to think that we hang. That it cannot be told is no harm. */
static void janitor_busy(void *ctx)
{
	const struct ctl_msg *msg = ctx;

	(void)ctl_send(CTL_FD_CONTROL, CTL_BUSY, msg->head.seq, 0, NULL, NULL, 0, -1);
}

static struct driver_site janitor_site(const struct ctl_msg *msg, int prepared)
{
	const struct ctl_site *site = &msg->body.prepare.site;

	return (struct driver_site){
	    .instance = site->instance,
	    .state_dir = site->state_dir,
	    .runtime_dir = site->runtime_dir,
	    .uid_base = site->uid_base,
	    .prepared = prepared,
	    .options = {.data = (const char *)msg->tail, .len = msg->tail_len},
	    .busy = janitor_busy,
	    .busy_ctx = (void *)(uintptr_t)msg, /* only read */
	};
}

static int janitor_driver(const struct ctl_site *wire, const struct driver **out, struct err *err)
{
	*out = driver_find(wire->driver);
	return *out ? 0 : err_set(err, ENOENT, "there is no driver %s", wire->driver);
}

static int janitor_prepare_with(const struct driver *driver, const struct driver_site *site,
    const char *image, bool asked_for, struct janitor_answer *answer, struct err *err)
{
	struct ctl_done *done = &answer->done;
	struct driver_site with_root = *site;
	struct driver_facts facts = {0};
	struct image_root root = {.hold = -1};
	int rc = driver->probe(site, &facts, err);

	if (rc == 0 && facts.only_if_asked && !asked_for)
		rc = err_set(err, ENODEV, "only %s is possible here, which must be asked for",
		    facts.isolation);
	if (rc == 0 && driver->rooted)
		rc = image_root_get(site->state_dir, image, &root, err);
	if (rc == 0) {
		with_root.root = root.path[0] ? root.path : NULL;
		rc = driver->prepare(&with_root, image, err);
	}
	if (rc == 0) {
		done->pauses = driver->pause != NULL;
		(void)snprintf(done->driver, sizeof(done->driver), "%s", driver->name);
		(void)snprintf(done->isolation, sizeof(done->isolation), "%s", facts.isolation);
		(void)snprintf(done->warning, sizeof(done->warning), "%s", facts.warning);
		answer->fd = fd_take(&root.hold);
		answer->tail = root.config;
		root.config = (struct buf){0};
	}
	image_root_free(&root);
	return rc;
}

static int janitor_find(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 1;
}

/* Of a driver that could not, nothing of its trial stays; but what it keeps for boxes that an
 * earlier supervisor made with it is theirs. */
static void janitor_take_back(const struct driver *driver, const struct driver_site *site)
{
	struct err err;

	if (driver->list(site, janitor_find, NULL) == 0)
		(void)driver->finish(site, &err); /* why it could not is what is told */
}

/* The first driver that takes such an image and can make boxes of it here. */
static int janitor_prepare_any(const struct driver_site *site, const char *image,
    struct janitor_answer *answer, struct err *err)
{
	const struct driver *driver;
	struct err why = {0};
	size_t len = 0;
	int rc;

	for (unsigned int n = 0; (driver = driver_at(n)); n++) {
		struct err one = {0};

		if (!driver->takes(image))
			continue;
		rc = janitor_prepare_with(driver, site, image, false, answer, &one);
		if (rc == 0)
			return 0;
		if (rc == -ENODATA && driver->rooted) /* it could, once it is there */
			return err_set(err, ENODATA, "%s", one.text);
		janitor_take_back(driver, site);
		if (len < sizeof(why.text))
			len += (size_t)snprintf(why.text + len, sizeof(why.text) - len, "%s%s: %s",
			    len ? "; " : "", driver->name, one.text);
		why.code = one.code;
	}
	if (!why.code)
		return err_set(err, EINVAL, "no driver knows an image \"%s\"", image);
	return err_set(err, why.code, "%s", why.text);
}

static int janitor_prepare(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	const struct ctl_prepare *order = &body->prepare;
	const struct driver *driver = NULL;
	int rc;

	if (!strcmp(order->site.driver, DRIVER_AUTO))
		return janitor_prepare_any(site, order->image, answer, err);
	rc = janitor_driver(&order->site, &driver, err);
	return rc == 0 ? janitor_prepare_with(driver, site, order->image, true, answer, err) : rc;
}

/* Who made it is not known: a place was reserved for it, and perhaps no more. */
static int janitor_cleanup_any(
    const struct driver_site *site, const struct ctl_cleanup *c, struct err *err)
{
	const struct driver *driver;
	int rc = 0;

	for (unsigned int n = 0; rc == 0 && (driver = driver_at(n)); n++)
		rc = driver->cleanup(site, c->name, c->box_pid, c->box_start, err);
	return rc;
}

static int janitor_cleanup(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	const struct ctl_cleanup *c = &body->cleanup;
	const struct driver *driver = NULL;
	int rc;

	(void)answer;
	if (!strcmp(c->site.driver, DRIVER_AUTO))
		return janitor_cleanup_any(site, c, err);
	rc = janitor_driver(&c->site, &driver, err);
	return rc == 0 ? driver->cleanup(site, c->name, c->box_pid, c->box_start, err) : rc;
}

/* Names are collected first: cleaning up changes what is being listed. */
struct janitor_names {
	const char *kept; /* each after its CTL_KEEP_* and ended by a NUL */
	size_t kept_len;
	char (*names)[DRIVER_NAME_LEN];
	size_t count;
};

/* The first entry for at == NULL, else the one after it; NULL past the last. */
static const char *janitor_next_kept(const struct janitor_names *n, const char *at)
{
	at = at ? at + strlen(at) + 1 : n->kept;
	return at < n->kept + n->kept_len ? at : NULL;
}

static bool janitor_is_kept(const struct janitor_names *n, const char *name)
{
	for (const char *at = janitor_next_kept(n, NULL); at; at = janitor_next_kept(n, at)) {
		if (*at && !strcmp(at + 1, name))
			return true;
	}
	return false;
}

static int janitor_collect(void *ctx, const char *name)
{
	struct janitor_names *n = ctx;
	void *grown;

	if (janitor_is_kept(n, name))
		return 0;
	grown = realloc(n->names, (n->count + 1) * sizeof(*n->names));
	if (!grown)
		return -ENOMEM;
	n->names = grown;
	(void)snprintf(n->names[n->count++], DRIVER_NAME_LEN, "%s", name);
	return 0;
}

/* Maps the names that are to stay. */
static int janitor_read_kept(int fd, struct janitor_names *n)
{
	struct stat st;
	char *text;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return -errno;
	n->kept = text;
	n->kept_len = (size_t)st.st_size;
	return text[n->kept_len - 1] == '\0' ? 0 : -EBADMSG;
}

/* Which driver made it is not known here: the one that has something of that name. */
static int janitor_adopt_one(const struct driver_site *site, const char *name, struct err *err)
{
	const struct driver *driver;
	int rc = -ESRCH;

	for (unsigned int n = 0; rc == -ESRCH && (driver = driver_at(n)); n++)
		rc = driver->adopt(site, name, err);
	return rc;
}

/* What is not there is no failure of ours: its worker lives, and will find out. */
static uint32_t janitor_adopt(const struct driver_site *site, const struct janitor_names *n)
{
	uint32_t missing = 0;

	for (const char *at = janitor_next_kept(n, NULL); at; at = janitor_next_kept(n, at)) {
		struct err one = {0};

		if (*at != CTL_KEEP_LIVE || janitor_adopt_one(site, at + 1, &one) == 0)
			continue;
		log_error("%s", one.text);
		missing++;
	}
	return missing;
}

/* The first of several failures is the one that is told; all are logged. */
static void janitor_note(int *rc, struct err *err, const struct err *one)
{
	log_error("%s", one->text);
	if (*rc == 0)
		*rc = err_set(err, one->code, "%s", one->text);
}

/* One that resists must not keep the others. 0, or the first failure. */
static int janitor_clean_all(const struct driver *driver, const struct driver_site *site,
    struct janitor_names *n, uint32_t *cleaned, struct err *err)
{
	struct err one = {0};
	int rc = driver->list(site, janitor_collect, n);

	if (rc < 0)
		return err_sys(err, -rc, "list the boxes of driver %s", driver->name);
	FAULT_POINT("janitor.sweep.listed");
	for (size_t i = 0; i < n->count; i++) {
		if (driver->cleanup(site, n->names[i], 0, 0, &one) == 0)
			++*cleaned;
		else
			janitor_note(&rc, err, &one);
	}
	n->count = 0;
	return rc;
}

static int janitor_sweep(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	struct ctl_done *done = &answer->done;
	const struct driver *driver;
	struct janitor_names n = {0};
	int rc = janitor_read_kept(site->prepared, &n);

	(void)body;
	if (rc < 0) {
		(void)err_sys(err, -rc, "read the boxes to keep");
	} else {
		done->missing = janitor_adopt(site, &n);
		FAULT_POINT("janitor.sweep.adopted");
		for (unsigned int i = 0; (driver = driver_at(i)); i++) {
			struct err one = {0};

			if (janitor_clean_all(driver, site, &n, &done->count, &one) < 0)
				janitor_note(&rc, err, &one);
		}
	}
	free(n.names);
	if (n.kept_len)
		(void)munmap((void *)(uintptr_t)n.kept, n.kept_len); /* our own mapping */
	return rc;
}

static int janitor_finish(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	const struct driver *driver;
	int rc = 0;

	(void)body;
	(void)answer;
	for (unsigned int i = 0; (driver = driver_at(i)); i++) {
		struct err one = {0};

		if (driver->finish(site, &one) < 0)
			janitor_note(&rc, err, &one);
	}
	return rc;
}

typedef int janitor_fn(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err);

static janitor_fn *const handlers[CTL_TYPES] = {
    [CTL_PREPARE] = janitor_prepare,
    [CTL_CLEANUP] = janitor_cleanup,
    [CTL_SWEEP] = janitor_sweep,
    [CTL_FINISH] = janitor_finish,
};

/* Every message that has a handler begins with it. */
_Static_assert(offsetof(struct ctl_prepare, site) == 0, "the site comes first");
_Static_assert(offsetof(struct ctl_cleanup, site) == 0, "the site comes first");

static janitor_fn *janitor_fn_of(const struct ctl_msg *msg)
{
	return msg->head.type < CTL_TYPES ? handlers[msg->head.type] : NULL;
}

void janitor_answer_free(struct janitor_answer *answer)
{
	fd_close(&answer->fd);
	buf_free(&answer->tail);
}

void janitor_handle(const struct ctl_msg *msg, int prepared, struct janitor_answer *answer)
{
	janitor_fn *fn = janitor_fn_of(msg);
	struct driver_site site;
	struct err err = {0};
	int rc;

	*answer = (struct janitor_answer){.fd = -1};
	if (!fn) {
		rc = err_set(
		    &err, EBADMSG, "the janitor does not do %s", ctl_type_name(msg->head.type));
	} else {
		site = janitor_site(msg, prepared);
		rc = fn(&site, &msg->body, answer, &err);
	}
	answer->done.code = -rc;
	(void)snprintf(answer->done.text, sizeof(answer->done.text), "%s", rc < 0 ? err.text : "");
}

static int janitor_send(uint64_t seq, const struct janitor_answer *a)
{
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLOUT};
	int rc;

	do {
		rc = ctl_send(CTL_FD_CONTROL, CTL_DONE, seq, 0, &a->done, buf_head(&a->tail),
		    a->tail.len, a->fd);
	} while (rc == -EAGAIN && poll(&p, 1, -1) > 0);
	return rc;
}

/*
 * A dead sbxd's janitor may still be at its last order when its successor's gets the first: they
 * take turns. One whose sbxd has died meanwhile must not begin: it would sweep what it was never
 * told of. *lock: of the runtime directory, held for life from the first order on.
 */
static int janitor_take_turn(const struct ctl_site *site, int *lock)
{
	struct pollfd hangup = {.fd = CTL_FD_CONTROL};

	if (*lock >= 0)
		return 0;
	*lock = open(site->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock < 0)
		return -errno;
	for (int waited = 0; flock(*lock, LOCK_EX | LOCK_NB) < 0; waited += LOCK_TRY_MS) {
		if (errno != EWOULDBLOCK || waited >= LOCK_WAIT_MS) {
			fd_close(lock);
			return -EBUSY;
		}
		if (poll(&hangup, 1, LOCK_TRY_MS) > 0)
			return -EPIPE;
	}
	return poll(&hangup, 1, 0) > 0 ? -EPIPE : 0;
}

/* 1: go on, 0: sbxd has hung up, -errno. */
static int janitor_serve_one(uint8_t *packet, int *lock)
{
	struct pollfd p = {.fd = CTL_FD_CONTROL, .events = POLLIN};
	struct janitor_answer answer;
	struct ctl_msg msg;
	int rc;

	if (poll(&p, 1, -1) < 0)
		return errno == EINTR ? 1 : -errno;
	rc = ctl_recv(CTL_FD_CONTROL, packet, &msg);
	if (rc == -EAGAIN)
		return 1;
	if (rc <= 0)
		return rc;
	rc = janitor_fn_of(&msg) ? janitor_take_turn(&msg.body.prepare.site, lock) : 0;
	if (rc < 0)
		return rc; /* sbxd starts another, which tries again */
	FAULT_POINT("janitor.turn");
	janitor_handle(&msg, msg.fd, &answer);
	FAULT_POINT("janitor.done");
	fd_close(&msg.fd);
	rc = janitor_send(msg.head.seq, &answer);
	janitor_answer_free(&answer);
	return rc < 0 ? rc : 1;
}

int janitor_main(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
	uint8_t *packet = malloc(CTL_MSG_MAX);
	int rc = packet ? 1 : -ENOMEM;
	int lock = -1;

	/* A terminal's interrupt is for sbxd, which still needs us to clean up. */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	while (rc > 0)
		rc = janitor_serve_one(packet, &lock);
	if (rc == -EPIPE) /* sbxd is gone */
		rc = 0;
	if (rc < 0)
		log_error("janitor: %s", strerror(-rc));
	free(packet);
	return rc < 0;
}
