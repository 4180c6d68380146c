// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The isolate policy: VMs share no socket (node of the host) as long as there are
 * enough of them.  One VM has all sockets, core by core.  When more come, each
 * gets as many sockets of its own as the others, one at most more, and there the
 * hyperthreads, too: a VM that loses cores gains threads, and no other VM uses its caches.  VMs
 * beyond the number of sockets share a socket with its VM, as under the fair policy: cores only,
 * per weight.  Source: PVLDB 13(12), section 4.3, figures 7 and 8.
 *
 * Sockets are given in order of arrival; each VM takes part, with a driver or not,
 * so that one that boots does not find others where it is about to be.  A VM
 *
 *   1. has a socket on which it may have CPUs, if need be by others of which each
 *      moves to another one; first where its startup set is and those of the
 *      fewest others are, then where it has most CPUs now: so it stays where
 *      it is when others come and go;
 *   2. gets further ones that nobody has, while it has fewest, in the same order.
 *
 * A startup set that is on somebody else's socket stays there, and that one
 * is without hyperthreads then: threads of a core would belong to two VMs.
 */
#include <errno.h>

#include "policies/cpu/fill.h"
#include "policies/halves.h"

#define NOBODY	UINT16_MAX

_Static_assert(EBB_MAX_NODES <= 8 * sizeof(uint16_t), "sets of sockets: a bit for each");

struct isolate_cpus {
	struct policy_fill_vms fill;
	uint16_t sockets[EBB_MAX_VMS];	/* bits: those that the VM may grow on */
};

struct deal {
	const struct ebb_view *view;
	uint16_t *sockets;
	uint16_t owner[EBB_MAX_NODES];	/* VM, or NOBODY */
	uint16_t num_floors[EBB_MAX_NODES]; /* VMs with a startup set there */
};

/* The CPUs of VM v on a socket. */
struct stake {
	bool can_use;
	uint32_t floor;
	uint32_t has;			/* now, and in the last plan */
};

static struct stake stake_of(const struct deal *d, uint32_t v, uint16_t h)
{
	const struct ebb_view_vm *vm = &d->view->vms[v];
	struct stake s = { 0 };

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		const struct ebb_view_vm_node *n = &vm->nodes[g];

		if (n->host_node != h)
			continue;
		s.can_use = s.can_use || n->ceiling > 0;
		s.floor += n->floor;
		s.has += n->target + n->used;
	}
	return s;
}

/* Whether socket a suits VM v better than b, of a higher number. */
static bool is_better(const struct deal *d, uint32_t v, uint16_t a, uint16_t b)
{
	const struct stake sa = stake_of(d, v, a), sb = stake_of(d, v, b);

	if ((sa.floor > 0) != (sb.floor > 0))
		return sa.floor > 0;
	if (d->num_floors[a] != d->num_floors[b])
		return d->num_floors[a] < d->num_floors[b];
	return sa.has >= sb.has;
}

/* Of the sockets in the set the best for VM v to have CPUs on, or EBB_NODE_ANY. */
static uint16_t best_of(const struct deal *d, uint32_t v, uint16_t set)
{
	uint16_t best = EBB_NODE_ANY;

	for (uint16_t h = 0; h < d->view->num_nodes; h++)
		if (set & 1u << h && stake_of(d, v, h).can_use &&
		    (best == EBB_NODE_ANY || !is_better(d, v, best, h)))
			best = h;
	return best;
}

static uint16_t free_sockets(const struct deal *d)
{
	uint16_t set = 0;

	for (uint16_t h = 0; h < d->view->num_nodes; h++)
		if (d->owner[h] == NOBODY)
			set |= (uint16_t)(1u << h);
	return set;
}

static void give(struct deal *d, uint32_t v, uint16_t h)
{
	d->owner[h] = (uint16_t)v;
	d->sockets[v] |= (uint16_t)(1u << h);
}

/*
 * A first socket for VM v: a free one, or one whose owner finds another, and so on.  Each owner has
 * one socket as yet.  Breadth-first, so that as few as can be move; false if there is none.
 */
static bool give_first(struct deal *d, uint32_t v)
{
	uint16_t from[EBB_MAX_NODES], queue[EBB_MAX_NODES];
	uint16_t head = 0, tail = 0, seen = 0, h, mover = (uint16_t)v;

	if (free_sockets(d) == 0)
		return false;
	for (;;) {
		h = best_of(d, mover, free_sockets(d));
		if (h != EBB_NODE_ANY)
			break;
		for (uint16_t i = 0; i < d->view->num_nodes; i++) {
			if (seen & 1u << i || !stake_of(d, mover, i).can_use)
				continue;
			seen |= (uint16_t)(1u << i);
			from[i] = head ? queue[head - 1] : EBB_NODE_ANY;
			queue[tail++] = i;
		}
		if (head == tail)
			return false;
		mover = d->owner[queue[head++]];
	}
	for (uint16_t i = head ? queue[head - 1] : EBB_NODE_ANY; i != EBB_NODE_ANY; i = from[i]) {
		d->sockets[d->owner[i]] = 0;
		give(d, d->owner[i], h);
		h = i;
	}
	give(d, v, h);
	return true;
}

static uint32_t count_bits(uint16_t set)
{
	uint32_t count = 0;

	for (; set; set &= (uint16_t)(set - 1))
		count++;
	return count;
}

/* The VM with fewest sockets that can use one of the free ones; NOBODY if there is none. */
static uint16_t poorest(const struct deal *d, uint16_t set)
{
	uint32_t fewest = 0, has = 0;
	uint16_t best = NOBODY;

	for (uint32_t v = 0; v < d->view->num_vms; v++) {
		const uint16_t h = best_of(d, v, set);
		const uint32_t count = count_bits(d->sockets[v]);
		uint32_t there;

		if (h == EBB_NODE_ANY)
			continue;
		there = stake_of(d, v, h).has;
		if (best != NOBODY && (count > fewest || (count == fewest && there <= has)))
			continue;
		best = (uint16_t)v;
		fewest = count;
		has = there;
	}
	return best;
}

/* VM v goes where fewest VMs are that it can share a socket with. */
static void share_one(struct deal *d, uint32_t v, uint16_t *num_vms)
{
	uint16_t least = UINT16_MAX, set = 0, h;

	for (h = 0; h < d->view->num_nodes; h++) {
		if (!stake_of(d, v, h).can_use || num_vms[h] > least)
			continue;
		if (num_vms[h] < least)
			set = 0;
		least = num_vms[h];
		set |= (uint16_t)(1u << h);
	}
	h = best_of(d, v, set);
	if (h == EBB_NODE_ANY)
		return;
	d->sockets[v] = (uint16_t)(1u << h);
	num_vms[h]++;
}

static void deal_sockets(struct deal *d)
{
	uint16_t num_vms[EBB_MAX_NODES] = { 0 }, set, v;
	uint32_t num_waiting = 0;

	for (uint16_t h = 0; h < d->view->num_nodes; h++) {
		d->owner[h] = NOBODY;
		for (uint32_t i = 0; i < d->view->num_vms; i++)
			d->num_floors[h] += stake_of(d, i, h).floor > 0;
	}
	for (uint32_t i = 0; i < d->view->num_vms; i++) {
		d->sockets[i] = 0;
		num_waiting += !give_first(d, i);
	}
	while ((set = free_sockets(d)) != 0 && (v = poorest(d, set)) != NOBODY)
		give(d, v, best_of(d, v, set));
	for (uint16_t h = 0; h < d->view->num_nodes; h++)
		num_vms[h] = d->owner[h] != NOBODY;
	for (uint32_t i = 0; num_waiting > 0 && i < d->view->num_vms; i++)
		if (d->sockets[i] == 0) {
			share_one(d, i, num_vms);
			num_waiting--;
		}
}

/* Whether nobody but one VM has CPUs there, or may have. */
static bool is_alone(const struct deal *d, uint16_t h)
{
	uint32_t count = 0;

	for (uint32_t v = 0; v < d->view->num_vms; v++)
		count += (d->sockets[v] & 1u << h) || stake_of(d, v, h).floor > 0;
	return count == 1;
}

static uint16_t ceiling(const void *ctx, const struct ebb_view *view, uint32_t v, uint16_t g)
{
	const struct isolate_cpus *cpus = ctx;
	const struct ebb_view_vm *vm = &view->vms[v];

	return cpus->sockets[v] & 1u << vm->nodes[g].host_node ? policy_ceiling(vm, g) :
								 vm->nodes[g].floor;
}

static int decide(void *st, const struct ebb_view *view, struct ebb_plan *plan)
{
	struct isolate_cpus *cpus = st;
	const struct policy_fill_rule rule = { .ctx = cpus, .ceiling = ceiling, .has_moves = true };
	struct deal d = { .view = view, .sockets = cpus->sockets };
	uint32_t capacity[EBB_MAX_NODES];
	struct policy_fill fill;
	int rc;

	if (view->num_vms > EBB_MAX_VMS)
		return -EINVAL;
	deal_sockets(&d);
	for (uint16_t h = 0; h < view->num_nodes; h++) {
		const struct ebb_view_node *n = &view->nodes[h];

		plan->use_threads[h] = view->num_vms > 1 && n->num_threads > n->capacity &&
				       is_alone(&d, h);
		capacity[h] = plan->use_threads[h] ? n->num_threads : n->capacity;
	}
	rc = policy_fill_start(&fill, &cpus->fill, view, capacity, plan->targets);
	if (rc < 0)
		return rc;
	policy_fill_round(&fill, &rule);
	return 0;
}

const struct ebb_policy_half policy_cpu_isolate = {
	.name = "isolate", .state_size = sizeof(struct isolate_cpus), .decide = decide,
};
