// SPDX-License-Identifier: GPL-2.0-or-later
/* See place_rig.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/host-agent/place/place_rig.h"
#include "util/random.h"

static void *must(void *ptr)
{
	if (!ptr)
		abort();
	return ptr;
}

void rig_demand(uint64_t seed, uint32_t class, enum place_role role, uint32_t steps, float *ret)
{
	uint64_t random = seed * 1000003 + class;
	double scale = 0.5 + 0.5 * class, share = role == PLACE_PRIMARY ? 1 : 0.33;
	double memory = 2000 * scale * exp(ebb_random_unit(&random) - 0.5);
	double cpu = 250 * scale * exp(2 * ebb_random_unit(&random) - 1);
	double disk = 40000 * scale * exp(2 * ebb_random_unit(&random) - 1);
	double phase = 6.283 * ebb_random_unit(&random);
	double burst = 2000 * scale * ebb_random_unit(&random);
	double grow_steps = 20 + 100 * ebb_random_unit(&random);
	bool is_burst = false;

	for (uint32_t step = 0; step < steps; step++) {
		double day = 1 + 0.5 * sin(6.283 * step / RIG_DAY + phase);

		is_burst = ebb_random_unit(&random) < (is_burst ? 0.9 : 0.01);
		ret[step * PLACE_N_RESOURCES + PLACE_CPU] =
			(float)rint(share * (cpu * day + (is_burst ? burst : 0)));
		ret[step * PLACE_N_RESOURCES + PLACE_MEMORY] =
			(float)rint(memory * (1 - 0.8 * exp(-(double)step / grow_steps)));
		ret[step * PLACE_N_RESOURCES + PLACE_DISK] =
			(float)rint(disk * (1 + 0.0005 * step));
	}
}

struct place_traces *rig_traces(uint32_t per_group, uint32_t days, uint64_t seed)
{
	struct place_grid grid = place_grid_default();
	uint32_t n = per_group * RIG_CLASSES * PLACE_N_ROLES, steps = days * RIG_DAY;
	struct place_trace *traces = must(calloc(n, sizeof(*traces)));
	float *demand = must(calloc((size_t)n * steps * PLACE_N_RESOURCES, sizeof(*demand)));
	struct place_problem problem;
	struct place_traces *ret;

	for (uint32_t i = 0; i < n; i++) {
		float *at = demand + (size_t)i * steps * PLACE_N_RESOURCES;

		traces[i] = (struct place_trace){ .class = i % RIG_CLASSES,
						  .role = i / RIG_CLASSES % PLACE_N_ROLES,
						  .step_seconds = RIG_STEP,
						  .steps = steps,
						  .demand = at };
		rig_demand(seed + i, traces[i].class, traces[i].role, steps, at);
	}
	if (place_traces_create(&grid, RIG_CLASSES, traces, n, &ret, &problem))
		abort();
	free(demand);
	free(traces);
	return ret;
}

struct place_vm rig_vm(uint64_t seed, uint64_t id, uint32_t age)
{
	uint64_t random = seed ^ (id << 20);
	struct place_vm vm = { .id = id, .age = age, .host = -1, .may_move = true };
	float *demand = must(calloc(((size_t)age + 1) * PLACE_N_RESOURCES, sizeof(*demand)));

	vm.class = (uint32_t)(ebb_random(&random) % RIG_CLASSES);
	vm.role = ebb_random(&random) % 4 ? PLACE_PRIMARY : PLACE_SECONDARY;
	vm.is_active = ebb_random(&random) % 3 == 0;
	rig_demand(ebb_random(&random) >> 20, vm.class, vm.role, age + 1, demand);
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		vm.use[r] = demand[(size_t)age * PLACE_N_RESOURCES + r];
		for (uint32_t s = age > RIG_DAY ? age - RIG_DAY : 0; s <= age; s++)
			vm.peak[r] = fmax(vm.peak[r], demand[(size_t)s * PLACE_N_RESOURCES + r]);
	}
	free(demand);
	return vm;
}

struct rig *rig_create(uint32_t n_hosts, uint32_t n_vms, double per_host, uint64_t seed)
{
	struct rig *rig = must(calloc(1, sizeof(*rig)));
	uint64_t random = seed;
	double scale = 20 / per_host;

	rig->config = place_config_default();
	rig->config.seed = seed;
	rig->traces = rig_traces(50, 7, 7);
	rig->n_hosts = n_hosts;
	rig->n_vms = n_vms;
	rig->hosts = must(calloc(n_hosts, sizeof(*rig->hosts)));
	rig->vms = must(calloc(n_vms, sizeof(*rig->vms)));
	for (uint32_t h = 0; h < n_hosts; h++) {
		rig->hosts[h] = plain_host(16000 / scale, 65536 / scale, 2097152 / scale);
		rig->hosts[h].fault_domain = (int32_t)(h % 5);
		rig->hosts[h].upgrade_domain = (int32_t)(h % 10);
	}
	for (uint32_t i = 0; i < n_vms; i++) {
		rig->vms[i] = rig_vm(seed, i, (uint32_t)(ebb_random(&random) % (6 * RIG_DAY)));
		rig->vms[i].host = (int32_t)(i % n_hosts);
	}
	return rig;
}

void rig_destroy(struct rig *rig)
{
	place_traces_destroy(rig->traces);
	free(rig->hosts);
	free(rig->vms);
	free(rig);
}

struct place *rig_place(const struct rig *rig)
{
	struct place_problem problem;
	struct place *p;

	if (place_create(&rig->config, rig->traces, rig->hosts, rig->n_hosts, rig->vms, rig->n_vms,
			 &p, &problem)) {
		fprintf(stderr, "place_create: %s, index %u\n", place_fault_name(problem.fault),
			problem.index);
		abort();
	}
	return p;
}

void hand_add(struct hand *hand, uint32_t class, enum place_role role, uint32_t steps,
	      uint32_t from, float cpu, float memory, float disk)
{
	float *demand = must(calloc((size_t)steps * PLACE_N_RESOURCES, sizeof(*demand)));

	for (uint32_t s = from; s < steps; s++) {
		demand[s * PLACE_N_RESOURCES + PLACE_CPU] = cpu;
		demand[s * PLACE_N_RESOURCES + PLACE_MEMORY] = memory;
		demand[s * PLACE_N_RESOURCES + PLACE_DISK] = disk;
	}
	if (hand->n == sizeof(hand->traces) / sizeof(hand->traces[0]))
		abort();
	hand->traces[hand->n++] = (struct place_trace){ .class = class,
							.role = role,
							.step_seconds = RIG_STEP,
							.steps = steps,
							.demand = demand };
}

struct place_traces *hand_traces(struct hand *hand, uint32_t n_classes)
{
	struct place_grid grid = place_grid_default();
	struct place_problem problem;
	struct place_traces *ret;

	if (place_traces_create(&grid, n_classes, hand->traces, hand->n, &ret, &problem))
		abort();
	for (uint32_t i = 0; i < hand->n; i++)
		free((void *)hand->traces[i].demand);
	*hand = (struct hand){ 0 };
	return ret;
}

struct place_host plain_host(double cpu, double memory, double disk)
{
	return (struct place_host){ .capacity = { cpu, memory, disk },
				    .fault_domain = -1,
				    .upgrade_domain = -1 };
}

struct place_vm plain_vm(uint64_t id, double cpu, double memory, double disk)
{
	return (struct place_vm){ .id = id,
				  .use = { cpu, memory, disk },
				  .host = -1,
				  .may_move = true };
}

struct place_config plain_config(void)
{
	struct place_config config = place_config_default();

	config.look_ahead = false;
	return config;
}

struct place *plain_create(const struct place_config *config, const struct place_traces *traces,
			   const struct place_host *hosts, uint32_t n_hosts,
			   const struct place_vm *vms, uint32_t n_vms)
{
	struct place_problem problem;
	struct place *p;

	if (place_create(config, traces, hosts, n_hosts, vms, n_vms, &p, &problem))
		abort();
	return p;
}

void rig_reset(struct place *place)
{
	/* In two passes: a host could be too full for those that come before others have gone. */
	for (uint32_t vm = 0; vm < place_n_vms(place); vm++)
		place_put(place, vm, -1);
	for (uint32_t vm = 0; vm < place_n_vms(place); vm++)
		place_put(place, vm, place_origin_of(place, vm));
}
