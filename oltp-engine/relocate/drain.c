// SPDX-License-Identifier: GPL-2.0-or-later
/* See drain.h. */
#include "drain.h"

#define SECOND_NS	1000000000ull
#define STAGES		4u
#define WHOLE		10000u		/* one connection, in the unit of `carried` */

static const uint32_t base_permille[STAGES] = { 10, 15, 20, 40 };

void drain_start(struct drain *drain, uint32_t connections, uint64_t now_ns)
{
	*drain = (struct drain){ .start_ns = now_ns, .next_ns = now_ns, .total = connections };
}

bool drain_is_over(const struct drain *drain, const struct drain_config *config, uint64_t now_ns)
{
	return now_ns - drain->start_ns >= config->limit_ns;
}

/* 0: unknown. */
static uint64_t mean_ns(const struct drain_times *times)
{
	return times->requests ? times->total_ns / times->requests : 0;
}

static uint32_t factor_percent(const struct drain_facts *facts, uint32_t stage)
{
	uint64_t source = mean_ns(&facts->source), target = mean_ns(&facts->target);

	if (!source || !target)
		return 100;
	if (source > target)
		return 200;
	if (stage == STAGES - 1)
		return 100;
	/* Divided, as times that come from another node may be anything. */
	if (target / 3 >= source)
		return 25;
	return target / 2 >= source ? 50 : 100;
}

/* In ten-thousandths of a connection. */
static uint64_t rate(struct drain *drain, const struct drain_config *config,
		     const struct drain_facts *facts)
{
	uint64_t moved = drain->total - facts->left;
	uint32_t stage = (uint32_t)(moved * STAGES / drain->total);
	uint64_t base;

	drain->percent = 100;
	if (config->fixed_per_s)
		return (uint64_t)config->fixed_per_s * WHOLE;
	base = ((uint64_t)drain->total * base_permille[stage] + 999) / 1000;
	drain->percent = factor_percent(facts, stage);
	return base * config->speed_percent * drain->percent;
}

uint32_t drain_step(struct drain *drain, const struct drain_config *config,
		    const struct drain_facts *facts, uint64_t now_ns)
{
	uint64_t due, most;

	if (facts->left > drain->total)
		drain->total = facts->left;
	if (!facts->left)
		return 0;
	if (drain_is_over(drain, config, now_ns))
		return facts->left;
	if (now_ns < drain->next_ns)
		return 0;
	drain->next_ns += SECOND_NS;
	if (drain->next_ns <= now_ns)
		drain->next_ns = now_ns + SECOND_NS;
	due = drain->carried + rate(drain, config, facts);
	drain->carried = (uint32_t)(due % WHOLE);
	most = facts->leaving < facts->left ? facts->left - facts->leaving : 0;
	return (uint32_t)(due / WHOLE < most ? due / WHOLE : most);
}
