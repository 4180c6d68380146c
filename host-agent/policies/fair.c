// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The fair policy: the CPUs of the host are divided among the running VMs in
 * proportion to their weights, as equally as floors (startup sets), ceilings
 * and the capacity of each node allow.
 *
 * Every VM starts at its floor.  Then one core at a time goes to the VM that
 * has least for its weight and can still grow ("water-filling"), which also
 * redistributes what a VM cannot use because of its ceiling.  If no node on
 * which that VM may grow has a core left, another VM is moved out of the way:
 * a chain of moves from node to node, each within the ceilings of the VM that
 * moves, to a node that has one.  A VM for which there is no such chain is
 * finished; later it cannot have one either.
 *
 * So that cores do not move without need, a VM grows first on the nodes where
 * it already has CPUs, and among VMs that are equally short the one that
 * already has more keeps it.  Otherwise VMs spread to where most is left.
 *
 * The class of a VM makes no difference here; its weight does.
 */
#include <errno.h>

#include "ebb/policy.h"

struct fair {
	uint16_t total[EBB_MAX_VMS];	/* CPUs of each VM in the plan */
	uint8_t is_finished[EBB_MAX_VMS];
};

_Static_assert(sizeof(struct fair) <= EBB_POLICY_STATE_MAX, "state of the fair policy");

struct round {
	struct fair *fair;
	const struct ebb_view *view;
	struct ebb_plan_vm *targets;
	uint32_t left[EBB_MAX_NODES];	/* cores that nobody has in the plan */
};

static uint16_t ceiling_of(const struct ebb_view_vm *vm, uint16_t g)
{
	return vm->has_driver ? vm->nodes[g].ceiling : vm->nodes[g].floor;
}

static bool can_grow(const struct round *r, uint32_t v, uint16_t g)
{
	return r->targets[v].nodes[g] < ceiling_of(&r->view->vms[v], g);
}

static bool can_shrink(const struct round *r, uint32_t v, uint16_t g)
{
	return r->targets[v].nodes[g] > r->view->vms[v].nodes[g].floor;
}

static uint32_t used_total(const struct ebb_view_vm *vm)
{
	uint32_t sum = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		sum += vm->nodes[g].used;
	return sum;
}

static uint32_t target_total(const struct ebb_view_vm *vm)
{
	uint32_t sum = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		sum += vm->nodes[g].target;
	return sum;
}

/* Whether VM a is to get the next core rather than b, which comes later in the order. */
static bool is_first(const struct round *r, uint32_t a, uint32_t b)
{
	const struct ebb_view_vm *va = &r->view->vms[a], *vb = &r->view->vms[b];
	const uint32_t ta = r->fair->total[a], tb = r->fair->total[b];
	/* Rounding to the nearest: half a core more than it has, per weight. */
	const uint64_t key_a = (uint64_t)(2 * ta + 1) * vb->weight;
	const uint64_t key_b = (uint64_t)(2 * tb + 1) * va->weight;
	int64_t more_a, more_b;

	if (key_a != key_b)
		return key_a < key_b;
	more_a = (int64_t)used_total(va) - ta;
	more_b = (int64_t)used_total(vb) - tb;
	if (more_a != more_b)
		return more_a > more_b;
	more_a = (int64_t)target_total(va) - ta;
	more_b = (int64_t)target_total(vb) - tb;
	return more_a >= more_b;
}

static bool pick_vm(const struct round *r, uint32_t *ret_vm)
{
	bool is_found = false;
	uint32_t best = 0;

	for (uint32_t v = 0; v < r->view->num_vms; v++) {
		if (r->fair->is_finished[v])
			continue;
		if (!is_found || !is_first(r, best, v))
			best = v;
		is_found = true;
	}
	if (is_found)
		*ret_vm = best;
	return is_found;
}

static void take(struct round *r, uint32_t v, uint16_t g)
{
	r->targets[v].nodes[g]++;
	r->fair->total[v]++;
	r->left[r->view->vms[v].nodes[g].host_node]--;
}

/* How much VM v wants its next core on guest node g: what it has there already counts most. */
static uint32_t attraction(const struct round *r, uint32_t v, uint16_t g)
{
	const struct ebb_view_vm_node *n = &r->view->vms[v].nodes[g];
	const uint16_t t = r->targets[v].nodes[g];

	return (t < n->used ? 2u * UINT16_MAX : 0) + (t < n->target ? 1u * UINT16_MAX : 0) +
	       r->left[n->host_node];
}

static bool grow_directly(struct round *r, uint32_t v)
{
	const struct ebb_view_vm *vm = &r->view->vms[v];
	uint16_t best = EBB_NODE_ANY;

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		if (!can_grow(r, v, g) || r->left[vm->nodes[g].host_node] == 0)
			continue;
		if (best == EBB_NODE_ANY || attraction(r, v, g) > attraction(r, v, best))
			best = g;
	}
	if (best == EBB_NODE_ANY)
		return false;
	take(r, v, best);
	return true;
}

/* One step of a chain: VM vm gives a core on guest node from_g and takes one on to_g. */
struct move {
	bool is_reached;
	uint32_t vm;
	uint16_t from_g, to_g;
};

/* Finds a VM that can move one CPU from host node `from` to host node `to`. */
static bool find_move(const struct round *r, uint16_t from, uint16_t to, struct move *ret_move)
{
	for (uint32_t v = 0; v < r->view->num_vms; v++) {
		const struct ebb_view_vm *vm = &r->view->vms[v];

		for (uint16_t a = 0; a < vm->num_nodes; a++) {
			if (vm->nodes[a].host_node != from || !can_shrink(r, v, a))
				continue;
			for (uint16_t b = 0; b < vm->num_nodes; b++) {
				if (vm->nodes[b].host_node != to || !can_grow(r, v, b))
					continue;
				*ret_move = (struct move){
					.is_reached = true, .vm = v, .from_g = a, .to_g = b,
				};
				return true;
			}
		}
	}
	return false;
}

/* Carries out the chain that ends on node `end`, last step first; returns its first node. */
static uint16_t follow_back(struct round *r, const struct move *into, const uint16_t *before,
			    uint16_t end)
{
	while (before[end] != EBB_NODE_ANY) {
		const struct move *m = &into[end];

		r->targets[m->vm].nodes[m->from_g]--;
		r->targets[m->vm].nodes[m->to_g]++;
		r->left[end]--;
		r->left[before[end]]++;
		end = before[end];
	}
	return end;
}

/*
 * Breadth-first over the nodes of the host, from those where v may grow to the
 * first that has a core left; so chains are as short as can be, and no step of
 * a chain spoils another.
 */
static bool grow_by_moves(struct round *r, uint32_t v)
{
	const struct ebb_view_vm *vm = &r->view->vms[v];
	struct move into[EBB_MAX_NODES] = { 0 };
	uint16_t before[EBB_MAX_NODES], queue[EBB_MAX_NODES], end = EBB_NODE_ANY;
	uint16_t head = 0, tail = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		const uint16_t h = vm->nodes[g].host_node;

		if (can_grow(r, v, g) && !into[h].is_reached) {
			into[h].is_reached = true;
			before[h] = EBB_NODE_ANY;
			queue[tail++] = h;
		}
	}
	while (head < tail && end == EBB_NODE_ANY) {
		const uint16_t from = queue[head++];

		for (uint16_t to = 0; to < r->view->num_nodes && end == EBB_NODE_ANY; to++) {
			if (into[to].is_reached || !find_move(r, from, to, &into[to]))
				continue;
			before[to] = from;
			queue[tail++] = to;
			if (r->left[to] > 0)
				end = to;
		}
	}
	if (end == EBB_NODE_ANY)
		return false;
	end = follow_back(r, into, before, end);
	for (uint16_t g = 0; g < vm->num_nodes; g++)
		if (vm->nodes[g].host_node == end && can_grow(r, v, g)) {
			take(r, v, g);
			return true;
		}
	return false;
}

static int fair_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	struct round r = { .fair = st, .view = view, .targets = ret_plan->targets };
	uint32_t v;

	if (view->num_vms > EBB_MAX_VMS)
		return -EINVAL;
	for (uint16_t n = 0; n < view->num_nodes; n++)
		r.left[n] = view->nodes[n].capacity;
	for (v = 0; v < view->num_vms; v++) {
		r.fair->total[v] = 0;
		r.fair->is_finished[v] = 0;
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];

			if (n->floor > r.left[n->host_node])
				return -EINVAL;
			r.targets[v].nodes[g] = n->floor;
			r.fair->total[v] += n->floor;
			r.left[n->host_node] -= n->floor;
		}
	}
	while (pick_vm(&r, &v))
		if (!grow_directly(&r, v) && !grow_by_moves(&r, v))
			r.fair->is_finished[v] = 1;
	return 0;
}

const struct ebb_policy_ops ebb_policy_fair = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "fair",
	.state_size = sizeof(struct fair),
	.decide = fair_decide,
};
