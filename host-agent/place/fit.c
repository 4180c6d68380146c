// SPDX-License-Identifier: GPL-2.0-or-later
/* One VM after the other to a host: by score, and by the rules that others are measured against. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "place/internal.h"

int place_answer(const struct place *p, struct place_refusal *ret_refusal)
{
	if (!p->totals.n_unplaced)
		return 0;
	for (uint32_t vm = 0; vm < p->n_vms; vm++) {
		if (p->items[p->vms[vm].item].host < 0) {
			place_refuse(p, vm, ret_refusal);
			break;
		}
	}
	return -EBUSY;
}

struct bounded {
	double value;
	uint32_t host;
};

static int compare_bounded(const void *a, const void *b)
{
	const struct bounded *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->host > y->host) - (x->host < y->host);
}

/*
 * Hosts are looked at in the order of the score that they have at least.  The first host whose
 * bound is no better than the best score so far ends the search, so most hosts need no simulation.
 */
int place_best_host(struct place *p, uint32_t item, uint32_t forgiven, int32_t *ret,
		    double *ret_value)
{
	struct change change = { .item = item, .other = PLACE_NONE };
	struct bounded *hosts = malloc(p->n_hosts * sizeof(*hosts));
	double best = INFINITY;
	uint32_t n = 0;

	if (!hosts)
		return -ENOMEM;
	*ret = -1;
	for (change.to = 0; change.to < p->n_hosts; change.to++)
		if ((int32_t)change.to != p->items[item].host &&
		    !(place_check(p, &p->items[item], change.to, NULL, NULL) & ~forgiven))
			hosts[n++] = (struct bounded){ place_eval(p, &change, INFINITY, true),
						       change.to };
	qsort(hosts, n, sizeof(*hosts), compare_bounded);
	for (uint32_t i = 0; i < n && hosts[i].value < best; i++) {
		double value;

		change.to = hosts[i].host;
		value = place_eval(p, &change, INFINITY, false);
		if (value < best) {
			best = value;
			*ret = (int32_t)change.to;
		}
	}
	free(hosts);
	if (ret_value)
		*ret_value = best;
	return 0;
}

int place_find_home(struct place *p, uint32_t item, int32_t *ret)
{
	int rc = place_best_host(p, item, 0, ret, NULL);

	/* A VM with too little room to grow is better than none. */
	if (!rc && *ret < 0)
		rc = place_best_host(p, item, 1u << PLACE_RESERVE, ret, NULL);
	return rc;
}

int place_new(struct place *p, uint32_t vm, struct place_refusal *ret_refusal)
{
	int32_t host;
	int rc;

	if (vm >= p->n_vms || p->items[p->vms[vm].item].host >= 0)
		return -EINVAL;
	rc = place_find_home(p, p->vms[vm].item, &host);
	if (rc)
		return rc;
	if (host < 0) {
		place_refuse(p, vm, ret_refusal);
		return -EBUSY;
	}
	place_move_item(p, p->vms[vm].item, host);
	return 0;
}

/* How much a rule prefers a host; the first of the highest wins. */
typedef double (*rule)(const struct item *item, const struct host *host);

static double first(const struct item *item, const struct host *host)
{
	(void)item;
	(void)host;
	return 0;
}

/* The less room is left over all resources, the better. */
static double best(const struct item *item, const struct host *host)
{
	double used = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
		used += (host->load[r] + item->load[r]) / host->in.capacity[r];
	return used;
}

/* Dot product of demand and room: R. Panigrahy et al., "Heuristics for vector bin packing". */
static double worst(const struct item *item, const struct host *host)
{
	double product = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
		product += item->load[r] / host->in.capacity[r] *
			   (1 - host->load[r] / host->in.capacity[r]);
	return product;
}

static int fit(struct place *p, rule prefer, struct place_refusal *ret_refusal)
{
	for (uint32_t i = 0; i < p->n_items; i++) {
		const struct item *item = &p->items[i];
		double most = -INFINITY;
		int32_t to = -1;

		if (item->host >= 0)
			continue;
		for (uint32_t h = 0; h < p->n_hosts; h++) {
			double value;

			if (place_check(p, item, h, NULL, NULL))
				continue;
			value = prefer(item, &p->hosts[h]);
			if (value > most) {
				most = value;
				to = (int32_t)h;
			}
		}
		place_move_item(p, i, to);
	}
	return place_answer(p, ret_refusal);
}

int place_first_fit(struct place *p, struct place_refusal *ret_refusal)
{
	return fit(p, first, ret_refusal);
}

int place_best_fit(struct place *p, struct place_refusal *ret_refusal)
{
	return fit(p, best, ret_refusal);
}

int place_worst_fit(struct place *p, struct place_refusal *ret_refusal)
{
	return fit(p, worst, ret_refusal);
}
