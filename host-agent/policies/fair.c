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
 * Memory can not be used on another node than it is asked for on, so each node
 * of the host is divided by itself: blocks per weight (of the memory half of the
 * SLA) as equal as floors and ceilings allow.  A VM counts once for a node of
 * the host, however many of its guest nodes are there.
 *
 * The class of a VM makes no difference here; its weight does.
 */
#include <errno.h>

#include "ebb/policy.h"

struct fair {
	uint16_t total[EBB_MAX_VMS];	/* CPUs of each VM in the plan */
	uint16_t used[EBB_MAX_VMS];	/* that it has now */
	uint16_t target[EBB_MAX_VMS];	/* in the last plan */
	uint16_t order[EBB_MAX_VMS];	/* VMs that are not finished, in the view's order */
};

/* One node of the host, by VM; blocks. */
struct fair_mem {
	uint32_t floor[EBB_MAX_VMS], ceiling[EBB_MAX_VMS];
	uint32_t share[EBB_MAX_VMS];
};

union fair_state {
	struct fair cpus;
	struct fair_mem mem;
};

_Static_assert(sizeof(union fair_state) <= EBB_POLICY_STATE_MAX, "state of the fair policy");

struct round {
	struct fair *fair;
	const struct ebb_view *view;
	struct ebb_plan_vm *targets;
	uint32_t num_growing;		/* entries of fair.order */
	uint32_t left[EBB_MAX_NODES];	/* cores that nobody has in the plan */
	/*
	 * No core can be found for this node any more, on it or by moves.  That
	 * stays so: every VM with a core to give there is at its ceiling on all
	 * nodes that are not full, so nothing that happens on those concerns it.
	 */
	bool is_full[EBB_MAX_NODES];
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
	more_a = (int64_t)r->fair->used[a] - ta;
	more_b = (int64_t)r->fair->used[b] - tb;
	if (more_a != more_b)
		return more_a > more_b;
	more_a = (int64_t)r->fair->target[a] - ta;
	more_b = (int64_t)r->fair->target[b] - tb;
	return more_a >= more_b;
}

/* Index into fair.order; there is at least one. */
static uint32_t pick(const struct round *r)
{
	const uint16_t *order = r->fair->order;
	uint32_t best = 0;

	for (uint32_t i = 1; i < r->num_growing; i++)
		if (!is_first(r, order[best], order[i]))
			best = i;
	return best;
}

static void finish(struct round *r, uint32_t i)
{
	r->num_growing--;
	for (; i < r->num_growing; i++)
		r->fair->order[i] = r->fair->order[i + 1];
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
	uint16_t before;		/* node of the step before, or EBB_NODE_ANY */
};

struct search {
	struct move into[EBB_MAX_NODES];
	uint16_t queue[EBB_MAX_NODES];
	uint16_t head, tail;
};

static void reach(struct search *q, uint16_t node, const struct move *m)
{
	q->into[node] = *m;
	q->into[node].is_reached = true;
	q->queue[q->tail++] = node;
}

/*
 * Reaches all nodes to which some VM can move one CPU from host node `from`.
 * Returns the first that has a core left, or EBB_NODE_ANY.
 */
static uint16_t reach_from(const struct round *r, struct search *q, uint16_t from)
{
	for (uint32_t v = 0; v < r->view->num_vms; v++) {
		const struct ebb_view_vm *vm = &r->view->vms[v];

		for (uint16_t a = 0; a < vm->num_nodes; a++) {
			if (vm->nodes[a].host_node != from || !can_shrink(r, v, a))
				continue;
			for (uint16_t b = 0; b < vm->num_nodes; b++) {
				const uint16_t to = vm->nodes[b].host_node;

				if (q->into[to].is_reached || !can_grow(r, v, b))
					continue;
				reach(q, to, &(struct move){
					.vm = v, .from_g = a, .to_g = b, .before = from,
				});
				if (r->left[to] > 0)
					return to;
			}
		}
	}
	return EBB_NODE_ANY;
}

/* Carries out the chain that ends on node `end`, last step first; returns its first node. */
static uint16_t follow_back(struct round *r, const struct search *q, uint16_t end)
{
	while (q->into[end].before != EBB_NODE_ANY) {
		const struct move *m = &q->into[end];

		r->targets[m->vm].nodes[m->from_g]--;
		r->targets[m->vm].nodes[m->to_g]++;
		r->left[end]--;
		r->left[m->before]++;
		end = m->before;
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
	uint16_t end = EBB_NODE_ANY;
	struct search q = { 0 };

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		const uint16_t h = vm->nodes[g].host_node;

		if (can_grow(r, v, g) && !r->is_full[h] && !q.into[h].is_reached)
			reach(&q, h, &(struct move){ .before = EBB_NODE_ANY });
	}
	while (q.head < q.tail && end == EBB_NODE_ANY)
		end = reach_from(r, &q, q.queue[q.head++]);
	if (end == EBB_NODE_ANY) {
		for (uint16_t i = 0; i < q.tail; i++)
			r->is_full[q.queue[i]] = true;
		return false;
	}
	end = follow_back(r, &q, end);
	for (uint16_t g = 0; g < vm->num_nodes; g++)
		if (vm->nodes[g].host_node == end && can_grow(r, v, g)) {
			take(r, v, g);
			return true;
		}
	return false;
}

/* Floors first; -EINVAL if they do not fit the host. */
static int start(struct round *r)
{
	struct fair *f = r->fair;

	for (uint16_t n = 0; n < r->view->num_nodes; n++)
		r->left[n] = r->view->nodes[n].capacity;
	for (uint32_t v = 0; v < r->view->num_vms; v++) {
		f->total[v] = f->used[v] = f->target[v] = 0;
		f->order[r->num_growing++] = (uint16_t)v;
		for (uint16_t g = 0; g < r->view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &r->view->vms[v].nodes[g];

			if (n->floor > r->left[n->host_node])
				return -EINVAL;
			r->left[n->host_node] -= n->floor;
			r->targets[v].nodes[g] = n->floor;
			f->total[v] += n->floor;
			f->used[v] += n->used;
			f->target[v] += n->target;
		}
	}
	return 0;
}

static int decide_cpus(struct fair *f, const struct ebb_view *view, struct ebb_plan *plan)
{
	struct round r = { .fair = f, .view = view, .targets = plan->targets };
	int rc = start(&r);

	if (rc < 0)
		return rc;
	while (r.num_growing > 0) {
		const uint32_t i = pick(&r);
		const uint32_t v = r.fair->order[i];

		if (!grow_directly(&r, v) && !grow_by_moves(&r, v))
			finish(&r, i);
	}
	return 0;
}

/* ---- memory -------------------------------------------------------------- */

/* A level is blocks per weight, shifted by LEVEL_SHIFT. */
#define LEVEL_SHIFT	16
#define LEVEL_MAX \
	((uint64_t)(EBB_MAX_GUEST_NODES * (EBB_MAX_POOL_MIB / EBB_BLOCK_MIB)) << LEVEL_SHIFT)

static uint32_t mem_ceiling(const struct ebb_view_vm *vm, uint16_t g)
{
	return vm->has_driver ? vm->nodes[g].mem.ceiling : vm->nodes[g].mem.floor;
}

static uint32_t share_at(const struct fair_mem *m, const struct ebb_view_vm *vm, uint32_t v,
			 uint64_t level)
{
	const uint64_t share = (level * vm->mem_weight) >> LEVEL_SHIFT;

	if (share <= m->floor[v])
		return m->floor[v];
	return share < m->ceiling[v] ? (uint32_t)share : m->ceiling[v];
}

static uint64_t sum_at(const struct fair_mem *m, const struct ebb_view *view, uint64_t level)
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < view->num_vms; v++)
		if (m->ceiling[v] > 0)
			sum += share_at(m, &view->vms[v], v, level);
	return sum;
}

static uint64_t used_on(const struct ebb_view_vm *vm, uint16_t h)
{
	uint64_t used = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		used += vm->nodes[g].host_node == h ? vm->nodes[g].mem.used : 0;
	return used;
}

/*
 * The next level would give one block more to more VMs than there are blocks left: those who have
 * it already keep it.
 */
static void share_rest(struct fair_mem *m, const struct ebb_view *view, uint16_t h, uint64_t level,
		       uint64_t rest)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t v = 0; v < view->num_vms && rest > 0; v++) {
			const bool has_it = used_on(&view->vms[v], h) > m->share[v];

			if (m->share[v] < share_at(m, &view->vms[v], v, level + 1) &&
			    has_it == (pass == 0)) {
				m->share[v]++;
				rest--;
			}
		}
}

/* The VM's share of the node among its guest nodes there, evenly above their floors. */
static void spread(const struct ebb_view_vm *vm, uint16_t h, uint32_t share,
		   struct ebb_plan_vm *ret)
{
	uint32_t growing = 1;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		if (vm->nodes[g].host_node == h) {
			ret->mem[g] = vm->nodes[g].mem.floor;
			share -= ret->mem[g];
		}
	while (share > 0 && growing > 0) {
		uint32_t each;

		growing = 0;
		for (uint16_t g = 0; g < vm->num_nodes; g++)
			growing += vm->nodes[g].host_node == h && ret->mem[g] < mem_ceiling(vm, g);
		each = growing && share / growing ? share / growing : 1;
		for (uint16_t g = 0; g < vm->num_nodes && share > 0; g++) {
			uint32_t more = each < share ? each : share;

			if (vm->nodes[g].host_node != h)
				continue;
			if (more > mem_ceiling(vm, g) - ret->mem[g])
				more = mem_ceiling(vm, g) - ret->mem[g];
			ret->mem[g] += more;
			share -= more;
		}
	}
}

static void decide_mem(struct fair_mem *m, const struct ebb_view *view, uint16_t h,
		       struct ebb_plan *plan)
{
	const uint64_t capacity = view->nodes[h].mem_capacity;
	uint64_t low = 0, high = LEVEL_MAX;
	uint64_t sum;

	for (uint32_t v = 0; v < view->num_vms; v++) {
		const struct ebb_view_vm *vm = &view->vms[v];

		m->floor[v] = m->ceiling[v] = 0;
		for (uint16_t g = 0; g < vm->num_nodes; g++)
			if (vm->nodes[g].host_node == h) {
				m->floor[v] += vm->nodes[g].mem.floor;
				m->ceiling[v] += mem_ceiling(vm, g);
			}
	}
	if (sum_at(m, view, LEVEL_MAX) == 0)
		return;
	while (low < high) {
		const uint64_t mid = low + (high - low + 1) / 2;

		if (sum_at(m, view, mid) <= capacity)
			low = mid;
		else
			high = mid - 1;
	}
	for (uint32_t v = 0; v < view->num_vms; v++)
		m->share[v] = m->ceiling[v] ? share_at(m, &view->vms[v], v, low) : 0;
	sum = sum_at(m, view, low);
	if (sum < capacity)
		share_rest(m, view, h, low, capacity - sum);
	for (uint32_t v = 0; v < view->num_vms; v++)
		if (m->ceiling[v] > 0)
			spread(&view->vms[v], h, m->share[v], &plan->targets[v]);
}

static int fair_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	union fair_state *f = st;
	int rc;

	if (view->num_vms > EBB_MAX_VMS)
		return -EINVAL;
	rc = decide_cpus(&f->cpus, view, ret_plan);
	if (rc < 0)
		return rc;
	for (uint16_t h = 0; h < view->num_nodes; h++)
		decide_mem(&f->mem, view, h, ret_plan);
	return 0;
}

const struct ebb_policy_ops ebb_policy_fair = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "fair",
	.state_size = sizeof(union fair_state),
	.decide = fair_decide,
};
