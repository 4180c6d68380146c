// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settling: who is admitted, what the policy wants, what can be promised now.
 * CPUs and memory are divided in the same way, one after the other.
 */
#include <string.h>

#include "core/internal.h"

/* ---- admission ----------------------------------------------------------- */

void core_count_capacity(struct ebb_state *s)
{
	const struct ebb_pressure *p = &s->env.cfg.pressure;
	uint64_t boot_bytes[EBB_MAX_NODES] = { 0 };

	for (size_t i = 0; s->env.host.pool_has_boot && i < s->num_vms; i++)
		for (uint16_t g = 0; s->vms[i]->has_sla && g < s->vms[i]->sla.num_nodes; g++)
			boot_bytes[s->vms[i]->sla.nodes[g].host_node] += s->vms[i]->boot_bytes[g];
	for (uint16_t h = 0; h < s->env.host.num_nodes; h++) {
		const uint64_t boot = (boot_bytes[h] + EBB_BLOCK_BYTES - 1) / EBB_BLOCK_BYTES;
		const uint32_t all = s->env.host.pool_blocks[h];

		struct ebb_view_node *n = &s->env.nodes[h];

		n->mem_capacity = boot < all ? (uint32_t)(all - boot) : 0;
		n->mem_threshold = core_percent(n->mem_capacity, p->memory_threshold_percent);
		n->mem_target = core_percent(n->mem_capacity, p->memory_target_percent);
	}
}

static uint32_t capacity(const struct ebb_view_node *node, enum ebb_resource what)
{
	return what == EBB_CPUS ? node->capacity : node->mem_capacity;
}

static void explain_refusal(struct ebb_vm *vm, enum ebb_resource what, uint16_t h, uint64_t need,
			    uint64_t promised, uint32_t has)
{
	const char *unit = what == EBB_CPUS ? "cores" : "MiB";
	const unsigned scale = what == EBB_CPUS ? 1 : EBB_BLOCK_MIB;
	const char *floor = what == EBB_CPUS ? "startup set" : "min-mib";
	const char *key = what == EBB_CPUS ? "startup" : "min-mib";

	if (need > has)
		core_text(vm->error, "%s needs %llu %s on host node %u, which has %llu: lower %s",
			  floor, (unsigned long long)need * scale, unit, h,
			  (unsigned long long)has * scale, key);
	else
		core_text(vm->error,
			  "%s needs %llu %s on host node %u, VMs that came before need %llu of "
			  "%llu: stop one of them or lower %s",
			  floor, (unsigned long long)need * scale, unit, h,
			  (unsigned long long)promised * scale, (unsigned long long)has * scale,
			  key);
}

/*
 * Whether the VM's floors fit beside what has been promised to earlier arrivals;
 * says what is missing if not.  The floors count from here on in both cases, so
 * that nobody overtakes a VM that waits, unless it could never fit.
 */
static bool admit(struct ebb_vm *vm, uint64_t promised[EBB_RESOURCES][EBB_MAX_NODES],
		  const struct ebb_view_node *nodes)
{
	uint64_t need[EBB_RESOURCES][EBB_MAX_NODES] = { { 0 } };
	bool fits = true;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		if (!vm->sla.is_shared)
			need[EBB_CPUS][vm->sla.nodes[g].host_node] += vm->sla.nodes[g].startup;
		need[EBB_MEM][vm->sla.nodes[g].host_node] += vm->sla.nodes[g].mem_min;
	}
	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
			const uint32_t has = capacity(&nodes[h], what);

			/*
			 * Capacity for memory may shrink when a VM is defined; those
			 * that are in stay in.
			 */
			if (need[what][h] == 0 || promised[what][h] + need[what][h] <= has ||
			    (what == EBB_MEM && vm->is_admitted))
				continue;
			explain_refusal(vm, what, h, need[what][h], promised[what][h], has);
			if (need[what][h] > has)
				return false;
			fits = false;
		}
	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
			promised[what][h] += need[what][h];
	return fits;
}

static void turn_away(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	vm->work->is_refused = true;
	cpu_turn_away(&s->cpu, vm);
	core_text(core_record(&s->env, vm, now, EBB_EVENT_ERROR)->text, "not admitted: %.150s",
		  vm->error);
}

/*
 * Invariants I1 and M1: the floors of admitted VMs fit the host.  By arrival alone, so
 * that an agent that is restarted admits the same VMs; and as those before a
 * VM can only become fewer, one that is in stays in.
 */
void core_admit_all(struct ebb_state *s, usec_t now)
{
	uint64_t promised[EBB_RESOURCES][EBB_MAX_NODES] = { { 0 } };

	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		if (!admit(vm, promised, s->env.nodes)) {
			if (!vm->work->is_refused)
				turn_away(s, now, vm);
			continue;
		}
		if (!vm->is_admitted)
			core_touch(&s->env, vm);
		vm->is_admitted = true;
		if (vm->work->is_refused)
			vm->error[0] = '\0';
		vm->work->is_refused = false;
	}
}

/* ---- what is divided ----------------------------------------------------- */

static uint16_t cpu_ceiling(const struct ebb_vm *vm, uint16_t g)
{
	return vm->work->counts_as_driven ? vm->sla.nodes[g].max : vm->sla.nodes[g].startup;
}

/* In cores where threads are given out. */
static void cpu_entry(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
		      struct ebb_arbiter_entry *ret)
{
	const struct ebb_sla_node *sla = &vm->sla.nodes[g];
	const struct ebb_vm_node *n = &vm->nodes[g];
	const uint16_t h = sla->host_node;

	/* None of what is divided. */
	if (vm->sla.is_shared) {
		*ret = (struct ebb_arbiter_entry){ .host_node = h };
		return;
	}
	*ret = (struct ebb_arbiter_entry){
		.host_node = h,
		.floor = cpu_to_units(&s->cpu, h, sla->startup),
		.ceiling = cpu_to_units(&s->cpu, h, cpu_ceiling(vm, g)),
		.used = s->env.use_threads[h] ? cpu_count_cores(&s->cpu, vm, g) :
					    (uint32_t)n->used - cpu_leaving(vm, g, s->env.now),
		.target = cpu_to_units(&s->cpu, h, n->target),
		.limit = cpu_to_units(&s->cpu, h, n->limit),
	};
}

/* What the arbiter leaves of a wish, in CPUs; never below the startup set. */
static uint16_t cpus_left(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
			  uint32_t wish, uint32_t units)
{
	const uint32_t floor = vm->sla.nodes[g].startup, ceiling = cpu_ceiling(vm, g);
	const uint32_t most = cpu_from_units(&s->cpu, vm->sla.nodes[g].host_node, units);

	wish = wish > ceiling ? ceiling : wish;
	wish = wish > most ? most : wish;
	return (uint16_t)(wish < floor ? floor : wish);
}

/* False once the device has turned out not to have the pool that the SLA speaks of. */
static bool may_have_pool(const struct ebb_vm *vm, uint16_t g)
{
	return vm->nodes[g].pool.is_there || !vm->work->has_hello;
}

/* Also for a VM that is not admitted: what it holds is not free. */
static void mem_entry(const struct ebb_vm *vm, uint16_t g, struct ebb_arbiter_entry *ret)
{
	const struct ebb_sla_node *sla = &vm->sla.nodes[g];
	const struct ebb_vm_pool *p = &vm->nodes[g].pool;

	*ret = (struct ebb_arbiter_entry){
		.host_node = sla->host_node,
		.used = core_pool_reach(p),
		.target = p->target,
		.limit = p->limit,
	};
	if (vm->is_admitted && may_have_pool(vm, g))
		ret->floor = sla->mem_min;
	ret->ceiling = ret->floor;
	if (vm->is_admitted && p->is_there && vm->work->counts_as_driven)
		ret->ceiling = sla->mem_max;
}

static bool takes_part(const struct ebb_vm *vm, enum ebb_resource what)
{
	return vm->is_admitted || what == EBB_MEM;
}

static size_t fill_entries(struct ebb_state *s, enum ebb_resource what, bool has_plan)
{
	size_t count = 0;
	uint32_t v = 0;

	for (size_t i = 0; i < s->env.num_active; i++) {
		const struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++) {
			struct ebb_arbiter_entry *e = &s->entries[count++];

			if (what == EBB_CPUS)
				cpu_entry(s, vm, g, e);
			else
				mem_entry(vm, g, e);
			e->wanted = e->target;
			if (!has_plan)
				continue;
			if (!vm->is_admitted)
				e->wanted = 0;
			else
				e->wanted = what == EBB_CPUS ?
						    cpu_to_units(&s->cpu, e->host_node,
								  s->targets[v].nodes[g]) :
						    s->targets[v].mem[g];
		}
		v += vm->is_admitted;
	}
	return count;
}

static void view_mem(const struct ebb_vm *vm, uint16_t g, struct ebb_view_mem *ret)
{
	struct ebb_arbiter_entry mem;

	mem_entry(vm, g, &mem);
	*ret = (struct ebb_view_mem){
		.floor = mem.floor,
		.ceiling = may_have_pool(vm, g) ? vm->sla.nodes[g].mem_max : mem.floor,
		.used = mem.used,
		.target = mem.target,
		.held = vm->nodes[g].pool.held,
		.vom_at = vm->vom.at,
	};
	ret->num_buckets = ebb_vm_vom_of(vm, g, &ret->buckets);
}

static uint32_t fill_view(struct ebb_state *s, usec_t now, struct ebb_view_vm *vms)
{
	uint32_t count = 0;

	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];
		struct ebb_view_vm *out;

		if (!vm->is_admitted)
			continue;
		out = &vms[count++];
		*out = (struct ebb_view_vm){
			.order = vm->order,
			.class = vm->sla.class,
			.priority = vm->sla.priority,
			.weight = vm->sla.weight,
			.mem_weight = ebb_sla_has_mem(&vm->sla) ? vm->sla.mem_weight : 0,
			.has_driver = vm->work->counts_as_driven,
			.num_nodes = vm->sla.num_nodes,
		};
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
			out->nodes[g].host_node = vm->sla.nodes[g].host_node;
			view_mem(vm, g, &out->nodes[g].mem);
			/* Of a VM that shares cores there is nothing to decide here. */
			if (vm->sla.is_shared)
				continue;
			cpu_set_wanted(vm, g, now);
			out->nodes[g] = (struct ebb_view_vm_node){
				.host_node = vm->sla.nodes[g].host_node,
				.mem = out->nodes[g].mem,
				.floor = vm->sla.nodes[g].startup,
				.ceiling = vm->sla.nodes[g].max,
				.reserved = vm->sla.nodes[g].reserved,
				.wanted = vm->nodes[g].wanted,
				.used = vm->nodes[g].used,
				.target = vm->nodes[g].target,
			};
		}
	}
	return count;
}

static void fill_capacity(const struct ebb_state *s, enum ebb_resource what, uint32_t *ret)
{
	for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
		ret[h] = what == EBB_CPUS && s->env.use_threads[h] ? s->env.nodes[h].num_cores :
								 capacity(&s->env.nodes[h], what);
}

/* Goals from wishes; returns how many had to be clamped. */
static uint32_t set_targets(struct ebb_state *s, enum ebb_resource what, bool has_plan)
{
	const size_t count = fill_entries(s, what, has_plan);
	uint32_t has[EBB_MAX_NODES], clamped, v = 0;
	size_t e = 0;

	fill_capacity(s, what, has);
	clamped = ebb_arbiter_clamp(has, s->env.host.num_nodes, s->entries, count);
	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++, e++) {
			const struct ebb_vm_node *n = &vm->nodes[g];
			const uint32_t wish = has_plan && vm->is_admitted ?
						      s->targets[v].nodes[g] : n->target;

			if (what == EBB_MEM) {
				mem_set_target(vm, g, s->entries[e].target);
				continue;
			}
			cpu_set_target(vm, g, cpus_left(s, vm, g, wish, s->entries[e].target));
			/* Below a whole core it is clamped unseen by the arbiter. */
			clamped += n->target != wish && !vm->sla.is_shared &&
				   s->entries[e].target == s->entries[e].wanted;
		}
		v += vm->is_admitted;
	}
	return clamped;
}

/*
 * Takes over what the plan says of threads, where the floors leave room for it: where the option
 * count_threads has let in more startup sets than there are cores, cores can not belong to one VM
 * each.
 */
static void use_threads(struct ebb_state *s, const bool *wish)
{
	uint32_t floors[EBB_MAX_NODES] = { 0 };

	memmove(s->env.use_threads, wish, sizeof(s->env.use_threads));
	for (size_t i = 0; i < s->env.num_active; i++) {
		const struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; vm->is_admitted && !vm->sla.is_shared && g < vm->sla.num_nodes;
		     g++)
			floors[vm->sla.nodes[g].host_node] += cpu_to_units(
				&s->cpu, vm->sla.nodes[g].host_node, vm->sla.nodes[g].startup);
	}
	for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
		if (floors[h] > s->env.nodes[h].num_cores)
			s->env.use_threads[h] = false;
}

static void make_plan(struct ebb_state *s, usec_t now)
{
	struct ebb_view view = {
		.now = now,
		.cooldown = s->env.cfg.pressure.cool_down_s * EBB_USEC_PER_SEC,
		.num_nodes = s->env.host.num_nodes,
	};
	struct ebb_plan plan = { .targets = s->targets };
	uint32_t clamped;
	int r;

	memcpy(view.nodes, s->env.nodes, sizeof(view.nodes));
	broker_fit_all(&s->broker);
	view.num_vms = fill_view(s, now, s->view_vms);
	view.vms = s->view_vms;
	broker_view(&s->broker, now, &view);
	memset(s->targets, 0, view.num_vms * sizeof(s->targets[0]));
	r = s->env.policy->decide(s->policy_state, &view, &plan);
	if (r < 0)
		core_text(core_record(&s->env, NULL, now, EBB_EVENT_ERROR)->text,
			  "policy %s: %s; the last plan stays in force", s->env.policy->name,
			  strerror(-r));
	use_threads(s, r < 0 ? s->env.use_threads : plan.use_threads);
	clamped = set_targets(s, EBB_CPUS, r >= 0);
	clamped += set_targets(s, EBB_MEM, r >= 0);
	if (r >= 0)
		broker_decided(&s->broker, now, &plan);
	if (r >= 0 && clamped > 0)
		core_text(core_record(&s->env, NULL, now, EBB_EVENT_POLICY)->text,
			  "%u goals of policy %s were out of bounds and are clamped", clamped,
			  s->env.policy->name);
}

/* ---- limits -------------------------------------------------------------- */

static void set_limits(struct ebb_state *s, usec_t now, enum ebb_resource what)
{
	const size_t count = fill_entries(s, what, false);
	uint32_t has[EBB_MAX_NODES];
	size_t e = 0;

	fill_capacity(s, what, has);
	ebb_arbiter_limits(has, s->env.host.num_nodes, s->entries, count);
	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++, e++) {
			if (what == EBB_CPUS)
				cpu_set_limit(&s->cpu, now, vm, g,
					      cpus_left(s, vm, g, vm->nodes[g].target,
							s->entries[e].limit));
			else
				mem_set_limit(&s->mem, now, vm, g, s->entries[e].limit);
		}
	}
}

static void update_driven(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	const bool is_driven = core_vm_is_driven(s, vm, now);

	if (is_driven != vm->work->counts_as_driven) {
		vm->work->counts_as_driven = is_driven;
		s->cycle.plan_is_stale = true;
		core_touch(&s->env, vm);
	}
	if (!is_driven && vm->work->is_dirty)
		cpu_force_absent(&s->cpu, now, vm);
}

static usec_t next_change(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now)
{
	return core_sooner(core_vm_driven_until(s, vm), cpu_next_at(vm, now));
}

void core_settle(struct ebb_state *s, usec_t now)
{
	uint32_t num_free[EBB_MAX_NODES];

	if (!s->env.is_loaded)
		return;
	s->cycle.plan_is_stale = broker_is_due(&s->broker, now) || s->cycle.plan_is_stale;
	if (!s->cycle.plan_is_stale && !s->cycle.limits_are_stale && now < s->settle_at)
		return;
	meter_waste(&s->meter);
	for (size_t i = 0; i < s->env.num_active; i++) {
		update_driven(s, now, s->active[i]);
		if (s->active[i]->work->is_dirty)
			cpu_count(&s->cpu, s->active[i]);
		if (cpu_wants_less(s->active[i], now))
			s->cycle.plan_is_stale = true;
	}
	if (s->cycle.plan_is_stale) {
		core_count_capacity(s);
		core_admit_all(s, now);
		make_plan(s, now);
		/*
		 * Nobody can tell what it asked for: what it decides without counts, and not what
		 * it would have left as it is meanwhile, demands among it that are taken back.
		 */
		if (broker_is_due(&s->broker, now))
			make_plan(s, now);
	}
	s->cycle.plan_is_stale = s->cycle.limits_are_stale = false;
	set_limits(s, now, EBB_CPUS);
	set_limits(s, now, EBB_MEM);
	cpu_pack_all(&s->cpu);
	s->settle_at = EBB_TIME_NEVER;
	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		if (!vm->is_admitted)
			continue;
		cpu_settle(&s->cpu, now, vm);
		s->settle_at = core_sooner(s->settle_at, next_change(s, vm, now));
	}
	cpu_count_free(&s->cpu, num_free);
	meter_waste_from_now(&s->meter, num_free);
}
