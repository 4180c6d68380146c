// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Monte Carlo over the demand of VMs: each host keeps the sum of its VMs for each sample and slot,
 * so one VM more or less is one pass over it.  Common random numbers: sample n of a VM is the same
 * window of the same trace on whatever host the VM is, so two plans differ only in what they do.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "place/internal.h"

static bool any(place_vec lanes)
{
	uint64_t halves[2];

	memcpy(halves, &lanes, sizeof(halves));
	return (halves[0] | halves[1]) != 0;
}

static uint32_t *starts_of(struct place *p, uint32_t vm)
{
	return &p->starts[(size_t)vm * p->n_samples];
}

int place_demand_draw(struct place *p, uint32_t vm)
{
	const struct place_vm *in = &p->vms[vm].in;
	struct place_candidates found = { 0 };
	uint32_t *starts = starts_of(p, vm);
	uint64_t stream = place_draw_begin(p->config.seed, in->id);
	int rc;

	if (!p->n_samples)
		return 0;
	rc = place_candidates_find(&found, p->traces, in);
	for (uint32_t i = 0; !rc && i < p->n_samples; i++)
		starts[i] = place_draw_next(&stream, &found);
	place_candidates_free(&found);
	return rc;
}

void place_demand_peak(struct place *p, struct item *item)
{
	place_vec sum = { 0 };

	/* A reserve is a high percentile: beside the means of other VMs it is not comparable. */
	memcpy(item->likely, p->n_samples ? item->needed : item->load, sizeof(item->likely));
	for (uint32_t vm = item->first; p->n_samples && vm != PLACE_NONE;
	     vm = p->vms[vm].next_member) {
		const uint32_t *starts = starts_of(p, vm);
		double total[PLACE_N_RESOURCES] = { 0 };
		place_vec most = { 0 };

		for (uint32_t i = 0; i < p->n_samples; i++) {
			const place_vec peak = p->traces->peaks[starts[i]];

			most = place_greater(most, peak);
			for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
				total[r] += peak[r];
		}
		sum += most;
		for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
			item->likely[r] += fmax(0, total[r] * p->traces->unit[r] / p->n_samples -
						   p->vms[vm].needed[r]);
	}
	item->peak = sum;
}

void place_demand_add(struct place *p, struct host *host, uint32_t vm, int32_t sign)
{
	const uint32_t *starts = starts_of(p, vm);
	const place_vec by = { sign, sign, sign, sign };
	place_vec peak = { 0 };

	host->n_bad = 0;
	for (uint32_t i = 0; i < p->n_samples; i++) {
		place_vec *sum = &host->sums[(size_t)i * p->n_slots];
		const place_vec *demand = &p->traces->slots[starts[i]];
		place_vec most = { 0 };

		/* A sign is 1 or -1: xor and subtract negate without a multiplication. */
		for (uint32_t s = 0; s < p->n_slots; s++) {
			sum[s] += (demand[s] ^ (by >> 1)) - (by >> 1);
			most = place_greater(most, sum[s]);
		}
		peak = place_greater(peak, most);
		host->n_bad += any(most > host->capacity);
	}
	host->peak = peak;
}

/* Demand of all members of an item in one sample; `row` is memory to add them up in. */
static const place_vec *row_of(struct place *p, const struct item *item, uint32_t sample,
			       place_vec *row)
{
	uint32_t vm;

	if (!item)
		return &p->rows[(size_t)2 * p->n_slots];
	if (item->n == 1)
		return &p->traces->slots[starts_of(p, item->first)[sample]];
	memset(row, 0, p->n_slots * sizeof(*row));
	for (vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member)
		for (uint32_t s = 0; s < p->n_slots; s++)
			row[s] += p->traces->slots[starts_of(p, vm)[sample] + s];
	return row;
}

uint32_t place_demand_count(struct place *p, const struct host *host, const struct item *minus,
			    const struct item *plus)
{
	uint32_t n_bad = 0;

	if (!p->n_samples || (!plus && !host->n_bad))
		return 0;
	if (!any(host->peak > host->capacity - (plus ? plus->peak : (place_vec){ 0 })))
		return 0;
	for (uint32_t i = 0; i < p->n_samples; i++) {
		const place_vec *sum = &host->sums[(size_t)i * p->n_slots];
		const place_vec *less = row_of(p, minus, i, p->rows);
		const place_vec *more = row_of(p, plus, i, p->rows + p->n_slots);
		place_vec bad = { 0 };

		for (uint32_t s = 0; s < p->n_slots; s++)
			bad |= sum[s] - less[s] + more[s] > host->capacity;
		n_bad += any(bad);
	}
	return n_bad;
}

/* E. B. Wilson, J. Am. Stat. Assoc. 22, 1927: good for probabilities near 0 and 1, too. */
static void interval(uint32_t n_bad, uint32_t n, struct place_risk *ret)
{
	const double z = 1.959964, share = (double)n_bad / n;
	double scale = 1 + z * z / n, middle = (share + z * z / (2 * n)) / scale;
	double half = z * sqrt(share * (1 - share) / n + z * z / (4.0 * n * n)) / scale;

	ret->probability = share;
	/* At 0 and 1 the interval ends there, but for rounding. */
	ret->low = fmin(share, fmax(0, middle - half));
	ret->high = fmax(share, fmin(1, middle + half));
}

int place_risk(const struct place_config *config, const struct place_traces *traces,
	       const double capacity[PLACE_N_RESOURCES], const struct place_vm *vms, uint32_t n_vms,
	       struct place_risk *ret, struct place_problem *ret_problem)
{
	struct place_host in = { .fault_domain = -1, .upgrade_domain = -1 };
	struct place_config own = *config;
	struct place *p;
	struct place_risk risk = { 0 };
	int rc;

	memcpy(in.capacity, capacity, sizeof(in.capacity));
	own.look_ahead = true;
	rc = place_create(&own, traces, &in, 1, NULL, 0, &p, ret_problem);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < n_vms; i++) {
		struct place_refusal refusal;
		struct place_vm vm = vms[i];
		uint32_t index;

		vm.host = 0;
		vm.affinity = vm.anti_affinity = 0;
		rc = place_add(p, &vm, &index, ret_problem, &refusal);
		if (rc) {
			ret_problem->index = i;
			goto out_destroy;
		}
	}
	interval(p->hosts[0].n_bad, p->n_samples, &risk);
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		uint32_t n_bad = 0;

		for (uint32_t i = 0; i < p->n_samples; i++) {
			const place_vec *sum = &p->hosts[0].sums[(size_t)i * p->n_slots];
			bool is_bad = false;

			for (uint32_t s = 0; s < p->n_slots; s++)
				is_bad = is_bad || sum[s][r] > p->hosts[0].capacity[r];
			n_bad += is_bad;
		}
		risk.by_resource[r] = (double)n_bad / p->n_samples;
	}
	*ret = risk;

out_destroy:
	place_destroy(p);
	return rc;
}
