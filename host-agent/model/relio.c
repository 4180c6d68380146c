// SPDX-License-Identifier: GPL-2.0-or-later
/* See relio.h. */
#include "model/relio.h"

/* Readings come about once in an interval: one that is a little early ends it, too. */
#define PARTS_OF_INTERVAL	8u
#define GRAIN_PART		50u
#define GRAIN_LEAST		16u

bool ebb_relio_is_due(const struct ebb_relio *r, usec_t now, usec_t interval)
{
	return !r->is_known || now >= r->at + interval - interval / PARTS_OF_INTERVAL;
}

static bool is_believable(const struct ebb_relio_interval *i)
{
	/* A second more, for reports that were late. */
	const uint64_t seconds = i->length / EBB_USEC_PER_SEC + 2;

	return i->baseline / EBB_RELIO_MOST_PER_SEC < seconds &&
	       i->actual / EBB_RELIO_MOST_PER_SEC < seconds;
}

enum ebb_relio_verdict ebb_relio_take(struct ebb_relio *r, usec_t now, uint32_t mib,
				      const struct ebb_telemetry *t,
				      struct ebb_relio_interval *ret)
{
	const struct ebb_relio before = *r;
	bool goes_on;

	*ret = (struct ebb_relio_interval){ 0 };
	*r = (struct ebb_relio){
		.is_known = t->baseline_mib == mib, .at = now, .baseline = t->baseline_ios,
		.actual = t->actual_ios, .accesses = t->accesses,
		.doubt_until = before.doubt_until,
	};
	if (!before.is_known || !r->is_known)
		return EBB_RELIO_NONE;
	goes_on = r->baseline >= before.baseline && r->actual >= before.actual;
	ret->length = now - before.at;
	ret->is_back = !goes_on;
	if (goes_on) {
		ret->baseline = r->baseline - before.baseline;
		ret->actual = r->actual - before.actual;
	}
	/* Only how much work there was: it makes no promise broken or kept. */
	if (goes_on && r->accesses >= before.accesses)
		ret->accesses = r->accesses - before.accesses;
	if (!goes_on || !is_believable(ret)) {
		ret->is_new_doubt = now >= before.doubt_until;
		r->doubt_until = now + EBB_RELIO_DOUBT_USEC;
	}
	return now < r->doubt_until ? EBB_RELIO_DOUBTED : EBB_RELIO_GOOD;
}

uint64_t ebb_relio_grain(const struct ebb_relio_interval *i)
{
	return i->baseline / GRAIN_PART + GRAIN_LEAST;
}
