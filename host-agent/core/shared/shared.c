// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * VMs that share cores.  balance.c decides.  This file tells it the loads of vCPUs, and turns its
 * decisions into the thread that each vCPU is to run on, throttles and records.
 *
 * Their groups are the nodes of the guest, and stay on the nodes of the host that the SLA names,
 * as their memory is there.  A vCPU that is found on a shared core of its node stays there when the
 * agent starts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/shared/shared.h"

void shared_create(struct shared_room *s)
{
	const struct ebb_pressure *p = &s->env->cfg.pressure;
	struct ebb_share_config *cfg = &s->share.cfg;

	s->share.cores = s->cores;
	s->share.vms = s->vms;
	s->share.vcpus = s->vcpus;
	for (uint16_t t = 0; t < s->env->host.num_threads; t++) {
		const struct ebb_core *core = &s->env->host.cores[s->env->host.threads[t].core];

		s->core_of[t] = EBB_SHARE_NONE;
		if (!core->is_shared)
			continue;
		s->core_of[t] = s->share.num_cores;
		s->cores[s->share.num_cores++] = (struct ebb_share_core){
			.thread = t, .node = core->node, .first = EBB_SHARE_NONE,
		};
	}
	ebb_share_config_default(cfg);
	cfg->window = p->hot_window_s * EBB_USEC_PER_SEC;
	cfg->hot = (uint16_t)(p->core_hot_percent * 10);
	/* A part of what makes a core hot, 75 of 85 by default. */
	cfg->target = (uint16_t)(cfg->hot * 15 / 17);
	cfg->host_hot = (uint16_t)(p->host_hot_percent * 10);
}

/* ---- loads for balance.c ------------------------------------------------- */

/* The room's own parts of a VM and of a vCPU. */
static struct ebb_vm_share *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_share *)&vm->share;
}

static struct ebb_vcpu_share *own_vcpu(const struct ebb_vm *vm, uint16_t vcpu)
{
	return (struct ebb_vcpu_share *)&vm->vcpu_shares[vcpu];
}

static uint16_t core_at(const struct shared_room *s, const struct ebb_vm *vm, uint16_t vcpu,
			uint16_t thread)
{
	if (thread == EBB_THREAD_NONE ||
	    s->env->host.threads[thread].node != core_host_node(vm, vcpu))
		return EBB_SHARE_NONE;
	return s->core_of[thread];
}

/*
 * The core on which a vCPU counts.  Placing its thread may take long, or fail: at a look it counts
 * where it runs, so that a core is not taken for idle that it has not left.
 */
static uint16_t core_of(const struct shared_room *s, const struct ebb_vm *vm, uint16_t vcpu,
			bool is_look)
{
	const uint16_t runs_on = core_at(s, vm, vcpu, vm->vcpus[vcpu].placed);
	const uint16_t goes_to = core_at(s, vm, vcpu, vm->vcpu_shares[vcpu].thread);

	if (goes_to == EBB_SHARE_NONE || (is_look && runs_on != EBB_SHARE_NONE))
		return runs_on;
	return goes_to;
}

/* A promise that was refused binds nobody; the one before it may hold. */
static uint16_t reserve_of(const struct ebb_vm *vm, uint32_t num_vcpus)
{
	const uint32_t percent = vm->reserve.is_refused ? vm->reserve.promised_percent :
							  vm->sla.reserve_percent;

	return num_vcpus == 0 ? 0 : (uint16_t)(percent * 10 / num_vcpus);
}

static void fill_vcpu(struct shared_room *s, const struct ebb_vm *vm, uint16_t vcpu, bool is_look)
{
	const struct ebb_vcpu_share *part = &vm->vcpu_shares[vcpu];

	s->ids[s->share.num_vcpus] = vcpu;
	s->vcpus[s->share.num_vcpus++] = (struct ebb_share_vcpu){
		.vm = s->share.num_vms, .group = vm->vcpus[vcpu].node,
		.use = part->use, .wait = part->wait, .core = core_of(s, vm, vcpu, is_look),
	};
}

static void fill(struct shared_room *s, bool is_look)
{
	s->share.num_vms = 0;
	s->share.num_vcpus = 0;
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];
		struct ebb_share_vm *out = &s->vms[s->share.num_vms];

		/* Those that are too many stay where they are. */
		if (!vm->sla.is_shared ||
		    s->share.num_vcpus + vm->num_vcpus > EBB_SHARE_MAX_VCPUS)
			continue;
		*out = (struct ebb_share_vm){
			.weight = vm->sla.weight, .first = s->share.num_vcpus,
			.num_groups = vm->sla.num_nodes,
			.moved_at = vm->share.moved_at, .moved_load = vm->share.moved_load,
			.throttle = vm->share.is_missing ? 0 : vm->share.throttle,
			.throttle_load = vm->share.throttle_load,
		};
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			out->nodes[g] = vm->sla.nodes[g].host_node;
		for (uint16_t k = 0; k < vm->num_vcpus; k++)
			if (vm->vcpus[k].is_startup)
				fill_vcpu(s, vm, k, is_look);
		out->num_vcpus = s->share.num_vcpus - out->first;
		for (uint32_t k = out->first; k < s->share.num_vcpus; k++)
			s->vcpus[k].reserve = reserve_of(vm, out->num_vcpus);
		s->of[s->share.num_vms++] = vm;
	}
}

static uint16_t permille(uint64_t usec, usec_t window)
{
	return (uint16_t)(usec < window ? usec * 1000 / window : 1000);
}

/*
 * Thousandths of a core.  An emulated core is a part of a real CPU, so a thread that uses all of it
 * runs for that part of the time only; but as on any core it is ready all the time.
 */
static void set_load(const struct shared_room *s, struct ebb_vcpu_share *v, usec_t ran,
		     usec_t waited, usec_t window)
{
	const uint32_t share = s->env->host.is_emulated ? s->env->host.share_permille : 1000;
	const uint16_t ready = permille(ran + waited, window);

	v->use = permille(ran * 1000 / share, window);
	v->wait = ready > v->use ? ready - v->use : 0;
}

/* The loads of the window that is over, from the times of threads at its begin and end. */
static void end_window(struct shared_room *s)
{
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t k = 0; vm->sla.is_shared && k < vm->num_vcpus; k++) {
			const struct ebb_vcpu_times *now = &vm->vcpu_times[k];
			struct ebb_vcpu_share *v = own_vcpu(vm, k);

			if (now->at <= v->window_at)
				continue;
			if (v->window_at && now->cpu_usec >= v->window_cpu_usec &&
			    now->wait_usec >= v->window_wait_usec)
				set_load(s, v, now->cpu_usec - v->window_cpu_usec,
					 now->wait_usec - v->window_wait_usec,
					 now->at - v->window_at);
			v->window_at = now->at;
			v->window_cpu_usec = now->cpu_usec;
			v->window_wait_usec = now->wait_usec;
		}
	}
}

/* ---- decisions of balance.c ---------------------------------------------- */

/* The VMs that used a core, the busiest first, as far as there is room. */
static void who(const struct shared_room *s, uint16_t core, char *text, size_t size)
{
	uint32_t below = UINT32_MAX;
	size_t len;

	text[0] = '\0';
	for (int n = 0; n < 4; n++) {
		uint32_t best = UINT32_MAX;
		const char *name;

		for (uint32_t i = 0; i < s->share.num_vcpus; i++) {
			const struct ebb_share_vcpu *v = &s->vcpus[i];
			/* The index breaks ties, so that each is named once. */
			const uint32_t rank = v->use * EBB_SHARE_MAX_VCPUS + i;

			if (v->from == core && v->use > 0 && rank < below &&
			    (best == UINT32_MAX || rank > best))
				best = rank;
		}
		if (best == UINT32_MAX)
			return;
		below = best;
		len = strlen(text);
		name = s->of[s->vcpus[best % EBB_SHARE_MAX_VCPUS].vm]->name;
		snprintf(text + len, size - len, "%s%s %u%%", n ? ", " : "",
			 ebb_text_label(name, 24).text, best / EBB_SHARE_MAX_VCPUS / 10);
	}
}

static void record_move(struct shared_room *s, usec_t now, const struct ebb_share_vm *out,
			const struct ebb_vm *vm)
{
	uint32_t moved = 0, worst = UINT32_MAX;
	struct ebb_record *r;
	char names[80];

	for (uint32_t i = out->first; i < out->first + out->num_vcpus; i++) {
		const struct ebb_share_vcpu *v = &s->vcpus[i];

		if (v->core == v->from)
			continue;
		moved++;
		if (worst == UINT32_MAX ||
		    s->cores[v->from].use > s->cores[s->vcpus[worst].from].use)
			worst = i;
	}
	if (worst == UINT32_MAX)
		return;
	who(s, s->vcpus[worst].from, names, sizeof(names));
	r = core_record(s->env, vm, now, EBB_EVENT_REBALANCE);
	r->node = s->vcpus[worst].group;
	r->cpus = (uint16_t)moved;
	core_text(r->text,
		  "%u vCPUs change cores, vCPU %u from thread %u (%u%% used: %.60s) to %u "
		  "(then %u%%)",
		  moved, s->ids[worst], s->cores[s->vcpus[worst].from].thread,
		  s->cores[s->vcpus[worst].from].use / 10, names,
		  s->cores[s->vcpus[worst].core].thread,
		  s->cores[s->vcpus[worst].core].demand / 10);
	own(vm)->num_moves++;
}

static void take_over(struct shared_room *s)
{
	for (uint16_t m = 0; m < s->share.num_vms; m++) {
		const struct ebb_share_vm *out = &s->vms[m];
		const struct ebb_vm *vm = s->of[m];

		for (uint32_t i = out->first; i < out->first + out->num_vcpus; i++) {
			struct ebb_vcpu_share *v = own_vcpu(vm, s->ids[i]);
			const uint16_t thread = s->vcpus[i].core == EBB_SHARE_NONE ?
							EBB_THREAD_NONE :
							s->cores[s->vcpus[i].core].thread;

			if (v->thread == thread)
				continue;
			v->thread = thread;
			core_touch(s->env, vm);
		}
	}
}

static void take_state(struct shared_room *s, usec_t now)
{
	for (uint16_t m = 0; m < s->share.num_vms; m++) {
		struct ebb_share_vm *out = &s->vms[m];
		const struct ebb_vm *vm = s->of[m];
		struct ebb_vm_share *part = own(vm);

		/* The host cannot throttle it: it uses what it wants. */
		if (part->is_missing)
			out->throttle = 0;
		part->moved_at = out->moved_at;
		part->moved_load = out->moved_load;
		part->load = out->load;
		part->throttle_load = out->throttle_load;
		if (out->is_moved)
			record_move(s, now, out, vm);
		if (part->throttle == out->throttle)
			continue;
		part->throttle = out->throttle;
		core_touch(s->env, vm);
	}
}

bool shared_load_of(const struct shared_room *s, uint16_t i, struct shared_load *ret)
{
	const struct ebb_share_core *core = &s->cores[i];
	const bool is_shared = core->num_active > 1 || core->is_hot;

	if (s->env->host.threads[core->thread].rank > 0)
		return false;
	ret->core = s->env->host.threads[core->thread].core;
	ret->level = is_shared ? core->level : 0;
	ret->used = is_shared ? core->use : 0;
	who(s, i, ret->who, sizeof(ret->who));
	return true;
}

void shared_throttled(const struct shared_room *s, bool ret[EBB_MAX_NODES])
{
	memset(ret, 0, EBB_MAX_NODES * sizeof(ret[0]));
	for (uint16_t m = 0; m < s->share.num_vms; m++)
		for (uint16_t g = 0; s->vms[m].throttle && g < s->vms[m].num_groups; g++)
			ret[s->vms[m].nodes[g]] = true;
}

static void look(struct shared_room *s, usec_t now)
{
	end_window(s);
	fill(s, true);
	ebb_share_look(&s->share, now);
	s->num_looks++;
	s->num_moved_vms += s->share.num_moved_vms;
	s->num_moved_vcpus += s->share.num_moves;
	s->cost_usec += s->share.cost_usec;
	take_over(s);
	take_state(s, now);
}

/* One more look after the last VM has gone, so that no core stays marked. */
static void set_look_at(struct shared_room *s, usec_t now)
{
	if (s->share.num_vms == 0 && !s->is_hot && s->share.num_hot == 0)
		s->look_at = 0;
	else if (s->look_at == 0)
		s->look_at = now + s->share.cfg.window;
}

bool shared_settle(struct shared_room *s, usec_t now)
{
	const bool is_look = s->look_at && now >= s->look_at;

	if (s->share.num_cores == 0)
		return false;
	if (is_look) {
		look(s, now);
		s->look_at = now + s->share.cfg.window;
	} else if (s->is_stale) {
		fill(s, false);
		ebb_share_place(&s->share);
		take_over(s);
	}
	s->is_stale = false;
	if (!is_look)
		set_look_at(s, now);
	return is_look;
}

void shared_looked(struct shared_room *s, usec_t now)
{
	if (s->share.is_hot != s->is_hot) {
		s->is_hot = s->share.is_hot;
		core_text(core_record(s->env, NULL, now, EBB_EVENT_REBALANCE)->text,
			  "the host is hot%s: %u%% of the shared cores used, on %u nothing helps",
			  s->is_hot ? "" : " no more", s->share.permille / 10,
			  s->share.num_stuck);
	}
	set_look_at(s, now);
}

usec_t shared_next_at(const struct shared_room *s)
{
	return s->look_at ? s->look_at : EBB_TIME_NEVER;
}

void shared_define(const struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		*own_vcpu(vm, i) = (struct ebb_vcpu_share){ .thread = EBB_THREAD_NONE };
}

void shared_start(struct shared_room *s, const struct ebb_vm *vm)
{
	/* Whether an agent that is gone, or that of another host, has throttled it is not known. */
	*own(vm) = (struct ebb_vm_share){
		.throttled = vm->sla.is_shared && (!s->env->is_loaded || vm->is_incoming) ?
				     EBB_SHARE_NONE : 0,
	};
	s->is_stale = true;
}

void shared_stop(struct shared_room *s, const struct ebb_vm *vm)
{
	shared_define(vm);
	s->is_stale = true;
}

/* ---- throttles ----------------------------------------------------------- */

/* The lower of the throttle of the last look and the SLA's maximum, in thousandths; 0: no limit. */
static uint16_t limit_of(const struct shared_room *s, const struct ebb_vm *vm)
{
	uint32_t limit = vm->share.throttle ? vm->share.throttle : 1000, count = 0, max;

	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		count += vm->vcpus[k].is_startup;
	/* On an emulated host the room of promises sees to it. */
	if (!s->env->host.is_emulated && vm->sla.is_shared && vm->sla.max_percent && count) {
		/* Upwards: what is promised may be as much as the maximum. */
		max = (vm->sla.max_percent * 10 + count - 1) / count;
		limit = max < limit ? max : limit;
		limit = limit ? limit : 1;
	}
	return limit < 1000 ? (uint16_t)limit : vm->share.throttle;
}

bool shared_act(const struct shared_room *s, usec_t now, const struct ebb_vm *vm,
			   struct ebb_actions *out)
{
	struct ebb_vm_share *part = own(vm);
	const uint16_t limit = limit_of(s, vm);
	struct ebb_action *a;

	if (part->throttle_action || part->is_missing || limit == part->throttled)
		return true;
	if (now < part->retry_at) {
		core_wake_at(vm, part->retry_at);
		return true;
	}
	a = core_emit(out, vm, EBB_ACTION_THROTTLE);
	if (!a)
		return false;
	a->id = part->throttle_action = core_action_id(s->env, vm, 0);
	a->u.permille = part->throttling = limit;
	return true;
}

void shared_done(const struct shared_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_action_done *f)
{
	struct ebb_vm_share *part = own(vm);
	const bool was_unknown = part->throttled == EBB_SHARE_NONE;
	struct ebb_record *r;

	if (f->id != part->throttle_action)
		return;
	part->throttle_action = 0;
	core_touch(s->env, vm);
	if (f->err < 0 && f->err != -EOPNOTSUPP) {
		part->failures++;
		part->retry_at = now + core_backoff(s->env, part->failures);
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "throttling failed: %s (%u in a row)", strerror(-f->err), part->failures);
		return;
	}
	part->failures = 0;
	part->is_missing = f->err == -EOPNOTSUPP;
	part->throttled = part->is_missing ? 0 : part->throttling;
	if (was_unknown && !part->throttled && !part->is_missing)
		return;
	r = core_record(s->env, vm, now, EBB_EVENT_THROTTLE);
	r->cpus = part->throttled ? part->throttled : 1000;
	if (part->is_missing)
		core_text(r->text, "this host can not limit what vCPUs use");
	else if (part->throttled && part->throttled != part->throttle)
		core_text(r->text, "each vCPU may use %u.%u%% of a core: its max-percent is %u",
			  part->throttled / 10, part->throttled % 10, vm->sla.max_percent);
	else if (part->throttled)
		core_text(r->text,
			  "each vCPU may use %u%% of a core, its share: its cores are hot and no "
			  "change of places helps", part->throttled / 10);
	else
		core_text(r->text, "no limit any more");
}

/* ---- reading ------------------------------------------------------------- */

bool shared_thread(const struct shared_room *s, uint16_t thread, struct ebb_shared_thread *ret)
{
	const struct ebb_share_core *c;

	if (thread >= s->env->host.num_threads || s->core_of[thread] == EBB_SHARE_NONE)
		return false;
	c = &s->cores[s->core_of[thread]];
	*ret = (struct ebb_shared_thread){
		.use = c->use, .demand = c->demand, .num_vcpus = c->num_vcpus,
		.num_active = c->num_active, .is_hot = c->is_hot, .is_stuck = c->is_stuck,
	};
	return true;
}

void shared_totals(const struct shared_room *s, struct ebb_shared_totals *ret)
{
	*ret = (struct ebb_shared_totals){
		.num_threads = s->share.num_cores, .num_vms = s->share.num_vms,
		.num_vcpus = s->share.num_vcpus, .permille = s->share.permille,
		.is_hot = s->is_hot, .num_hot = s->share.num_hot,
		.num_stuck = s->share.num_stuck, .num_looks = s->num_looks,
		.num_moved_vms = s->num_moved_vms, .num_moved_vcpus = s->num_moved_vcpus,
		.cost_usec = s->cost_usec,
	};
	for (size_t i = 0; i < s->env->num_active; i++)
		ret->num_throttled += s->env->active[i]->share.throttled > 0 &&
				      s->env->active[i]->share.throttled != EBB_SHARE_NONE;
}
