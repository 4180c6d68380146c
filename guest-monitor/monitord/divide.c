// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dividing offers and demands among applications: rules and invariants are in
 * divide.h.
 */
#include "divide.h"

#define NS_PER_MS	1000000ull

bool ebb_divide_is_absent(const struct ebb_divide_app *app, uint64_t now_ns)
{
	return app->silent_since_ns &&
	       now_ns >= app->silent_since_ns + EBB_DIVIDE_ABSENT_MS * NS_PER_MS;
}

static void node_forget(struct ebb_divide_node *n)
{
	n->is_passed = false;
	n->offered_since_ns = 0;
}

static void node_age(struct ebb_divide_node *n, uint64_t now_ns)
{
	if (n->owned != n->owned_before) {
		node_forget(n);
	} else if (n->offered_since_ns &&
		   now_ns >= n->offered_since_ns + EBB_DIVIDE_PATIENCE_MS * NS_PER_MS) {
		n->is_passed = true;
		n->offered_since_ns = 0;
	}
	n->owned_before = n->owned;
}

/* Who has been passed over; forgotten if that leaves nobody to offer to. */
static void patience_apply(const struct ebb_view_node *v, struct ebb_divide_app *const apps[],
			   size_t num, uint64_t now_ns)
{
	bool is_anybody_left = false;

	for (size_t i = 0; i < num; i++) {
		struct ebb_divide_node *n = &apps[i]->nodes[v->node];

		node_age(n, now_ns);
		if (!n->is_passed && !ebb_divide_is_absent(apps[i], now_ns))
			is_anybody_left = true;
	}
	if (v->offer > 0 && is_anybody_left)
		return;
	for (size_t i = 0; i < num; i++)
		node_forget(&apps[i]->nodes[v->node]);
}

static void offer_divide(const struct ebb_view_node *v, struct ebb_divide_app *const apps[],
			 size_t num, uint64_t now_ns)
{
	for (uint32_t left = v->offer; left > 0; left--) {
		struct ebb_divide_node *poorest = NULL;

		for (size_t i = 0; i < num; i++) {
			struct ebb_divide_node *n = &apps[i]->nodes[v->node];

			if (n->is_passed || ebb_divide_is_absent(apps[i], now_ns))
				continue;
			if (!poorest || n->owned + n->offered < poorest->owned + poorest->offered)
				poorest = n;
		}
		if (!poorest)
			return;
		poorest->offered++;
	}
}

/* Takes from applications that are absent or from those that are not; returns what is left. */
static uint32_t demand_divide(const struct ebb_view_node *v, struct ebb_divide_app *const apps[],
			      size_t num, uint64_t now_ns, uint32_t left, bool is_absent)
{
	for (; left > 0; left--) {
		struct ebb_divide_node *richest = NULL;

		for (size_t i = 0; i < num; i++) {
			struct ebb_divide_node *n = &apps[i]->nodes[v->node];

			if (ebb_divide_is_absent(apps[i], now_ns) != is_absent ||
			    n->owned == n->demanded)
				continue;
			if (!richest ||
			    n->owned - n->demanded >= richest->owned - richest->demanded)
				richest = n;
		}
		if (!richest)
			break;
		richest->demanded++;
	}
	return left;
}

static uint64_t node_divide(const struct ebb_view_node *v, struct ebb_divide_app *const apps[],
			    size_t num, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;
	uint32_t left;

	for (size_t i = 0; i < num; i++) {
		struct ebb_divide_node *n = &apps[i]->nodes[v->node];

		n->owned = n->claimed < v->hotplugged ? n->claimed : v->hotplugged;
		n->offered = 0;
		n->demanded = 0;
	}
	patience_apply(v, apps, num, now_ns);
	offer_divide(v, apps, num, now_ns);
	left = demand_divide(v, apps, num, now_ns, v->demand, false);
	demand_divide(v, apps, num, now_ns, left, true);

	for (size_t i = 0; i < num; i++) {
		struct ebb_divide_node *n = &apps[i]->nodes[v->node];
		uint64_t end_ns;

		if (n->offered == 0)
			n->offered_since_ns = 0;
		else if (n->offered_since_ns == 0)
			n->offered_since_ns = now_ns;
		if (n->offered == 0)
			continue;
		end_ns = n->offered_since_ns + EBB_DIVIDE_PATIENCE_MS * NS_PER_MS;
		if (end_ns < due_ns)
			due_ns = end_ns;
	}
	return due_ns;
}

uint64_t ebb_divide(const struct ebb_view *view, struct ebb_divide_app *const apps[], size_t num,
		    uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (uint32_t i = 0; i < view->num_nodes; i++) {
		uint64_t node_due_ns = node_divide(&view->nodes[i], apps, num, now_ns);

		/* A lone application has nobody to be passed over for. */
		if (num > 1 && node_due_ns < due_ns)
			due_ns = node_due_ns;
	}
	for (size_t i = 0; i < num; i++) {
		uint64_t end_ns = apps[i]->silent_since_ns + EBB_DIVIDE_ABSENT_MS * NS_PER_MS;

		if (apps[i]->silent_since_ns && now_ns < end_ns && end_ns < due_ns)
			due_ns = end_ns;
	}
	return due_ns;
}
