// SPDX-License-Identifier: GPL-2.0-or-later
/* Is what was given possible at all?  Says what is not, and where. */
#include <errno.h>
#include <math.h>

#include "place/internal.h"

static int fault(struct place_problem *problem, enum place_fault what)
{
	problem->fault = what;
	return -EINVAL;
}

int place_check_amount(double amount, enum place_resource resource, struct place_problem *problem)
{
	problem->resource = resource;
	if (isnan(amount))
		return fault(problem, PLACE_FAULT_HOLE);
	if (amount < 0)
		return fault(problem, PLACE_FAULT_NEGATIVE);
	if (amount > PLACE_AMOUNT_MAX)
		return fault(problem, PLACE_FAULT_TOO_BIG);
	return 0;
}

/* Comparisons are written so that what is not a number fails them. */
static bool is_within(double value, double least, double most)
{
	return value >= least && value <= most;
}

int place_check_config(const struct place_config *config, struct place_problem *problem)
{
	const struct place_move_cost *cost = &config->cost;
	bool is_good = config->samples >= 1 && config->samples <= PLACE_SAMPLES_MAX &&
		       is_within(config->future, 0, 1e6) && is_within(cost->a, 0, 1e9) &&
		       is_within(cost->b, 0, 1e9) && is_within(cost->c, 0, 1e9) &&
		       cost->limit[0] <= cost->limit[1];
	double weights = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		is_good = is_good && is_within(config->weight[r], 0, 1e6);
		weights += config->weight[r];
	}
	/* Else the deviation is always 0, and all plans are worth the same. */
	is_good = is_good && weights > 0;
	for (uint32_t i = 0; i < PLACE_N_COSTS; i++)
		is_good = is_good && is_within(cost->weight[i], 1e-6, 1e6);
	return is_good ? 0 : fault(problem, PLACE_FAULT_SETTING);
}

int place_check_host(const struct place_host *host, struct place_problem *problem)
{
	if ((unsigned int)host->state >= PLACE_N_HOST_STATES)
		return fault(problem, PLACE_FAULT_SETTING);
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		int rc = place_check_amount(host->capacity[r], r, problem);

		if (rc)
			return rc;
		if (host->capacity[r] <= 0)
			return fault(problem, PLACE_FAULT_NEGATIVE);
	}
	return 0;
}

int place_check_vm(const struct place_traces *traces, const struct place_vm *vm, uint32_t n_hosts,
		   struct place_problem *problem)
{
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		const double amounts[] = { vm->use[r], vm->peak[r], vm->most[r],
					   vm->reserve[r], vm->floor[r] };

		for (uint32_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
			int rc = place_check_amount(amounts[i], r, problem);

			if (rc)
				return rc;
		}
	}
	if ((unsigned int)vm->role >= PLACE_N_ROLES)
		return fault(problem, PLACE_FAULT_ROLE);
	if (vm->host < -1 || vm->host >= (int64_t)n_hosts)
		return fault(problem, PLACE_FAULT_HOST);
	if (traces && !place_group_of(traces, vm->class, vm->role))
		return fault(problem, PLACE_FAULT_CLASS);
	return 0;
}
