// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The score of a plan (section 6, "Scoring Candidate Configurations"), and its difference after one
 * change, for which only the hosts that change are looked at.
 */
#include <math.h>
#include <string.h>

#include "place/internal.h"

/*
 * The paper multiplies the deviation by the failovers.  Something is added to either: else one that
 * is 0 makes the other of no account, and hundreds of moves for a perfect balance look good.
 */
#define LEAST_DEVIATION	0.05		/* of each resource */
#define LEAST_FAILOVERS	1.0
/* A host above its capacity, or a VM on no host, is worse than any plan without. */
#define EXCESS_WEIGHT	1e6
#define SLACK		1e-9

static double cheapest(const struct place_config *config, const uint32_t *n_bucket)
{
	uint32_t bucket = PLACE_COST_LOW;

	if (!config->move_costs)
		return 1;
	while (bucket < PLACE_COST_HIGH && !n_bucket[bucket])
		bucket++;
	return config->cost.weight[bucket];
}

struct terms place_terms(const struct place *p, const struct host *host, const double *likely,
			 const double *needed, uint32_t n_bad, const uint32_t *n_bucket)
{
	struct terms terms = { 0 };

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		terms.used[r] = likely[r] / host->in.capacity[r];
		/* No VM has to leave for a reserve. */
		if (needed[r] > host->in.capacity[r] * (1 + SLACK))
			terms.excess += needed[r] / host->in.capacity[r] - 1;
	}
	/* A violation takes at least one failover, that of the cheapest VM. */
	if (n_bad) {
		terms.violations = (double)n_bad / p->n_samples;
		terms.expected = terms.violations * cheapest(&p->config, n_bucket);
	}
	return terms;
}

void place_add_terms(struct totals *totals, const struct terms *terms, double sign)
{
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		totals->used[r] += sign * terms->used[r];
		totals->used_squared[r] += sign * terms->used[r] * terms->used[r];
	}
	totals->excess += sign * terms->excess;
	totals->expected += sign * terms->expected;
	totals->violations += sign * terms->violations;
}

void place_totals(struct place *p)
{
	p->totals = (struct totals){ 0 };
	for (uint32_t h = 0; h < p->n_hosts; h++) {
		struct host *host = &p->hosts[h];

		memset(host->load, 0, sizeof(host->load));
		memset(host->needed, 0, sizeof(host->needed));
		memset(host->likely, 0, sizeof(host->likely));
		memset(host->floor, 0, sizeof(host->floor));
		for (uint32_t i = 0; i < host->n_items; i++) {
			const struct item *item = &p->items[host->items[i]];

			for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
				host->load[r] += item->load[r];
				host->needed[r] += item->needed[r];
				host->likely[r] += item->likely[r];
				host->floor[r] += item->floor[r];
			}
		}
		host->terms = place_terms(p, host, host->likely, host->needed, host->n_bad,
					  host->n_bucket);
		place_add_terms(&p->totals, &host->terms, 1);
	}
	for (uint32_t i = 0; i < p->n_items; i++) {
		p->totals.moves += place_moves(p, &p->items[i], p->items[i].host);
		if (p->items[i].host < 0)
			p->totals.n_unplaced += p->items[i].n;
	}
}

static double deviation(const struct place *p, const struct totals *totals)
{
	double sum = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		double mean = totals->used[r] / p->n_hosts;
		double variance = totals->used_squared[r] / p->n_hosts - mean * mean;

		sum += p->config.weight[r] * sqrt(variance > 0 ? variance : 0);
	}
	return sum;
}

double place_value(const struct place *p, const struct totals *totals)
{
	double failovers = LEAST_FAILOVERS + totals->moves + p->config.future * totals->expected;
	double least = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
		least += LEAST_DEVIATION * p->config.weight[r];
	return (least + deviation(p, totals)) * failovers +
	       EXCESS_WEIGHT * (totals->excess + totals->n_unplaced);
}

double place_moves(const struct place *p, const struct item *item, int32_t host)
{
	double moves = 0;

	for (uint32_t vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member)
		if (p->vms[vm].in.host >= 0 && p->vms[vm].in.host != host)
			moves += p->vms[vm].weight;
	return moves;
}

struct side {
	const struct host *host;
	const struct item *minus, *plus;
	double likely[PLACE_N_RESOURCES], needed[PLACE_N_RESOURCES];
	uint32_t n_bucket[PLACE_N_COSTS];
};

static void begin_side(struct side *side, const struct host *host, const struct item *minus,
		       const struct item *plus)
{
	*side = (struct side){ .host = host, .minus = minus, .plus = plus };
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		side->likely[r] = host->likely[r] - (minus ? minus->likely[r] : 0) +
				  (plus ? plus->likely[r] : 0);
		side->needed[r] = host->needed[r] - (minus ? minus->needed[r] : 0) +
				  (plus ? plus->needed[r] : 0);
	}
	for (uint32_t b = 0; b < PLACE_N_COSTS; b++)
		side->n_bucket[b] = host->n_bucket[b] - (minus ? minus->n_bucket[b] : 0) +
				    (plus ? plus->n_bucket[b] : 0);
}

/* Violations that a host has for sure: what only comes takes none away. */
static uint32_t least_bad(const struct side *side)
{
	return side->minus ? 0 : side->host->n_bad;
}

static double value_with(struct place *p, const struct totals *totals, const struct side *sides,
			 uint32_t n_sides, const uint32_t *n_bad)
{
	struct totals sum = *totals;

	for (uint32_t i = 0; i < n_sides; i++) {
		struct terms terms = place_terms(p, sides[i].host, sides[i].likely,
						 sides[i].needed, n_bad[i],
						 sides[i].n_bucket);

		place_add_terms(&sum, &sides[i].host->terms, -1);
		place_add_terms(&sum, &terms, 1);
	}
	return place_value(p, &sum);
}

double place_eval(struct place *p, const struct change *change, double limit, bool is_bound)
{
	const struct item *item = &p->items[change->item];
	const struct item *other = change->other == PLACE_NONE ? NULL : &p->items[change->other];
	struct totals totals = p->totals;
	struct side sides[2];
	uint32_t n_bad[2], n_sides = 0;
	double value;

	totals.moves += place_moves(p, item, (int32_t)change->to) -
			place_moves(p, item, item->host);
	if (other)
		totals.moves += place_moves(p, other, item->host) -
				place_moves(p, other, other->host);
	if (item->host < 0)
		totals.n_unplaced -= item->n;
	begin_side(&sides[n_sides++], &p->hosts[change->to], other, item);
	if (item->host >= 0)
		begin_side(&sides[n_sides++], &p->hosts[item->host], item, other);

	for (uint32_t i = 0; i < n_sides; i++)
		n_bad[i] = least_bad(&sides[i]);
	value = value_with(p, &totals, sides, n_sides, n_bad);
	if (is_bound || value > limit || !p->n_samples)
		return value;
	for (uint32_t i = 0; i < n_sides; i++)
		n_bad[i] = place_demand_count(p, sides[i].host, sides[i].minus, sides[i].plus);
	return value_with(p, &totals, sides, n_sides, n_bad);
}

void place_score(const struct place *p, struct place_score *ret)
{
	struct place_score score = {
		.value = place_value(p, &p->totals),
		.deviation = deviation(p, &p->totals),
		.moves = p->totals.moves,
		.expected = p->totals.expected,
		.violations = p->totals.violations,
		.excess = p->totals.excess,
		.n_unplaced = p->totals.n_unplaced,
	};

	for (uint32_t i = 0; i < p->n_vms; i++) {
		const struct vm *vm = &p->vms[i];

		score.n_moves += vm->in.host >= 0 && p->items[vm->item].host != vm->in.host;
	}
	*ret = score;
}
