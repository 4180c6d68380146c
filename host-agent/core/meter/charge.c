// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts the resources that VMs held, so that they can be charged, and cores that no VM held. */
#include "core/meter/meter.h"

#define MIB_USEC_PER_MSEC	1000u

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Of `held` units for some time what is reserved, and the rest. */
static void add(uint64_t *sums, uint64_t held, uint64_t reserved, uint64_t usec)
{
	const uint64_t kept = smaller(held, reserved);

	sums[EBB_CLASS_RESERVED] += kept * usec;
	sums[EBB_CLASS_SPOT] += (held - kept) * usec;
}

void core_charge(const struct core_env *e, const struct ebb_vm *vm)
{
	struct ebb_vm_charge *c = meter_own_charge(vm);
	const usec_t usec = e->now > c->at ? e->now - c->at : 0;
	uint16_t cores[EBB_MAX_GUEST_NODES] = { 0 };

	/* While VMs are still being found, what they hold is not known. */
	if (usec == 0 || !vm->is_running || vm->is_incoming || !e->is_loaded)
		return;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		cores[vm->vcpus[i].node] += vm->vcpus[i].thread != EBB_THREAD_NONE;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_sla_node *sla = &vm->sla.nodes[g];

		add(c->core_usec, cores[g], sla->reserved, usec);
		add(c->mib_usec, (uint64_t)vm->pools[g].held * EBB_BLOCK_MIB,
		    (uint64_t)sla->mem_min * EBB_BLOCK_MIB, usec);
	}
	c->at = e->now;
}

void meter_start(struct meter_room *s, const struct ebb_vm *vm)
{
	*meter_own_charge(vm) = (struct ebb_vm_charge){ .since = s->env->now, .at = s->env->now };
	meter_forget(vm);
	if (s->env->num_active == 0)
		s->charge_at = s->env->now + s->env->cfg.charge_usec;
}

void meter_resume(const struct meter_room *s, const struct ebb_vm *vm, uint64_t order,
		  const struct ebb_vm_charge *last)
{
	if (!s->env->is_loaded && vm->is_running && vm->order == order &&
	    last->at < vm->charge.at)
		*meter_own_charge(vm) = *last;
}

void meter_record(const struct meter_room *s, const struct ebb_vm *vm)
{
	const struct ebb_vm_charge *c = &vm->charge;
	struct ebb_record *r;

	core_charge(s->env, vm);
	if (c->at == c->since)
		return;
	r = core_record(s->env, vm, c->at, EBB_EVENT_CHARGE);
	r->order = vm->order;
	r->total_usec = c->at - c->since;
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		r->charge[k].core_usec = c->core_usec[k];
		r->charge[k].mib_msec = c->mib_usec[k] / MIB_USEC_PER_MSEC;
	}
}

void meter_record_all(const struct meter_room *s)
{
	for (size_t i = 0; i < s->env->num_active; i++)
		meter_record(s, s->env->active[i]);
}

bool meter_is_due(const struct meter_room *s)
{
	return s->env->num_active > 0 && s->env->now >= s->charge_at;
}

usec_t meter_settle(struct meter_room *s)
{
	if (s->env->num_active == 0)
		return EBB_TIME_NEVER;
	if (meter_is_due(s)) {
		meter_record_all(s);
		s->charge_at = s->env->now + s->env->cfg.charge_usec;
	}
	return s->charge_at;
}

/* ---- waste --------------------------------------------------------------- */

void meter_waste(struct meter_room *s)
{
	const usec_t usec = s->env->now > s->wasted_at ? s->env->now - s->wasted_at : 0;

	for (uint16_t h = 0; h < s->env->host.num_nodes; h++)
		s->wasted_usec[h] += s->idle[h] * usec;
	s->wasted_at = s->env->now;
}

/* CPUs that VMs with a driver have less than the policy wants them to have on the node. */
static uint32_t missing_on(const struct meter_room *s, uint16_t h)
{
	uint32_t missing = 0;

	core_set_for_each(i, &s->env->on[h]) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; core_counts_as_driven(vm) && g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == h &&
			    vm->nodes[g].used < vm->nodes[g].target)
				missing += vm->nodes[g].target - vm->nodes[g].used;
	}
	return missing;
}

void meter_waste_from_now(struct meter_room *s, uint32_t nodes,
			  const uint32_t num_free[EBB_MAX_NODES])
{
	for (uint16_t h = 0; h < s->env->host.num_nodes; h++) {
		const uint32_t missing = nodes >> h & 1 ? missing_on(s, h) : 0;

		if (nodes >> h & 1)
			s->idle[h] = num_free[h] < missing ? num_free[h] : missing;
	}
}

uint64_t meter_wasted_usec(const struct meter_room *s, uint16_t host_node, usec_t now)
{
	if (host_node >= s->env->host.num_nodes)
		return 0;
	return s->wasted_usec[host_node] +
	       s->idle[host_node] * (now > s->wasted_at ? now - s->wasted_at : 0);
}
