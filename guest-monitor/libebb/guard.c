// SPDX-License-Identifier: BSD-3-Clause
/*
 * Surviving the SIGBUS of a block that is gone.
 *
 * The handler runs in the middle of anything, so all that it reads can be read
 * without a lock: ranges are kept in slots that are never freed, each with a
 * sequence number that is odd while the slot is written.  Writers take turns by a
 * mutex; none of them touches a lease, so a handler never waits for a writer that
 * it has interrupted.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#include "ebb.h"
#include "guard.h"

#define GROUP_SLOTS	64

struct slot {
	atomic_uint seq;
	_Atomic(uintptr_t) start;	/* 0: free */
	_Atomic(uintptr_t) end;
};

struct group {
	struct group *_Atomic next;
	struct slot slots[GROUP_SLOTS];
};

struct section {
	sigjmp_buf env;
	struct section *outer;
	void *volatile addr;
};

static struct group first_group;
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_installed;
static struct sigaction earlier;	/* written before the handler is set */

/* Of this thread.  Not allocated on first use, which the handler could not do. */
static __thread __attribute__((tls_model("initial-exec"))) struct section *volatile innermost;

/* ---- ranges ---- */

static void slot_write(struct slot *slot, uintptr_t start, uintptr_t end)
{
	atomic_fetch_add(&slot->seq, 1);
	atomic_store(&slot->start, start);
	atomic_store(&slot->end, end);
	atomic_fetch_add(&slot->seq, 1);
}

static struct slot *slot_find(uintptr_t start)
{
	for (struct group *g = &first_group; g; g = atomic_load(&g->next))
		for (int i = 0; i < GROUP_SLOTS; i++)
			if (atomic_load(&g->slots[i].start) == start)
				return &g->slots[i];
	return NULL;
}

static struct slot *slot_find_free(void)
{
	struct slot *slot = slot_find(0);
	struct group *last = &first_group;
	struct group *g;

	if (slot)
		return slot;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	while (atomic_load(&last->next))
		last = atomic_load(&last->next);
	atomic_store(&last->next, g);
	return &g->slots[0];
}

int ebb_guard_range_add(const void *addr, size_t bytes)
{
	struct slot *slot;

	pthread_mutex_lock(&ranges_lock);
	slot = slot_find_free();
	if (slot)
		slot_write(slot, (uintptr_t)addr, (uintptr_t)addr + bytes);
	pthread_mutex_unlock(&ranges_lock);
	return slot ? 0 : -ENOMEM;
}

void ebb_guard_range_remove(const void *addr)
{
	struct slot *slot;

	pthread_mutex_lock(&ranges_lock);
	slot = slot_find((uintptr_t)addr);
	if (slot)
		slot_write(slot, 0, 0);
	pthread_mutex_unlock(&ranges_lock);
}

static int slot_covers(const struct slot *slot, uintptr_t addr)
{
	uintptr_t start, end;
	unsigned int seq;

	do {
		seq = atomic_load(&slot->seq);
		start = atomic_load(&slot->start);
		end = atomic_load(&slot->end);
	} while ((seq & 1) || seq != atomic_load(&slot->seq));
	return addr >= start && addr < end;
}

static int is_in_lease(const void *addr)
{
	for (struct group *g = &first_group; g; g = atomic_load(&g->next))
		for (int i = 0; i < GROUP_SLOTS; i++)
			if (slot_covers(&g->slots[i], (uintptr_t)addr))
				return 1;
	return 0;
}

/* ---- the handler ---- */

/* As if there were no handler: the instruction that faulted does so again, and kills. */
static void die(int signo, const siginfo_t *info)
{
	struct sigaction act = { .sa_handler = SIG_DFL };

	sigaction(signo, &act, NULL);
	/* What was sent does not come again by itself. */
	if (info->si_code <= 0 || info->si_code == BUS_MCEERR_AO)
		raise(signo);
}

static void pass_on(int signo, siginfo_t *info, void *context)
{
	sigset_t mask = earlier.sa_mask, old_mask;

	if (!(earlier.sa_flags & SA_SIGINFO) && earlier.sa_handler == SIG_DFL) {
		die(signo, info);
		return;
	}
	/* Linux ignores what was sent, but not a fault. */
	if (!(earlier.sa_flags & SA_SIGINFO) && earlier.sa_handler == SIG_IGN) {
		if (info->si_code > 0)
			die(signo, info);
		return;
	}
	if (!(earlier.sa_flags & SA_NODEFER))
		sigaddset(&mask, signo);
	pthread_sigmask(SIG_BLOCK, &mask, &old_mask);
	if (earlier.sa_flags & SA_SIGINFO)
		earlier.sa_sigaction(signo, info, context);
	else
		earlier.sa_handler(signo);
	pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
}

static void handle(int signo, siginfo_t *info, void *context)
{
	struct section *section = innermost;
	int saved_errno = errno;

	if (section && info->si_code == BUS_ADRERR && is_in_lease(info->si_addr)) {
		section->addr = info->si_addr;
		innermost = section->outer;
		/* siglongjmp() leaves the mask alone, so that entering a section is cheap. */
		pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
		siglongjmp(section->env, 1);
	}
	pass_on(signo, info, context);
	errno = saved_errno;
}

static int install_locked(void)
{
	/*
	 * Not deferred, as an earlier handler may not be.  On the alternate stack, if the
	 * thread has one: an engine may have it for overflows.
	 */
	struct sigaction act = {
		.sa_sigaction = handle,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};
	struct sigaction now;

	if (sigaction(SIGBUS, NULL, &now) < 0)
		return -errno;
	if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != handle) {
		/* Known before the handler can run. */
		earlier = now;
		if (sigaction(SIGBUS, &act, NULL) < 0)
			return -errno;
	}
	atomic_store(&is_installed, 1);
	return 0;
}

int ebb_mem_guard_install(void)
{
	int r;

	pthread_mutex_lock(&install_lock);
	r = install_locked();
	pthread_mutex_unlock(&install_lock);
	return r;
}

int ebb_mem_guard_run(void (*fn)(void *arg), void *arg, void **ret_addr)
{
	struct section section;
	int r;

	if (!atomic_load_explicit(&is_installed, memory_order_acquire)) {
		r = ebb_mem_guard_install();
		if (r < 0)
			return r;
	}
	section.outer = innermost;
	if (sigsetjmp(section.env, 0)) {
		if (ret_addr)
			*ret_addr = section.addr;
		return -EFAULT;
	}
	innermost = &section;
	fn(arg);
	innermost = section.outer;
	return 0;
}
