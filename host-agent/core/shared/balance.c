// SPDX-License-Identifier: GPL-2.0-or-later
/* See balance.h: loads, places for newcomers, throttles, and the look as a whole. */
#include <string.h>

#include "core/shared/balance-internal.h"

#define WHOLE		1000u

void ebb_share_config_default(struct ebb_share_config *ret)
{
	*ret = (struct ebb_share_config){
		.window = 15 * EBB_USEC_PER_SEC,
		.hold_windows = 4,
		.hot = 850,
		.target = 750,
		.host_hot = 750,
		.active = 50,
		.change = 150,
		.most_reserve = 950,
		.move_usec = EBB_USEC_PER_MSEC,
	};
}

/* ---- vCPUs of a core ----------------------------------------------------- */

bool share_has_vm(const struct ebb_share *s, const struct ebb_share_core *c, uint16_t vm)
{
	for (uint16_t i = c->first; i != EBB_SHARE_NONE; i = s->vcpus[i].next)
		if (s->vcpus[i].vm == vm)
			return true;
	return false;
}

void share_attach(struct ebb_share *s, uint32_t vcpu, uint16_t core)
{
	struct ebb_share_vcpu *v = &s->vcpus[vcpu];
	struct ebb_share_core *c = &s->cores[core];

	v->core = core;
	v->next = c->first;
	c->first = (uint16_t)vcpu;
	c->num_vcpus++;
	c->demand += v->demand;
	c->reserve += v->reserve;
}

void share_detach(struct ebb_share *s, uint32_t vcpu)
{
	struct ebb_share_vcpu *v = &s->vcpus[vcpu];
	struct ebb_share_core *c = &s->cores[v->core];
	uint16_t *link = &c->first;

	while (*link != vcpu)
		link = &s->vcpus[*link].next;
	*link = v->next;
	c->num_vcpus--;
	c->demand -= v->demand;
	c->reserve -= v->reserve;
	v->core = EBB_SHARE_NONE;
}

/* The demand of a VM on the core, if vCPU i is the VM's first one there; else 0. */
static uint32_t vm_demand(const struct ebb_share *s, const struct ebb_share_core *c, uint16_t i)
{
	uint32_t demand = 0;

	for (uint16_t k = c->first; k != i; k = s->vcpus[k].next)
		if (s->vcpus[k].vm == s->vcpus[i].vm)
			return 0;
	for (uint16_t k = i; k != EBB_SHARE_NONE; k = s->vcpus[k].next)
		if (s->vcpus[k].vm == s->vcpus[i].vm)
			demand += s->vcpus[k].demand;
	return demand;
}

uint16_t share_num_active(const struct ebb_share *s, const struct ebb_share_core *c)
{
	uint16_t active = 0;

	for (uint16_t i = c->first; i != EBB_SHARE_NONE; i = s->vcpus[i].next)
		active += vm_demand(s, c, i) >= s->cfg.active;
	return active;
}

/* ---- loads --------------------------------------------------------------- */

/*
 * The part of a core that a vCPU would use if it had the core alone.  As long as its core has time
 * left, that is the part that it uses.  So it is on a full core if the vCPU was idle for
 * SHARE_IDLE: all work that came was done, if a little later.  One that was always ready would
 * have used all the time that it waited, and one that was idle for less a part of it.
 */
static uint16_t demand_of(const struct ebb_share *s, const struct ebb_share_vcpu *v)
{
	const struct ebb_share_vm *vm = &s->vms[v->vm];
	const uint32_t ready = v->use + v->wait < WHOLE ? v->use + v->wait : WHOLE;
	uint32_t demand = v->use;

	if (v->core != EBB_SHARE_NONE && s->cores[v->core].due >= SHARE_FULL &&
	    ready > WHOLE - SHARE_IDLE)
		demand += v->wait * (ready - (WHOLE - SHARE_IDLE)) / SHARE_IDLE;
	/* Held back by us, it uses what it may: what it wanted before still counts. */
	if (vm->throttle > 0 && v->use >= vm->throttle * 9u / 10 && demand < vm->throttle_load)
		demand = vm->throttle_load;
	return (uint16_t)(demand < WHOLE ? demand : WHOLE);
}

/*
 * A vCPU that is ready leaves its core idle at no moment, so the core would have been used at least
 * for as long as the vCPU that was ready longest.  One that is throttled waits for its own quota.
 */
static void add_use(struct ebb_share *s, const struct ebb_share_vcpu *v)
{
	struct ebb_share_core *core = &s->cores[v->core];
	const uint32_t ready = v->use + v->wait;

	core->use += v->use;
	if (s->vms[v->vm].throttle == 0 && ready > core->due)
		core->due = ready < WHOLE ? ready : WHOLE;
}

static void measure(struct ebb_share *s)
{
	for (uint16_t c = 0; c < s->num_cores; c++) {
		struct ebb_share_core *core = &s->cores[c];

		*core = (struct ebb_share_core){
			.thread = core->thread, .node = core->node, .first = EBB_SHARE_NONE,
			.was_stuck = core->is_stuck,
		};
	}
	for (uint32_t i = 0; i < s->num_vcpus; i++) {
		struct ebb_share_vcpu *v = &s->vcpus[i];

		if (v->core >= s->num_cores)
			v->core = EBB_SHARE_NONE;
		v->from = v->core;
		if (v->core != EBB_SHARE_NONE)
			add_use(s, v);
	}
	for (uint16_t c = 0; c < s->num_cores; c++)
		if (s->cores[c].due < s->cores[c].use)
			s->cores[c].due = s->cores[c].use;
	for (uint32_t i = 0; i < s->num_vcpus; i++) {
		struct ebb_share_vcpu *v = &s->vcpus[i];

		v->demand = demand_of(s, v);
		if (v->core != EBB_SHARE_NONE)
			share_attach(s, i, v->core);
	}
	for (uint16_t m = 0; m < s->num_vms; m++) {
		struct ebb_share_vm *vm = &s->vms[m];
		uint32_t sum = 0;

		for (uint32_t i = vm->first; i < vm->first + vm->num_vcpus; i++)
			sum += s->vcpus[i].demand;
		vm->load = (uint16_t)(vm->num_vcpus ? sum / vm->num_vcpus : 0);
		vm->is_moved = false;
		if (vm->moved_load == EBB_SHARE_NONE)
			vm->moved_load = vm->load;
	}
}

static bool has_throttled(const struct ebb_share *s, const struct ebb_share_core *c)
{
	for (uint16_t i = c->first; i != EBB_SHARE_NONE; i = s->vcpus[i].next)
		if (s->vms[s->vcpus[i].vm].throttle > 0)
			return true;
	return false;
}

/* The use of a core as it would be without other programs and without throttles. */
static uint32_t level_of(const struct ebb_share *s, const struct ebb_share_core *c)
{
	const uint32_t demand = c->demand < WHOLE ? c->demand : WHOLE;

	/* No move would be made, since the core demands no more than the target already. */
	if (demand <= s->cfg.target)
		return c->use;
	return has_throttled(s, c) && demand > c->due ? demand : c->due;
}

static void find_hot(struct ebb_share *s)
{
	uint64_t use = 0;

	s->num_hot = s->num_stuck = s->num_held = 0;
	for (uint16_t c = 0; c < s->num_cores; c++) {
		struct ebb_share_core *core = &s->cores[c];

		use += core->use < WHOLE ? core->use : WHOLE;
		core->num_active = share_num_active(s, core);
		core->level = level_of(s, core);
		core->is_hot = core->num_active > 1 && core->level >= s->cfg.hot;
		s->num_hot += core->is_hot;
	}
	s->permille = s->num_cores ? (uint32_t)(use / s->num_cores) : 0;
}

/* ---- places for newcomers ------------------------------------------------ */

uint16_t ebb_share_groups(const struct ebb_share *s, uint32_t num_vcpus)
{
	uint32_t cores[EBB_MAX_NODES] = { 0 }, largest = 0, nodes = 0, groups;

	for (uint16_t c = 0; c < s->num_cores; c++)
		cores[s->cores[c].node]++;
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
		nodes += cores[h] > 0;
		largest = cores[h] > largest ? cores[h] : largest;
	}
	if (largest == 0 || num_vcpus <= largest)
		return 1;
	groups = (num_vcpus + largest - 1) / largest;
	return (uint16_t)(groups < nodes ? groups : nodes);
}

bool share_has_reserve(const struct ebb_share *s, const struct ebb_share_core *c, uint32_t vcpu)
{
	const uint32_t reserve = s->vcpus[vcpu].reserve;

	return reserve == 0 || c->reserve + reserve <= s->cfg.most_reserve;
}

/* The best core of a node for a vCPU by what is demanded now, or EBB_SHARE_NONE. */
static uint16_t coolest(const struct ebb_share *s, uint32_t vcpu, uint16_t node)
{
	uint16_t best = EBB_SHARE_NONE;
	uint32_t best_cost = 0;

	for (uint16_t c = 0; c < s->num_cores; c++) {
		const struct ebb_share_core *core = &s->cores[c];
		uint32_t cost = core->demand + SHARE_LIGHT * core->num_vcpus;

		if (core->node != node)
			continue;
		if (share_has_vm(s, core, s->vcpus[vcpu].vm))
			cost += 1u << 30;
		if (!share_has_reserve(s, core, vcpu))
			cost += 1u << 29;
		if (best == EBB_SHARE_NONE || cost < best_cost) {
			best = c;
			best_cost = cost;
		}
	}
	return best;
}

/* The node that is used least of those where no other group of the VM is, if there are any. */
static uint16_t pick_node(const struct ebb_share *s, const struct ebb_share_vm *vm)
{
	uint64_t load[EBB_MAX_NODES] = { 0 }, best_cost = 0;
	uint32_t cores[EBB_MAX_NODES] = { 0 };
	uint16_t best = EBB_NODE_ANY;

	for (uint16_t c = 0; c < s->num_cores; c++) {
		const struct ebb_share_core *core = &s->cores[c];

		load[core->node] += core->demand + SHARE_LIGHT * core->num_vcpus;
		cores[core->node]++;
	}
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
		uint64_t cost;

		if (cores[h] == 0)
			continue;
		cost = load[h] / cores[h];
		for (uint16_t g = 0; g < vm->num_groups; g++)
			cost += vm->nodes[g] == h ? 1ull << 40 : 0;
		if (best == EBB_NODE_ANY || cost < best_cost) {
			best = h;
			best_cost = cost;
		}
	}
	return best;
}

static void place_newcomers(struct ebb_share *s)
{
	for (uint16_t m = 0; m < s->num_vms; m++) {
		struct ebb_share_vm *vm = &s->vms[m];

		for (uint32_t i = vm->first; i < vm->first + vm->num_vcpus; i++) {
			uint16_t *node = &vm->nodes[s->vcpus[i].group];
			uint16_t core;

			if (s->vcpus[i].core != EBB_SHARE_NONE)
				continue;
			if (*node == EBB_NODE_ANY)
				*node = pick_node(s, vm);
			core = coolest(s, i, *node);
			if (core != EBB_SHARE_NONE)
				share_attach(s, i, core);
			s->vcpus[i].from = core;
		}
	}
}

void ebb_share_place(struct ebb_share *s)
{
	measure(s);
	place_newcomers(s);
	find_hot(s);
}

/* ---- throttles ----------------------------------------------------------- */

/*
 * A VM's part of a core, by weights: one that demands less than its part leaves the rest to the
 * others.  Each round finds at least one VM that demands less, or is the last.
 */
static uint32_t share_of(const struct ebb_share *s, const struct ebb_share_core *c, uint16_t vm)
{
	/* Some time stays free, or nothing would show when the VMs want less. */
	const uint32_t most = (s->cfg.hot + WHOLE) / 2;
	uint32_t left, floor = 0;

	for (;;) {
		uint64_t weights = 0;
		uint32_t next = floor, settled = 0;

		/* VMs whose demand for each unit of weight is above the settled level. */
		for (uint16_t i = c->first; i != EBB_SHARE_NONE; i = s->vcpus[i].next) {
			const uint32_t demand = vm_demand(s, c, i);
			const uint32_t weight = s->vms[s->vcpus[i].vm].weight;

			if (demand > 0 && (uint64_t)demand * 1000 > (uint64_t)floor * weight)
				weights += weight;
			else
				settled += demand;
		}
		if (weights == 0)
			return WHOLE;
		left = most > settled ? most - settled : 0;
		next = (uint32_t)((uint64_t)left * 1000 / weights);
		if (next <= floor)
			return (uint32_t)((uint64_t)floor * s->vms[vm].weight / 1000);
		floor = next;
	}
}

/* The most that a vCPU may use: its part of a core where no move has helped for two looks. */
static uint32_t allowed(const struct ebb_share *s, const struct ebb_share_vcpu *v)
{
	uint32_t share;

	if (v->core == EBB_SHARE_NONE || !s->cores[v->core].is_stuck ||
	    !s->cores[v->core].was_stuck || s->cores[v->core].demand < SHARE_FULL)
		return v->demand;
	share = share_of(s, &s->cores[v->core], v->vm);
	/* No throttle breaks a promise. */
	if (share < v->reserve)
		share = v->reserve;
	return share < v->demand ? share : v->demand;
}

/*
 * The throttle of a VM; 0: none.  It holds for all of its vCPUs alike, so it is that of the vCPU
 * that may use the most, and there is none if one of them may use as much as it demands: one
 * crowded core is no reason to slow a VM down on all its others.
 */
static uint32_t stuck_share(const struct ebb_share *s, const struct ebb_share_vm *vm)
{
	uint32_t most = 0;

	for (uint32_t i = vm->first; i < vm->first + vm->num_vcpus; i++) {
		const struct ebb_share_vcpu *v = &s->vcpus[i];
		const uint32_t may = allowed(s, v);

		if (v->demand < s->cfg.active)
			continue;
		if (may >= v->demand)
			return 0;
		most = may > most ? may : most;
	}
	return most;
}

static bool may_be_lifted(const struct ebb_share *s, const struct ebb_share_vm *vm)
{
	for (uint32_t i = vm->first; i < vm->first + vm->num_vcpus; i++)
		if (s->vcpus[i].core != EBB_SHARE_NONE &&
		    s->cores[s->vcpus[i].core].num_active > 1 &&
		    s->cores[s->vcpus[i].core].demand > s->cfg.target)
			return false;
	return true;
}

static void throttle(struct ebb_share *s)
{
	for (uint16_t c = 0; c < s->num_cores; c++)
		s->cores[c].num_active = share_num_active(s, &s->cores[c]);
	for (uint16_t m = 0; m < s->num_vms; m++) {
		struct ebb_share_vm *vm = &s->vms[m];
		const uint32_t share = stuck_share(s, vm);

		if (share > 0) {
			vm->throttle_load = vm->load;
			vm->throttle = (uint16_t)share;
		} else if (vm->throttle > 0 && may_be_lifted(s, vm)) {
			vm->throttle = vm->throttle_load = 0;
		}
	}
}

/* ---- the look ------------------------------------------------------------ */

static void count_moves(struct ebb_share *s, usec_t now)
{
	s->num_moves = s->num_moved_vms = 0;
	s->cost_usec = 0;
	for (uint32_t i = 0; i < s->num_vcpus; i++) {
		struct ebb_share_vcpu *v = &s->vcpus[i];

		if (v->core == v->from)
			continue;
		s->num_moves++;
		s->cost_usec += s->cfg.move_usec;
		s->vms[v->vm].is_moved = true;
	}
	for (uint16_t m = 0; m < s->num_vms; m++) {
		struct ebb_share_vm *vm = &s->vms[m];

		if (!vm->is_moved)
			continue;
		s->num_moved_vms++;
		vm->moved_at = now;
		vm->moved_load = EBB_SHARE_NONE;
	}
}

void ebb_share_look(struct ebb_share *s, usec_t now)
{
	measure(s);
	place_newcomers(s);
	find_hot(s);
	/* Each step makes something better, so this ends by itself; the bound is for certainty. */
	for (uint32_t step = 0; step < s->num_vcpus + s->num_cores; step++) {
		uint16_t worst = EBB_SHARE_NONE;
		bool is_held = false;

		/* The hottest first: it has the first choice. */
		for (uint16_t c = 0; c < s->num_cores; c++) {
			const struct ebb_share_core *core = &s->cores[c];

			if (core->is_hot && !core->is_done &&
			    core->demand > s->cfg.target &&
			    share_num_active(s, core) > 1 &&
			    (worst == EBB_SHARE_NONE || core->demand > s->cores[worst].demand))
				worst = c;
		}
		if (worst == EBB_SHARE_NONE)
			break;
		if (share_cool(s, now, worst, &is_held))
			continue;
		s->cores[worst].is_done = true;
		/* It is above the target, but not hot any more. */
		if (s->cores[worst].demand < s->cfg.hot)
			continue;
		s->cores[worst].is_held = is_held;
		s->cores[worst].is_stuck = !is_held;
		s->num_held += is_held;
		s->num_stuck += !is_held;
	}
	throttle(s);
	count_moves(s, now);
	s->is_hot = s->num_stuck > 0 || s->permille >= s->cfg.host_hot;
}
