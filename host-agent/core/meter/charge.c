// SPDX-License-Identifier: GPL-2.0-or-later
/* What VMs held, so that they can be charged for it, and cores that were left to nobody. */
#include "core/internal.h"

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

void core_charge(const struct ebb_state *s, struct ebb_vm *vm)
{
	struct ebb_vm_charge *c = &vm->charge;
	const usec_t usec = s->now > c->at ? s->now - c->at : 0;
	uint16_t cores[EBB_MAX_GUEST_NODES] = { 0 };

	/* While VMs are still being found, what they hold is not known. */
	if (usec == 0 || !vm->is_running || !s->is_loaded)
		return;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		cores[vm->vcpus[i].node] += vm->vcpus[i].thread != EBB_THREAD_NONE;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_sla_node *sla = &vm->sla.nodes[g];

		add(c->core_usec, cores[g], sla->reserved, usec);
		add(c->mib_usec, (uint64_t)vm->nodes[g].pool.held * EBB_BLOCK_MIB,
		    (uint64_t)sla->mem_min * EBB_BLOCK_MIB, usec);
	}
	c->at = s->now;
}

void core_charge_start(struct ebb_state *s, struct ebb_vm *vm)
{
	vm->charge = (struct ebb_vm_charge){ .since = s->now, .at = s->now };
	if (s->num_active == 0)
		s->charge_at = s->now + s->cfg.charge_usec;
}

void ebb_state_charge_resume(struct ebb_state *s, const uint8_t *uuid, uint64_t order,
			     const struct ebb_vm_charge *last)
{
	struct ebb_vm *vm = core_vm_find(s, uuid);

	if (!s->is_loaded && vm && vm->is_running && vm->order == order &&
	    last->at < vm->charge.at)
		vm->charge = *last;
}

void core_charge_record(struct ebb_state *s, struct ebb_vm *vm)
{
	const struct ebb_vm_charge *c = &vm->charge;
	struct ebb_record *r;

	core_charge(s, vm);
	if (c->at == c->since)
		return;
	r = core_record(s, vm, c->at, EBB_EVENT_CHARGE);
	r->order = vm->order;
	r->total_usec = c->at - c->since;
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		r->charge[k].core_usec = c->core_usec[k];
		r->charge[k].mib_msec = c->mib_usec[k] / MIB_USEC_PER_MSEC;
	}
}

void ebb_state_charge_all(struct ebb_state *s, usec_t now)
{
	s->now = now;
	for (size_t i = 0; i < s->num_active; i++)
		core_charge_record(s, s->active[i]);
}

usec_t core_charge_due(struct ebb_state *s)
{
	if (s->num_active == 0)
		return EBB_TIME_NEVER;
	if (s->now >= s->charge_at) {
		ebb_state_charge_all(s, s->now);
		s->charge_at = s->now + s->cfg.charge_usec;
	}
	return s->charge_at;
}

/* ---- waste --------------------------------------------------------------- */

void core_waste(struct ebb_state *s)
{
	const usec_t usec = s->now > s->wasted_at ? s->now - s->wasted_at : 0;

	for (uint16_t h = 0; h < s->host.num_nodes; h++)
		s->wasted_usec[h] += s->idle[h] * usec;
	s->wasted_at = s->now;
}

void core_waste_look(struct ebb_state *s)
{
	uint32_t free[EBB_MAX_NODES] = { 0 }, missing[EBB_MAX_NODES] = { 0 };

	for (uint16_t c = 0; c < s->host.num_cores; c++)
		free[s->host.cores[c].node] += s->cores.num_owned[c] == 0;
	for (size_t i = 0; i < s->num_active; i++) {
		const struct ebb_vm *vm = s->active[i];

		for (uint16_t g = 0; vm->work->counts_as_driven && g < vm->sla.num_nodes; g++)
			if (vm->nodes[g].used < vm->nodes[g].target)
				missing[vm->sla.nodes[g].host_node] +=
					vm->nodes[g].target - vm->nodes[g].used;
	}
	for (uint16_t h = 0; h < s->host.num_nodes; h++)
		s->idle[h] = free[h] < missing[h] ? free[h] : missing[h];
}

uint64_t ebb_state_node_wasted_usec(const struct ebb_state *s, uint16_t host_node, usec_t now)
{
	if (host_node >= s->host.num_nodes)
		return 0;
	return s->wasted_usec[host_node] +
	       s->idle[host_node] * (now > s->wasted_at ? now - s->wasted_at : 0);
}
