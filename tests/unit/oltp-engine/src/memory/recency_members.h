/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records that a sampler watches, for its tests. Include after cmocka.h. */
#ifndef RECENCY_MEMBERS_H
#define RECENCY_MEMBERS_H

#include "oltp-engine/src/memory/recency.h"

#define SAMPLES		OLTP_MEMORY_SAMPLES_MAX
/* Turns in which all buckets are looked through at least once, and as many as wanted are had. */
#define TURNS_ALL	40u

/* Calls fn with every member of the first table. Returns how many there are. */
static inline uint32_t each_member(const struct recency_sampler *s,
				   void (*fn)(void *ctx, const struct recency_member *), void *ctx)
{
	const struct recency_table *t = &s->tables[0];
	uint32_t n = 0;

	for (uint32_t b = 0; b < t->n; b++) {
		for (uint16_t i = t->buckets[b].first; i != RECENCY_NONE; i = s->members[i].next) {
			fn(ctx, &s->members[i]);
			n++;
		}
	}
	assert_int_equal(n, t->n_members);
	return n;
}

#endif
