// SPDX-License-Identifier: GPL-2.0-or-later
/* Transactions that arrive by themselves: see arrivals.h. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arrivals.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/util.h"

/* A year is as good as for ever. */
#define WAIT_MAX_NS	(86400ull * 365 * 1000000000)

/*
 * A stretch of time with one rate, written once and kept until the end, since what waits may have
 * arrived under the first of them. Number i (from 0) arrives when the count reaches i + 1.
 */
struct arrivals_rate {
	uint64_t start_ns;
	double before;		/* arrivals until then; parts of one count */
	double per_second;
	struct arrivals_rate *_Atomic next;
};

struct oltp_arrivals {
	struct arrivals_rate *_Atomic first;	/* NULL: arrivals have not begun */
	struct arrivals_rate *last;		/* of the thread that sets rates */
	/* Sleeping workers wait for it to change. */
	_Atomic uint32_t calls;
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t taken;
};

int oltp_arrivals_create(struct oltp_arrivals **ret_arrivals)
{
	struct oltp_arrivals *a = aligned_alloc(CACHE_PAD_BYTES, sizeof(*a));

	if (!a)
		return -ENOMEM;
	atomic_init(&a->first, NULL);
	atomic_init(&a->taken, 0);
	atomic_init(&a->calls, 0);
	a->last = NULL;
	*ret_arrivals = a;
	return 0;
}

void oltp_arrivals_destroy(struct oltp_arrivals *a)
{
	struct arrivals_rate *rate, *next;

	if (!a)
		return;
	for (rate = atomic_load(&a->first); rate; rate = next) {
		next = atomic_load(&rate->next);
		free(rate);
	}
	free(a);
}

static double count_at(const struct arrivals_rate *rate, uint64_t now_ns)
{
	if (now_ns <= rate->start_ns)
		return rate->before;
	return rate->before + (double)(now_ns - rate->start_ns) / 1e9 * rate->per_second;
}

int oltp_arrivals_set_rate(struct oltp_arrivals *a, double per_second, uint64_t at_ns)
{
	struct arrivals_rate *rate;

	if (!(per_second >= 0) || isinf(per_second) || (a->last && at_ns < a->last->start_ns))
		return -EINVAL;
	rate = malloc(sizeof(*rate));
	if (!rate)
		return -ENOMEM;
	*rate = (struct arrivals_rate){
		.start_ns = at_ns,
		.before = a->last ? count_at(a->last, at_ns) : 0,
		.per_second = per_second,
	};
	/*
	 * Both pair with the acquire in rate_after: a thread that finds the rate sees what is in
	 * it.
	 */
	if (a->last)
		atomic_store_explicit(&a->last->next, rate, memory_order_release);
	else
		atomic_store_explicit(&a->first, rate, memory_order_release);
	a->last = rate;
	arrivals_wake(a);
	return 0;
}

/* The rate that follows, the first one for NULL. */
static struct arrivals_rate *rate_after(struct oltp_arrivals *a, struct arrivals_rate *rate)
{
	return atomic_load_explicit(rate ? &rate->next : &a->first, memory_order_acquire);
}

static uint64_t count_now(struct oltp_arrivals *a, struct arrivals_rate *rate, uint64_t now_ns)
{
	struct arrivals_rate *next;

	while ((next = rate_after(a, rate)) && (!rate || next->start_ns <= now_ns))
		rate = next;
	return rate ? (uint64_t)count_at(rate, now_ns) : 0;
}

/* When number i arrived; moves view->rate up to the rate of that moment. */
static uint64_t arrival_of(struct oltp_arrivals *a, struct arrivals_view *view, uint64_t i)
{
	double count = (double)i + 1;
	struct arrivals_rate *next;

	if (!view->rate)
		view->rate = rate_after(a, NULL);
	while ((next = rate_after(a, view->rate)) && next->before < count)
		view->rate = next;
	/*
	 * Nothing arrives at a rate of 0, but rounding may put the last arrival of the rate before
	 * there.
	 */
	if (view->rate->per_second <= 0)
		return view->rate->start_ns;
	return view->rate->start_ns +
	       (uint64_t)((count - view->rate->before) / view->rate->per_second * 1e9);
}

bool arrivals_take(struct oltp_arrivals *a, struct arrivals_view *view, uint64_t *ret_arrival_ns)
{
	uint64_t number = atomic_load_explicit(&a->taken, memory_order_relaxed);

	if (!rate_after(a, NULL)) {
		*ret_arrival_ns = 0;
		return true;
	}
	do {
		/* The clock is read only when all that was due at the last look is taken. */
		if (number >= view->due)
			view->due = count_now(a, view->rate, clock_now_ns());
		if (number >= view->due)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&a->taken, &number, number + 1,
							memory_order_relaxed,
							memory_order_relaxed));
	*ret_arrival_ns = arrival_of(a, view, number);
	return true;
}

uint64_t arrivals_next(struct oltp_arrivals *a, const struct arrivals_view *view)
{
	struct arrivals_view ahead = *view;
	uint64_t at_ns;

	if (!rate_after(a, NULL))
		return 0;
	at_ns = arrival_of(a, &ahead, atomic_load_explicit(&a->taken, memory_order_relaxed));
	return ahead.rate->per_second > 0 ? at_ns : UINT64_MAX;
}

uint32_t arrivals_calls(struct oltp_arrivals *a)
{
	return atomic_load_explicit(&a->calls, memory_order_acquire);
}

void arrivals_wake(struct oltp_arrivals *a)
{
	atomic_fetch_add_explicit(&a->calls, 1, memory_order_release);
	syscall(SYS_futex, &a->calls, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void arrivals_wait(struct oltp_arrivals *a, const struct arrivals_view *view, uint32_t call,
		   uint64_t least_ns)
{
	const uint64_t now_ns = clock_now_ns(), next_ns = arrivals_next(a, view);
	uint64_t ns = next_ns > now_ns ? next_ns - now_ns : 0;
	struct timespec time;

	ns = ns < least_ns ? least_ns : ns < WAIT_MAX_NS ? ns : WAIT_MAX_NS;
	time = clock_timespec(ns);
	syscall(SYS_futex, &a->calls, FUTEX_WAIT_PRIVATE, call, &time, NULL, 0);
}

void arrivals_count(struct oltp_arrivals *a, uint64_t now_ns, struct arrivals_count *ret_count)
{
	uint64_t taken = atomic_load_explicit(&a->taken, memory_order_relaxed);
	uint64_t arrived = count_now(a, NULL, now_ns);

	*ret_count = (struct arrivals_count){
		.is_unlimited = !rate_after(a, NULL),
		.arrived = arrived,
		.waiting = arrived > taken ? arrived - taken : 0,
	};
}
