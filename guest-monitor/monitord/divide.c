// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dividing offers and demands among applications: rules and invariants are in
 * divide.h.
 */
#include "cut.h"
#include "divide.h"
#include "fill.h"

#define NS_PER_MS		1000000ull
#define PATIENCE_NS		(EBB_DIVIDE_PATIENCE_MS * NS_PER_MS)
#define NODE_PATIENCE_NS	(EBB_DIVIDE_NODE_PATIENCE_MS * NS_PER_MS)

/* One kind on one node, as the VM has it. */
struct supply {
	enum ebb_divide_kind kind;
	uint32_t node;
	uint64_t step;			/* what a unit is worth */
	uint64_t in_use;		/* by all applications together */
	uint64_t offer;
	uint64_t demand;
};

struct round {
	struct ebb_divide_app *const *apps;
	size_t num;
	uint64_t now_ns;
	uint64_t level[EBB_DIVIDE_MAX_APPS]; /* of one kind, in the whole VM */
};

static uint64_t absent_ns(const struct ebb_divide_app *app)
{
	return app->silent_since_ns +
	       (app->is_adding ? NODE_PATIENCE_NS : EBB_DIVIDE_ABSENT_MS * NS_PER_MS);
}

uint32_t ebb_divide_promise(uint32_t promise_mib, size_t rank, size_t num)
{
	return promise_mib / (uint32_t)num + (rank < promise_mib % num);
}

bool ebb_divide_is_absent(const struct ebb_divide_app *app, uint64_t now_ns)
{
	return app->silent_since_ns && now_ns >= absent_ns(app);
}

static struct supply supply_of(const struct ebb_view_node *v, enum ebb_divide_kind kind)
{
	struct supply supply = { .kind = kind, .node = v->node };

	if (kind == EBB_DIVIDE_CPU) {
		supply.step = 1;
		supply.in_use = v->hotplugged;
		supply.offer = v->offer;
		supply.demand = v->demand;
	} else {
		/* Without a pool there is nothing to divide. */
		supply.step = v->mem_block_bytes ? v->mem_block_bytes : 1;
		supply.in_use = v->mem_leased_bytes;
		supply.offer = v->mem_offer_bytes;
		supply.demand = v->mem_demand_bytes;
	}
	return supply;
}

/* When the application will be passed over there if it does not move. */
static uint64_t patience_end_ns(const struct ebb_divide_app *app, enum ebb_divide_kind kind,
				const struct ebb_divide_node *n)
{
	uint64_t since_ns = n->offered_since_ns;
	uint64_t end_ns = (app->moved_ns[kind] > since_ns ? app->moved_ns[kind] : since_ns) +
			  PATIENCE_NS;

	return end_ns < since_ns + NODE_PATIENCE_NS ? end_ns : since_ns + NODE_PATIENCE_NS;
}

static void node_forget(struct ebb_divide_node *n)
{
	n->is_passed = false;
	n->offered_since_ns = 0;
}

/* What each application has, and whether that is news. */
static void owned_update(const struct ebb_view *view, enum ebb_divide_kind kind,
			 struct round *round)
{
	for (size_t a = 0; a < round->num; a++) {
		struct ebb_divide_app *app = round->apps[a];
		bool has_moved = kind == EBB_DIVIDE_CPU && (app->is_adding || app->was_adding);

		round->level[a] = 0;
		for (uint32_t i = 0; i < view->num_nodes; i++) {
			struct supply s = supply_of(&view->nodes[i], kind);
			struct ebb_divide_node *n = &app->nodes[kind][s.node];

			n->owned = n->claimed < s.in_use ? n->claimed : s.in_use;
			n->owned -= n->owned % s.step;
			n->offered = n->demanded = 0;
			round->level[a] += n->owned;
			if (n->owned == n->owned_before)
				continue;
			n->owned_before = n->owned;
			node_forget(n);
			has_moved = true;
		}
		if (has_moved)
			app->moved_ns[kind] = round->now_ns;
	}
}

/*
 * Marks applications that have not taken their offer in time. If that leaves none to offer to, all
 * marks are cleared.
 */
static void patience_apply(const struct supply *s, struct round *round)
{
	bool is_anybody_left = false;

	for (size_t a = 0; a < round->num; a++) {
		struct ebb_divide_app *app = round->apps[a];
		struct ebb_divide_node *n = &app->nodes[s->kind][s->node];

		if (n->offered_since_ns &&
		    round->now_ns >= patience_end_ns(app, s->kind, n)) {
			n->is_passed = true;
			n->offered_since_ns = 0;
		}
		if (!n->is_passed && !ebb_divide_is_absent(app, round->now_ns))
			is_anybody_left = true;
	}
	if (s->offer > 0 && is_anybody_left)
		return;
	for (size_t a = 0; a < round->num; a++)
		node_forget(&round->apps[a]->nodes[s->kind][s->node]);
}

static void offer_divide(const struct supply *s, struct round *round)
{
	struct ebb_fill parts[EBB_DIVIDE_MAX_APPS];

	for (size_t a = 0; a < round->num; a++) {
		parts[a].is_in = !round->apps[a]->nodes[s->kind][s->node].is_passed &&
				 !ebb_divide_is_absent(round->apps[a], round->now_ns);
		parts[a].level = round->level[a];
	}
	ebb_fill_up(parts, round->num, s->offer / s->step, s->step);
	for (size_t a = 0; a < round->num; a++) {
		struct ebb_divide_node *n = &round->apps[a]->nodes[s->kind][s->node];

		n->offered = parts[a].units * s->step;
		round->level[a] += n->offered;
		if (n->offered == 0)
			n->offered_since_ns = 0;
		else if (n->offered_since_ns == 0)
			n->offered_since_ns = round->now_ns;
	}
}

/* Is it known what the memory there is worth that applications which are not absent own? */
static bool is_valued(const struct supply *s, const struct round *round)
{
	for (size_t a = 0; s->kind == EBB_DIVIDE_MEM && a < round->num; a++) {
		const struct ebb_divide_app *app = round->apps[a];

		if (!app->values && app->nodes[s->kind][s->node].owned > 0 &&
		    !ebb_divide_is_absent(app, round->now_ns))
			return false;
	}
	return s->kind == EBB_DIVIDE_MEM;
}

/* Of applications that are there, what is worth least; returns units left. */
static uint64_t demand_cut(const struct supply *s, struct round *round, uint64_t units)
{
	struct ebb_cut parts[EBB_DIVIDE_MAX_APPS] = { 0 };

	for (size_t a = 0; a < round->num; a++) {
		const struct ebb_divide_app *app = round->apps[a];

		if (!app->values || ebb_divide_is_absent(app, round->now_ns))
			continue;
		parts[a].buckets = app->values->buckets;
		parts[a].num_buckets = app->values->num_buckets;
		parts[a].owned = app->nodes[s->kind][s->node].owned;
	}
	units = ebb_cut_down(parts, round->num, s->node, units, s->step);
	for (size_t a = 0; a < round->num; a++) {
		round->apps[a]->nodes[s->kind][s->node].demanded = parts[a].units * s->step;
		round->level[a] -= parts[a].units * s->step;
	}
	return units;
}

/* Takes from applications that are absent or from those that are not; returns units left. */
static uint64_t demand_divide(const struct supply *s, struct round *round, uint64_t units,
			      bool is_absent)
{
	struct ebb_fill parts[EBB_DIVIDE_MAX_APPS];

	for (size_t a = 0; a < round->num; a++) {
		const struct ebb_divide_app *app = round->apps[a];

		parts[a].is_in = ebb_divide_is_absent(app, round->now_ns) == is_absent;
		parts[a].level = round->level[a];
		parts[a].most = app->nodes[s->kind][s->node].owned / s->step;
	}
	units = ebb_fill_down(parts, round->num, units, s->step);
	for (size_t a = 0; a < round->num; a++) {
		if (!parts[a].is_in)
			continue;
		round->apps[a]->nodes[s->kind][s->node].demanded = parts[a].units * s->step;
		round->level[a] -= parts[a].units * s->step;
	}
	return units;
}

static uint64_t kind_divide(const struct ebb_view *view, enum ebb_divide_kind kind,
			    struct round *round)
{
	uint64_t due_ns = UINT64_MAX;

	owned_update(view, kind, round);
	/* Levels while offers are handed out are not those while demands are collected. */
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		struct supply s = supply_of(&view->nodes[i], kind);

		patience_apply(&s, round);
		offer_divide(&s, round);
	}
	for (size_t a = 0; a < round->num; a++)
		for (uint32_t i = 0; i < view->num_nodes; i++)
			round->level[a] -=
				round->apps[a]->nodes[kind][view->nodes[i].node].offered;
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		struct supply s = supply_of(&view->nodes[i], kind);
		uint64_t left = (s.demand + s.step - 1) / s.step;

		left = is_valued(&s, round) ? demand_cut(&s, round, left) :
					      demand_divide(&s, round, left, false);

		demand_divide(&s, round, left, true);
		/* A lone application has nobody to be passed over for. */
		for (size_t a = 0; a < round->num && round->num > 1; a++) {
			const struct ebb_divide_node *n = &round->apps[a]->nodes[kind][s.node];
			uint64_t end_ns = patience_end_ns(round->apps[a], kind, n);

			if (n->offered > 0 && end_ns < due_ns)
				due_ns = end_ns;
		}
	}
	return due_ns;
}

uint64_t ebb_divide(const struct ebb_view *view, struct ebb_divide_app *const apps[], size_t num,
		    uint64_t now_ns)
{
	struct round round = { .apps = apps, .num = num, .now_ns = now_ns };
	uint64_t due_ns = UINT64_MAX;

	for (int kind = 0; kind < EBB_DIVIDE_KINDS; kind++) {
		uint64_t kind_due_ns = kind_divide(view, (enum ebb_divide_kind)kind, &round);

		if (kind_due_ns < due_ns)
			due_ns = kind_due_ns;
	}
	for (size_t a = 0; a < num; a++) {
		apps[a]->was_adding = apps[a]->is_adding;
		if (apps[a]->silent_since_ns && now_ns < absent_ns(apps[a]) &&
		    absent_ns(apps[a]) < due_ns)
			due_ns = absent_ns(apps[a]);
	}
	return due_ns;
}
