// SPDX-License-Identifier: GPL-2.0-or-later
/* Demand of earlier VMs: checked, reduced to slots, sorted by class and role. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/internal.h"

#define DAY_SECONDS	86400u
#define RESERVE_PERCENT	90u		/* section 6, "Handling New Tenants" */

struct place_grid place_grid_default(void)
{
	return (struct place_grid){ .step_seconds = 600, .slot_steps = 6, .slots = 24 };
}

static bool is_grid_good(const struct place_grid *grid)
{
	uint64_t slot_seconds = (uint64_t)grid->step_seconds * grid->slot_steps;

	return slot_seconds && slot_seconds <= DAY_SECONDS && DAY_SECONDS % slot_seconds == 0 &&
	       grid->slots >= 1 && grid->slots <= PLACE_SLOTS_MAX;
}

static int fault(struct place_problem *problem, enum place_fault what)
{
	problem->fault = what;
	return -EINVAL;
}

/* A slot at the end that is not whole counts if the VM was deleted within it. */
static uint32_t slots_of(const struct place_grid *grid, const struct place_trace *trace)
{
	return trace->steps / grid->slot_steps +
	       (trace->was_deleted && trace->steps % grid->slot_steps != 0);
}

static int check_trace(const struct place_grid *grid, uint32_t n_classes,
		       const struct place_trace *trace, struct place_problem *problem)
{
	if (trace->class >= n_classes)
		return fault(problem, PLACE_FAULT_CLASS);
	if ((unsigned int)trace->role >= PLACE_N_ROLES)
		return fault(problem, PLACE_FAULT_ROLE);
	if (trace->step_seconds != grid->step_seconds)
		return fault(problem, PLACE_FAULT_INTERVAL);
	if (!trace->steps || (!trace->was_deleted && slots_of(grid, trace) < grid->slots))
		return fault(problem, PLACE_FAULT_SHORT);
	for (uint32_t step = 0; step < trace->steps; step++) {
		for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
			problem->step = step;
			int rc = place_check_amount(
				trace->demand[(size_t)step * PLACE_N_RESOURCES + r], r, problem);

			if (rc)
				return rc;
		}
	}
	return 0;
}

/* So that the greatest demand of all is at most PLACE_UNITS_MAX units, and more than half of it. */
static void set_units(struct place_traces *t, const struct place_trace *traces, uint32_t n)
{
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		double most = 0, unit = 1;

		for (uint32_t i = 0; i < n; i++) {
			const float *demand = traces[i].demand + r;

			for (uint32_t step = 0; step < traces[i].steps; step++)
				most = fmax(most, demand[(size_t)step * PLACE_N_RESOURCES]);
		}
		while (most / unit > PLACE_UNITS_MAX)
			unit *= 2;
		/* Below a millionth of a unit it does not matter. */
		while (most / unit <= PLACE_UNITS_MAX / 2 && unit > 1e-6)
			unit /= 2;
		t->unit[r] = unit;
	}
}

static void store(struct place_traces *t, const struct place_stored_trace *to,
		  const struct place_trace *from)
{
	uint32_t n = slots_of(&t->grid, from), per_slot = t->grid.slot_steps;

	for (uint32_t slot = 0; slot < n; slot++) {
		place_vec most = { 0 };

		for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
			const float *demand = from->demand + r;
			uint32_t first = slot * per_slot;

			for (uint32_t s = first; s < first + per_slot && s < from->steps; s++) {
				int32_t units = (int32_t)ceil(
					demand[(size_t)s * PLACE_N_RESOURCES] / t->unit[r]);

				if (units > most[r])
					most[r] = units;
			}
		}
		t->slots[to->first + slot] = most;
	}
	for (uint32_t start = 0; start < to->n_starts; start++) {
		place_vec *peak = &t->peaks[to->first + start];

		for (uint32_t s = start; s < start + t->grid.slots; s++)
			*peak = place_greater(*peak, t->slots[to->first + s]);
	}
}

/* Stores the features of a VM's past, as they are at the beginning of each window. */
static void store_features(struct place_traces *t, const struct place_stored_trace *to,
			   const struct place_trace *from)
{
	place_vec most = { 0 };

	for (uint32_t start = 0; start < to->n_starts; start++) {
		struct place_features *f = &t->features[place_features_at(t, to, start)];
		uint32_t day_ago = start < t->day_slots ? 0 : start - t->day_slots;
		const float *now = from->demand +
				   (size_t)start * t->grid.slot_steps * PLACE_N_RESOURCES;
		place_vec peak = { 0 };

		for (uint32_t s = day_ago; s < start; s++)
			peak = place_greater(peak, t->slots[to->first + s]);
		if (start)
			most = place_greater(most, t->slots[to->first + start - 1]);
		for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
			f->of[PLACE_NOW][r] = now[r];
			f->of[PLACE_PEAK][r] = (float)(peak[r] * t->unit[r]);
			f->of[PLACE_MOST][r] = (float)(most[r] * t->unit[r]);
		}
	}
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* `peaks` is memory for one number for each trace. */
static void set_reserve(struct place_traces *t, struct place_group *group, double *peaks)
{
	if (!group->n)
		return;
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		for (uint32_t i = 0; i < group->n; i++) {
			const struct place_stored_trace *trace = &t->traces[group->first + i];
			uint32_t n = trace->n_starts - 1 + t->grid.slots;
			int32_t most = 0;

			for (uint32_t s = 0; s < n && s < t->day_slots; s++)
				if (t->slots[trace->first + s][r] > most)
					most = t->slots[trace->first + s][r];
			peaks[i] = most * t->unit[r];
		}
		qsort(peaks, group->n, sizeof(*peaks), compare_doubles);
		/* The nearest rank: the least number that 90% do not exceed. */
		group->reserve[r] = peaks[((uint64_t)group->n * RESERVE_PERCENT + 99) / 100 - 1];
	}
}

/* So that resources and features of different size weigh the same in a distance. */
static float scale_of(const struct place_traces *t, const struct place_group *group,
		      enum place_feature k, uint32_t r)
{
	double n = 0, sum = 0, squares = 0, variance;

	for (uint32_t i = group->first; i < group->first + group->n; i++) {
		const struct place_stored_trace *trace = &t->traces[i];

		for (uint32_t s = 0; s < trace->n_starts; s++) {
			double x = t->features[place_features_at(t, trace, s)].of[k][r];

			n++;
			sum += x;
			squares += x * x;
		}
	}
	variance = n > 0 ? squares / n - sum / n * (sum / n) : 0;
	return variance > 0 ? (float)(1 / sqrt(variance)) : 0;
}

static void set_scale(const struct place_traces *t, struct place_group *group)
{
	for (uint32_t k = 0; k < PLACE_N_FEATURES; k++)
		for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
			group->scale.of[k][r] = scale_of(t, group, k, r);
}

int place_traces_create(const struct place_grid *grid, uint32_t n_classes,
			const struct place_trace *traces, uint32_t n, struct place_traces **ret,
			struct place_problem *ret_problem)
{
	uint32_t n_groups = n_classes * PLACE_N_ROLES;
	uint64_t n_slots = 0, n_features = 0;
	struct place_traces *t;
	double *peaks;

	*ret_problem = (struct place_problem){ 0 };
	if (!is_grid_good(grid))
		return fault(ret_problem, PLACE_FAULT_SETTING);
	if (n_classes > PLACE_CLASSES_MAX)
		return fault(ret_problem, PLACE_FAULT_COUNT);
	for (uint32_t i = 0; i < n; i++) {
		ret_problem->index = i;
		int rc = check_trace(grid, n_classes, &traces[i], ret_problem);

		if (rc)
			return rc;
		n_slots += slots_of(grid, &traces[i]) + (traces[i].was_deleted ? grid->slots : 0);
		/* Whole days of them, and at least one more than there are slots. */
		n_features += slots_of(grid, &traces[i]) + DAY_SECONDS / grid->step_seconds;
	}
	if (n_features >= PLACE_NONE || n_slots >= PLACE_NONE)
		return fault(ret_problem, PLACE_FAULT_COUNT);
	*ret_problem = (struct place_problem){ 0 };

	t = calloc(1, sizeof(*t));
	peaks = calloc((size_t)n + 1, sizeof(*peaks));
	if (!t || !peaks)
		goto out_memory;
	t->grid = *grid;
	t->day_slots = DAY_SECONDS / (grid->step_seconds * grid->slot_steps);
	t->n_classes = n_classes;
	t->groups = calloc((size_t)n_groups + 1, sizeof(*t->groups));
	t->traces = calloc((size_t)n + 1, sizeof(*t->traces));
	t->slots = calloc((size_t)n_slots + 1, sizeof(*t->slots));
	t->peaks = calloc((size_t)n_slots + 1, sizeof(*t->peaks));
	t->features = calloc((size_t)n_features + 1, sizeof(*t->features));
	if (!t->groups || !t->traces || !t->slots || !t->peaks || !t->features)
		goto out_memory;
	set_units(t, traces, n);

	for (uint32_t i = 0; i < n; i++)
		t->groups[traces[i].class * PLACE_N_ROLES + traces[i].role].n++;
	for (uint32_t g = 1; g < n_groups; g++)
		t->groups[g].first = t->groups[g - 1].first + t->groups[g - 1].n;
	for (uint32_t g = 0; g < n_groups; g++)
		t->groups[g].n = 0;
	n_slots = n_features = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct place_group *group =
			&t->groups[traces[i].class * PLACE_N_ROLES + traces[i].role];
		struct place_stored_trace *to = &t->traces[group->first + group->n++];
		uint32_t slots = slots_of(grid, &traces[i]);

		to->first = (uint32_t)n_slots;
		/* After the end of a deleted VM come slots of zeros. */
		to->n_starts = traces[i].was_deleted ? slots : slots - grid->slots + 1;
		n_slots += to->n_starts - 1 + grid->slots + (traces[i].was_deleted ? 1 : 0);
		to->features = (uint32_t)n_features;
		to->n_days = (to->n_starts + t->day_slots - 1) / t->day_slots;
		n_features += (uint64_t)to->n_days * t->day_slots;
		store(t, to, &traces[i]);
		store_features(t, to, &traces[i]);
	}
	for (uint32_t g = 0; g < n_groups; g++) {
		set_reserve(t, &t->groups[g], peaks);
		set_scale(t, &t->groups[g]);
	}
	free(peaks);
	*ret = t;
	return 0;

out_memory:
	free(peaks);
	place_traces_destroy(t);
	return -ENOMEM;
}

void place_traces_destroy(struct place_traces *t)
{
	if (!t)
		return;
	free(t->groups);
	free(t->traces);
	free(t->slots);
	free(t->peaks);
	free(t->features);
	free(t);
}

const struct place_group *place_group_of(const struct place_traces *t, uint32_t class,
					 enum place_role role)
{
	const struct place_group *groups;

	if (class >= t->n_classes)
		return NULL;
	groups = &t->groups[class * PLACE_N_ROLES];
	if (groups[role].n)
		return &groups[role];
	for (uint32_t other = 0; other < PLACE_N_ROLES; other++)
		if (groups[other].n)
			return &groups[other];
	return NULL;
}

int place_reserve(const struct place_traces *t, uint32_t class, enum place_role role,
		  double ret[PLACE_N_RESOURCES])
{
	const struct place_group *group;

	if ((unsigned int)role >= PLACE_N_ROLES)
		return -EINVAL;
	group = place_group_of(t, class, role);
	if (!group)
		return -ENOENT;
	memcpy(ret, group->reserve, sizeof(group->reserve));
	return 0;
}
