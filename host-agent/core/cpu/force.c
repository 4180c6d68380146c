// SPDX-License-Identifier: GPL-2.0-or-later
/* CPUs that have to be given back, by when, and what happens then; and cores for those without. */
#include "core/explain.h"
#include "core/internal.h"

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
		    v->force != EBB_FORCE_NONE || v->is_lent || !core_vcpu_is_present(v))
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
			const struct ebb_vm_conduct before = vm->conduct;
			char verdict[EBB_TEXT_SIZE] = "";
			struct ebb_record *r;

			if (victim < 0)
				break;
			if (vm->silent_since == 0)
				vm->silent_since = n->due[0];
			core_vcpu_force(s, vm, (uint16_t)victim, EBB_FORCE_DEADLINE);
			core_vm_count(s, vm);
			/* It was not the guest who met the demand. */
			vm->conduct = before;
			core_conduct_forced(vm, now);
			if (!ebb_vm_verdict(vm, now, EBB_VERDICT_SILENT, verdict))
				ebb_vm_verdict(vm, now, EBB_VERDICT_PARTIAL, verdict);
			r = core_record(s, vm, now, EBB_EVENT_FORCE);
			r->node = g;
			r->cpus = 1;
			core_text(r->text,
				  "vCPU %d goes home: %u held, limit %u, and %u ms have passed; "
				  "the guest %.60s", victim, held, n->limit, vm->sla.deadline_ms,
				  verdict);
			core_conduct_review(s, now, vm);
		}
	}
}

void core_cpus_force_absent(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	uint16_t count = 0;
	struct ebb_record *r;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->is_startup || !core_vcpu_is_present(v) || v->force != EBB_FORCE_NONE ||
		    v->is_lent || !(v->is_granted || v->is_unknown))
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
	if (vm->sla.is_shared)
		return;
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		if (!vm->vcpus[i].is_startup || vm->vcpus[i].thread != EBB_THREAD_NONE)
			continue;
		if (!core_vcpu_own(s, vm, i, core_pick_startup(s, vm, vm->vcpus[i].node)))
			vm->work->wants_cores = true;
	}
	for (uint16_t i = 0; vm->work->counts_as_driven && vm->link_up && i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];
		const struct ebb_vm_node *n = &vm->nodes[v->node];
		struct ebb_record *r;

		if (!v->is_granted || v->is_lent || v->life != EBB_VCPU_PLUGGED ||
		    v->request >= 0 || v->place_action ||
		    (v->force != EBB_FORCE_DEADLINE && v->force != EBB_FORCE_NO_CORE))
			continue;
		/* What has not left its core yet is counted as used already. */
		if (v->thread == EBB_THREAD_NONE ? n->used >= n->limit : n->held >= n->limit)
			continue;
		if (v->thread == EBB_THREAD_NONE &&
		    !core_vcpu_own(s, vm, i, core_pick_thread(s, vm, v->node, true))) {
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

/*
 * A forced CPU is on its way to a core again, and now one less is allowed: it stays forced.  The
 * guest does not have it back yet; asked for another one, or for this one, it would have less time
 * than its deadline, or none.
 */
static void keep_forced(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		const struct ebb_vm_node *n = &vm->nodes[v->node];
		const struct ebb_vm_conduct before = vm->conduct;
		struct ebb_record *r;

		if (n->held <= n->limit || !core_vcpu_is_held(v) || !v->told_forced ||
		    v->request >= 0 || v->placed == v->thread)
			continue;
		core_vcpu_force(s, vm, i, EBB_FORCE_NO_CORE);
		core_vm_count(s, vm);
		/* Nothing that the guest has given. */
		vm->conduct = before;
		r = core_record(s, vm, now, EBB_EVENT_FORCE);
		r->node = v->node;
		r->cpus = 1;
		core_text(r->text, "vCPU %u has not got its core back yet and stays forced: limit "
			  "%u", i, n->limit);
	}
}

void core_cpus_settle(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	if (vm->work->is_dirty || vm->work->wants_cores)
		give_cores(s, now, vm);
	core_requests_retry(s, now, vm);
	if (vm->work->is_dirty) {
		keep_forced(s, now, vm);
		update_due(vm, now);
	}
	force_overdue(s, now, vm);
}
