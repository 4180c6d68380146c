// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times of brokerings: a policy alone, CPUs and memory, in a view in which each node of the host is
 * above its threshold and every VM has sent a histogram.  Each time with new histograms, out of the
 * caches of the CPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "scripts/bench/agent.h"

#define NODES		4u
#define BLOCKS		4096u		/* that a VM holds: 8 GiB */
#define BLOCK_KIB	((uint32_t)(EBB_BLOCK_BYTES >> 10))
/* Of what is held: in use when it begins, the threshold and the target of a node. */
#define CAPACITY(held)	((held) / 92 * 100)

static uint64_t chance = 1;

static uint32_t below(uint32_t n)
{
	chance = chance * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((chance >> 33) % n);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void tell(struct ebb_view_mem *mem, struct ebb_vom_bucket *buckets, uint32_t num,
		 usec_t now)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < num; i++) {
		value += below(1000);
		buckets[i] = (struct ebb_vom_bucket){
			.value = value, .kib = BLOCKS * BLOCK_KIB / num,
		};
	}
	mem->buckets = buckets;
	mem->num_buckets = num;
	mem->vom_at = now;
}

void bench_brokering(const char *size, uint32_t num_vms, uint32_t num_buckets,
		     const struct ebb_policy_ops *policy, unsigned num_values)
{
	struct ebb_vom_bucket *buckets = calloc((size_t)num_vms * num_buckets, sizeof(*buckets));
	struct ebb_plan_vm *targets = calloc(num_vms, sizeof(*targets));
	struct ebb_view_vm *vms = calloc(num_vms, sizeof(*vms));
	uint64_t *state = calloc(1, policy->state_size);
	double *values = calloc(num_values, sizeof(*values));
	struct ebb_view view = {
		.now = EBB_USEC_PER_SEC, .cooldown = 60 * EBB_USEC_PER_SEC, .num_nodes = NODES,
		.num_vms = num_vms, .vms = vms,
	};

	if (!buckets || !targets || !vms || !state || !values)
		bench_fail(size, ENOMEM);
	for (uint32_t v = 0; v < num_vms; v++) {
		vms[v] = (struct ebb_view_vm){
			.order = v + 1, .weight = 100, .mem_weight = 50 + below(100),
			.has_driver = true, .num_nodes = 1,
		};
		vms[v].nodes[0] = (struct ebb_view_vm_node){
			.host_node = (uint16_t)(v % NODES), .ceiling = 4,
			.mem = { .floor = BLOCKS / 8, .ceiling = 2 * BLOCKS, .used = BLOCKS,
				 .held = BLOCKS, .target = BLOCKS },
		};
		view.nodes[v % NODES].mem_capacity += BLOCKS;
	}
	for (uint16_t h = 0; h < NODES; h++) {
		struct ebb_view_node *n = &view.nodes[h];

		n->mem_capacity = CAPACITY(n->mem_capacity);
		n->mem_threshold = n->mem_capacity / 100 * 90;
		n->mem_target = n->mem_capacity / 100 * 80;
		n->capacity = n->num_cores = n->num_threads = 72;
	}
	for (unsigned i = 0; i < num_values; i++) {
		struct ebb_plan plan = { .targets = targets };
		double start;

		view.now += 2 * view.cooldown;
		for (uint32_t v = 0; v < num_vms; v++)
			tell(&vms[v].nodes[0].mem, &buckets[(size_t)v * num_buckets], num_buckets,
			     view.now);
		memset(targets, 0, num_vms * sizeof(*targets));
		start = cpu_ms();
		if (ebb_policy_decide(policy, state, &view, &plan) < 0 || plan.asks_vom)
			bench_fail(policy->name, EINVAL);
		values[i] = cpu_ms() - start;
	}
	bench_print("decision.broker", size, policy->name, "ms", values, num_values);
	free(buckets);
	free(targets);
	free(vms);
	free(state);
	free(values);
}
