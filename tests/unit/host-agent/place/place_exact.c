// SPDX-License-Identifier: GPL-2.0-or-later
/* The best plan of a small cluster, by branch and bound: what the annealer is measured against. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "place/internal.h"
#include "tests/unit/host-agent/place/place_exact.h"

struct search {
	struct place *p;
	uint64_t n_left;		/* partial plans that may still be looked at */
	double best;
	int32_t *hosts;			/* of each item in the best plan */
	bool is_out_of_nodes;
};

/*
 * The least cost of all plans that go on from this one: the deviation may become 0, but moves are
 * made, and hosts that have violations keep them, with whichever VM is the cheapest to move then.
 */
static double bound(const struct place *p)
{
	struct totals totals = { .moves = p->totals.moves, .excess = p->totals.excess };
	const double *weight = p->config.cost.weight;

	/* Moves of VMs on no host count in the totals as if each had to move. */
	for (uint32_t i = 0; i < p->n_items; i++)
		if (p->items[i].host < 0)
			totals.moves -= place_moves(p, &p->items[i], -1);
	totals.expected = p->totals.violations;
	if (p->config.move_costs)
		totals.expected *= fmin(weight[0], fmin(weight[1], weight[2]));
	return place_value(p, &totals);
}

/* Items are numbered, each is tried on all hosts: the depth is the number of items. */
static void branch(struct search *s, uint32_t i)
{
	struct place *p = s->p;

	if (!s->n_left) {
		s->is_out_of_nodes = true;
		return;
	}
	s->n_left--;
	if (i == p->n_items) {
		double value = place_value(p, &p->totals);

		if (value < s->best) {
			s->best = value;
			for (uint32_t j = 0; j < p->n_items; j++)
				s->hosts[j] = p->items[j].host;
		}
		return;
	}
	for (uint32_t h = 0; h < p->n_hosts && !s->is_out_of_nodes; h++) {
		if (place_check(p, &p->items[i], h, NULL, NULL))
			continue;
		place_move_item(p, i, (int32_t)h);
		if (bound(p) < s->best)
			branch(s, i + 1);
		place_move_item(p, i, -1);
	}
}

int place_exact(struct place *p, uint64_t max_nodes)
{
	struct search s = { .p = p, .n_left = max_nodes, .best = INFINITY };
	int32_t *before;
	int rc = 0;

	s.hosts = calloc(2 * (size_t)p->n_items + 1, sizeof(*s.hosts));
	if (!s.hosts)
		return -ENOMEM;
	before = s.hosts + p->n_items;
	for (uint32_t i = 0; i < p->n_items; i++) {
		before[i] = p->items[i].host;
		place_move_item(p, i, -1);
	}
	place_totals(p);
	branch(&s, 0);
	if (s.is_out_of_nodes)
		rc = -E2BIG;
	else if (s.best == INFINITY)
		rc = -ENOENT;
	for (uint32_t i = 0; i < p->n_items; i++)
		place_move_item(p, i, rc ? before[i] : s.hosts[i]);
	place_totals(p);
	free(s.hosts);
	return rc;
}
