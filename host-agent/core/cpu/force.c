// SPDX-License-Identifier: GPL-2.0-or-later
/* Deadlines of CPUs that have to be given back, force, and cores for vCPUs that have none. */
#include "core/explain.h"
#include "core/cpu/internal.h"

/* Every CPU that the guest holds too many has a deadline of its own. */
static void update_due(const struct ebb_vm *vm, usec_t now)
{
	const usec_t deadline = now + vm->sla.deadline_ms * EBB_USEC_PER_MSEC;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = cpu_own_node(vm, g);
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
 * The vCPU to force: one that the guest has given back and that is not gone
 * yet, else the one that was granted last.
 */
static int pick_victim(const struct ebb_vm *vm, uint16_t g)
{
	int best = -1;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		const struct ebb_vcpu *b = best < 0 ? NULL : &vm->vcpus[best];

		if (v->node != g || v->is_startup || !v->is_granted ||
		    v->force != EBB_FORCE_NONE || v->is_lent || !core_vcpu_is_present(v))
			continue;
		if (!b || (v->request >= 0) > (b->request >= 0) ||
		    ((v->request >= 0) == (b->request >= 0) && v->granted_at >= b->granted_at))
			best = i;
	}
	return best;
}

static void force_overdue(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = cpu_own_node(vm, g);

		while (n->num_due > 0 && n->due[0] <= now) {
			const uint16_t held = n->held;
			const int victim = pick_victim(vm, g);
			char verdict[EBB_TEXT_SIZE] = "";
			struct ebb_record *r;

			if (victim < 0)
				break;
			if (vm->cpus.silent_since == 0)
				cpu_own(vm)->silent_since = n->due[0];
			cpu_vcpu_force(s, vm, (uint16_t)victim, EBB_FORCE_DEADLINE);
			/* The guest did not meet the demand. */
			cpu_count_forced(s, vm);
			core_conduct_forced(vm, now);
			if (!ebb_vm_verdict(vm, now, EBB_VERDICT_SILENT, verdict))
				ebb_vm_verdict(vm, now, EBB_VERDICT_PARTIAL, verdict);
			r = core_record(s->env, vm, now, EBB_EVENT_FORCE);
			r->node = g;
			r->cpus = 1;
			core_text(r->text,
				  "vCPU %d goes home: %u held, limit %u, and %u ms have passed; "
				  "the guest %.60s", victim, held, n->limit, vm->sla.deadline_ms,
				  verdict);
			core_conduct_review(s->env, now, vm);
		}
	}
}

void cpu_force_absent(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	uint16_t count = 0;
	struct ebb_record *r;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);

		if (v->is_startup || !core_vcpu_is_present(v) || v->force != EBB_FORCE_NONE ||
		    v->is_lent || !(v->is_granted || v->is_unknown))
			continue;
		cpu_vcpu_force(s, vm, i, EBB_FORCE_ABSENT);
		count++;
	}
	if (count == 0)
		return;
	r = core_record(s->env, vm, now, EBB_EVENT_FORCE);
	r->cpus = count;
	core_text(r->text, "%u vCPUs go home: %s", count,
		  vm->has_driver ? "the link has been down for too long" :
				   "no driver runs in the guest");
}

/* Cores for vCPUs that were promised one and have none: startup sets first, then forced vCPUs. */
static void give_cores(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	cpu_own(vm)->wants_cores = false;
	if (vm->sla.is_shared)
		return;
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		if (!vm->vcpus[i].is_startup || vm->vcpus[i].thread != EBB_THREAD_NONE)
			continue;
		if (!cpu_vcpu_take(s, vm, i, cpu_pick_startup(s, vm, vm->vcpus[i].node)))
			cpu_own(vm)->wants_cores = true;
	}
	for (uint16_t i = 0; core_counts_as_driven(vm) && vm->link_up && i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);
		const struct ebb_vm_node *n = &vm->nodes[v->node];
		struct ebb_record *r;

		if (!v->is_granted || v->is_lent || v->life != EBB_VCPU_PLUGGED ||
		    v->request >= 0 || v->place_action ||
		    (v->force != EBB_FORCE_DEADLINE && v->force != EBB_FORCE_NO_CORE))
			continue;
		/* A vCPU that has not left its core yet counts as used already. */
		if (v->thread == EBB_THREAD_NONE ? n->used >= n->limit : n->held >= n->limit)
			continue;
		if (v->thread == EBB_THREAD_NONE &&
		    !cpu_vcpu_take(s, vm, i, cpu_pick_thread(s, vm, v->node, true))) {
			cpu_own(vm)->wants_cores = true;
			continue;
		}
		v->force = EBB_FORCE_NONE;
		cpu_count(s, vm);
		r = core_record(s->env, vm, now, EBB_EVENT_UNFORCE);
		r->node = v->node;
		r->cpus = 1;
		core_text(r->text, "vCPU %u gets a core again: %u used, limit %u", i, n->used,
			  n->limit);
	}
}

/*
 * A forced CPU is on its way to a core again, and now one less is allowed: it stays forced.  The
 * guest does not have it back yet; asked for another one, or for this one, it would have less time
 * than its deadline, or none.
 */
static void keep_forced(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		const struct ebb_vm_node *n = &vm->nodes[v->node];
		struct ebb_record *r;

		if (n->held <= n->limit || !cpu_vcpu_is_held(v) || !v->told_forced ||
		    v->request >= 0 || v->placed == v->thread)
			continue;
		cpu_vcpu_force(s, vm, i, EBB_FORCE_NO_CORE);
		/* Nothing that the guest has given. */
		cpu_count_forced(s, vm);
		r = core_record(s->env, vm, now, EBB_EVENT_FORCE);
		r->node = v->node;
		r->cpus = 1;
		core_text(r->text, "vCPU %u has not got its core back yet and stays forced: limit "
			  "%u", i, n->limit);
	}
}

void cpu_turn_away(struct cpu_room *s, const struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->is_startup)
			cpu_vcpu_release(s, vm, i);
		else if (v->life != EBB_VCPU_ABSENT && v->force == EBB_FORCE_NONE && !v->is_lent)
			cpu_vcpu_force(s, vm, i, EBB_FORCE_NO_CORE);
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		cpu_own_node(vm, g)->target = cpu_own_node(vm, g)->limit = vm->sla.nodes[g].startup;
}

/* ---- limits -------------------------------------------------------------- */

void cpu_set_wanted(const struct ebb_vm *vm, uint16_t g, usec_t now)
{
	cpu_own_node(vm, g)->wanted = core_wanted(vm, g, now);
}

void cpu_set_target(const struct ebb_vm *vm, uint16_t g, uint16_t target)
{
	cpu_own_node(vm, g)->target = target;
}

void cpu_set_limit(const struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
		   uint32_t limit)
{
	struct ebb_vm_node *n = cpu_own_node(vm, g);
	const bool is_offer = limit > n->limit;
	struct ebb_record *r;

	if (n->limit == limit)
		return;
	core_mark(s->env, vm);
	r = core_record(s->env, vm, now, is_offer ? EBB_EVENT_OFFER : EBB_EVENT_DEMAND);
	r->node = g;
	r->cpus = (uint16_t)limit;
	if (is_offer)
		core_text(r->text, "limit %u -> %u: %u used, goal %u of policy %s", n->limit,
			  limit, n->used, n->target, s->env->policy->name);
	else
		core_text(r->text, "limit %u -> %u: %u held, goal %u of policy %s%s", n->limit,
			  limit, n->held, n->target, s->env->policy->name,
			  limit >= n->held ? "; nothing to give back" : "");
	n->limit = (uint16_t)limit;
}

void cpu_settle(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	if (core_has_news(s->env, vm) || vm->cpus.wants_cores)
		give_cores(s, now, vm);
	cpu_requests_retry(s, now, vm);
	if (core_has_news(s->env, vm)) {
		keep_forced(s, now, vm);
		update_due(vm, now);
	}
	force_overdue(s, now, vm);
}

usec_t cpu_next_at(const struct ebb_vm *vm, usec_t now)
{
	usec_t at = EBB_TIME_NEVER;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		if (vm->nodes[g].num_due > 0)
			at = core_sooner(at, vm->nodes[g].due[0]);
		at = core_sooner(at, cpu_leaving_from(vm, g, now));
		if (cpu_wanted_until(vm, g) > now)
			at = core_sooner(at, cpu_wanted_until(vm, g));
	}
	return at;
}
