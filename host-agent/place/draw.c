// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demand that a VM may have next: windows of traces of its class and role that begin at its
 * age.  Of those the ones count whose past is nearest to its own (k nearest neighbours, "method of
 * analogues": E. N. Lorenz, J. Atmos. Sci. 26, 1969; k is the square root of the number of windows,
 * at least 8).
 */
#include <errno.h>
#include <stdlib.h>

#include "place/internal.h"
#include "util/random.h"

#define NEAREST_LEAST	8u

static int add(struct place_candidates *found, uint32_t start)
{
	if (found->n == found->max) {
		uint32_t max = found->max ? found->max * 2 : 256;
		struct place_candidate *at = realloc(found->at, max * sizeof(*at));

		if (!at)
			return -ENOMEM;
		found->at = at;
		found->max = max;
	}
	found->at[found->n++].start = start;
	return 0;
}

/*
 * In its first day a VM is compared at the same age, as it grows quickly then.  Later each day of
 * a trace is as good as another, at the same time since creation modulo a day.
 */
static int collect(struct place_candidates *found, const struct place_traces *t,
		   const struct place_group *group, uint32_t age)
{
	uint32_t day = t->day_slots, stride = age < day ? UINT32_MAX : day;
	uint32_t first = age < day ? age : age % day + day;

	for (uint32_t i = group->first; i < group->first + group->n; i++) {
		for (uint64_t start = first; start < t->traces[i].n_starts; start += stride) {
			int rc = add(found, t->traces[i].first + (uint32_t)start);

			if (rc)
				return rc;
		}
	}
	if (found->n)
		return 0;
	/* The VM is older than all traces: the last that is known of each. */
	for (uint32_t i = group->first; i < group->first + group->n; i++) {
		int rc = add(found, t->traces[i].first + t->traces[i].n_starts - 1);

		if (rc)
			return rc;
	}
	return 0;
}

static float distance(const struct place_group *group, const struct place_vm *vm,
		      const struct place_features *past)
{
	float sum = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		if (group->deviation_now[r] > 0) {
			float d = ((float)vm->use[r] - past->now[r]) / group->deviation_now[r];

			sum += d * d;
		}
		if (vm->peak[r] > 0 && group->deviation_peak[r] > 0) {
			float d = ((float)vm->peak[r] - past->peak[r]) / group->deviation_peak[r];

			sum += d * d;
		}
	}
	return sum;
}

static bool is_nearer(const struct place_candidate *a, const struct place_candidate *b)
{
	return a->distance < b->distance || (a->distance == b->distance && a->start < b->start);
}

/* Hoare's selection: brings the k nearest to the front, in no order. */
static void select_nearest(struct place_candidate *at, uint32_t n, uint32_t k)
{
	int64_t low = 0, high = (int64_t)n - 1;

	while (low < high) {
		struct place_candidate pivot = at[low + (high - low) / 2];
		int64_t i = low, j = high;

		while (i <= j) {
			while (is_nearer(&at[i], &pivot))
				i++;
			while (is_nearer(&pivot, &at[j]))
				j--;
			if (i <= j) {
				struct place_candidate kept = at[i];

				at[i++] = at[j];
				at[j--] = kept;
			}
		}
		if ((int64_t)k <= j)
			high = j;
		else if ((int64_t)k >= i)
			low = i;
		else
			return;
	}
}

static uint32_t nearest_of(uint32_t n)
{
	uint32_t k = NEAREST_LEAST;

	while ((uint64_t)k * k < n)
		k++;
	return k < n ? k : n;
}

int place_candidates_find(struct place_candidates *found, const struct place_traces *traces,
			  const struct place_vm *vm)
{
	const struct place_group *group = place_group_of(traces, vm->class, vm->role);
	uint32_t k;
	int rc;

	found->n = 0;
	rc = collect(found, traces, group, vm->age / traces->grid.slot_steps);
	/* A VM that has just been created has no past to compare. */
	if (rc || !vm->age)
		return rc;
	for (uint32_t i = 0; i < found->n; i++)
		found->at[i].distance =
			distance(group, vm, &traces->features[found->at[i].start]);
	k = nearest_of(found->n);
	select_nearest(found->at, found->n, k);
	found->n = k;
	return 0;
}

void place_candidates_free(struct place_candidates *found)
{
	free(found->at);
	*found = (struct place_candidates){ 0 };
}

uint64_t place_draw_begin(uint64_t seed, uint64_t vm_id)
{
	uint64_t stream = seed;

	stream = ebb_random(&stream) ^ vm_id;
	return ebb_random(&stream);
}

uint32_t place_draw_next(uint64_t *stream, const struct place_candidates *from)
{
	return from->at[((ebb_random(stream) >> 32) * from->n) >> 32].start;
}
