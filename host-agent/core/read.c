// SPDX-License-Identifier: GPL-2.0-or-later
/* What the daemon and simulations may read of the state: see core.h. */
#include <string.h>

#include "core/internal.h"

const struct ebb_host *ebb_state_host(const struct ebb_state *s)
{
	return &s->env.host;
}

const struct ebb_policy_ops *ebb_state_policy(const struct ebb_state *s)
{
	return s->env.policy;
}

bool ebb_state_is_loaded(const struct ebb_state *s)
{
	return s->env.is_loaded;
}

bool ebb_state_has_quorum(const struct ebb_state *s)
{
	return s->env.has_quorum;
}

const struct ebb_pressure *ebb_state_pressure(const struct ebb_state *s)
{
	return &s->env.cfg.pressure;
}

size_t ebb_state_num_vms(const struct ebb_state *s)
{
	return s->num_vms;
}

const struct ebb_vm *ebb_state_vm_at(const struct ebb_state *s, size_t i)
{
	return i < s->num_vms ? s->vms[i] : NULL;
}

const struct ebb_vm *ebb_state_vm(const struct ebb_state *s, const uint8_t *uuid)
{
	return core_vm_find(s, uuid);
}

size_t ebb_state_vms_named(const struct ebb_state *s, const char *name,
			   const struct ebb_vm **ret_vm)
{
	size_t num = 0;

	for (size_t i = 0; i < s->num_vms; i++) {
		if (strcmp(s->vms[i]->name, name) != 0)
			continue;
		*ret_vm = s->vms[i];
		num++;
	}
	return num;
}

const struct ebb_broker *ebb_state_broker(const struct ebb_state *s)
{
	return &s->broker.broker;
}

void ebb_vm_totals(const struct ebb_vm *vm, struct ebb_vm_totals *ret_totals)
{
	*ret_totals = (struct ebb_vm_totals){ 0 };
	for (uint16_t g = 0; vm->has_sla && g < vm->sla.num_nodes; g++) {
		ret_totals->floor += vm->sla.nodes[g].startup;
		ret_totals->ceiling += vm->sla.nodes[g].max;
		ret_totals->held += vm->nodes[g].held;
		ret_totals->lent += vm->nodes[g].lent;
		ret_totals->limit += vm->nodes[g].limit;
		ret_totals->target += vm->nodes[g].target;
		ret_totals->mem_floor += vm->sla.nodes[g].mem_min * EBB_BLOCK_BYTES;
		ret_totals->mem_ceiling += vm->sla.nodes[g].mem_max * EBB_BLOCK_BYTES;
		ret_totals->mem_held += vm->pools[g].held * EBB_BLOCK_BYTES;
		ret_totals->mem_limit += vm->pools[g].limit * EBB_BLOCK_BYTES;
		ret_totals->mem_target += vm->pools[g].target * EBB_BLOCK_BYTES;
		ret_totals->mem_unconfirmed += vm->pools[g].unconfirmed * EBB_BLOCK_BYTES;
	}
}

uint32_t ebb_state_node_capacity(const struct ebb_state *s, uint16_t host_node)
{
	return core_node_capacity(&s->env, host_node);
}

bool ebb_state_node_uses_threads(const struct ebb_state *s, uint16_t host_node)
{
	return host_node < s->env.host.num_nodes && s->env.use_threads[host_node];
}

uint32_t ebb_state_node_used(const struct ebb_state *s, uint16_t host_node)
{
	uint32_t used = 0;

	for (uint16_t t = 0; t < s->env.host.num_threads; t++)
		used += s->env.host.threads[t].node == host_node && s->cpu.cores.owner[t].vm;
	return used;
}

uint64_t ebb_state_pool_capacity(const struct ebb_state *s, uint16_t host_node)
{
	if (host_node >= s->env.host.num_nodes)
		return 0;
	return s->env.nodes[host_node].mem_capacity * EBB_BLOCK_BYTES;
}

uint64_t ebb_state_pool_bytes(const struct ebb_state *s, uint16_t host_node, uint32_t percent)
{
	if (host_node >= s->env.host.num_nodes)
		return 0;
	return core_percent(s->env.nodes[host_node].mem_capacity, percent) * EBB_BLOCK_BYTES;
}

uint64_t ebb_state_pool_held(const struct ebb_state *s, uint16_t host_node)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->env.num_active; i++)
		for (uint16_t g = 0; g < s->active[i]->sla.num_nodes; g++)
			if (s->active[i]->sla.nodes[g].host_node == host_node)
				blocks += s->active[i]->pools[g].held;
	return blocks * EBB_BLOCK_BYTES;
}

uint64_t ebb_state_pool_promised(const struct ebb_state *s, uint16_t host_node)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->env.num_active; i++)
		for (uint16_t g = 0; g < s->active[i]->sla.num_nodes; g++) {
			const struct ebb_vm_pool *p = &s->active[i]->pools[g];
			const uint32_t reach = core_pool_reach(p);

			if (s->active[i]->sla.nodes[g].host_node == host_node)
				blocks += reach > p->limit ? reach : p->limit;
		}
	return blocks * EBB_BLOCK_BYTES;
}

const struct ebb_vm *ebb_state_thread_owner(const struct ebb_state *s, uint16_t thread,
					    uint16_t *ret_vcpu)
{
	if (thread >= s->env.host.num_threads || !s->cpu.cores.owner[thread].vm)
		return NULL;
	if (ret_vcpu)
		*ret_vcpu = s->cpu.cores.owner[thread].vcpu;
	return s->cpu.cores.owner[thread].vm;
}

const char *ebb_vcpu_state_name(const struct ebb_vm *vm, uint16_t vcpu)
{
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];

	if (vm->vcpu_shares[vcpu].thread != EBB_THREAD_NONE)
		return "shared";
	if (v->is_startup)
		return v->thread == EBB_THREAD_NONE ? "waiting" : "startup";
	switch (v->life) {
	case EBB_VCPU_PLUGGING:
		return "plugging";
	case EBB_VCPU_UNPLUGGING:
		return "unplugging";
	case EBB_VCPU_ABSENT:
		return "absent";
	case EBB_VCPU_PLUGGED:
		break;
	}
	if (v->is_unknown)
		return "unknown";
	if (v->is_lent)
		return v->is_parked ? "parked" : "lent";
	if (v->force != EBB_FORCE_NONE)
		return "forced";
	if (v->is_granted)
		return "granted";
	return v->request >= 0 ? "placing" : "unowned";
}

bool ebb_state_record_pop(struct ebb_state *s, struct ebb_record *ret_record)
{
	return core_journal_pop(&s->journal, ret_record);
}

const struct ebb_violation *ebb_state_violation(const struct ebb_state *s,
						enum ebb_pressed pressed, uint16_t i)
{
	return pressure_violation(&s->pressure, pressed, i);
}

bool ebb_state_shared_thread(const struct ebb_state *s, uint16_t thread,
			     struct ebb_shared_thread *ret)
{
	return shared_thread(&s->shared, thread, ret);
}

void ebb_state_promises(const struct ebb_state *s, uint16_t host_node, struct ebb_promise_node *ret)
{
	reserve_node(&s->reserve, host_node, ret);
}

void ebb_state_mem_promises(const struct ebb_state *s, uint16_t host_node,
			    struct ebb_mem_promise_node *ret)
{
	floor_node(&s->floor, host_node, ret);
}

void ebb_state_volume(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t k,
		      struct ebb_io_view *ret)
{
	io_view(&s->io, vm, k, ret);
}

const struct ebb_volume_server *ebb_state_volume_server(const struct ebb_state *s)
{
	return s->io.has_server ? &s->io.server : NULL;
}

const char *ebb_state_volumes_lost(const struct ebb_state *s)
{
	return s->io.lost;
}

void ebb_state_shared_totals(const struct ebb_state *s, struct ebb_shared_totals *ret)
{
	shared_totals(&s->shared, ret);
}

uint64_t ebb_state_node_wasted_usec(const struct ebb_state *s, uint16_t host_node, usec_t now)
{
	return meter_wasted_usec(&s->meter, host_node, now);
}
