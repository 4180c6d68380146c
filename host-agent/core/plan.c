// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settling: who is admitted, what the policy wants, what can be promised now,
 * who has to give back by when, and who has not.
 */
#include <string.h>

#include "core/internal.h"

/*
 * Whether the VM's floor fits beside what has been promised to earlier arrivals;
 * says what is missing if not.  The floor counts from here on in both cases, so
 * that nobody overtakes a VM that waits, unless it could never fit.
 */
static bool admit(struct ebb_vm *vm, uint32_t *promised, const struct ebb_view_node *nodes)
{
	uint32_t need[EBB_MAX_NODES] = { 0 };
	bool fits = true;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		need[vm->sla.nodes[g].host_node] += vm->sla.nodes[g].startup;
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
		if (need[h] > nodes[h].capacity) {
			core_text(vm->error,
				  "startup set needs %u cores on host node %u, which has %u: "
				  "lower startup",
				  need[h], h, nodes[h].capacity);
			return false;
		}
		if (need[h] == 0 || promised[h] + need[h] <= nodes[h].capacity)
			continue;
		core_text(vm->error,
			  "startup set needs %u cores on host node %u, startup sets of VMs that "
			  "came before need %u of %u: stop one of them or lower startup",
			  need[h], h, promised[h], nodes[h].capacity);
		fits = false;
	}
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		promised[h] += need[h];
	return fits;
}

static void turn_away(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	vm->work->is_refused = true;
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->is_startup)
			core_vcpu_release(s, vm, i);
		else if (v->life != EBB_VCPU_ABSENT && v->force == EBB_FORCE_NONE)
			core_vcpu_force(s, vm, i, EBB_FORCE_NO_CORE);
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		vm->nodes[g].target = vm->nodes[g].limit = vm->sla.nodes[g].startup;
	core_text(core_record(s, vm, now, EBB_EVENT_ERROR)->text, "not admitted: %.150s",
		  vm->error);
}

/*
 * Invariant I1: the floors of admitted VMs fit the host.  By arrival alone, so
 * that an agent that is restarted admits the same VMs; and as those before a
 * VM can only become fewer, one that is in stays in.
 */
void core_admit_all(struct ebb_state *s, usec_t now)
{
	uint32_t promised[EBB_MAX_NODES] = { 0 };

	for (size_t i = 0; i < s->num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		if (!admit(vm, promised, s->nodes)) {
			if (!vm->work->is_refused)
				turn_away(s, now, vm);
			continue;
		}
		if (!vm->is_admitted)
			core_touch(s, vm);
		vm->is_admitted = true;
		if (vm->work->is_refused)
			vm->error[0] = '\0';
		vm->work->is_refused = false;
	}
}

static uint32_t fill_view(const struct ebb_state *s, struct ebb_view_vm *vms)
{
	uint32_t count = 0;

	for (size_t i = 0; i < s->num_active; i++) {
		const struct ebb_vm *vm = s->active[i];
		struct ebb_view_vm *out;

		if (!vm->is_admitted)
			continue;
		out = &vms[count++];
		*out = (struct ebb_view_vm){
			.order = vm->order,
			.class = vm->sla.class,
			.weight = vm->sla.weight,
			.has_driver = vm->work->counts_as_driven,
			.num_nodes = vm->sla.num_nodes,
		};
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			out->nodes[g] = (struct ebb_view_vm_node){
				.host_node = vm->sla.nodes[g].host_node,
				.floor = vm->sla.nodes[g].startup,
				.ceiling = vm->sla.nodes[g].max,
				.used = vm->nodes[g].used,
				.target = vm->nodes[g].target,
			};
	}
	return count;
}

static size_t fill_entries(struct ebb_state *s, bool has_plan)
{
	size_t count = 0;
	uint32_t v = 0;

	for (size_t i = 0; i < s->num_active; i++) {
		const struct ebb_vm *vm = s->active[i];

		if (!vm->is_admitted)
			continue;
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
			const struct ebb_sla_node *sla = &vm->sla.nodes[g];
			const struct ebb_vm_node *n = &vm->nodes[g];

			s->entries[count++] = (struct ebb_arbiter_entry){
				.host_node = sla->host_node,
				.floor = sla->startup,
				.ceiling = vm->work->counts_as_driven ? sla->max : sla->startup,
				.used = n->used,
				.wanted = has_plan ? s->targets[v].nodes[g] : n->target,
				.target = n->target,
				.limit = n->limit,
			};
		}
		v++;
	}
	return count;
}

static void make_plan(struct ebb_state *s, usec_t now)
{
	struct ebb_view view = { .now = now, .num_nodes = s->host.num_nodes };
	struct ebb_plan plan = { .targets = s->targets };
	size_t count, e = 0;
	uint32_t clamped;
	int r;

	memcpy(view.nodes, s->nodes, sizeof(view.nodes));
	view.num_vms = fill_view(s, s->view_vms);
	view.vms = s->view_vms;
	memset(s->targets, 0, view.num_vms * sizeof(s->targets[0]));
	r = s->policy->decide(s->policy_state, &view, &plan);
	if (r < 0)
		core_text(core_record(s, NULL, now, EBB_EVENT_ERROR)->text,
			  "policy %s: %s; the last plan stays in force", s->policy->name,
			  strerror(-r));
	count = fill_entries(s, r >= 0);
	clamped = ebb_arbiter_clamp(s->nodes, s->host.num_nodes, s->entries, count);
	if (r >= 0 && clamped > 0)
		core_text(core_record(s, NULL, now, EBB_EVENT_POLICY)->text,
			  "%u goals of policy %s were out of bounds and are clamped", clamped,
			  s->policy->name);
	for (size_t i = 0; i < s->num_active; i++)
		for (uint16_t g = 0; s->active[i]->is_admitted && g < s->active[i]->sla.num_nodes;
		     g++)
			s->active[i]->nodes[g].target = s->entries[e++].target;
}

/* ---- limits, demands, deadlines ----------------------------------------- */

static void set_limit(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t g,
		      uint16_t limit)
{
	struct ebb_vm_node *n = &vm->nodes[g];
	struct ebb_record *r;

	if (n->limit == limit)
		return;
	vm->work->is_dirty = true;
	if (limit > n->limit) {
		r = core_record(s, vm, now, EBB_EVENT_OFFER);
		core_text(r->text, "limit %u -> %u: %u used, goal %u of policy %s", n->limit,
			  limit, n->used, n->target, s->policy->name);
		r->node = g;
		r->cpus = limit;
	} else {
		r = core_record(s, vm, now, EBB_EVENT_DEMAND);
		core_text(r->text, "limit %u -> %u: %u held, goal %u of policy %s%s", n->limit,
			  limit, n->held, n->target, s->policy->name,
			  limit >= n->held ? "; nothing to give back" : "");
		r->node = g;
		r->cpus = limit;
	}
	n->limit = limit;
}

static void set_limits(struct ebb_state *s, usec_t now)
{
	const size_t count = fill_entries(s, false);
	size_t e = 0;

	ebb_arbiter_limits(s->nodes, s->host.num_nodes, s->entries, count);
	for (size_t i = 0; i < s->num_active; i++)
		for (uint16_t g = 0; s->active[i]->is_admitted && g < s->active[i]->sla.num_nodes;
		     g++)
			set_limit(s, now, s->active[i], g, s->entries[e++].limit);
}

/* Every CPU that the guest holds too many has a deadline of its own. */
static void update_due(struct ebb_vm *vm, usec_t now)
{
	const usec_t deadline = now + vm->sla.deadline_ms * EBB_USEC_PER_MSEC;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = &vm->nodes[g];
		const uint16_t excess = n->held > n->limit ? (uint16_t)(n->held - n->limit) : 0;

		/* Less is demanded than before: the latest demands are taken back. */
		if (n->num_due > excess)
			n->num_due = excess;
		while (n->num_due < excess) {
			/* A shorter deadline in a new SLA does not overtake older demands. */
			const usec_t last = n->num_due ? n->due[n->num_due - 1] : 0;

			n->due[n->num_due++] = deadline > last ? deadline : last;
		}
	}
}

/*
 * Whom to force: a vCPU that the guest has given back and that is not gone
 * yet, else the newest.
 */
static int pick_victim(const struct ebb_vm *vm, uint16_t g)
{
	int best = -1;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		const struct ebb_vcpu *b = best < 0 ? NULL : &vm->vcpus[best];

		if (v->node != g || v->is_startup || !v->is_granted ||
		    v->force != EBB_FORCE_NONE || !core_vcpu_is_present(v))
			continue;
		if (!b || (v->request >= 0) > (b->request >= 0) ||
		    ((v->request >= 0) == (b->request >= 0) && v->granted_at >= b->granted_at))
			best = i;
	}
	return best;
}

static void force_overdue(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = &vm->nodes[g];

		while (n->num_due > 0 && n->due[0] <= now) {
			const uint16_t held = n->held;
			const int victim = pick_victim(vm, g);
			struct ebb_record *r;

			if (victim < 0)
				break;
			if (vm->silent_since == 0)
				vm->silent_since = n->due[0];
			core_vcpu_force(s, vm, (uint16_t)victim, EBB_FORCE_DEADLINE);
			core_vm_count(s, vm);
			r = core_record(s, vm, now, EBB_EVENT_FORCE);
			r->node = g;
			r->cpus = 1;
			core_text(r->text,
				  "vCPU %d goes home: %u held, limit %u, and %u ms have passed",
				  victim, held, n->limit, vm->sla.deadline_ms);
		}
	}
}

/* Nobody in the guest answers for what it holds. */
static void force_absent(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	uint16_t count = 0;
	struct ebb_record *r;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->is_startup || !core_vcpu_is_present(v) || v->force != EBB_FORCE_NONE ||
		    !(v->is_granted || v->is_unknown))
			continue;
		core_vcpu_force(s, vm, i, EBB_FORCE_ABSENT);
		count++;
	}
	if (count == 0)
		return;
	r = core_record(s, vm, now, EBB_EVENT_FORCE);
	r->cpus = count;
	core_text(r->text, "%u vCPUs go home: %s", count,
		  vm->has_driver ? "the link has been down for too long" :
				   "no driver runs in the guest");
}

/* Cores for those who were promised one and have none: startup sets, then forced vCPUs. */
static void give_cores(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	vm->work->wants_cores = false;
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		if (!vm->vcpus[i].is_startup || vm->vcpus[i].thread != EBB_THREAD_NONE)
			continue;
		if (!core_vcpu_own(s, vm, i, ebb_cores_pick(&s->cores, core_host_node(vm, i),
							    s->cfg.count_threads)))
			vm->work->wants_cores = true;
	}
	for (uint16_t i = 0; vm->work->counts_as_driven && vm->link_up && i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];
		const struct ebb_vm_node *n = &vm->nodes[v->node];
		struct ebb_record *r;

		if (!v->is_granted || v->life != EBB_VCPU_PLUGGED || v->request >= 0 ||
		    v->place_action ||
		    (v->force != EBB_FORCE_DEADLINE && v->force != EBB_FORCE_NO_CORE))
			continue;
		/* What has not left its core yet is counted as used already. */
		if (v->thread == EBB_THREAD_NONE ? n->used >= n->limit : n->held >= n->limit)
			continue;
		if (v->thread == EBB_THREAD_NONE &&
		    !core_vcpu_own(s, vm, i, ebb_cores_pick(&s->cores, core_host_node(vm, i),
							    s->cfg.count_threads))) {
			vm->work->wants_cores = true;
			continue;
		}
		v->force = EBB_FORCE_NONE;
		core_vm_count(s, vm);
		r = core_record(s, vm, now, EBB_EVENT_UNFORCE);
		r->node = v->node;
		r->cpus = 1;
		core_text(r->text, "vCPU %u gets a core again: %u used, limit %u", i, n->used,
			  n->limit);
	}
}

static void update_driven(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	const bool is_driven = core_vm_is_driven(s, vm, now);

	if (is_driven != vm->work->counts_as_driven) {
		vm->work->counts_as_driven = is_driven;
		s->plan_is_stale = true;
		core_touch(s, vm);
	}
	if (!is_driven && vm->work->is_dirty)
		force_absent(s, now, vm);
}

static usec_t next_change(const struct ebb_state *s, const struct ebb_vm *vm)
{
	usec_t at = core_vm_driven_until(s, vm);

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->nodes[g].num_due > 0)
			at = core_sooner(at, vm->nodes[g].due[0]);
	return at;
}

void core_settle(struct ebb_state *s, usec_t now)
{
	if (!s->is_loaded ||
	    (!s->plan_is_stale && !s->limits_are_stale && now < s->settle_at))
		return;
	for (size_t i = 0; i < s->num_active; i++) {
		update_driven(s, now, s->active[i]);
		if (s->active[i]->work->is_dirty)
			core_vm_count(s, s->active[i]);
	}
	if (s->plan_is_stale) {
		core_admit_all(s, now);
		make_plan(s, now);
	}
	s->plan_is_stale = s->limits_are_stale = false;
	set_limits(s, now);
	s->settle_at = EBB_TIME_NEVER;
	for (size_t i = 0; i < s->num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		if (!vm->is_admitted)
			continue;
		if (vm->work->is_dirty || vm->work->wants_cores)
			give_cores(s, now, vm);
		if (vm->work->is_dirty)
			update_due(vm, now);
		force_overdue(s, now, vm);
		s->settle_at = core_sooner(s->settle_at, next_change(s, vm));
	}
}
