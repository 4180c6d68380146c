// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * VMs that share cores.  share.c decides; here is what it is told of the VMs, and what becomes of
 * what it says: the thread that each vCPU is to run on, throttles, records.
 *
 * Their groups are the nodes of the guest, and stay on the nodes of the host that the SLA names,
 * as their memory is there.  A vCPU that is found on a shared core of its node stays there when the
 * agent starts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/internal.h"

void core_shared_create(struct ebb_state *s)
{
	struct core_shared *sh = &s->shared;
	const struct ebb_pressure *p = &s->cfg.pressure;
	struct ebb_share_config *cfg = &sh->share.cfg;

	sh->share.cores = sh->cores;
	sh->share.vms = sh->vms;
	sh->share.vcpus = sh->vcpus;
	for (uint16_t t = 0; t < s->host.num_threads; t++) {
		const struct ebb_core *core = &s->host.cores[s->host.threads[t].core];

		sh->core_of[t] = EBB_SHARE_NONE;
		if (!core->is_shared)
			continue;
		sh->core_of[t] = sh->share.num_cores;
		sh->cores[sh->share.num_cores++] = (struct ebb_share_core){
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

/* ---- what share.c is told ------------------------------------------------ */

static uint16_t core_at(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t vcpu,
			uint16_t thread)
{
	if (thread == EBB_THREAD_NONE || s->host.threads[thread].node != core_host_node(vm, vcpu))
		return EBB_SHARE_NONE;
	return s->shared.core_of[thread];
}

static void fill_vcpu(struct ebb_state *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	struct core_shared *sh = &s->shared;
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];
	const uint16_t core = core_at(s, vm, vcpu, v->shared);

	sh->ids[sh->share.num_vcpus] = vcpu;
	sh->vcpus[sh->share.num_vcpus++] = (struct ebb_share_vcpu){
		.vm = sh->share.num_vms, .group = v->node, .use = v->use, .wait = v->wait,
		.core = core != EBB_SHARE_NONE ? core : core_at(s, vm, vcpu, v->placed),
	};
}

static void fill(struct ebb_state *s)
{
	struct core_shared *sh = &s->shared;

	sh->share.num_vms = 0;
	sh->share.num_vcpus = 0;
	for (size_t i = 0; i < s->num_active; i++) {
		struct ebb_vm *vm = s->active[i];
		struct ebb_share_vm *out = &sh->vms[sh->share.num_vms];

		/* Those that are too many stay where they are. */
		if (!vm->sla.is_shared ||
		    sh->share.num_vcpus + vm->num_vcpus > EBB_SHARE_MAX_VCPUS)
			continue;
		*out = (struct ebb_share_vm){
			.weight = vm->sla.weight, .first = sh->share.num_vcpus,
			.num_groups = vm->sla.num_nodes, .is_bound = true,
			.moved_at = vm->share.moved_at, .moved_load = vm->share.moved_load,
			.throttle = vm->share.is_missing ? 0 : vm->share.throttle,
			.throttle_load = vm->share.throttle_load,
		};
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			out->nodes[g] = vm->sla.nodes[g].host_node;
		for (uint16_t k = 0; k < vm->num_vcpus; k++)
			if (vm->vcpus[k].is_startup)
				fill_vcpu(s, vm, k);
		out->num_vcpus = sh->share.num_vcpus - out->first;
		sh->of[sh->share.num_vms++] = vm;
	}
}

/* Thousandths of a core; of an emulated one, which is a part of a real CPU. */
static uint16_t permille(const struct ebb_state *s, uint64_t usec, usec_t window)
{
	const uint32_t share = s->host.is_emulated ? s->host.share_permille : 1000;
	const uint64_t value = usec * 1000 / window * 1000 / share;

	return (uint16_t)(value < 1000 ? value : 1000);
}

/* From what the threads have used: what they did in the window that is over. */
static void end_window(struct ebb_state *s)
{
	for (size_t i = 0; i < s->num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		for (uint16_t k = 0; vm->sla.is_shared && k < vm->num_vcpus; k++) {
			struct ebb_vcpu *v = &vm->vcpus[k];

			if (v->cpu_at <= v->window_at)
				continue;
			if (v->window_at && v->cpu_usec >= v->window_cpu_usec &&
			    v->wait_usec >= v->window_wait_usec) {
				const usec_t window = v->cpu_at - v->window_at;

				v->use = permille(s, v->cpu_usec - v->window_cpu_usec, window);
				v->wait = permille(s, v->wait_usec - v->window_wait_usec, window);
			}
			v->window_at = v->cpu_at;
			v->window_cpu_usec = v->cpu_usec;
			v->window_wait_usec = v->wait_usec;
		}
	}
}

/* ---- what becomes of it -------------------------------------------------- */

/* Who used a core, the most first, as far as there is room. */
static void who(const struct ebb_state *s, uint16_t core, char *text, size_t size)
{
	const struct core_shared *sh = &s->shared;
	uint32_t below = UINT32_MAX;
	size_t len;

	text[0] = '\0';
	for (int n = 0; n < 4; n++) {
		uint32_t best = UINT32_MAX;
		const char *name;

		for (uint32_t i = 0; i < sh->share.num_vcpus; i++) {
			const struct ebb_share_vcpu *v = &sh->vcpus[i];
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
		name = sh->of[sh->vcpus[best % EBB_SHARE_MAX_VCPUS].vm]->name;
		snprintf(text + len, size - len, "%s%s %u%%", n ? ", " : "",
			 ebb_text_label(name, 24).text, best / EBB_SHARE_MAX_VCPUS / 10);
	}
}

static void record_move(struct ebb_state *s, usec_t now, const struct ebb_share_vm *out,
			struct ebb_vm *vm)
{
	struct core_shared *sh = &s->shared;
	uint32_t moved = 0, worst = UINT32_MAX;
	struct ebb_record *r;
	char names[80];

	for (uint32_t i = out->first; i < out->first + out->num_vcpus; i++) {
		const struct ebb_share_vcpu *v = &sh->vcpus[i];

		if (v->core == v->from)
			continue;
		moved++;
		if (worst == UINT32_MAX ||
		    sh->cores[v->from].use > sh->cores[sh->vcpus[worst].from].use)
			worst = i;
	}
	if (worst == UINT32_MAX)
		return;
	who(s, sh->vcpus[worst].from, names, sizeof(names));
	r = core_record(s, vm, now, EBB_EVENT_REBALANCE);
	r->node = sh->vcpus[worst].group;
	r->cpus = (uint16_t)moved;
	core_text(r->text,
		  "%u vCPUs change cores, vCPU %u from thread %u (%u%% used: %.60s) to %u "
		  "(then %u%%)",
		  moved, sh->ids[worst], sh->cores[sh->vcpus[worst].from].thread,
		  sh->cores[sh->vcpus[worst].from].use / 10, names,
		  sh->cores[sh->vcpus[worst].core].thread,
		  sh->cores[sh->vcpus[worst].core].demand / 10);
	vm->share.num_moves++;
}

static void take_over(struct ebb_state *s)
{
	struct core_shared *sh = &s->shared;

	for (uint16_t m = 0; m < sh->share.num_vms; m++) {
		const struct ebb_share_vm *out = &sh->vms[m];
		struct ebb_vm *vm = sh->of[m];

		for (uint32_t i = out->first; i < out->first + out->num_vcpus; i++) {
			struct ebb_vcpu *v = &vm->vcpus[sh->ids[i]];
			const uint16_t thread = sh->vcpus[i].core == EBB_SHARE_NONE ?
							EBB_THREAD_NONE :
							sh->cores[sh->vcpus[i].core].thread;

			if (v->shared == thread)
				continue;
			v->shared = thread;
			core_touch(s, vm);
		}
	}
}

static void take_state(struct ebb_state *s, usec_t now)
{
	struct core_shared *sh = &s->shared;

	for (uint16_t m = 0; m < sh->share.num_vms; m++) {
		struct ebb_share_vm *out = &sh->vms[m];
		struct ebb_vm *vm = sh->of[m];
		struct ebb_vm_share *own = &vm->share;

		/* What is not held back uses what it wants, and no more is to be made of that. */
		if (own->is_missing)
			out->throttle = 0;
		own->moved_at = out->moved_at;
		own->moved_load = out->moved_load;
		own->load = out->load;
		own->throttle_load = out->throttle_load;
		if (out->is_moved)
			record_move(s, now, out, vm);
		if (own->throttle == out->throttle)
			continue;
		own->throttle = out->throttle;
		core_touch(s, vm);
	}
}

static void tell_violations(struct ebb_state *s, usec_t now)
{
	const struct core_shared *sh = &s->shared;
	bool is_throttled[EBB_MAX_NODES] = { false };
	char names[80];

	for (uint16_t c = 0; c < sh->share.num_cores; c++) {
		const struct ebb_share_core *core = &sh->cores[c];
		const bool is_shared = core->num_active > 1 || core->is_hot;

		/* A violation is of a core; its first thread stands for it. */
		if (s->host.threads[core->thread].rank > 0)
			continue;
		who(s, c, names, sizeof(names));
		core_violation_core(s, now, s->host.threads[core->thread].core,
				    is_shared ? core->use : 0, names);
	}
	for (uint16_t m = 0; m < sh->share.num_vms; m++)
		for (uint16_t g = 0; sh->vms[m].throttle && g < sh->vms[m].num_groups; g++)
			is_throttled[sh->vms[m].nodes[g]] = true;
	for (uint16_t h = 0; h < s->host.num_nodes; h++)
		core_violation_throttle(s, h, is_throttled[h]);
}

static void record_hot(struct ebb_state *s, usec_t now)
{
	struct core_shared *sh = &s->shared;

	if (sh->share.is_hot == sh->is_hot)
		return;
	sh->is_hot = sh->share.is_hot;
	core_text(core_record(s, NULL, now, EBB_EVENT_REBALANCE)->text,
		  "the host is hot%s: %u%% of the shared cores used, on %u nothing helps",
		  sh->is_hot ? "" : " no more", sh->share.permille / 10, sh->share.num_stuck);
}

static void look(struct ebb_state *s, usec_t now)
{
	struct core_shared *sh = &s->shared;

	end_window(s);
	fill(s);
	ebb_share_look(&sh->share, now);
	sh->num_looks++;
	sh->num_moved_vms += sh->share.num_moved_vms;
	sh->num_moved_vcpus += sh->share.num_moves;
	sh->cost_usec += sh->share.cost_usec;
	take_over(s);
	take_state(s, now);
	tell_violations(s, now);
	record_hot(s, now);
}

usec_t core_shared_settle(struct ebb_state *s, usec_t now)
{
	struct core_shared *sh = &s->shared;

	if (sh->share.num_cores == 0)
		return EBB_TIME_NEVER;
	if (sh->look_at && now >= sh->look_at) {
		look(s, now);
		sh->is_stale = false;
		sh->look_at = now + sh->share.cfg.window;
	} else if (sh->is_stale) {
		fill(s);
		ebb_share_place(&sh->share);
		take_over(s);
		sh->is_stale = false;
	}
	/* One more look after the last has gone, so that no core stays marked. */
	if (sh->share.num_vms == 0 && !sh->is_hot && sh->share.num_hot == 0)
		sh->look_at = 0;
	else if (sh->look_at == 0)
		sh->look_at = now + sh->share.cfg.window;
	return sh->look_at ? sh->look_at : EBB_TIME_NEVER;
}

/* ---- throttles ----------------------------------------------------------- */

bool core_shared_reconcile(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			   struct ebb_actions *out)
{
	struct ebb_vm_share *own = &vm->share;
	struct ebb_action *a;

	if (own->throttle_action || own->is_missing || own->throttle == own->throttled)
		return true;
	if (now < own->retry_at) {
		vm->work->wake_at = core_sooner(vm->work->wake_at, own->retry_at);
		return true;
	}
	a = core_emit(out, vm, EBB_ACTION_THROTTLE);
	if (!a)
		return false;
	a->id = own->throttle_action = core_action_id(s, vm, 0);
	a->u.permille = own->throttling = own->throttle;
	return true;
}

bool core_shared_action_done(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint64_t id,
			     int err)
{
	struct ebb_vm_share *own = &vm->share;
	const bool was_unknown = own->throttled == EBB_SHARE_NONE;
	struct ebb_record *r;

	if (id != own->throttle_action)
		return false;
	own->throttle_action = 0;
	core_touch(s, vm);
	if (err < 0 && err != -EOPNOTSUPP) {
		own->failures++;
		own->retry_at = now + core_backoff(s, own->failures);
		core_text(core_record(s, vm, now, EBB_EVENT_ERROR)->text,
			  "throttling failed: %s (%u in a row)", strerror(-err), own->failures);
		return true;
	}
	own->failures = 0;
	own->is_missing = err == -EOPNOTSUPP;
	own->throttled = own->is_missing ? 0 : own->throttling;
	if (was_unknown && !own->throttled && !own->is_missing)
		return true;
	r = core_record(s, vm, now, EBB_EVENT_THROTTLE);
	r->cpus = own->throttled ? own->throttled : 1000;
	if (own->is_missing)
		core_text(r->text, "this host can not limit what vCPUs use");
	else if (own->throttled)
		core_text(r->text,
			  "each vCPU may use %u%% of a core, its share: its cores are hot and no "
			  "change of places helps", own->throttled / 10);
	else
		core_text(r->text, "no limit any more");
	return true;
}

/* ---- reading ------------------------------------------------------------- */

bool ebb_state_shared_thread(const struct ebb_state *s, uint16_t thread,
			     struct ebb_shared_thread *ret)
{
	const struct ebb_share_core *c;

	if (thread >= s->host.num_threads || s->shared.core_of[thread] == EBB_SHARE_NONE)
		return false;
	c = &s->shared.cores[s->shared.core_of[thread]];
	*ret = (struct ebb_shared_thread){
		.use = c->use, .demand = c->demand, .num_vcpus = c->num_vcpus,
		.num_active = c->num_active, .is_hot = c->is_hot, .is_stuck = c->is_stuck,
	};
	return true;
}

void ebb_state_shared_totals(const struct ebb_state *s, struct ebb_shared_totals *ret)
{
	const struct core_shared *sh = &s->shared;

	*ret = (struct ebb_shared_totals){
		.num_threads = sh->share.num_cores, .num_vms = sh->share.num_vms,
		.num_vcpus = sh->share.num_vcpus, .permille = sh->share.permille,
		.is_hot = sh->is_hot, .num_hot = sh->share.num_hot,
		.num_stuck = sh->share.num_stuck, .num_looks = sh->num_looks,
		.num_moved_vms = sh->num_moved_vms, .num_moved_vcpus = sh->num_moved_vcpus,
		.cost_usec = sh->cost_usec,
	};
	for (size_t i = 0; i < s->num_active; i++)
		ret->num_throttled += s->active[i]->share.throttled > 0 &&
				      s->active[i]->share.throttled != EBB_SHARE_NONE;
}
