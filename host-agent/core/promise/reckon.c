// SPDX-License-Identifier: GPL-2.0-or-later
/* See reckon.h. */
#include <stdlib.h>

#include "core/promise/reckon.h"

static int compare(const void *left, const void *right)
{
	const usec_t a = *(const usec_t *)left, b = *(const usec_t *)right;

	return a > b ? -1 : a < b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A core's time in thousandths, as CPU time of the host. */
static usec_t scaled(uint64_t permille_usec, uint32_t share)
{
	return permille_usec / 1000 * share / 1000;
}

/* Ready times, the longest first; of each no more than `most` counts. */
static usec_t least_due(const usec_t *ready, uint16_t num, usec_t most, uint32_t permille,
			uint32_t share)
{
	uint64_t sum = 0;

	for (uint16_t j = 0; j < num && permille > 0; j++) {
		const uint32_t part = (uint32_t)smaller(permille, 1000);

		sum += smaller(ready[j], most) * part;
		permille -= part;
	}
	return scaled(sum, share);
}

static usec_t most_due(const usec_t *ready, uint16_t num, usec_t length, uint32_t permille,
		       uint32_t share)
{
	/* A wait that began before the interval can make a ready time longer than it. */
	const usec_t most = num > 0 && ready[0] > length ? ready[0] : length;
	usec_t sum = 0;

	for (uint16_t j = 0; j < num; j++)
		sum += ready[j];
	return scaled(smaller(permille * smaller(most, sum), 1000 * sum), share);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * The balance after an interval for which `promised` was due and `have` counts as given; returns
 * what has turned out to be broken.  worth: of a period; grain: debts that may be none.
 */
static usec_t settle(struct promise_carry *carry, usec_t promised, usec_t have, usec_t worth,
		     usec_t grain)
{
	const usec_t before = carry->owed, due = promised + before;
	usec_t broken, old, paid;

	if (have >= due) {
		const usec_t beyond = have - due;

		carry->owed = 0;
		carry->credit = beyond > worth ? 0 : smaller(carry->credit + beyond, worth);
		return 0;
	}
	paid = smaller(carry->credit, due - have);
	carry->credit -= paid;
	carry->owed = due - have - paid;
	/* An interval that gave what was due is not blamed for a debt of earlier ones. */
	if (have >= promised)
		return 0;
	old = before > grain ? before : 0;
	broken = less(carry->owed, worth);
	broken = broken > grain && broken > old ? broken : old;
	carry->owed -= broken;
	return broken;
}

void promise_reckon(const struct promise_times *vcpus, uint16_t num, usec_t length,
		    const struct promise_terms *terms, struct promise_carry *carry,
		    struct promise_outcome *ret)
{
	const uint32_t permille = terms->permille, share = terms->share;
	usec_t ready[EBB_MAX_VCPUS], grain = 0, late, due, most;

	*ret = (struct promise_outcome){ 0 };
	for (uint16_t i = 0; i < num; i++) {
		ready[i] = vcpus[i].ran + vcpus[i].waited;
		ret->got += vcpus[i].ran;
		grain += ready[i] > 0 ? PROMISE_TICK_USEC : 0;
	}
	qsort(ready, num, sizeof(ready[0]), compare);
	ret->wanted = num > 0 ? ready[0] : 0;
	ret->promised = least_due(ready, num, EBB_TIME_NEVER, permille, share);
	most = most_due(ready, num, length, permille, share);

	/* Paid for by the last interval: due for waits that began in it. */
	late = smaller(carry->spare, ret->promised -
		       least_due(ready, num, length, permille, share));
	carry->credit = less(carry->credit, late);
	carry->spare = less(ret->got, ret->promised + carry->owed);
	ret->violated = settle(carry, ret->promised - late, ret->got,
			       scaled(permille * terms->period, share), grain);
	due = ret->promised > ret->got ? ret->promised : ret->got;
	if (most > due + grain)
		ret->unclear = most - due;
}

void promise_add(struct ebb_ledger *sum, usec_t length, const struct promise_outcome *o)
{
	sum->metered_usec += length;
	sum->wanted += o->wanted;
	sum->promised += o->promised;
	sum->got += o->got;
	sum->violated += o->violated;
	sum->unclear += o->unclear;
	sum->num_intervals++;
	sum->num_violations += o->violated > 0;
	sum->num_unclear += o->unclear > 0;
}
