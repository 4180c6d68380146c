// SPDX-License-Identifier: GPL-2.0-or-later
/* See broker_bench.h. */
#include <string.h>

#include "tests/lib/chance.h"
#include "tests/unit/host-agent/policies/mem/broker_bench.h"

void broker_init(struct broker_bench *b, const struct ebb_policy_ops *policy, uint16_t nodes)
{
	const uint64_t chance = b->chance;

	memset(b, 0, sizeof(*b));
	b->chance = chance;
	b->policy = policy;
	b->view = (struct ebb_view){
		.now = 1000 * EBB_USEC_PER_SEC, .cooldown = 60 * EBB_USEC_PER_SEC,
		.num_nodes = nodes, .vms = b->vms,
	};
	for (uint16_t h = 0; h < nodes; h++)
		b->view.nodes[h] = (struct ebb_view_node){
			.capacity = 64, .num_cores = 64, .num_threads = 64, .mem_capacity = 1000,
			.mem_threshold = 900, .mem_target = 800,
		};
}

struct ebb_view_mem *broker_vm(struct broker_bench *b, uint16_t host_node, uint32_t floor,
			       uint32_t held)
{
	struct ebb_view_vm *vm = &b->vms[b->view.num_vms];

	assert_true(b->view.num_vms < BROKER_VMS);
	*vm = (struct ebb_view_vm){
		.order = ++b->view.num_vms, .weight = 100, .mem_weight = 100,
		.has_driver = true, .num_nodes = 1,
		.nodes = { { .host_node = host_node, .mem = {
			.floor = floor, .ceiling = 1000, .used = held, .held = held,
		} } },
	};
	return &vm->nodes[0].mem;
}

void broker_tell(struct broker_bench *b, uint32_t v, const uint32_t *value_blocks)
{
	struct ebb_view_mem *mem = &b->vms[v].nodes[0].mem;

	mem->buckets = b->buckets[v][0];
	for (mem->num_buckets = 0; value_blocks[1] > 0; value_blocks += 2)
		b->buckets[v][0][mem->num_buckets++] = (struct ebb_vom_bucket){
			.value = value_blocks[0],
			.kib = value_blocks[1] * (uint32_t)(EBB_BLOCK_BYTES >> 10),
		};
	mem->vom_at = b->view.now;
}

void broker_decide(struct broker_bench *b)
{
	struct ebb_plan plan = { .targets = b->targets };

	memset(b->targets, 0, sizeof(b->targets));
	assert_int_equal(ebb_policy_decide(b->policy, b->state, &b->view, &plan), 0);
	b->asks = plan.asks_vom;
	if (b->asks) {
		b->view.vom_asked_at = b->view.now;
		b->view.vom_is_open = true;
	}
	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
			b->vms[v].nodes[g].mem.target = b->targets[v].mem[g];
}

void broker_follow(struct broker_bench *b, uint32_t takes)
{
	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++) {
			struct ebb_view_mem *mem = &b->vms[v].nodes[g].mem;
			const uint32_t most = mem->held + takes;

			mem->held = mem->target < most ? mem->target : most;
			mem->used = mem->held;
		}
}

void broker_check(const struct broker_bench *b)
{
	uint64_t sums[EBB_MAX_NODES] = { 0 }, floors[EBB_MAX_NODES] = { 0 };

	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &b->vms[v].nodes[g];
			const uint32_t top = b->vms[v].has_driver && n->mem.ceiling > n->mem.floor ?
						     n->mem.ceiling : n->mem.floor;

			assert_true(b->targets[v].mem[g] >= n->mem.floor);
			assert_true(b->targets[v].mem[g] <= top);
			sums[n->host_node] += b->targets[v].mem[g];
			floors[n->host_node] += n->mem.floor;
		}
	for (uint16_t h = 0; h < b->view.num_nodes; h++)
		assert_true(sums[h] <= b->view.nodes[h].mem_capacity || sums[h] == floors[h]);
}

uint64_t broker_roll(struct broker_bench *b, uint64_t below)
{
	return (chance_step(&b->chance) >> 11) % below;
}
