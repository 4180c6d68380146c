// SPDX-License-Identifier: GPL-2.0-or-later
/* See broker.h.  When memory is brokered, and which VMs stay down after it. */
#include <errno.h>
#include <string.h>

#include "policies/mem/broker.h"

_Static_assert(sizeof(struct policy_broker) <= EBB_POLICY_STATE_MAX, "state of a broker");

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The thresholds of a node, in blocks. */
struct levels {
	uint64_t in_use;
	uint32_t threshold, target;
};

static struct levels look_at(const struct ebb_view *view, uint16_t h)
{
	const struct ebb_view_node *n = &view->nodes[h];
	struct levels l = { .threshold = min32(n->mem_threshold, n->mem_capacity) };

	/* 0: there is none. */
	l.threshold = l.threshold ? l.threshold : n->mem_capacity;
	l.target = min32(n->mem_target ? n->mem_target : l.threshold, l.threshold);
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_mem *mem = &view->vms[v].nodes[g].mem;

			if (view->vms[v].nodes[g].host_node == h)
				l.in_use += mem->held > mem->floor ? mem->held : mem->floor;
		}
	return l;
}

/* ---- VMs that are down --------------------------------------------------- */

/* VMs have come and gone; both lists are by order. */
static void match_vms(struct policy_broker *b, const struct ebb_view *view)
{
	const uint32_t num_old = b->num_vms;
	uint32_t i = 0;

	memcpy(b->work.old.order, b->order, num_old * sizeof(b->order[0]));
	memcpy(b->work.old.down, b->down, num_old * sizeof(b->down[0]));
	for (uint32_t v = 0; v < view->num_vms; v++) {
		const uint64_t order = view->vms[v].order;

		while (i < num_old && b->work.old.order[i] < order)
			i++;
		b->order[v] = order;
		b->down[v] = i < num_old && b->work.old.order[i] == order ? b->work.old.down[i] :
									    0;
	}
	b->num_vms = view->num_vms;
}

static void lift(struct policy_broker *b, const struct ebb_view *view, uint16_t h)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; b->down[v] && g < view->vms[v].num_nodes; g++)
			if (view->vms[v].nodes[g].host_node == h)
				b->down[v] &= (policy_guest_nodes)~(1u << g);
}

/* ---- targets ------------------------------------------------------------- */

/* Targets of the last plan; only VMs that are down are asked for memory that they hold. */
static void keep_targets(const struct policy_broker *b, const struct ebb_view *view, uint16_t h,
			 struct ebb_plan *plan)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm *vm = &view->vms[v];
			const bool is_down = b->down[v] & (1u << g);
			const uint32_t least = is_down ? policy_broker_low(vm, g) :
							 policy_broker_base(vm, g);
			uint32_t t = min32(vm->nodes[g].mem.target, policy_broker_high(vm, g));

			if (vm->nodes[g].host_node == h)
				plan->targets[v].mem[g] = t > least ? t : least;
		}
}

/* Balloon: each VM is asked for all that is missing, as if it alone would give. */
static void press(const struct ebb_view *view, uint16_t h, uint64_t missing, struct ebb_plan *plan)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm *vm = &view->vms[v];
			const uint32_t gives = policy_broker_gives(vm, g);

			if (vm->nodes[g].host_node == h)
				plan->targets[v].mem[g] =
					policy_broker_base(vm, g) -
					(gives < missing ? gives : (uint32_t)missing);
		}
}

/* take() has set how much each VM gives; the targets are what it keeps. */
static void lower(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		  struct ebb_plan *plan)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm *vm = &view->vms[v];
			const uint32_t give = plan->targets[v].mem[g];
			uint32_t keep = min32(vm->nodes[g].mem.target, policy_broker_high(vm, g));

			if (vm->nodes[g].host_node != h)
				continue;
			plan->targets[v].mem_cutoff[g] = 0;
			if (give > 0) {
				b->down[v] |= (policy_guest_nodes)(1u << g);
				keep = 0;
			}
			plan->targets[v].mem[g] = policy_broker_base(vm, g) - give;
			if (plan->targets[v].mem[g] < keep)
				plan->targets[v].mem[g] = keep;
		}
}

static void set_cutoffs(const struct policy_broker *b, const struct ebb_view *view, uint16_t h,
			struct ebb_plan *plan)
{
	const uint64_t price = b->nodes[h].price;

	for (uint32_t v = 0; v < view->num_vms && price > 0; v++)
		for (uint16_t g = 0; b->down[v] && g < view->vms[v].num_nodes; g++) {
			const uint32_t weight = view->vms[v].mem_weight;

			if (view->vms[v].nodes[g].host_node == h && b->down[v] & (1u << g))
				plan->targets[v].mem_cutoff[g] = price / (weight ? weight : 1) + 1;
		}
}

/* ---- brokering ----------------------------------------------------------- */

/* A histogram or an ask that is older than a cool-down at the time `then` does not count. */
static bool is_recent(const struct ebb_view *view, usec_t at, usec_t then)
{
	const usec_t age = view->cooldown > POLICY_ASK_USEC ? view->cooldown : POLICY_ASK_USEC;

	return at != 0 && (then < at || then - at < age);
}

/* Whether all VMs that could give have sent a histogram lately before `then`. */
static bool values_are_there(const struct ebb_view *view, uint16_t h, usec_t then)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++)
			if (view->vms[v].nodes[g].host_node == h &&
			    policy_broker_gives(&view->vms[v], g) > 0 &&
			    !is_recent(view, view->vms[v].nodes[g].mem.vom_at, then))
				return false;
	return true;
}

/* Whether to wait for guests to say what memory is worth to them. */
static bool must_wait(const struct policy_broker_rule *rule, const struct ebb_view *view,
		      uint16_t h, struct ebb_plan *plan)
{
	if (!rule->needs_values || values_are_there(view, h, view->now))
		return false;
	if (view->vom_is_open)
		return true;
	/* A guest that has not answered by now is judged by its last histogram, or a guess. */
	if (is_recent(view, view->vom_asked_at, view->now))
		return false;
	plan->asks_vom = true;
	return true;
}

/* Memory is short, and will be judged again in a moment: guests are asked before. */
static bool asks_ahead(const struct policy_broker_rule *rule, const struct ebb_view *view,
		       uint16_t h, usec_t end)
{
	return rule->needs_values && view->now < end && end - view->now <= POLICY_AHEAD_USEC &&
	       !values_are_there(view, h, end) && !is_recent(view, view->vom_asked_at, end);
}

static void settle_node(struct policy_broker *b, const struct policy_broker_rule *rule,
			const struct ebb_view *view, uint16_t h, struct ebb_plan *plan)
{
	struct policy_broker_node *n = &b->nodes[h];
	const struct levels l = look_at(view, h);
	const bool is_cool = !n->has_brokered || view->now - n->brokered_at >= view->cooldown;
	bool is_due = is_cool && l.in_use > l.threshold;

	if (l.in_use <= l.target || (is_cool && !is_due)) {
		lift(b, view, h);
		n->is_pressing = false;
	}
	if (!is_cool && l.in_use > l.threshold &&
	    asks_ahead(rule, view, h, n->brokered_at + view->cooldown))
		plan->asks_vom = true;
	if (is_due && must_wait(rule, view, h, plan)) {
		keep_targets(b, view, h, plan);
		policy_broker_fit(b, view, h, plan);
		set_cutoffs(b, view, h, plan);
		return;
	}
	if (is_due) {
		*n = (struct policy_broker_node){
			.has_brokered = true, .brokered_at = view->now,
			.is_pressing = rule->is_balloon,
		};
		lift(b, view, h);
	}
	if (n->is_pressing) {
		press(view, h, l.in_use - l.target, plan);
		policy_broker_fit(b, view, h, plan);
		return;
	}
	if (is_due) {
		rule->take(b, view, h, l.in_use - l.target, plan);
		lower(b, view, h, plan);
	} else {
		keep_targets(b, view, h, plan);
	}
	policy_broker_fit(b, view, h, plan);
	policy_broker_offer(b, view, h, plan);
	set_cutoffs(b, view, h, plan);
}

int policy_broker_decide(struct policy_broker *b, const struct policy_broker_rule *rule,
			 const struct ebb_view *view, struct ebb_plan *plan)
{
	if (view->num_vms > EBB_MAX_VMS)
		return -EINVAL;
	match_vms(b, view);
	for (uint16_t h = 0; h < view->num_nodes; h++)
		settle_node(b, rule, view, h, plan);
	return 0;
}
