// SPDX-License-Identifier: GPL-2.0-or-later
/* See fill.h. */
#include <errno.h>

#include "policies/cpu/fill.h"
#include "policies/heap.h"

struct round {
	struct policy_fill *fill;
	const struct policy_fill_rule *rule;
	uint32_t num_growing;		/* entries of the heap */
	/*
	 * No core can be found for this node any more, on it or by moves.  That
	 * stays so: every VM with a core to give there is at its ceiling on all
	 * nodes that are not full, so nothing that happens on those concerns it.
	 */
	bool is_full[EBB_MAX_NODES];
};

uint16_t policy_ceiling(const struct ebb_view_vm *vm, uint16_t g)
{
	return vm->has_driver ? vm->nodes[g].ceiling : vm->nodes[g].floor;
}

static bool can_grow(const struct round *r, uint32_t v, uint16_t g)
{
	const struct policy_fill *f = r->fill;

	return f->targets[v].nodes[g] < r->rule->ceiling(r->rule->ctx, f->view, v, g);
}

static bool can_shrink(const struct round *r, uint32_t v, uint16_t g)
{
	return r->fill->targets[v].nodes[g] > r->fill->view->vms[v].nodes[g].floor;
}

/* Whether VM a is to get the next core rather than b. */
static bool is_first(const void *ctx, uint32_t a, uint32_t b)
{
	const struct policy_fill *f = ctx;
	const struct policy_fill_vms *vms = f->vms;
	const uint32_t ta = vms->total[a], tb = vms->total[b];
	/* Rounding to the nearest: half a core more than it has, per weight. */
	const uint64_t key_a = (2ull * (ta - vms->base[a]) + 1) * f->view->vms[b].weight;
	const uint64_t key_b = (2ull * (tb - vms->base[b]) + 1) * f->view->vms[a].weight;
	int64_t more_a, more_b;

	if (key_a != key_b)
		return key_a < key_b;
	more_a = (int64_t)vms->used[a] - ta;
	more_b = (int64_t)vms->used[b] - tb;
	if (more_a != more_b)
		return more_a > more_b;
	more_a = (int64_t)vms->target[a] - ta;
	more_b = (int64_t)vms->target[b] - tb;
	if (more_a != more_b)
		return more_a > more_b;
	return a < b;
}

/* The first one may have become less urgent. */
static void sink_first(struct round *r)
{
	policy_heap_sink(r->fill->vms->heap, r->num_growing, 0, is_first, r->fill);
}

static void finish_first(struct round *r)
{
	uint16_t *heap = r->fill->vms->heap;

	heap[0] = heap[--r->num_growing];
	if (r->num_growing > 0)
		sink_first(r);
}

static void take(struct round *r, uint32_t v, uint16_t g)
{
	struct policy_fill *f = r->fill;

	f->targets[v].nodes[g]++;
	f->vms->total[v]++;
	f->left[f->view->vms[v].nodes[g].host_node]--;
}

/* How much VM v wants its next core on guest node g: what it has there already counts most. */
static uint32_t attraction(const struct round *r, uint32_t v, uint16_t g)
{
	const struct ebb_view_vm_node *n = &r->fill->view->vms[v].nodes[g];
	const uint16_t t = r->fill->targets[v].nodes[g];

	return (t < n->used ? 2u * UINT16_MAX : 0) + (t < n->target ? 1u * UINT16_MAX : 0) +
	       r->fill->left[n->host_node];
}

static bool grow_directly(struct round *r, uint32_t v)
{
	const struct ebb_view_vm *vm = &r->fill->view->vms[v];
	uint16_t best = EBB_NODE_ANY;

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		if (!can_grow(r, v, g) || r->fill->left[vm->nodes[g].host_node] == 0)
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
	for (uint32_t v = 0; v < r->fill->view->num_vms; v++) {
		const struct ebb_view_vm *vm = &r->fill->view->vms[v];

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
				if (r->fill->left[to] > 0)
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

		r->fill->targets[m->vm].nodes[m->from_g]--;
		r->fill->targets[m->vm].nodes[m->to_g]++;
		r->fill->left[end]--;
		r->fill->left[m->before]++;
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
	const struct ebb_view_vm *vm = &r->fill->view->vms[v];
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

int policy_fill_start(struct policy_fill *f, struct policy_fill_vms *vms,
		      const struct ebb_view *view, const uint32_t *capacity,
		      struct ebb_plan_vm *targets)
{
	if (view->num_vms > EBB_MAX_VMS)
		return -EINVAL;
	*f = (struct policy_fill){ .vms = vms, .view = view, .targets = targets };
	for (uint16_t n = 0; n < view->num_nodes; n++)
		f->left[n] = capacity[n];
	for (uint32_t v = 0; v < view->num_vms; v++) {
		vms->total[v] = vms->base[v] = vms->used[v] = vms->target[v] = 0;
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];

			if (n->floor > f->left[n->host_node])
				return -EINVAL;
			f->left[n->host_node] -= n->floor;
			targets[v].nodes[g] = n->floor;
			vms->total[v] += n->floor;
			vms->used[v] += n->used;
			vms->target[v] += n->target;
		}
	}
	return 0;
}

void policy_fill_round(struct policy_fill *f, const struct policy_fill_rule *rule)
{
	struct round r = { .fill = f, .rule = rule };

	for (uint32_t v = 0; v < f->view->num_vms; v++)
		if (!rule->takes_part || rule->takes_part(rule->ctx, f->view, v))
			f->vms->heap[r.num_growing++] = (uint16_t)v;
	policy_heap_make(f->vms->heap, r.num_growing, is_first, f);
	while (r.num_growing > 0) {
		const uint32_t v = f->vms->heap[0];

		if (grow_directly(&r, v) || (rule->has_moves && grow_by_moves(&r, v)))
			sink_first(&r);
		else
			finish_first(&r);
	}
}

void policy_fill_rebase(struct policy_fill *f)
{
	for (uint32_t v = 0; v < f->view->num_vms; v++)
		f->vms->base[v] = f->vms->total[v];
}
