// SPDX-License-Identifier: GPL-2.0-or-later
/* See broker_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/broker/broker_rig.h"

struct rig_told told;

static int told_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	told.num_decided++;
	told.asked_at = view->vom_asked_at;
	told.is_open = view->vom_is_open;
	ret_plan->asks_vom = told.asks;
	for (uint32_t v = 0; v < view->num_vms && v < RIG_VMS; v++) {
		const struct ebb_view_mem *m = &view->vms[v].nodes[0].mem;
		char *text = told.buckets[v];
		size_t n = 0;

		ret_plan->targets[v].nodes[0] = view->vms[v].nodes[0].floor;
		ret_plan->targets[v].mem[0] = told.target_mib[v] / EBB_BLOCK_MIB;
		ret_plan->targets[v].mem_cutoff[0] = told.cutoff[v];
		told.vom_at[v] = m->vom_at;
		told.held_mib[v] = m->held * EBB_BLOCK_MIB;
		text[0] = '\0';
		for (uint32_t i = 0; i < m->num_buckets && n < sizeof(told.buckets[v]) - 40; i++)
			n += (size_t)snprintf(text + n, sizeof(told.buckets[v]) - n, "%s%llu/%u",
					      i ? " " : "",
					      (unsigned long long)m->buckets[i].value,
					      m->buckets[i].kib >> 10);
	}
	return 0;
}

#define TOLD_POLICY { \
	.abi = EBB_POLICY_ABI, .size = sizeof(struct ebb_policy_ops), .name = "told", \
	.decide = told_decide, .mem_review_usec = RIG_REVIEW_USEC, \
}

/* Twice the same: exchanged for each other they decide anew. */
static const struct ebb_policy_ops told_policies[2] = { TOLD_POLICY, TOLD_POLICY };

void rig_holds(struct script *s, char vm, uint32_t held_mib)
{
	script_pool(s, vm, 0, (uint32_t)(s->pools[vm - 'a'][0].requested_bytes >> 20), held_mib,
		    0);
	assert_int_equal(script_mem(s, vm), 0);
}

void rig_settle(struct script *s)
{
	for (int i = 0; i < 4; i++) {
		script_settle(s);
		for (char vm = 'a'; vm < 'a' + RIG_VMS; vm++)
			if (script_vm(s, vm)) {
				struct ebb_pool_fact *p = &s->pools[vm - 'a'][0];

				p->requested_bytes = script_vm(s, vm)->pools[0].told *
						     EBB_BLOCK_BYTES;
				if (script_vm(s, vm)->link_up)
					assert_int_equal(script_mem(s, vm), 0);
			}
	}
	script_settle(s);
}

int rig_setup(void **state)
{
	struct script *s = calloc(1, sizeof(*s));

	memset(&told, 0, sizeof(told));
	told.target_mib[0] = told.target_mib[1] = 400;
	script_init(s, 1, 8, 1, false);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &told_policies[0]), 0);
	s->can_vom = true;
	script_boot(s, 'a', 1, "1/1m0-1024");
	script_boot(s, 'b', 2, "1/1m0-1024");
	rig_settle(s);
	rig_holds(s, 'a', 400);
	rig_holds(s, 'b', 400);
	s->now += SEC(5);
	rig_settle(s);
	s->now += SEC(5);
	rig_settle(s);
	assert_int_equal(told.held_mib[0], 400);
	assert_int_equal(told.held_mib[1], 400);
	told.num_decided = 0;
	*state = s;
	return 0;
}

int rig_teardown(void **state)
{
	script_finish(*state);
	free(*state);
	return 0;
}

void rig_decide_again(struct script *s)
{
	const struct ebb_policy_ops *other =
		&told_policies[ebb_state_policy(s->state) == &told_policies[0]];

	s->now += MSEC(1);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, other), 0);
}

void rig_ask(struct script *s)
{
	told.asks = true;
	rig_decide_again(s);
	script_settle(s);
	told.asks = false;
}

uint32_t rig_seq(const struct script *s)
{
	return ebb_state_broker(s->state)->seq;
}
