/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Relative IO, from what guests say of a simulated cache ("SQLVM", section 2.3):
 *
 *   Relative IO = (actual I/Os - baseline I/Os (M)) / baseline I/Os (M)
 *
 * over an interval, as the difference of two readings of the guest's counters.  Guests are not
 * trusted.  Counters that go back, or rise faster than any VM can read, are not believed, nor is
 * anything that comes within EBB_RELIO_DOUBT_USEC after them.  Pure arithmetic.
 */
#ifndef EBB_MODEL_RELIO_H
#define EBB_MODEL_RELIO_H

#include "model/types.h"

/* I/Os a second that no VM makes, nor a cache of its size could save. */
#define EBB_RELIO_MOST_PER_SEC	10000000ull
#define EBB_RELIO_DOUBT_USEC	(60 * EBB_USEC_PER_SEC)

/* The last reading; all 0: there was none. */
struct ebb_relio {
	bool is_known;
	usec_t at;
	uint64_t baseline, actual, accesses; /* counters */
	usec_t doubt_until;		/* 0: never doubted */
};

enum ebb_relio_verdict {
	/* Nothing to compare: the first reading, or no cache of the promised size is simulated. */
	EBB_RELIO_NONE,
	EBB_RELIO_GOOD,
	EBB_RELIO_DOUBTED,		/* the guest's counters are not believed */
};

/* Between two readings.  All but length 0 where the verdict is NONE, or the counters went back. */
struct ebb_relio_interval {
	usec_t length;
	uint64_t baseline, actual, accesses;
	bool is_back;			/* counters went back */
	bool is_new_doubt;		/* DOUBTED, and before this reading it was not */
};

/* Whether a reading that comes now ends an interval of about this length. */
bool ebb_relio_is_due(const struct ebb_relio *r, usec_t now, usec_t interval);

/*
 * Takes a reading over; mib: the size of the cache that is promised, not 0.  A guest that simulates
 * none, or one of another size, says nothing of the promise.
 */
enum ebb_relio_verdict ebb_relio_take(struct ebb_relio *r, usec_t now, uint32_t mib,
				      const struct ebb_telemetry *t,
				      struct ebb_relio_interval *ret);

/*
 * How many I/Os too many may be chance: the simulation samples, and counts a miss at another moment
 * than the disk does.  A fiftieth of the baseline, and a few.
 */
uint64_t ebb_relio_grain(const struct ebb_relio_interval *i);

#endif /* EBB_MODEL_RELIO_H */
