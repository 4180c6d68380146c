// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settling: admission of VMs, targets from the policy, and limits that can be promised now.
 * Each resource (resource.h) is divided in the same way, one after the other.
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

static void explain_refusal(struct ebb_vm *vm, enum ebb_resource what, uint16_t h, uint64_t need,
			    uint64_t promised, uint32_t has)
{
	const struct core_resource *r = &core_resources[what];

	if (need > has)
		core_text(vm->error, "%s needs %llu %s on host node %u, which has %llu: lower %s",
			  r->floor_name, (unsigned long long)need * r->scale, r->unit, h,
			  (unsigned long long)has * r->scale, r->key);
	else
		core_text(vm->error,
			  "%s needs %llu %s on host node %u, VMs that came before need %llu of "
			  "%llu: stop one of them or lower %s",
			  r->floor_name, (unsigned long long)need * r->scale, r->unit, h,
			  (unsigned long long)promised * r->scale,
			  (unsigned long long)has * r->scale, r->key);
}

/* Without quorum VMs may stay, also those that an agent finds when it starts, but not come. */
static bool may_come(const struct ebb_state *s, const struct ebb_vm *vm)
{
	return s->env.has_quorum || vm->is_admitted || core_is_found(vm);
}

/*
 * Whether the VM's floors fit beside what has been promised to earlier arrivals;
 * says what is missing if not.  The floors count from here on in both cases, so
 * that nobody overtakes a VM that waits, unless it could never fit.
 */
static bool admit(const struct ebb_state *s, struct ebb_vm *vm,
		  uint64_t promised[EBB_RESOURCES][EBB_MAX_NODES])
{
	uint64_t need[EBB_RESOURCES][EBB_MAX_NODES] = { { 0 } };
	bool fits = true;

	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			need[what][vm->sla.nodes[g].host_node] +=
				core_resources[what].floor(vm, g);
	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
			const uint32_t has = core_resources[what].capacity(s, h);

			if (need[what][h] == 0 || promised[what][h] + need[what][h] <= has ||
			    (core_resources[what].may_shrink && vm->is_admitted))
				continue;
			explain_refusal(vm, what, h, need[what][h], promised[what][h], has);
			if (need[what][h] > has)
				return false;
			fits = false;
		}
	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
			promised[what][h] += need[what][h];
	if (fits && !may_come(s, vm)) {
		core_text(vm->error, "the host has no quorum in its cluster: it takes no new VM");
		return false;
	}
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

	for (size_t i = 0; i < s->env.num_active; i++)
		floor_review(&s->floor, s->active[i]);
	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		if (!admit(s, vm, promised)) {
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
	/*
	 * A new promise takes nothing of what is promised or guaranteed already, so that an agent
	 * that is restarted, and has made no promise yet, admits the same VMs.
	 */
	for (int is_new = 0; is_new < 2; is_new++)
		for (size_t i = 0; i < s->env.num_active; i++) {
			struct ebb_vm *vm = s->active[i];

			if (!vm->floor.is_lowered && !core_may_promise(&s->env, vm))
				continue;
			if (vm->is_admitted && floor_is_open(vm) && vm->floor.is_lowered != is_new)
				floor_admit(&s->floor, now, vm, promised[EBB_MEM]);
		}
	floor_settle(&s->floor);
}

/* ---- what is divided ----------------------------------------------------- */

static bool takes_part(const struct ebb_vm *vm, enum ebb_resource what)
{
	return vm->is_admitted || core_resources[what].has_all_vms;
}

/* Whether the guest node is divided on node h of the host. */
static bool is_on(const struct ebb_vm *vm, uint16_t g, uint16_t h)
{
	return vm->sla.nodes[g].host_node == h;
}

static const struct ebb_plan_vm *plan_of(const struct ebb_state *s, const struct ebb_vm *vm)
{
	return &s->targets[vm->work->view];
}

static size_t fill_entries(struct ebb_state *s, enum ebb_resource what, uint16_t h, bool has_plan)
{
	size_t count = 0;

	core_set_for_each(i, &s->env.on[h]) {
		const struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++) {
			struct ebb_arbiter_entry *e = &s->entries[count];

			if (!is_on(vm, g, h))
				continue;
			count++;
			core_resources[what].entry(s, vm, g, e);
			e->wanted = e->target;
			if (has_plan)
				e->wanted = !vm->is_admitted ? 0 :
					    core_resources[what].planned(s, h, plan_of(s, vm), g);
		}
	}
	return count;
}

static void view_mem(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
		     struct ebb_view_mem *ret)
{
	struct ebb_arbiter_entry mem;

	core_resources[EBB_MEM].entry(s, vm, g, &mem);
	*ret = (struct ebb_view_mem){
		.floor = mem.floor,
		.ceiling = core_may_have_pool(vm, g) ? vm->sla.nodes[g].mem_max : mem.floor,
		.used = mem.used,
		.target = mem.target,
		.held = vm->pools[g].held,
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
		vm->work->view = (uint16_t)count;
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
			view_mem(s, vm, g, &out->nodes[g].mem);
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

/* Goals from wishes, on a node of the host; returns how many had to be clamped. */
static uint32_t set_targets(struct ebb_state *s, enum ebb_resource what, uint16_t h, bool has_plan)
{
	const size_t count = fill_entries(s, what, h, has_plan);
	const struct ebb_arbiter_entry *e = s->entries;
	uint32_t clamped =
		ebb_arbiter_clamp(core_resources[what].divided(s, h), s->entries, s->parts, count);

	core_set_for_each(i, &s->env.on[h]) {
		struct ebb_vm *vm = s->active[i];
		const struct ebb_plan_vm *plan = has_plan && vm->is_admitted ? plan_of(s, vm) :
									       NULL;

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++)
			if (is_on(vm, g, h))
				clamped += core_resources[what].set_target(s, vm, g, plan, e++);
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
	uint32_t clamped = 0;
	int r;

	memcpy(view.nodes, s->env.nodes, sizeof(view.nodes));
	broker_fit_all(&s->broker);
	view.num_vms = fill_view(s, now, s->view_vms);
	view.vms = s->view_vms;
	broker_view(&s->broker, now, &view);
	memset(s->targets, 0, view.num_vms * sizeof(s->targets[0]));
	r = ebb_policy_decide(s->env.policy, s->policy_state, &view, &plan);
	if (r < 0)
		core_text(core_record(&s->env, NULL, now, EBB_EVENT_ERROR)->text,
			  "policy %s: %s; the last plan stays in force", s->env.policy->name,
			  strerror(-r));
	use_threads(s, r < 0 ? s->env.use_threads : plan.use_threads);
	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
			clamped += set_targets(s, what, h, r >= 0);
	if (r >= 0)
		broker_decided(&s->broker, now, &plan);
	if (r >= 0 && clamped > 0)
		core_text(core_record(&s->env, NULL, now, EBB_EVENT_POLICY)->text,
			  "%u goals of policy %s were out of bounds and are clamped", clamped,
			  s->env.policy->name);
}

/* ---- limits -------------------------------------------------------------- */

/* More is in use, or may be taken at any time, than there is: a VM brought it from another host. */
static bool is_overfull(const struct ebb_state *s, enum ebb_resource what, uint16_t h, size_t count)
{
	uint64_t used = 0;

	for (size_t i = 0; i < count; i++)
		used += s->entries[i].used;
	return used > core_resources[what].divided(s, h);
}

/*
 * Offers that nobody has taken yet are withdrawn, demands stay: from all VMs without quorum, else
 * from those to which the agent of another host made them.
 */
static void hold_back(struct ebb_state *s, enum ebb_resource what, uint16_t h)
{
	struct ebb_arbiter_entry *e = s->entries;

	core_set_for_each(i, &s->env.on[h]) {
		const struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++) {
			uint32_t held;

			if (!is_on(vm, g, h))
				continue;
			held = core_resources[what].held(vm, g, e);
			if (e->target > held && (!s->env.has_quorum || vm->work->has_come))
				e->target = held;
			e++;
		}
	}
}

static void set_limits(struct ebb_state *s, usec_t now, enum ebb_resource what, uint16_t h)
{
	const size_t count = fill_entries(s, what, h, false);
	const struct ebb_arbiter_entry *e = s->entries;

	if (!s->env.has_quorum || is_overfull(s, what, h, count))
		hold_back(s, what, h);
	ebb_arbiter_limits(core_resources[what].divided(s, h), s->entries, s->parts, count);
	core_set_for_each(i, &s->env.on[h]) {
		struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; takes_part(vm, what) && g < vm->sla.num_nodes; g++)
			if (is_on(vm, g, h))
				core_resources[what].set_limit(s, now, vm, g, e++);
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
	/* The device of a VM on its way here will say which CPUs the VM holds. */
	if (!is_driven && !vm->is_incoming && core_has_news(&s->env, vm))
		cpu_force_absent(&s->cpu, now, vm);
}

static usec_t next_change(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now)
{
	return core_sooner(core_vm_driven_until(s, vm), cpu_next_at(vm, now));
}

/* VMs that settling concerns: those that changed, and all on nodes where limits may change. */
static struct core_set concerned(const struct ebb_state *s)
{
	struct core_set vms = s->cycle.news;

	for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
		if (s->cycle.stale_nodes >> h & 1)
			core_set_unite(&vms, &s->env.on[h]);
	return vms;
}

static void count_all(struct ebb_state *s, usec_t now)
{
	const struct core_set vms = concerned(s);

	core_set_for_each(i, &vms) {
		update_driven(s, now, s->active[i]);
		if (core_has_news(&s->env, s->active[i]))
			cpu_count(&s->cpu, s->active[i]);
		if (cpu_wants_less(s->active[i], now))
			s->cycle.plan_is_stale = true;
	}
}

static void settle_all(struct ebb_state *s, usec_t now, const struct core_set *vms)
{
	core_set_for_each(i, vms) {
		struct ebb_vm *vm = s->active[i];

		if (vm->is_admitted)
			cpu_settle(&s->cpu, now, vm);
		core_alarm_set(&s->settles, vm->work->slot,
			       vm->is_admitted ? next_change(s, vm, now) : EBB_TIME_NEVER);
		core_set_remove(&s->cycle.news, i);
	}
}

void core_settle(struct ebb_state *s, usec_t now)
{
	const uint32_t all_nodes = (1u << s->env.host.num_nodes) - 1;
	uint32_t num_free[EBB_MAX_NODES];
	struct core_set vms;
	uint32_t nodes;
	uint16_t slot;

	if (!s->env.is_loaded)
		return;
	while ((slot = core_alarm_take(&s->settles, now)) < EBB_MAX_VMS)
		core_stale(&s->env, s->slots[slot]);
	s->cycle.plan_is_stale = broker_is_due(&s->broker, now) || s->cycle.plan_is_stale;
	if (s->cycle.plan_is_stale)
		s->cycle.stale_nodes = all_nodes;
	if (!s->cycle.stale_nodes && core_set_is_empty(&s->cycle.news))
		return;
	meter_waste(&s->meter);
	count_all(s, now);
	if (s->cycle.plan_is_stale) {
		core_count_capacity(s);
		core_admit_all(s, now);
		make_plan(s, now);
		/*
		 * The policy has asked for histograms and no guest can answer.  So it decides again
		 * at once, without them.  Otherwise its first plan, which changes nothing while
		 * answers are awaited, would stay in force and take demands back.
		 */
		if (broker_is_due(&s->broker, now))
			make_plan(s, now);
		s->cycle.stale_nodes = all_nodes;
	}
	vms = concerned(s);
	nodes = s->cycle.stale_nodes;
	s->cycle.plan_is_stale = false;
	s->cycle.stale_nodes = 0;
	for (int what = 0; what < EBB_RESOURCES; what++)
		for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
			if (nodes >> h & 1)
				set_limits(s, now, what, h);
	cpu_pack(&s->cpu, nodes);
	settle_all(s, now, &vms);
	cpu_count_free(&s->cpu, num_free);
	meter_waste_from_now(&s->meter, nodes, num_free);
}
