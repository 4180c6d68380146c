// SPDX-License-Identifier: GPL-2.0-or-later
/* See resource.h: CPUs and memory. */
#include "core/internal.h"

/* ---- CPUs ---------------------------------------------------------------- */

static uint32_t cpu_capacity(const struct ebb_state *s, uint16_t h)
{
	return s->env.nodes[h].capacity;
}

static uint32_t cpu_divided(const struct ebb_state *s, uint16_t h)
{
	return s->env.use_threads[h] ? s->env.nodes[h].num_cores : s->env.nodes[h].capacity;
}

static uint32_t cpu_floor(const struct ebb_vm *vm, uint16_t g)
{
	return vm->sla.is_shared ? 0 : vm->sla.nodes[g].startup;
}

static uint16_t cpu_ceiling(const struct ebb_vm *vm, uint16_t g)
{
	return vm->work->counts_as_driven ? vm->sla.nodes[g].max : vm->sla.nodes[g].startup;
}

static uint32_t cpu_held(const struct ebb_vm *vm, uint16_t g, const struct ebb_arbiter_entry *e)
{
	(void)vm;
	(void)g;
	return e->used;
}

/* In cores where threads are given out. */
static void cpu_entry(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
		      struct ebb_arbiter_entry *ret)
{
	const struct ebb_sla_node *sla = &vm->sla.nodes[g];
	const struct ebb_vm_node *n = &vm->nodes[g];
	const uint16_t h = sla->host_node;

	*ret = (struct ebb_arbiter_entry){ 0 };
	/* It has no cores of its own, so nothing is divided here. */
	if (vm->sla.is_shared)
		return;
	*ret = (struct ebb_arbiter_entry){
		.floor = cpu_to_units(&s->cpu, h, sla->startup),
		.ceiling = cpu_to_units(&s->cpu, h, cpu_ceiling(vm, g)),
		.used = s->env.use_threads[h] ? cpu_count_cores(&s->cpu, vm, g) :
					    (uint32_t)n->used - cpu_leaving(vm, g, s->env.now),
		.target = cpu_to_units(&s->cpu, h, n->target),
		.limit = cpu_to_units(&s->cpu, h, n->limit),
	};
}

/* The part of a wish that the arbiter allows, in CPUs; never below the startup set. */
static uint16_t cpus_left(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
			  uint32_t wish, uint32_t units)
{
	const uint32_t floor = vm->sla.nodes[g].startup, ceiling = cpu_ceiling(vm, g);
	const uint32_t most = cpu_from_units(&s->cpu, vm->sla.nodes[g].host_node, units);

	wish = wish > ceiling ? ceiling : wish;
	wish = wish > most ? most : wish;
	return (uint16_t)(wish < floor ? floor : wish);
}

static uint32_t cpu_planned(const struct ebb_state *s, uint16_t h, const struct ebb_plan_vm *plan,
			    uint16_t g)
{
	return cpu_to_units(&s->cpu, h, plan->nodes[g]);
}

static uint32_t cpu_take_target(struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
				const struct ebb_plan_vm *plan, const struct ebb_arbiter_entry *e)
{
	const uint32_t wish = plan ? plan->nodes[g] : vm->nodes[g].target;

	cpu_set_target(vm, g, cpus_left(s, vm, g, wish, e->target));
	/* The arbiter counts whole cores, so it does not see a cut of some threads of one. */
	return vm->nodes[g].target != wish && !vm->sla.is_shared && e->target == e->wanted;
}

static void cpu_take_limit(struct ebb_state *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
			   const struct ebb_arbiter_entry *e)
{
	cpu_set_limit(&s->cpu, now, vm, g, cpus_left(s, vm, g, vm->nodes[g].target, e->limit));
}

/* ---- memory -------------------------------------------------------------- */

static uint32_t mem_capacity(const struct ebb_state *s, uint16_t h)
{
	return s->env.nodes[h].mem_capacity;
}

static uint32_t mem_floor(const struct ebb_vm *vm, uint16_t g)
{
	return vm->sla.nodes[g].mem_min + vm->floor.booked[g];
}

static uint32_t mem_held(const struct ebb_vm *vm, uint16_t g, const struct ebb_arbiter_entry *e)
{
	(void)e;
	return vm->pools[g].held;
}

/* False once the device has turned out not to have the pool that the SLA speaks of. */
bool core_may_have_pool(const struct ebb_vm *vm, uint16_t g)
{
	return vm->pools[g].is_there || !vm->work->has_hello;
}

/* Also for a VM that is not admitted: the memory that it holds is not free. */
static void mem_entry(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
		      struct ebb_arbiter_entry *ret)
{
	const struct ebb_sla_node *sla = &vm->sla.nodes[g];
	const struct ebb_vm_pool *p = &vm->pools[g];

	(void)s;
	*ret = (struct ebb_arbiter_entry){
		.used = core_pool_reach(p),
		.target = p->target,
		.limit = p->limit,
	};
	if (vm->is_admitted && core_may_have_pool(vm, g))
		ret->floor = core_mem_floor(vm, g);
	ret->ceiling = ret->floor;
	if (vm->is_admitted && p->is_there && vm->work->counts_as_driven)
		ret->ceiling = sla->mem_max;
}

static uint32_t mem_planned(const struct ebb_state *s, uint16_t h, const struct ebb_plan_vm *plan,
			    uint16_t g)
{
	(void)s;
	(void)h;
	return plan->mem[g];
}

static uint32_t mem_take_target(struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
				const struct ebb_plan_vm *plan, const struct ebb_arbiter_entry *e)
{
	(void)s;
	(void)plan;
	mem_set_target(vm, g, e->target);
	return 0;
}

static void mem_take_limit(struct ebb_state *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
			   const struct ebb_arbiter_entry *e)
{
	mem_set_limit(&s->mem, now, vm, g, e->limit);
}

/* ---- all ----------------------------------------------------------------- */

const struct core_resource core_resources[EBB_RESOURCES] = {
	[EBB_CPUS] = {
		.unit = "cores", .scale = 1, .floor_name = "startup set", .key = "startup",
		.capacity = cpu_capacity, .divided = cpu_divided, .floor = cpu_floor,
		.held = cpu_held, .entry = cpu_entry, .planned = cpu_planned,
		.set_target = cpu_take_target,
		.set_limit = cpu_take_limit,
	},
	[EBB_MEM] = {
		.unit = "MiB", .scale = EBB_BLOCK_MIB, .floor_name = "min-mib", .key = "min-mib",
		.may_shrink = true, .has_all_vms = true,
		.capacity = mem_capacity, .divided = mem_capacity, .floor = mem_floor,
		.held = mem_held, .entry = mem_entry, .planned = mem_planned,
		.set_target = mem_take_target,
		.set_limit = mem_take_limit,
	},
};
