/*
 * coro: stacks, and switching between them. sbx-worker. If we die here the box dies with us.
 *
 * swapcontext() and not a few lines of assembly: it keeps the shadow stack right where there is
 * one, on every machine that glibc knows. It costs two system calls, which is nothing beside the
 * 64 KiB that are dealt with in between.
 */
#include "worker/coro.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "lib/log.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(CORO_ASAN)
#define CORO_ASAN 1
#endif

#ifdef CORO_ASAN
#include <sanitizer/common_interface_defs.h>
#define CORO_STACK (1024U * 1024U) /* its frames are much larger */
#else
#define CORO_STACK (256U * 1024U) /* only what is used of it becomes memory */
#endif
#define CORO_GUARD                                                                    \
	(64U * 1024U) /* more than any frame: nothing is overwritten before the fault \
		       */

enum coro_state {
	CORO_NEW,
	CORO_RUNNING,
	CORO_SUSPENDED,
	CORO_OVER,
};

struct coro {
	coro_fn *fn;
	void *arg;
	enum coro_state state;
	uint8_t *stack; /* CORO_GUARD bytes that fault, then CORO_STACK */
	ucontext_t self;
	ucontext_t resumer;
#ifdef CORO_ASAN
	void *fake; /* what the sanitizer keeps for a stack that is left */
	const void *resumer_stack;
	size_t resumer_size;
#endif
};

/* The sanitizer must know which stack is in use. */
#ifdef CORO_ASAN
static void leave_for_coro(struct coro *c, void **fake)
{
	__sanitizer_start_switch_fiber(fake, c->stack + CORO_GUARD, CORO_STACK);
}

static void back_from_coro(struct coro *c, void *fake)
{
	(void)c;
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

static void enter_coro(struct coro *c)
{
	__sanitizer_finish_switch_fiber(c->fake, &c->resumer_stack, &c->resumer_size);
}

/* Without a place for it, what is kept for the stack is freed: it is over. */
static void leave_coro(struct coro *c)
{
	__sanitizer_start_switch_fiber(
	    c->state == CORO_OVER ? NULL : &c->fake, c->resumer_stack, c->resumer_size);
}
#else
static void leave_for_coro(struct coro *c, void **fake)
{
	(void)c;
	(void)fake;
}

static void back_from_coro(struct coro *c, void *fake)
{
	(void)c;
	(void)fake;
}

static void enter_coro(struct coro *c)
{
	(void)c;
}

static void leave_coro(struct coro *c)
{
	(void)c;
}
#endif

/* makecontext() passes ints only. */
static void coro_main(unsigned int high, unsigned int low)
{
	struct coro *c = (struct coro *)(uintptr_t)(((uint64_t)high << 32) | low);

	enter_coro(c);
	c->fn(c->arg);
	c->state = CORO_OVER;
	leave_coro(c);
	/* The stack ends here: c->self.uc_link goes on in coro_resume(). */
}

/* The pages below the stack are never touched but by what overruns it. */
static uint8_t *stack_map(void)
{
	uint8_t *all = mmap(NULL, CORO_GUARD + CORO_STACK, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	/* Mapped over and not mprotect()ed, which the filter of system calls does not allow. */
	if (mmap(all + CORO_GUARD, CORO_STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED, -1,
		0) == MAP_FAILED) {
		(void)munmap(all, CORO_GUARD + CORO_STACK); /* our own mapping */
		return NULL;
	}
	return all;
}

/* False: there is no context to begin with. */
static bool coro_prepare(struct coro *c)
{
	if (getcontext(&c->self) < 0)
		return false;
	c->self.uc_stack.ss_sp = c->stack + CORO_GUARD;
	c->self.uc_stack.ss_size = CORO_STACK;
	c->self.uc_link = &c->resumer;
	makecontext(&c->self, (void (*)(void))coro_main, 2,
	    (unsigned int)((uint64_t)(uintptr_t)c >> 32), (unsigned int)(uintptr_t)c);
	return true;
}

struct coro *coro_create(coro_fn *fn, void *arg)
{
	struct coro *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fn = fn;
	c->arg = arg;
	c->stack = stack_map();
	if (c->stack && coro_prepare(c))
		return c;
	coro_free(c);
	return NULL;
}

bool coro_resume(struct coro *c)
{
	void *fake = NULL;

	INVARIANT(c->state == CORO_NEW || c->state == CORO_SUSPENDED);
	c->state = CORO_RUNNING;
	leave_for_coro(c, &fake);
	INVARIANT(swapcontext(&c->resumer, &c->self) == 0);
	back_from_coro(c, fake);
	return c->state != CORO_OVER;
}

void coro_suspend(struct coro *c)
{
	INVARIANT(c->state == CORO_RUNNING);
	c->state = CORO_SUSPENDED;
	leave_coro(c);
	INVARIANT(swapcontext(&c->self, &c->resumer) == 0);
	enter_coro(c);
}

void coro_free(struct coro *c)
{
	if (!c)
		return;
	INVARIANT(c->state == CORO_NEW || c->state == CORO_OVER);
	if (c->stack)
		(void)munmap(c->stack, CORO_GUARD + CORO_STACK); /* our own mapping */
	free(c);
}
