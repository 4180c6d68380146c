/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/placed-oracle.h"

/* Each VM has a class and role of its own, so that there is one trace to draw from. */
static int fill_future(const struct sim_place_world *w, const struct sim_place_vm *vm, uint32_t i,
		       uint32_t window, struct place_trace *ret)
{
	const uint32_t age = sim_place_age(w, vm);
	const uint32_t left = vm->of.life - age;
	const uint32_t steps = left < window ? left : window;
	float *demand = calloc((size_t)steps * PLACE_N_RESOURCES, sizeof(*demand));

	if (!demand)
		return -ENOMEM;
	for (uint32_t k = 0; k < steps; k++) {
		double use[PLACE_N_RESOURCES];

		sim_place_use(&vm->of, w->options->traces, vm->is_secondary, vm->born, age + k,
			      use);
		for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
			demand[k * PLACE_N_RESOURCES + r] = (float)use[r];
	}
	*ret = (struct place_trace){
		.class = i / PLACE_N_ROLES, .role = i % PLACE_N_ROLES,
		.step_seconds = SIM_PLACE_STEP_S, .steps = steps, .was_deleted = left <= window,
		.demand = demand,
	};
	return 0;
}

/* To the placer each VM is new. */
static void hide_age(uint32_t i, struct place_vm *vm)
{
	memset(vm->peak, 0, sizeof(vm->peak));
	memset(vm->most, 0, sizeof(vm->most));
	vm->class = i / PLACE_N_ROLES;
	vm->role = i % PLACE_N_ROLES;
	vm->age = 0;
}

/* Maxima of a slot are added up as if they came together, so a slot is one step if it can be. */
static struct place_grid grid_of(uint32_t window)
{
	uint32_t steps = 1;

	while (SIM_PLACE_DAY % steps || window / steps > PLACE_SLOTS_MAX)
		steps++;
	return (struct place_grid){ SIM_PLACE_STEP_S, steps, window / steps };
}

int sim_place_oracle(const struct sim_place_world *w, uint32_t window, struct place_vm *vms,
		     struct place_traces **ret)
{
	const struct place_grid grid = grid_of(window);
	struct place_trace *traces = calloc((size_t)w->num_vms + 1, sizeof(*traces));
	struct place_problem problem;
	uint32_t count = 0;
	int rc = traces ? 0 : -ENOMEM;

	for (; rc == 0 && count < w->num_vms; count += rc == 0)
		rc = fill_future(w, &w->vms[count], count, window, &traces[count]);
	if (rc == 0)
		rc = place_traces_create(&grid, count / PLACE_N_ROLES + 1, traces, count, ret,
					 &problem);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		hide_age(i, &vms[i]);
	for (uint32_t i = 0; i < count; i++)
		free((void *)traces[i].demand);
	free(traces);
	return rc;
}
