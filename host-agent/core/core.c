// SPDX-License-Identifier: GPL-2.0-or-later
/* See core.h: creation, and dispatch of facts. */
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
		.meter_usec = 1 * EBB_USEC_PER_SEC,
		.retry_usec = { 200 * EBB_USEC_PER_MSEC, 30 * EBB_USEC_PER_SEC },
	};
	ebb_pressure_default(&ret_cfg->pressure);
	ret_cfg->promise.overbook_percent = 100;
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
	s->env.cfg = *cfg;
	s->env.host = *host;
	s->env.policy = policy;
	s->env.has_quorum = !cfg->lacks_quorum;
	s->env.quorum_until = EBB_TIME_NEVER;
	s->env.active = (const struct ebb_vm *const *)s->active;
	s->env.cycle = &s->cycle;
	s->env.journal = &s->journal;
	s->cpu.env = s->mem.env = s->broker.env = s->shared.env = &s->env;
	s->pressure.env = s->meter.env = s->reserve.env = s->promise.env = &s->env;
	s->floor.env = s->io.env = &s->env;
	core_alarms_clear(&s->settles);
	core_alarms_clear(&s->wakes);
	for (uint16_t c = 0; c < host->num_cores; c++) {
		const struct ebb_core *core = &host->cores[c];
		struct ebb_view_node *n = &s->env.nodes[core->node];
		uint16_t *smt = &s->env.smt[core->node];

		*smt = *smt == 0 || core->num_threads < *smt ? core->num_threads : *smt;
		if (core->is_shared)
			continue;
		n->num_cores++;
		n->num_threads += core->num_threads;
		n->capacity = cfg->count_threads ? n->num_threads : n->num_cores;
	}
	core_count_capacity(s);
	cpu_create(&s->cpu);
	shared_create(&s->shared);
	reserve_create(&s->reserve);
	pressure_create(&s->pressure);
	return s;
}

void ebb_state_destroy(struct ebb_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->num_vms; i++)
		core_vm_destroy(s, s->vms[i]);
	s->env.cfg.alloc.free(s->env.cfg.alloc.ctx, s);
}

static int report_loaded(struct ebb_state *s, usec_t now)
{
	if (s->env.is_loaded)
		return 0;
	core_count_capacity(s);
	core_admit_all(s, now);
	cpu_claim_all(&s->cpu);
	s->env.is_loaded = s->cycle.plan_is_stale = true;
	core_text(core_record(&s->env, NULL, now, EBB_EVENT_POLICY)->text,
		  "policy %s, %zu VMs of which %zu run", s->env.policy->name, s->num_vms,
		  s->env.num_active);
	return 0;
}

static int report_request(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			  const struct ebb_fact_request *f)
{
	const int rc = cpu_may_report(vm, f);

	if (rc < 0)
		return rc;
	core_settle(s, now);
	return cpu_report(&s->cpu, now, vm, f);
}

static int report_times(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			const struct ebb_fact_cpu_times *f)
{
	const int rc = meter_report(&s->meter, now, vm, f);

	if (rc >= 0)
		promise_report(&s->promise, vm, f);
	if (rc > 0)
		pressure_report_times(&s->pressure, f->as_of, vm);
	return rc < 0 ? rc : 0;
}

static int report_telemetry(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			    const struct ebb_telemetry *t)
{
	struct promise_beyond beyond;

	vm->telemetry = *t;
	vm->telemetry_at = now;
	promise_report_cache(&s->promise, now, vm, t, &beyond);
	if (beyond.length > 0)
		io_report_beyond(&s->io, now, vm, beyond.length, beyond.reads);
	/* The policy has to know of another floor. */
	if (vm->is_admitted && floor_report(&s->floor, now, vm, t)) {
		s->cycle.plan_is_stale = true;
		core_touch(&s->env, vm);
	}
	return 0;
}

/* The id says by itself which VM and vCPU it is about: see core_action_id(). */
static int report_done(struct ebb_state *s, usec_t now, const struct ebb_fact_action_done *f)
{
	const uint16_t vcpu = (uint16_t)(f->id % EBB_MAX_VCPUS);
	const struct ebb_vm *vm = s->slots[f->id / EBB_MAX_VCPUS % EBB_MAX_VMS];

	if (f->id == 0 || f->err > 0)
		return -EINVAL;
	/* Of a volume, whose VM may be gone. */
	if (f->type == EBB_ACTION_VOLUME) {
		io_done(&s->io, now, f);
		return 0;
	}
	if (!vm || !vm->is_running || vcpu >= vm->num_vcpus)
		return 0;
	switch (f->type) {
	case EBB_ACTION_PLUG:
	case EBB_ACTION_UNPLUG:
	case EBB_ACTION_PLACE:
	case EBB_ACTION_HOME:
		cpu_done(&s->cpu, now, vm, vcpu, f);
		return 0;
	case EBB_ACTION_MEM_CAP:
	case EBB_ACTION_MEM_MIRROR:
		mem_done(&s->mem, now, vm, f);
		return 0;
	case EBB_ACTION_THROTTLE:
		shared_done(&s->shared, now, vm, f);
		return 0;
	case EBB_ACTION_SHARES:
		reserve_shares_done(&s->reserve, now, vm, f);
		return 0;
	case EBB_ACTION_RESERVE:
		reserve_done(&s->reserve, now, vm, vcpu, f);
		return 0;
	default:
		return -EINVAL;
	}
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
		return report_request(s, now, vm, &fact->u.request);
	case EBB_FACT_TELEMETRY:
		return report_telemetry(s, now, vm, &fact->u.telemetry);
	case EBB_FACT_MEM:
		return mem_report(&s->mem, now, vm, &fact->u.mem);
	case EBB_FACT_VOM:
		return broker_report(&s->broker, now, vm, &fact->u.vom);
	case EBB_FACT_ACCOUNT:
		return core_account_take(s, vm, &fact->u.account);
	case EBB_FACT_SLA_SET:
		return core_sla_set(s, now, vm, &fact->u.sla_set);
	case EBB_FACT_CPU_TIMES:
		return report_times(s, now, vm, &fact->u.cpu_times);
	default:
		return -EINVAL;
	}
}

int ebb_state_report(struct ebb_state *s, usec_t now, const struct ebb_fact *fact)
{
	struct ebb_vm *vm;

	s->env.now = now;
	if (fact->type != EBB_FACT_REQUEST && fact->type != EBB_FACT_TELEMETRY &&
	    fact->type != EBB_FACT_ACCOUNT &&
	    fact->type != EBB_FACT_ACTION_DONE && fact->type < EBB_FACT_VOLUMES_UP) {
		pressure_changed(&s->pressure);
		broker_changed(&s->broker);
	}
	switch (fact->type) {
	case EBB_FACT_VM_DEFINED:
		return core_vm_defined(s, now, fact);
	case EBB_FACT_VM_INVALID:
		return core_vm_invalid(s, now, fact);
	case EBB_FACT_LOADED:
		return report_loaded(s, now);
	case EBB_FACT_ACTION_DONE:
		return report_done(s, now, &fact->u.action_done);
	case EBB_FACT_VOLUMES_UP:
		io_up(&s->io, now, &fact->u.volumes_up);
		return 0;
	case EBB_FACT_VOLUMES_LOST:
		io_lost(&s->io, now, fact->u.volumes_lost.text);
		return 0;
	case EBB_FACT_VOLUMES_SERVER:
		io_server(&s->io, &fact->u.volumes_server);
		return 0;
	case EBB_FACT_VOLUMES_METERS:
		io_meters(&s->io, &fact->u.volumes_meters);
		return 0;
	default:
		vm = core_vm_find(s, fact->uuid);
		return vm ? report_vm(s, now, vm, fact) : -ENOENT;
	}
}

int ebb_state_policy_set(struct ebb_state *s, usec_t now, const struct ebb_policy_ops *policy)
{
	if (!ebb_policy_usable(policy))
		return -EINVAL;
	if (policy == s->env.policy)
		return 0;
	s->env.now = now;
	core_text(core_record(&s->env, NULL, now, EBB_EVENT_POLICY)->text, "policy %s replaces %s",
		  policy->name, s->env.policy->name);
	s->env.policy = policy;
	memset(s->policy_state, 0, sizeof(s->policy_state));
	s->cycle.plan_is_stale = true;
	pressure_changed(&s->pressure);
	return 0;
}

static void change_quorum(struct ebb_state *s, usec_t now, bool has_quorum, const char *text)
{
	s->env.now = now;
	s->env.has_quorum = has_quorum;
	core_text(core_record(&s->env, NULL, now, EBB_EVENT_QUORUM)->text, "%s", text);
	s->cycle.plan_is_stale = true;
	reserve_changed(&s->reserve);
}

void ebb_state_quorum_set(struct ebb_state *s, usec_t now, bool has_quorum, usec_t until)
{
	s->env.quorum_until = has_quorum ? until : EBB_TIME_NEVER;
	if (has_quorum != s->env.has_quorum)
		change_quorum(s, now, has_quorum, has_quorum ? "the host has quorum again" :
			      "the host has lost the quorum of its cluster: nothing new is given");
}

void core_review_quorum(struct ebb_state *s, usec_t now)
{
	if (now < s->env.quorum_until)
		return;
	s->env.quorum_until = EBB_TIME_NEVER;
	change_quorum(s, now, false, "no report says any more that the host has the quorum of its "
		      "cluster: nothing new is given");
}

void ebb_state_charge_all(struct ebb_state *s, usec_t now)
{
	s->env.now = now;
	meter_record_all(&s->meter);
}

void ebb_state_charge_resume(struct ebb_state *s, const uint8_t *uuid, uint64_t order,
			     const struct ebb_vm_charge *last)
{
	const struct ebb_vm *vm = core_vm_find(s, uuid);

	if (vm)
		meter_resume(&s->meter, vm, order, last);
}
