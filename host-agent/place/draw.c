// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demand that a VM may have next: windows of traces of its class and role that begin at its
 * age.  Of those the ones count whose past is nearest to its own (k nearest neighbours, "method of
 * analogues": E. N. Lorenz, J. Atmos. Sci. 26, 1969; k is the square root of the number of windows,
 * at least 8).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "place/internal.h"
#include "util/random.h"

#define NEAREST_LEAST	8u

/* The VM as traces are: what is not known of it does not count. */
struct past {
	struct place_features is, scale;
};

static struct past past_of(const struct place_group *group, const struct place_vm *vm)
{
	struct past past = { .scale = group->scale };

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		past.is.of[PLACE_NOW][r] = (float)vm->use[r];
		past.is.of[PLACE_PEAK][r] = (float)vm->peak[r];
		past.is.of[PLACE_MOST][r] = (float)vm->most[r];
		if (vm->peak[r] <= 0)
			past.scale.of[PLACE_PEAK][r] = 0;
		if (vm->most[r] <= 0)
			past.scale.of[PLACE_MOST][r] = 0;
	}
	return past;
}

static float distance(const struct past *past, const struct place_features *to)
{
	place_floats sum = { 0 };

	for (uint32_t k = 0; k < PLACE_N_FEATURES; k++) {
		place_floats d = (past->is.of[k] - to->of[k]) * past->scale.of[k];

		sum += d * d;
	}
	return sum[0] + sum[1] + sum[2] + sum[3];
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

/* The k nearest of those that were offered, and up to k that may turn out to be none of them. */
struct nearest {
	struct place_candidate *at;
	uint32_t n, k;
	float limit;			/* what is farther away is not one of them */
};

static void offer(struct nearest *near, float distance, uint32_t start)
{
	if (distance > near->limit)
		return;
	near->at[near->n++] = (struct place_candidate){ distance, start };
	if (near->n < 2 * near->k)
		return;
	select_nearest(near->at, near->n, near->k);
	near->n = near->k;
	near->limit = 0;
	for (uint32_t i = 0; i < near->k; i++)
		near->limit = fmaxf(near->limit, near->at[i].distance);
}

/* Where windows of a trace begin that may be the future of a VM of this age. */
struct starts {
	uint32_t first, n;		/* a day lies between two */
};

/*
 * In its first day a VM is compared at the same age, as it grows quickly then.  Later each day of
 * a trace is as good as another, at the same time since creation modulo a day.  is_last: the VM is
 * older than all traces, so the last window of each.
 */
static struct starts starts_of(const struct place_traces *t, const struct place_stored_trace *trace,
			       uint32_t age, bool is_last)
{
	const uint32_t day = t->day_slots;
	struct starts s = { .first = age < day ? age : age % day + day, .n = 1 };

	if (is_last)
		s.first = trace->n_starts - 1;
	else if (s.first >= trace->n_starts)
		s.n = 0;
	else if (age >= day)
		s.n = (trace->n_starts - 1 - s.first) / day + 1;
	return s;
}

static uint64_t count_starts(const struct place_traces *t, const struct place_group *group,
			     uint32_t age, bool is_last)
{
	uint64_t n = 0;

	for (uint32_t i = group->first; i < group->first + group->n; i++)
		n += starts_of(t, &t->traces[i], age, is_last).n;
	return n;
}

static void collect(struct nearest *near, const struct past *past, const struct place_traces *t,
		    const struct place_group *group, uint32_t age, bool is_last)
{
	for (uint32_t i = group->first; i < group->first + group->n; i++) {
		const struct place_stored_trace *trace = &t->traces[i];
		const struct starts s = starts_of(t, trace, age, is_last);
		const struct place_features *features;

		if (!s.n)
			continue;
		features = &t->features[place_features_at(t, trace, s.first)];
		for (uint32_t d = 0; d < s.n; d++)
			offer(near, distance(past, &features[d]),
			      trace->first + s.first + d * t->day_slots);
	}
}

int place_candidates_find(struct place_candidates *ret, const struct place_traces *traces,
			  const struct place_vm *vm)
{
	const struct place_group *group = place_group_of(traces, vm->class, vm->role);
	const uint32_t age = vm->age / traces->grid.slot_steps;
	const struct past past = past_of(group, vm);
	struct nearest near = { .limit = INFINITY };
	uint64_t n = count_starts(traces, group, age, false);
	const bool is_last = n == 0;

	if (is_last)
		n = group->n;
	/* A VM that has just been created has no past to compare: any will do. */
	near.k = vm->age ? nearest_of((uint32_t)n) : (uint32_t)n;
	near.at = calloc(2 * (size_t)near.k + 1, sizeof(*near.at));
	if (!near.at)
		return -ENOMEM;
	collect(&near, &past, traces, group, age, is_last);
	if (near.n > near.k)
		select_nearest(near.at, near.n, near.k);
	*ret = (struct place_candidates){ .at = near.at, .n = near.n < near.k ? near.n : near.k };
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
