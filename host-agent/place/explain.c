// SPDX-License-Identifier: GPL-2.0-or-later
/* Why this host and not that: each host as a place for one VM, all others where they are. */
#include <errno.h>
#include <stdlib.h>

#include "place/internal.h"

static int compare_reasons(const void *a, const void *b)
{
	const struct place_reason *x = a, *y = b;

	if (x->is_chosen != y->is_chosen)
		return x->is_chosen ? -1 : 1;
	if (!x->constraints != !y->constraints)
		return x->constraints ? 1 : -1;
	if (!x->constraints && x->score.value != y->score.value)
		return x->score.value < y->score.value ? -1 : 1;
	return (x->host > y->host) - (x->host < y->host);
}

int place_explain(struct place *p, uint32_t vm, struct place_reason *ret)
{
	const struct item *item;
	int32_t chosen;

	if (vm >= p->n_vms)
		return -EINVAL;
	item = &p->items[p->vms[vm].item];
	chosen = item->host;
	place_move_item(p, p->vms[vm].item, -1);
	for (uint32_t h = 0; h < p->n_hosts; h++) {
		const struct host *host = &p->hosts[h];
		struct place_reason *reason = &ret[h];
		double used;

		*reason = (struct place_reason){ .host = h, .is_chosen = chosen == (int32_t)h };
		reason->constraints = place_check(p, item, h, NULL, &reason->resource);
		used = (host->load[reason->resource] + item->load[reason->resource]) /
		       host->in.capacity[reason->resource];
		reason->room = 1 - used;
		reason->risk_without = host->terms.violations;
		/* A full host has no room in its sums for one more. */
		if (reason->constraints & (1u << PLACE_HOST_FULL)) {
			reason->risk_with = reason->risk_without;
			place_score(p, &reason->score);
			continue;
		}
		place_move_item(p, p->vms[vm].item, (int32_t)h);
		reason->risk_with = host->terms.violations;
		place_score(p, &reason->score);
		place_move_item(p, p->vms[vm].item, -1);
	}
	place_move_item(p, p->vms[vm].item, chosen);
	place_totals(p);
	qsort(ret, p->n_hosts, sizeof(*ret), compare_reasons);
	return 0;
}
