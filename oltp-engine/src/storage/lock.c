// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow path of the lock word: the schemes and the wait loop. Never entered for a free word.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "lock.h"
#include "oltp-engine/src/base/clock.h"

static enum lock_verdict no_wait_on_conflict(struct lock_wait *wait, uint64_t seen)
{
	(void)wait;
	(void)seen;
	return LOCK_DIE;
}

/*
 * In an upgrade the caller is one of the holders, so the age is at most its own; equal means that
 * it is the oldest, and the others are younger.
 */
static enum lock_verdict wait_die_on_conflict(struct lock_wait *wait, uint64_t seen)
{
	uint64_t oldest = seen & LOCK_TS_MASK;

	if (wait->ts < oldest || (wait->mine && wait->ts == oldest))
		return LOCK_WAIT;
	return LOCK_DIE;
}

/*
 * Wound-wait (Rosenkrantz, Stearns and Lewis, "System Level Concurrency Control for Distributed
 * Database Systems", TODS 3(2), 1978), but for readers, whom the word does not name: they look for
 * themselves. See lock.h.
 */
static enum lock_verdict wound_wait_on_conflict(struct lock_wait *wait, uint64_t seen)
{
	bool is_older = (seen & LOCK_TS_MASK) < wait->ts;

	if (lock_slot_is_wounded(lock_book_slot(wait->book, wait->ts), wait->ts) ||
	    wait->is_in_the_way(wait->holder)) {
		wait->was_wounded = true;
		return LOCK_DIE;
	}
	if (is_older && wait->is_long && wait->n_retries < LOCK_PATIENT_AFTER)
		return LOCK_DIE;
	if (seen & LOCK_WRITER) {
		if (!is_older)
			lock_book_wound(wait->book, seen & LOCK_TS_MASK);
		return LOCK_WAIT;
	}
	if (wait->exclusive) {
		lock_book_want(wait->book, wait->ts, wait->word);
		return LOCK_WAIT;
	}
	/* The count of readers is full. Any of them may be younger, and none was told to leave. */
	if ((seen & LOCK_READERS_MASK) == LOCK_READERS_MASK)
		return LOCK_DIE;
	return lock_book_is_wanted(wait->book, wait->ts, wait->word) ? LOCK_WAIT : LOCK_JOIN;
}

static const struct lock_scheme schemes[] = {
	[OLTP_CC_NO_WAIT] = { "no_wait", no_wait_on_conflict },
	[OLTP_CC_WAIT_DIE] = { "wait_die", wait_die_on_conflict },
	[OLTP_CC_WOUND_WAIT] = { "wound_wait", wound_wait_on_conflict },
};

const struct lock_scheme *lock_scheme_get(enum oltp_cc cc)
{
	return (unsigned int)cc < ARRAY_SIZE(schemes) ? &schemes[cc] : NULL;
}

const char *oltp_cc_name(enum oltp_cc cc)
{
	const struct lock_scheme *scheme = lock_scheme_get(cc);

	return scheme ? scheme->name : "unknown";
}

int oltp_cc_parse(const char *name, enum oltp_cc *ret_cc)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!strcmp(name, schemes[i].name)) {
			*ret_cc = (enum oltp_cc)i;
			return 0;
		}
	}
	return -EINVAL;
}

static bool try_lock(const struct lock_wait *wait, uint64_t *ret_seen)
{
	if (wait->mine)
		return lock_try_upgrade(wait->word, wait->ts, wait->mine, ret_seen);
	if (wait->exclusive)
		return lock_try_exclusive(wait->word, wait->ts, ret_seen);
	return lock_try_shared(wait->word, wait->ts, ret_seen);
}

static void wait_a_turn(struct lock_wait *wait, uint64_t *since_ns)
{
	uint64_t now_ns;

	if (wait->is_long) {
		sched_yield();
		*since_ns = 0;
	}
	cpu_relax();
	now_ns = clock_now_ns();
	if (!*since_ns)
		*since_ns = now_ns;
	wait->is_long = now_ns - *since_ns >= LOCK_SPIN_NS;
}

static enum oltp_rc take(struct lock_wait *wait, bool *announced)
{
	uint64_t seen, since_ns = 0;

	for (; !try_lock(wait, &seen); wait_a_turn(wait, &since_ns)) {
		if ((seen & LOCK_TS_MASK) > wait->youngest)
			wait->youngest = seen & LOCK_TS_MASK;
		switch (wait->scheme->on_conflict(wait, seen)) {
		case LOCK_DIE:
			return OLTP_CONFLICT;
		case LOCK_JOIN:
			if (lock_try_join(wait->word, wait->ts))
				return OLTP_OK;
			break;
		case LOCK_WAIT:
			wait->has_waited = true;
			break;
		}
		/* A failed swap only means that the word moved: the next turn looks again. */
		if (wait->exclusive && !(seen & LOCK_WAITER) && (seen & LOCK_HELD))
			*announced |= atomic_compare_exchange_strong_explicit(
				wait->word, &seen, seen | LOCK_WAITER, memory_order_relaxed,
				memory_order_relaxed);
	}
	return OLTP_OK;
}

enum oltp_rc lock_contended(struct lock_wait *wait)
{
	bool announced = false;
	enum oltp_rc rc;

	wait->is_long = false;
	wait->youngest = 0;
	wait->has_waited = false;
	wait->was_wounded = false;
	rc = take(wait, &announced);
	lock_book_unwant(wait->book, wait->ts);
	if (rc && announced)
		atomic_fetch_and_explicit(wait->word, ~LOCK_WAITER, memory_order_relaxed);
	return rc;
}

void lock_book_enter(struct lock_book *book, uint32_t number)
{
	if (number > atomic_load_explicit(&book->end, memory_order_relaxed))
		atomic_store_explicit(&book->end, number, memory_order_relaxed);
}

/* Pairs with lock_book_is_wanted: with the word, a thread sees this timestamp or a later one. */
void lock_book_want(struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word)
{
	struct lock_slot *slot = lock_book_slot(book, ts);

	if (atomic_load_explicit(&slot->wanted, memory_order_relaxed) == (uintptr_t)word)
		return;
	atomic_store_explicit(&slot->wanted_ts, ts, memory_order_relaxed);
	atomic_store_explicit(&slot->wanted, (uintptr_t)word, memory_order_release);
}

void lock_book_unwant(struct lock_book *book, uint64_t ts)
{
	struct lock_slot *slot = lock_book_slot(book, ts);

	if (atomic_load_explicit(&slot->wanted, memory_order_relaxed))
		atomic_store_explicit(&slot->wanted, 0, memory_order_relaxed);
}

bool lock_book_is_wanted(const struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word)
{
	uint32_t end = atomic_load_explicit(&book->end, memory_order_relaxed);

	for (uint32_t i = 1; i <= end; i++) {
		const struct lock_slot *slot = &book->slots[i];

		if (atomic_load_explicit(&slot->wanted, memory_order_acquire) == (uintptr_t)word &&
		    atomic_load_explicit(&slot->wanted_ts, memory_order_relaxed) < ts)
			return true;
	}
	return false;
}
