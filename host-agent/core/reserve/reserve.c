// SPDX-License-Identifier: GPL-2.0-or-later
/* See reserve.h. */
#include <errno.h>
#include <string.h>

#include "core/reserve/reserve.h"

/* The room's own parts of a VM and of a vCPU. */
static struct ebb_vm_reserve *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_reserve *)&vm->reserve;
}

static struct ebb_vcpu_reserve *own_vcpu(const struct ebb_vm *vm, uint16_t vcpu)
{
	return (struct ebb_vcpu_reserve *)&vm->vcpu_reserves[vcpu];
}

void reserve_create(struct reserve_room *s)
{
	const struct core_env *e = s->env;

	for (uint16_t t = 0; t < e->host.num_threads; t++) {
		const struct ebb_core *core = &e->host.cores[e->host.threads[t].core];

		s->rest[t] = 1000;
		s->num_threads[core->node] += core->is_shared;
	}
	for (uint16_t h = 0; h < e->host.num_nodes; h++)
		s->capacity[h] = (uint64_t)s->num_threads[h] * EBB_PROMISE_MOST *
				 e->cfg.promise.overbook_percent / 100;
}

void reserve_define(const struct ebb_vm *vm)
{
	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		*own_vcpu(vm, k) = (struct ebb_vcpu_reserve){
			.want.thread = EBB_THREAD_NONE, .told.thread = EBB_THREAD_NONE,
		};
}

void reserve_start(struct reserve_room *s, const struct ebb_vm *vm)
{
	/* An earlier agent may have put promises in force that this one does not know. */
	const bool is_unknown = vm->sla.is_shared && !s->env->is_loaded;

	*own(vm) = (struct ebb_vm_reserve){
		/* libvirt takes the weight along to another host. */
		.is_weight_unknown = (is_unknown || (vm->sla.is_shared && vm->is_incoming)) &&
				     !s->env->host.is_emulated,
	};
	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		own_vcpu(vm, k)->is_unknown = is_unknown;
	s->is_stale = true;
}

void reserve_stop(struct reserve_room *s, const struct ebb_vm *vm)
{
	reserve_define(vm);
	*own(vm) = (struct ebb_vm_reserve){ 0 };
	s->is_stale = true;
}

/* ---- promises that are made ---------------------------------------------- */

static uint32_t count_vcpus(const struct ebb_vm *vm)
{
	uint32_t count = 0;

	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		count += vm->vcpus[k].is_startup;
	return count;
}

/*
 * The part of a vCPU, one of the startup set, of the VM's percentage; thousandths of a core.  The
 * first ones have a thousandth more where it can not be divided evenly, so that all parts together
 * are the percentage.
 */
static uint32_t part_of(const struct ebb_vm *vm, uint16_t vcpu, uint32_t percent)
{
	const uint32_t count = count_vcpus(vm);
	uint32_t before = 0;

	for (uint16_t k = 0; k < vcpu; k++)
		before += vm->vcpus[k].is_startup;
	return before < count ? (percent * 10 + count - 1 - before) / count : 0;
}

/* The promise that the SLA asks for; without quorum not more than the present one. */
static uint32_t asked(const struct reserve_room *s, const struct ebb_vm *vm)
{
	const uint32_t percent = vm->sla.is_shared ? vm->sla.reserve_percent : 0;
	const uint32_t promised = vm->reserve.promised_percent;

	if (core_may_promise(s->env, vm))
		return percent;
	return percent < promised ? percent : promised;
}

static void ask(const struct reserve_room *s, struct ebb_promise_ask *a, const struct ebb_vm *vm)
{
	const uint32_t reserve = asked(s, vm);

	/* A lowered promise takes nothing new, so it comes before those of VMs that wait. */
	*a = (struct ebb_promise_ask){ .is_held = vm->reserve.promised_percent >= reserve };
	for (uint16_t k = 0; reserve > 0 && k < vm->num_vcpus; k++) {
		const uint16_t h = core_host_node(vm, k);

		if (!vm->vcpus[k].is_startup)
			continue;
		a->permille[h] += part_of(vm, k, reserve);
		if (!a->is_held)
			a->before[h] += part_of(vm, k, vm->reserve.promised_percent);
	}
}

static void record(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm,
		   const struct ebb_promise_ask *a)
{
	const uint32_t reserve = vm->sla.reserve_percent;

	if (a->is_kept)
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "reserve-percent %u is not promised: node %u of the host has %u per cent "
			  "for it; the promise of %u per cent holds", reserve, a->short_node,
			  a->short_left / 10, vm->reserve.promised_percent);
	else if (!a->is_promised)
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "reserve-percent %u is not promised: node %u of the host has %u per cent "
			  "left to promise; the VM runs without a promise", reserve, a->short_node,
			  a->short_left / 10);
	else if (reserve > 0 && vm->sla.is_shared)
		core_text(core_record(s->env, vm, now, EBB_EVENT_SLA)->text,
			  "%u per cent of a core are promised", reserve);
}

static void admit(struct reserve_room *s, usec_t now)
{
	for (size_t i = 0; i < s->env->num_active; i++)
		ask(s, &s->asks[i], s->env->active[i]);
	ebb_promise_admit(s->asks, s->env->num_active, s->capacity, s->promised);
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];
		const struct ebb_promise_ask *a = &s->asks[i];
		struct ebb_vm_reserve *part = own(vm);
		const uint32_t promised = !vm->sla.is_shared ? 0 :
					  a->is_promised ? asked(s, vm) :
					  a->is_kept ? part->promised_percent : 0;

		if (part->promised_percent != promised || part->is_refused != !a->is_promised)
			record(s, now, vm, a);
		part->promised_percent = promised;
		part->is_refused = !a->is_promised;
		part->short_node = a->short_node;
		part->short_percent = a->short_left / 10;
	}
}

/* ---- what is kept of them on each core ----------------------------------- */

/* Calls fn for each vCPU that is promised something on a shared thread, as long as it has room. */
static void for_each_claim(struct reserve_room *s,
			   void (*fn)(struct reserve_room *s, const struct ebb_vm *vm,
				      uint16_t vcpu, uint16_t thread))
{
	uint32_t count = 0;

	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t k = 0; vm->reserve.promised_percent && k < vm->num_vcpus; k++) {
			const uint16_t thread = vm->vcpu_shares[k].thread;

			if (thread != EBB_THREAD_NONE && count++ < EBB_RESERVE_MAX_VCPUS)
				fn(s, vm, k, thread);
		}
	}
}

static void count_claim(struct reserve_room *s, const struct ebb_vm *vm, uint16_t vcpu,
			uint16_t thread)
{
	(void)vm;
	(void)vcpu;
	s->first[thread + 1]++;
}

/* first[] counts up while claims are filled in, or read, in the same order. */
static void fill_claim(struct reserve_room *s, const struct ebb_vm *vm, uint16_t vcpu,
		       uint16_t thread)
{
	s->claims[s->first[thread]++] = (struct ebb_shortage_claim){
		.want = part_of(vm, vcpu, vm->reserve.promised_percent),
		.penalty = vm->sla.penalty,
	};
}

static void read_claim(struct reserve_room *s, const struct ebb_vm *vm, uint16_t vcpu,
		       uint16_t thread)
{
	const uint32_t keep = s->claims[s->first[thread]++].keep;

	own_vcpu(vm, vcpu)->want.keep = (uint16_t)keep;
	own(vm)->keep_permille += keep;
}

/* After first[] has counted up it says where the next thread's claims begin. */
static void rewind_first(struct reserve_room *s)
{
	for (uint16_t t = s->env->host.num_threads; t > 0; t--)
		s->first[t] = s->first[t - 1];
	s->first[0] = 0;
}

static void divide(struct reserve_room *s)
{
	const uint16_t num = s->env->host.num_threads;

	memset(s->first, 0, sizeof(s->first));
	for_each_claim(s, count_claim);
	for (uint16_t t = 0; t < num; t++)
		s->first[t + 1] += s->first[t];
	for_each_claim(s, fill_claim);
	rewind_first(s);
	for (uint16_t t = 0; t < num; t++) {
		uint32_t kept = 0;

		ebb_shortage_divide(&s->claims[s->first[t]], s->parts,
				    s->first[t + 1] - s->first[t],
				    s->env->cfg.promise.overbook_policy, EBB_PROMISE_MOST);
		for (uint32_t i = s->first[t]; i < s->first[t + 1]; i++)
			kept += s->claims[i].keep;
		s->rest[t] = (uint16_t)(1000 - kept);
	}
	for_each_claim(s, read_claim);
}

static bool is_same(const struct ebb_action_reserve *a, const struct ebb_action_reserve *b)
{
	return a->thread == b->thread && a->keep == b->keep && a->rest == b->rest &&
	       a->max == b->max;
}

/* The vCPU has neither promise nor maximum, and never had one. */
static bool is_plain(const struct ebb_vcpu_reserve *v)
{
	return !v->is_unknown && !v->want.keep && !v->want.max && !v->told.keep && !v->told.max;
}

/* ---- weights, where there are no parts of cores --------------------------- */

#define SHARES_LEAST	2u
#define SHARES_MOST	10000u

static bool must_set_shares(const struct ebb_vm *vm)
{
	return vm->reserve.shares != vm->reserve.shared || vm->reserve.is_weight_unknown;
}

/* The weight of each vCPU of the VM: the smallest of those that its cores allow. */
static uint32_t weight_of(const struct reserve_room *s, const struct ebb_vm *vm)
{
	uint32_t least = UINT32_MAX;

	for (uint16_t k = 0; k < vm->num_vcpus; k++) {
		const uint16_t t = vm->vcpu_shares[k].thread;
		uint32_t weight;

		if (t == EBB_THREAD_NONE)
			continue;
		weight = vm->reserve.promised_percent ? vm->vcpu_reserves[k].want.keep :
							s->rest[t] / s->num_others[t];
		least = weight < least ? weight : least;
	}
	return least;
}

/*
 * The VM's weight is to fall, or may be anything, and nobody has tried to change it in vain.  One
 * that is being set may be in force already.
 */
static bool is_lowering(const struct ebb_vm *vm)
{
	const struct ebb_vm_reserve *r = &vm->reserve;
	const uint32_t setting = r->shares_action ? r->sharing : r->shared;
	const uint32_t most = setting > r->shared ? setting : r->shared;

	return r->shares && !r->is_missing && !r->failures &&
	       (r->shared ? r->shares < most : r->shares != r->shared);
}

/* The VM's weight; 0: as the domain defines.  The kernel divides it among vCPUs that compute. */
static uint32_t shares_of(const struct reserve_room *s, const struct ebb_vm *vm)
{
	const uint32_t promised = vm->reserve.promised_percent * 10;
	const uint32_t weight = vm->sla.is_shared ? weight_of(s, vm) : UINT32_MAX;
	uint64_t shares = (uint64_t)weight * count_vcpus(vm);

	if (weight == UINT32_MAX)
		return 0;
	/* The smallest part times the number of vCPUs may be less than all parts together. */
	if (promised > 0 && vm->reserve.keep_permille == promised)
		shares = promised;
	if (shares < SHARES_LEAST)
		return SHARES_LEAST;
	return shares < SHARES_MOST ? (uint32_t)shares : SHARES_MOST;
}

static void set_shares(struct reserve_room *s)
{
	bool has_promises = false;

	s->num_lowering = 0;
	memset(s->num_others, 0, sizeof(s->num_others));
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		has_promises = has_promises || vm->reserve.promised_percent;
		for (uint16_t k = 0; !vm->reserve.promised_percent && k < vm->num_vcpus; k++)
			if (vm->vcpu_shares[k].thread != EBB_THREAD_NONE)
				s->num_others[vm->vcpu_shares[k].thread]++;
	}
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		own(vm)->shares = has_promises ? shares_of(s, vm) : 0;
		s->num_lowering += is_lowering(vm);
		if (must_set_shares(vm))
			core_mark(s->env, vm);
	}
}

/* False: *out has no space. */
static bool act_shares(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm,
		       struct ebb_actions *out)
{
	struct ebb_vm_reserve *part = own(vm);
	struct ebb_action *a;

	if (part->shares_action || !must_set_shares(vm))
		return true;
	/* reserve_shares_done() marks it again. */
	if (s->num_lowering > 0 && !is_lowering(vm))
		return true;
	if (now < part->retry_at) {
		core_wake_at(vm, part->retry_at);
		return true;
	}
	a = core_emit(out, vm, EBB_ACTION_SHARES);
	if (!a)
		return false;
	a->id = part->shares_action = core_action_id(s->env, vm, 0);
	a->u.shares = part->sharing = part->shares;
	return true;
}

/* A VM's weight has changed, or could not be changed: those that waited for it may be next. */
static void recount(struct reserve_room *s, bool was_lowering, const struct ebb_vm *vm)
{
	s->num_lowering = s->num_lowering + is_lowering(vm) - was_lowering;
	for (size_t i = 0; s->num_lowering == 0 && i < s->env->num_active; i++)
		if (must_set_shares(s->env->active[i]))
			core_mark(s->env, s->env->active[i]);
}

static void record_missing(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm)
{
	if (!vm->reserve.is_missing)
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "this host can not keep promises of CPU time");
	own(vm)->is_missing = true;
}

void reserve_shares_done(struct reserve_room *s, usec_t now, const struct ebb_vm *vm,
			 const struct ebb_fact_action_done *f)
{
	struct ebb_vm_reserve *part = own(vm);
	const bool was_lowering = is_lowering(vm);

	if (f->id != part->shares_action)
		return;
	part->shares_action = 0;
	core_mark(s->env, vm);
	/* A host without weights has none in force that an earlier agent set. */
	if (f->err == -EOPNOTSUPP && part->is_weight_unknown && part->sharing == 0) {
		part->is_weight_unknown = false;
	} else if (f->err == -EOPNOTSUPP) {
		record_missing(s, now, vm);
	} else if (f->err < 0) {
		part->failures++;
		part->retry_at = now + core_backoff(s->env, part->failures);
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "its weight could not be set: %s (%u in a row)", strerror(-f->err),
			  part->failures);
	} else {
		part->failures = 0;
		part->is_weight_unknown = false;
		part->shared = part->sharing;
	}
	recount(s, was_lowering, vm);
}

/* ---- the whole ------------------------------------------------------------ */

void reserve_changed(struct reserve_room *s)
{
	s->is_stale = true;
}

void reserve_settle(struct reserve_room *s, usec_t now, bool is_stale)
{
	if (!is_stale && !s->is_stale)
		return;
	s->is_stale = false;
	admit(s, now);
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		own(vm)->keep_permille = 0;
		for (uint16_t k = 0; k < vm->num_vcpus; k++)
			own_vcpu(vm, k)->want.keep = 0;
	}
	divide(s);
	if (!s->env->host.is_emulated) {
		set_shares(s);
		return;
	}
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t k = 0; vm->sla.is_shared && k < vm->num_vcpus; k++) {
			struct ebb_vcpu_reserve *v = own_vcpu(vm, k);
			const uint32_t max = part_of(vm, k, vm->sla.max_percent);

			v->want.vcpu = k;
			v->want.thread = vm->vcpu_shares[k].thread;
			v->want.rest = v->want.thread == EBB_THREAD_NONE ?
					       0 : s->rest[v->want.thread];
			/* A maximum of less than a thousandth is none that can be kept. */
			v->want.max = vm->sla.max_percent == 0 || max >= 1000 ? 0 :
				      max ? (uint16_t)max : 1;
			if (!is_plain(v) && !is_same(&v->want, &v->told))
				core_mark(s->env, vm);
		}
	}
}

/* ---- actions ------------------------------------------------------------- */

bool reserve_act(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm,
		 struct ebb_actions *out)
{
	if (!vm->sla.is_shared || vm->reserve.is_missing)
		return true;
	if (!s->env->host.is_emulated)
		return act_shares(s, now, vm, out);
	for (uint16_t k = 0; k < vm->num_vcpus; k++) {
		struct ebb_vcpu_reserve *v = own_vcpu(vm, k);
		struct ebb_action *a;

		if (v->action || is_plain(v) ||
		    (is_same(&v->want, &v->told) && !v->is_unknown) ||
		    v->want.thread == EBB_THREAD_NONE || vm->vcpus[k].place_action ||
		    vm->vcpus[k].placed != v->want.thread)
			continue;
		if (now < v->retry_at) {
			core_wake_at(vm, v->retry_at);
			continue;
		}
		a = core_emit(out, vm, EBB_ACTION_RESERVE);
		if (!a)
			return false;
		a->id = v->action = core_action_id(s->env, vm, k);
		a->u.reserve = v->telling = v->want;
	}
	return true;
}

void reserve_done(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		  const struct ebb_fact_action_done *f)
{
	struct ebb_vcpu_reserve *v = own_vcpu(vm, vcpu);

	if (f->id != v->action)
		return;
	v->action = 0;
	core_mark(s->env, vm);
	if (f->err == -EOPNOTSUPP) {
		record_missing(s, now, vm);
		return;
	}
	if (f->err < 0) {
		v->failures++;
		v->retry_at = now + core_backoff(s->env, v->failures);
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "the promise of vCPU %u could not be put in force: %s (%u in a row)",
			  vcpu, strerror(-f->err), v->failures);
		return;
	}
	v->failures = 0;
	v->is_unknown = false;
	v->told = v->telling;
}

void reserve_node(const struct reserve_room *s, uint16_t host_node, struct ebb_promise_node *ret)
{
	*ret = (struct ebb_promise_node){
		.most_percent = (uint32_t)s->num_threads[host_node] * EBB_PROMISE_MOST / 10,
		.allowed_percent = (uint32_t)(s->capacity[host_node] / 10),
		.promised_percent = (uint32_t)(s->promised[host_node] / 10),
	};
}
