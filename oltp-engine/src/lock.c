// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow path of the lock word: the two schemes and the wait loop. Never entered for a free word.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "lock.h"
#include "util.h"

/* Spins before the CPU is offered to somebody else: the holder may be the one that needs it. */
#define LOCK_SPINS_PER_YIELD	256u

static enum lock_verdict no_wait_on_conflict(uint64_t holder, uint64_t ts, bool is_upgrade)
{
	(void)holder;
	(void)ts;
	(void)is_upgrade;
	return LOCK_DIE;
}

/*
 * In an upgrade the caller is one of the holders, so the age is at most its own; equal means that
 * it is the oldest, and the others are younger.
 */
static enum lock_verdict wait_die_on_conflict(uint64_t holder, uint64_t ts, bool is_upgrade)
{
	uint64_t oldest = holder & LOCK_TS_MASK;

	if (ts < oldest || (is_upgrade && ts == oldest))
		return LOCK_WAIT;
	return LOCK_DIE;
}

static const struct lock_scheme schemes[] = {
	[OLTP_CC_NO_WAIT] = { "no_wait", no_wait_on_conflict },
	[OLTP_CC_WAIT_DIE] = { "wait_die", wait_die_on_conflict },
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

static bool try_lock(_Atomic uint64_t *word, uint64_t ts, bool exclusive, uint64_t mine,
		     uint64_t *ret_seen)
{
	if (mine)
		return lock_try_upgrade(word, ts, mine, ret_seen);
	if (exclusive)
		return lock_try_exclusive(word, ts, ret_seen);
	return lock_try_shared(word, ts, ret_seen);
}

enum oltp_rc lock_contended(const struct lock_scheme *scheme, _Atomic uint64_t *word, uint64_t ts,
			    bool exclusive, uint64_t mine, uint64_t *ret_seen, bool *ret_waited)
{
	bool announced = false;
	uint64_t youngest = 0;
	uint64_t seen;

	*ret_waited = false;
	for (unsigned int spins = 1;; spins++) {
		if (try_lock(word, ts, exclusive, mine, &seen))
			break;
		if ((seen & LOCK_TS_MASK) > youngest)
			youngest = seen & LOCK_TS_MASK;
		if (scheme->on_conflict(seen, ts, mine > 0) == LOCK_DIE) {
			if (announced)
				atomic_fetch_and_explicit(word, ~LOCK_WAITER,
							  memory_order_relaxed);
			*ret_seen = youngest;
			return OLTP_CONFLICT;
		}
		*ret_waited = true;
		/* A failed swap only means that the word moved: the next turn looks again. */
		if (exclusive && !(seen & LOCK_WAITER) && (seen & LOCK_HELD))
			announced |= atomic_compare_exchange_strong_explicit(
				word, &seen, seen | LOCK_WAITER, memory_order_relaxed,
				memory_order_relaxed);
		if (spins % LOCK_SPINS_PER_YIELD == 0)
			sched_yield();
		else
			cpu_relax();
	}
	*ret_seen = youngest;
	return OLTP_OK;
}
