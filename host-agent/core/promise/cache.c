// SPDX-License-Identifier: GPL-2.0-or-later
/* See cache.h. */
#include "core/promise/cache.h"

void promise_reckon_cache(const struct ebb_relio_interval *i, enum ebb_relio_verdict verdict,
			  uint64_t *owed, struct promise_outcome *ret)
{
	const uint64_t made = *owed + i->actual;

	*ret = (struct promise_outcome){ .wanted = i->accesses };
	if (verdict != EBB_RELIO_GOOD) {
		ret->unclear = i->actual > 0 && !i->is_back ? i->actual : 1;
		*owed = 0;
		return;
	}
	ret->promised = i->baseline;
	ret->got = i->actual;
	*owed = made > i->baseline ? made - i->baseline : 0;
	if (*owed > ebb_relio_grain(i) && i->actual > i->baseline) {
		ret->violated = *owed;
		*owed = 0;
	}
}
