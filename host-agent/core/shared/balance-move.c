// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which change of places helps a hot core most.  Two kinds are tried: a vCPU goes to another core
 * of its node, or two vCPUs change places.  What counts is the time that is lost: by vCPUs that
 * want more than a core's target in the next window, if that is like the last one, and by the
 * change itself.  A change is made only if less is lost with it, and each lowers the larger demand
 * of its two cores; so the changes come to an end.
 */
#include "core/shared/balance-internal.h"

/* Time that a full core lacks counts so many times as much as time that a busy core makes wait. */
#define LACKS	4u

/* A change of places, and the microseconds lost with it. */
struct change {
	uint64_t cost;			/* UINT64_MAX: there is none */
	uint32_t vcpu, other;		/* other: UINT32_MAX, or with which it changes places */
	uint16_t core;			/* where vcpu goes */
};

/*
 * The highest demand that a core may get by a change: between target and hot, so that noise does
 * not bring the vCPU back.  To relieve a full core another one may become hot, but not full.
 */
static uint32_t limit(const struct ebb_share *s, uint32_t from)
{
	return from >= SHARE_FULL ? (s->cfg.hot + SHARE_FULL) / 2u :
				    (s->cfg.hot + s->cfg.target) / 2u;
}

/* Above its target a core makes vCPUs wait now and then; demand above all of it is never met. */
static uint64_t lost(const struct ebb_share *s, uint32_t demand)
{
	const uint32_t waits = demand > s->cfg.target ? demand - s->cfg.target : 0;
	const uint32_t lacks = demand > SHARE_FULL ? demand - SHARE_FULL : 0;

	return (waits + LACKS * lacks) * s->cfg.window / 1000;
}

/* A lone VM may use its core as it likes. */
static uint64_t lost_among(const struct ebb_share *s, uint32_t demand, uint32_t num_active)
{
	return num_active > 1 ? lost(s, demand) : 0;
}

static bool may_move(const struct ebb_share *s, usec_t now, const struct ebb_share_vm *vm)
{
	const uint32_t diff = vm->load > vm->moved_load ? vm->load - vm->moved_load :
							  vm->moved_load - vm->load;

	return vm->moved_at == 0 || diff >= s->cfg.change ||
	       now >= vm->moved_at + s->cfg.hold_windows * s->cfg.window;
}

/* Of moving one vCPU: more for the first of its VM, so that few VMs are disturbed. */
static uint64_t move_cost(const struct ebb_share *s, uint32_t vcpu)
{
	const struct ebb_share_vcpu *v = &s->vcpus[vcpu];
	const struct ebb_share_vm *vm = &s->vms[v->vm];

	for (uint32_t i = vm->first; i < vm->first + vm->num_vcpus; i++)
		if (s->vcpus[i].core != s->vcpus[i].from)
			return s->cfg.move_usec;
	return 2 * s->cfg.move_usec;
}

/* VMs that demand something of the core, but for one vCPU. */
static uint16_t active_without(struct ebb_share *s, uint16_t core, uint32_t vcpu)
{
	const uint16_t demand = s->vcpus[vcpu].demand;
	uint16_t active;

	s->vcpus[vcpu].demand = 0;
	active = share_num_active(s, &s->cores[core]);
	s->vcpus[vcpu].demand = demand;
	return active;
}

/* After the change no core has more to keep than it can, unless it had that before. */
static bool fit_swapped(const struct ebb_share *s, uint32_t a, uint32_t b)
{
	const struct ebb_share_vcpu *v = &s->vcpus[a], *w = &s->vcpus[b];
	const uint32_t most = s->cfg.most_reserve;

	return (v->reserve <= w->reserve ||
		s->cores[w->core].reserve - w->reserve + v->reserve <= most) &&
	       (w->reserve <= v->reserve ||
		s->cores[v->core].reserve - v->reserve + w->reserve <= most);
}

/* ---- a vCPU goes, or two change places ----------------------------------- */

struct search {
	struct ebb_share *s;
	usec_t now;
	uint16_t core;			/* the hot one */
	uint64_t before;		/* lost as it is */
	bool any;			/* also of VMs that were moved lately */
	struct change best;
};

static bool is_free(const struct search *q, uint32_t vcpu)
{
	return q->any || may_move(q->s, q->now, &q->s->vms[q->s->vcpus[vcpu].vm]);
}

static void offer(struct search *q, const struct change *c, uint64_t before)
{
	if (c->cost < before && c->cost < q->best.cost)
		q->best = *c;
}

static void try_move(struct search *q, uint32_t vcpu, uint16_t active, uint16_t to)
{
	const struct ebb_share *s = q->s;
	const struct ebb_share_core *from = &s->cores[q->core], *dest = &s->cores[to];
	const uint32_t demand = s->vcpus[vcpu].demand;
	const uint32_t after = dest->demand + demand;
	/*
	 * A core with far too much load may push some of it onto a core that becomes hot, too.  It
	 * must be a quarter less there, so that the load does not bounce back.
	 */
	const uint32_t less = from->demand / 4u * 3u, most = limit(s, from->demand);
	struct change c = { .vcpu = vcpu, .other = UINT32_MAX, .core = to };

	if (after >= from->demand || !share_has_reserve(s, dest, vcpu) ||
	    (after > most && after > less && dest->demand >= s->cfg.active))
		return;
	/* The demand at the end decides between cores that are equal otherwise: the coolest. */
	c.cost = lost_among(s, from->demand - demand, active) +
		 (dest->demand >= s->cfg.active ? lost(s, after) : 0) +
		 move_cost(s, vcpu) + after;
	offer(q, &c, q->before + lost(s, dest->demand));
}

static void try_swap(struct search *q, uint32_t vcpu, uint16_t active, uint16_t to, uint32_t other)
{
	const struct ebb_share *s = q->s;
	const struct ebb_share_core *from = &s->cores[q->core], *dest = &s->cores[to];
	const uint32_t gives = s->vcpus[vcpu].demand, gets = s->vcpus[other].demand;
	const uint32_t after = dest->demand + gives - gets;
	struct change c = { .vcpu = vcpu, .other = other, .core = to };

	if (gives <= gets || after >= from->demand || after > limit(s, from->demand) ||
	    share_has_vm(s, from, s->vcpus[other].vm) || !is_free(q, other) ||
	    !fit_swapped(s, vcpu, other))
		return;
	c.cost = lost_among(s, from->demand - gives + gets, active + (gets >= s->cfg.active)) +
		 lost(s, after) + move_cost(s, vcpu) + move_cost(s, other) + after;
	offer(q, &c, q->before + lost(s, dest->demand));
}

static void search_node(struct search *q)
{
	struct ebb_share *s = q->s;

	for (uint32_t i = s->cores[q->core].first; i != EBB_SHARE_NONE; i = s->vcpus[i].next) {
		const uint16_t active = active_without(s, q->core, i);

		if (s->vcpus[i].demand == 0 || !is_free(q, i))
			continue;
		for (uint16_t c = 0; c < s->num_cores; c++) {
			const struct ebb_share_core *dest = &s->cores[c];

			if (c == q->core || dest->node != s->cores[q->core].node ||
			    share_has_vm(s, dest, s->vcpus[i].vm))
				continue;
			try_move(q, i, active, c);
			for (uint32_t k = dest->first; k != EBB_SHARE_NONE; k = s->vcpus[k].next)
				try_swap(q, i, active, c, k);
		}
	}
}

static void apply(struct ebb_share *s, uint16_t core, const struct change *c)
{
	share_detach(s, c->vcpu);
	share_attach(s, c->vcpu, c->core);
	if (c->other == UINT32_MAX)
		return;
	share_detach(s, c->other);
	share_attach(s, c->other, core);
}

/* ---- */

static bool improve(struct search *q)
{
	q->best.cost = UINT64_MAX;
	search_node(q);
	if (q->best.cost == UINT64_MAX)
		return false;
	apply(q->s, q->core, &q->best);
	return true;
}

/* Whether it would have helped if VMs that were moved lately could be moved: nothing is changed. */
static bool would_help(struct search *q)
{
	q->any = true;
	q->best.cost = UINT64_MAX;
	search_node(q);
	return q->best.cost != UINT64_MAX;
}

bool share_cool(struct ebb_share *s, usec_t now, uint16_t core, bool *ret_held)
{
	struct search q = { .s = s, .now = now, .core = core };

	q.before = lost_among(s, s->cores[core].demand,
			      share_num_active(s, &s->cores[core]));
	if (improve(&q))
		return true;
	*ret_held = would_help(&q);
	return false;
}
