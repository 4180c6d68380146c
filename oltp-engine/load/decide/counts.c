// SPDX-License-Identifier: GPL-2.0-or-later
/* See counts.h. */
#include "counts.h"

void load_counts_judge(const struct load_count *counts, uint32_t n,
		       struct load_counts_verdict *ret_verdict)
{
	struct load_counts_verdict v = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct load_count *c = &counts[i];
		int64_t grown = (int64_t)((uint64_t)c->after - (uint64_t)c->before);
		int64_t least = (int64_t)c->acknowledged;
		int64_t most = (int64_t)(c->acknowledged + c->unknown);

		v.acknowledged += c->acknowledged;
		v.unknown += c->unknown;
		if (grown < least)
			v.lost += (uint64_t)least - (uint64_t)grown;
		else if (grown > most)
			v.extra += (uint64_t)grown - (uint64_t)most;
	}
	*ret_verdict = v;
}
