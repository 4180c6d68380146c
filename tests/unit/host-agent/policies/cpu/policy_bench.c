// SPDX-License-Identifier: GPL-2.0-or-later
/* See policy_bench.h. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/chance.h"
#include "tests/unit/host-agent/policies/cpu/policy_bench.h"

void bench_init(struct bench *b, const struct ebb_policy_ops *policy, uint16_t nodes,
		uint32_t cores, uint32_t threads_of_a_core)
{
	const uint64_t chance = b->chance;

	memset(b, 0, sizeof(*b));
	b->chance = chance;
	b->policy = policy;
	b->view.num_nodes = nodes;
	b->view.vms = b->vms;
	for (uint16_t n = 0; n < nodes; n++)
		b->view.nodes[n] = (struct ebb_view_node){
			.capacity = cores, .num_cores = cores,
			.num_threads = cores * threads_of_a_core, .mem_capacity = 100,
		};
}

static struct ebb_view_vm *add(struct bench *b, enum ebb_class class, uint16_t priority,
			       uint32_t weight)
{
	struct ebb_view_vm *vm = &b->vms[b->view.num_vms];
	const uint64_t order = b->view.num_vms ? vm[-1].order + 1 : 1;

	assert_true(b->view.num_vms < BENCH_VMS);
	b->view.num_vms++;
	*vm = (struct ebb_view_vm){
		.order = order, .class = class, .priority = priority, .weight = weight,
		.mem_weight = weight, .has_driver = true,
	};
	return vm;
}

struct ebb_view_vm *bench_vm(struct bench *b, uint16_t priority, uint32_t weight,
			     const char *nodes)
{
	struct ebb_view_vm *vm = add(b, EBB_CLASS_RESERVED, priority, weight);
	struct ebb_view_vm_node n = { 0 };
	int len;

	while (sscanf(nodes, "%hu/%hu/%hu/%hu/%hu%n", &n.floor, &n.reserved, &n.ceiling, &n.used,
		      &n.wanted, &len) == 5) {
		n.host_node = vm->num_nodes;
		vm->nodes[vm->num_nodes++] = n;
		nodes += len;
	}
	assert_true(*nodes == '\0' && vm->num_nodes > 0);
	return vm;
}

struct ebb_view_vm *bench_spot(struct bench *b, uint16_t priority, uint32_t weight,
			       const char *nodes)
{
	struct ebb_view_vm *vm = add(b, EBB_CLASS_SPOT, priority, weight);
	struct ebb_view_vm_node n = { 0 };
	int len;

	while (sscanf(nodes, "%hu/%hu/%hu/%hu%n", &n.floor, &n.ceiling, &n.used, &n.wanted,
		      &len) == 4) {
		n.host_node = vm->num_nodes;
		n.reserved = n.floor;
		vm->nodes[vm->num_nodes++] = n;
		nodes += len;
	}
	assert_true(*nodes == '\0' && vm->num_nodes > 0);
	return vm;
}

void bench_remove(struct bench *b, uint32_t v)
{
	b->view.num_vms--;
	memmove(&b->vms[v], &b->vms[v + 1], (b->view.num_vms - v) * sizeof(b->vms[0]));
	memmove(&b->targets[v], &b->targets[v + 1], (b->view.num_vms - v) * sizeof(b->targets[0]));
}

void bench_decide(struct bench *b)
{
	struct ebb_plan plan = { .targets = b->targets };

	memset(b->targets, 0, sizeof(b->targets));
	assert_int_equal(ebb_policy_decide(b->policy, b->state, &b->view, &plan), 0);
	memcpy(b->use_threads, plan.use_threads, sizeof(b->use_threads));
}

void bench_follow(struct bench *b)
{
	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
			b->vms[v].nodes[g].used = b->vms[v].nodes[g].target =
				b->targets[v].nodes[g];
}

uint32_t bench_total(const struct bench *b, uint32_t v)
{
	uint32_t sum = 0;

	for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
		sum += b->targets[v].nodes[g];
	return sum;
}

uint16_t bench_top(const struct bench *b, uint32_t v, uint16_t g)
{
	const struct ebb_view_vm *vm = &b->vms[v];

	return vm->has_driver ? vm->nodes[g].ceiling : vm->nodes[g].floor;
}

uint32_t bench_roll(struct bench *b, uint32_t below)
{
	return (uint32_t)((chance_step(&b->chance) >> 33) % below);
}

static void random_node(struct bench *b, struct ebb_view_vm *vm, uint32_t *floors)
{
	struct ebb_view_vm_node *n = &vm->nodes[vm->num_nodes++];
	const uint16_t h = (uint16_t)bench_roll(b, b->view.num_nodes);

	n->host_node = h;
	n->floor = floors[h] < b->view.nodes[h].capacity ? (uint16_t)bench_roll(b, 2) : 0;
	floors[h] += n->floor;
	n->ceiling = (uint16_t)(n->floor + bench_roll(b, 9));
	n->reserved = n->floor;
	if (vm->class == EBB_CLASS_RESERVED)
		n->reserved += (uint16_t)bench_roll(b, n->ceiling - n->floor + 1u);
	n->used = n->floor;
	n->wanted = (uint16_t)(n->floor + bench_roll(b, n->ceiling - n->floor + 1u));
}

void bench_random(struct bench *b, const struct ebb_policy_ops *policy)
{
	const uint16_t nodes = (uint16_t)(1 + bench_roll(b, 4));
	uint32_t floors[EBB_MAX_NODES] = { 0 };

	bench_init(b, policy, nodes, 4 + bench_roll(b, 14), 1 + bench_roll(b, 2));
	for (uint32_t num = 1 + bench_roll(b, 24); num > 0; num--) {
		struct ebb_view_vm *vm = add(b, (enum ebb_class)bench_roll(b, EBB_CLASS_MAX),
					     (uint16_t)(100 * bench_roll(b, 3)),
					     bench_roll(b, 2) ? 100 : 1 + bench_roll(b, 1000));

		vm->has_driver = bench_roll(b, 8) > 0;
		while (vm->num_nodes < nodes)
			random_node(b, vm, floors);
	}
}

void bench_check_bounds(const struct bench *b)
{
	uint32_t sums[EBB_MAX_NODES] = { 0 };

	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++) {
			assert_in_range(b->targets[v].nodes[g], b->vms[v].nodes[g].floor,
					bench_top(b, v, g));
			sums[b->vms[v].nodes[g].host_node] += b->targets[v].nodes[g];
		}
	for (uint16_t h = 0; h < b->view.num_nodes; h++)
		assert_true(sums[h] <= (b->use_threads[h] ? b->view.nodes[h].num_threads :
							     b->view.nodes[h].capacity));
}

bool bench_settles(struct bench *b)
{
	struct ebb_plan_vm first[BENCH_VMS], second[BENCH_VMS];

	memcpy(first, b->targets, sizeof(first));
	bench_follow(b);
	bench_decide(b);
	if (memcmp(first, b->targets, sizeof(first)) == 0)
		return true;
	memcpy(second, b->targets, sizeof(second));
	bench_follow(b);
	bench_decide(b);
	assert_memory_equal(b->targets, second, sizeof(second));
	return false;
}
