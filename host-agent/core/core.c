// SPDX-License-Identifier: GPL-2.0-or-later
/* See state.h: creation, dispatch of facts, and what others may read. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

void ebb_state_config_default(struct ebb_state_config *ret_cfg)
{
	*ret_cfg = (struct ebb_state_config){
		.request_usec = 12 * EBB_USEC_PER_SEC,
		.link_grace_usec = 5 * EBB_USEC_PER_SEC,
		.confirm_usec = 1 * EBB_USEC_PER_SEC,
		.leave_usec = 30 * EBB_USEC_PER_MSEC,
		.tidy_usec = 500 * EBB_USEC_PER_MSEC,
		.charge_usec = 1 * EBB_USEC_PER_SEC,
		.retry_usec = { 200 * EBB_USEC_PER_MSEC, 30 * EBB_USEC_PER_SEC },
	};
	ebb_pressure_default(&ret_cfg->pressure);
}

bool ebb_policy_usable(const struct ebb_policy_ops *ops)
{
	return ops && ops->abi == EBB_POLICY_ABI && ops->size >= sizeof(*ops) && ops->name &&
	       ops->decide && ops->state_size <= EBB_POLICY_STATE_MAX;
}

struct ebb_state *ebb_state_create(const struct ebb_state_config *cfg,
				   const struct ebb_host *host,
				   const struct ebb_policy_ops *policy)
{
	char text[EBB_TEXT_SIZE];
	struct ebb_state *s;

	if (ebb_host_check(host, text) < 0 || ebb_pressure_check(&cfg->pressure, text) < 0 ||
	    !ebb_policy_usable(policy))
		return NULL;
	s = cfg->alloc.alloc(cfg->alloc.ctx, sizeof(*s));
	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->host = *host;
	s->cores.host = &s->host;
	s->policy = policy;
	s->settle_at = EBB_TIME_NEVER;
	s->pressure_at = EBB_TIME_NEVER;
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		for (int what = 0; what < EBB_PRESSED_CORE; what++)
			ebb_violation_clear(&s->violations[what][h]);
	for (uint16_t c = 0; c < EBB_MAX_THREADS; c++)
		ebb_violation_clear(&s->core_violations[c]);
	for (uint16_t c = 0; c < host->num_cores; c++) {
		const struct ebb_core *core = &host->cores[c];
		struct ebb_view_node *n = &s->nodes[core->node];
		uint16_t *smt = &s->smt[core->node];

		*smt = *smt == 0 || core->num_threads < *smt ? core->num_threads : *smt;
		if (core->is_shared)
			continue;
		n->num_cores++;
		n->num_threads += core->num_threads;
		n->capacity = cfg->count_threads ? n->num_threads : n->num_cores;
	}
	core_count_capacity(s);
	core_shared_create(s);
	return s;
}

void ebb_state_destroy(struct ebb_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->num_vms; i++)
		core_vm_destroy(s, s->vms[i]);
	s->cfg.alloc.free(s->cfg.alloc.ctx, s);
}

static int report_loaded(struct ebb_state *s, usec_t now)
{
	if (s->is_loaded)
		return 0;
	core_count_capacity(s);
	core_admit_all(s, now);
	core_claim_all(s);
	s->is_loaded = s->plan_is_stale = s->limits_are_stale = true;
	core_text(core_record(s, NULL, now, EBB_EVENT_POLICY)->text,
		  "policy %s, %zu VMs of which %zu run", s->policy->name, s->num_vms,
		  s->num_active);
	return 0;
}

static int report_vm(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		     const struct ebb_fact *fact)
{
	switch (fact->type) {
	case EBB_FACT_VM_REMOVED:
		return core_vm_removed(s, now, vm);
	case EBB_FACT_VM_RUNNING:
		return core_vm_running(s, now, vm, &fact->u.vm_running);
	case EBB_FACT_VM_STOPPED:
		return core_vm_stopped(s, now, vm);
	case EBB_FACT_HELLO:
		return core_hello(s, now, vm, &fact->u.hello);
	case EBB_FACT_LINK_LOST:
		return core_link_lost(s, now, vm);
	case EBB_FACT_REQUEST:
		return core_request(s, now, vm, &fact->u.request);
	case EBB_FACT_TELEMETRY:
		vm->telemetry = fact->u.telemetry;
		vm->telemetry_at = now;
		return 0;
	case EBB_FACT_MEM:
		return core_mem(s, now, vm, &fact->u.mem);
	case EBB_FACT_VOM:
		return core_vom(s, now, vm, &fact->u.vom);
	case EBB_FACT_SLA_SET:
		return core_sla_set(s, now, vm, &fact->u.sla_set);
	case EBB_FACT_CPU_TIMES:
		return core_cpu_times(s, now, vm, &fact->u.cpu_times);
	default:
		return -EINVAL;
	}
}

int ebb_state_report(struct ebb_state *s, usec_t now, const struct ebb_fact *fact)
{
	struct ebb_vm *vm;

	s->now = now;
	s->pressure_is_stale = s->pressure_is_stale || (fact->type != EBB_FACT_REQUEST &&
							fact->type != EBB_FACT_TELEMETRY &&
							fact->type != EBB_FACT_ACTION_DONE);
	switch (fact->type) {
	case EBB_FACT_VM_DEFINED:
		return core_vm_defined(s, now, fact);
	case EBB_FACT_VM_INVALID:
		return core_vm_invalid(s, now, fact);
	case EBB_FACT_LOADED:
		return report_loaded(s, now);
	case EBB_FACT_ACTION_DONE:
		return core_action_done(s, now, &fact->u.action_done);
	default:
		vm = core_vm_find(s, fact->uuid);
		return vm ? report_vm(s, now, vm, fact) : -ENOENT;
	}
}

int ebb_state_policy_set(struct ebb_state *s, usec_t now, const struct ebb_policy_ops *policy)
{
	if (!ebb_policy_usable(policy))
		return -EINVAL;
	if (policy == s->policy)
		return 0;
	s->now = now;
	core_text(core_record(s, NULL, now, EBB_EVENT_POLICY)->text, "policy %s replaces %s",
		  policy->name, s->policy->name);
	s->policy = policy;
	memset(s->policy_state, 0, sizeof(s->policy_state));
	s->plan_is_stale = s->pressure_is_stale = true;
	return 0;
}

/* ---- reading ------------------------------------------------------------- */

const struct ebb_host *ebb_state_host(const struct ebb_state *s)
{
	return &s->host;
}

const struct ebb_policy_ops *ebb_state_policy(const struct ebb_state *s)
{
	return s->policy;
}

bool ebb_state_is_loaded(const struct ebb_state *s)
{
	return s->is_loaded;
}

const struct ebb_pressure *ebb_state_pressure(const struct ebb_state *s)
{
	return &s->cfg.pressure;
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
	return &s->broker;
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
		ret_totals->mem_held += vm->nodes[g].pool.held * EBB_BLOCK_BYTES;
		ret_totals->mem_limit += vm->nodes[g].pool.limit * EBB_BLOCK_BYTES;
		ret_totals->mem_target += vm->nodes[g].pool.target * EBB_BLOCK_BYTES;
		ret_totals->mem_unconfirmed += vm->nodes[g].pool.unconfirmed * EBB_BLOCK_BYTES;
	}
}

uint32_t ebb_state_node_capacity(const struct ebb_state *s, uint16_t host_node)
{
	if (host_node >= s->host.num_nodes)
		return 0;
	return s->use_threads[host_node] ? s->nodes[host_node].num_cores * s->smt[host_node] :
					   s->nodes[host_node].capacity;
}

bool ebb_state_node_uses_threads(const struct ebb_state *s, uint16_t host_node)
{
	return host_node < s->host.num_nodes && s->use_threads[host_node];
}

uint32_t ebb_state_node_used(const struct ebb_state *s, uint16_t host_node)
{
	uint32_t used = 0;

	for (uint16_t t = 0; t < s->host.num_threads; t++)
		used += s->host.threads[t].node == host_node && s->cores.owner[t].vm;
	return used;
}

uint64_t ebb_state_pool_capacity(const struct ebb_state *s, uint16_t host_node)
{
	return host_node < s->host.num_nodes ? s->nodes[host_node].mem_capacity * EBB_BLOCK_BYTES :
					       0;
}

uint64_t ebb_state_pool_bytes(const struct ebb_state *s, uint16_t host_node, uint32_t percent)
{
	if (host_node >= s->host.num_nodes)
		return 0;
	return core_percent(s->nodes[host_node].mem_capacity, percent) * EBB_BLOCK_BYTES;
}

uint64_t ebb_state_pool_held(const struct ebb_state *s, uint16_t host_node)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->num_active; i++)
		for (uint16_t g = 0; g < s->active[i]->sla.num_nodes; g++)
			if (s->active[i]->sla.nodes[g].host_node == host_node)
				blocks += s->active[i]->nodes[g].pool.held;
	return blocks * EBB_BLOCK_BYTES;
}

uint64_t ebb_state_pool_promised(const struct ebb_state *s, uint16_t host_node)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->num_active; i++)
		for (uint16_t g = 0; g < s->active[i]->sla.num_nodes; g++) {
			const struct ebb_vm_pool *p = &s->active[i]->nodes[g].pool;
			const uint32_t reach = core_pool_reach(p);

			if (s->active[i]->sla.nodes[g].host_node == host_node)
				blocks += reach > p->limit ? reach : p->limit;
		}
	return blocks * EBB_BLOCK_BYTES;
}

const struct ebb_vm *ebb_state_thread_owner(const struct ebb_state *s, uint16_t thread,
					    uint16_t *ret_vcpu)
{
	if (thread >= s->host.num_threads || !s->cores.owner[thread].vm)
		return NULL;
	if (ret_vcpu)
		*ret_vcpu = s->cores.owner[thread].vcpu;
	return s->cores.owner[thread].vm;
}

const char *ebb_vcpu_state_name(const struct ebb_vcpu *v)
{
	if (v->shared != EBB_THREAD_NONE)
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
