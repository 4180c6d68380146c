// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits.  They are a level: the newest ones replace all older ones, and a
 * reader that has missed some reads the newest.
 */
#include "objects/limits.h"

#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>

void ebb_limits_init(struct ebb_limit_state *state)
{
	spin_lock_init(&state->lock);
	init_waitqueue_head(&state->wait);
}

void ebb_limits_wake(struct ebb_limit_state *state)
{
	wake_up_interruptible_all(&state->wait);
}

void ebb_limits_changed(struct ebb_limit_state *state)
{
	unsigned long irqflags;

	spin_lock_irqsave(&state->lock, irqflags);
	state->seq++;
	spin_unlock_irqrestore(&state->lock, irqflags);
	ebb_limits_wake(state);
}

static u64 deadline_of(u64 now_ns, u32 deadline_ms)
{
	return deadline_ms ? now_ns + (u64)deadline_ms * NSEC_PER_MSEC : 0;
}

void ebb_limits_take(struct ebb_limit_state *state, const struct ebb_wire_event *event,
		     u32 num_nodes)
{
	u64 now_ns = ktime_get_ns();
	unsigned long irqflags;
	bool is_new;
	u32 i;

	spin_lock_irqsave(&state->lock, irqflags);
	is_new = event->generation > state->generation;
	if (is_new) {
		state->generation = event->generation;
		state->vom_seq = event->vom_seq;
		state->mem_promise_mib = event->mem_promise_mib;
		for (i = 0; i < num_nodes; i++) {
			const struct ebb_wire_limit *node = &event->limits[i];
			bool is_demand = node->cpus_held > node->cpus_limit;

			state->nodes[i] = *node;
			state->deadline_ns[i] = is_demand ?
				deadline_of(now_ns, node->deadline_ms) : 0;
			/* How much is held, this side knows best: see chardev.c. */
			state->mem_deadline_ns[i] = deadline_of(now_ns, node->mem_deadline_ms);
		}
		state->seq++;
	}
	spin_unlock_irqrestore(&state->lock, irqflags);
	if (is_new)
		ebb_limits_wake(state);
}

void ebb_limits_read(struct ebb_limit_state *state, const struct ebb_wire_config *cfg,
		     struct ebb_limits *ret, struct ebb_limits_seen *seen)
{
	u32 i;

	memset(ret->nodes, 0, sizeof(ret->nodes));
	spin_lock_irq(&state->lock);
	ret->generation = state->generation;
	ret->vom_seq = state->vom_seq;
	ret->mem_promise_mib = state->mem_promise_mib;
	ret->reserved = 0;
	ret->num_nodes = ret->generation ? cfg->num_nodes : 0;
	for (i = 0; i < ret->num_nodes; i++) {
		ret->nodes[i].node = cfg->linux_node[i];
		ret->nodes[i].tier = state->nodes[i].tier;
		ret->nodes[i].cpus_held = state->nodes[i].cpus_held;
		ret->nodes[i].cpus_limit = state->nodes[i].cpus_limit;
		ret->nodes[i].deadline_ns = state->deadline_ns[i];
		ret->nodes[i].mem_limit_bytes = state->nodes[i].mem_limit_bytes;
		ret->nodes[i].mem_deadline_ns = state->mem_deadline_ns[i];
		ret->nodes[i].mem_cutoff = state->nodes[i].mem_cutoff;
	}
	*seen = (struct ebb_limits_seen) { .seq = state->seq, .is_any = true };
	spin_unlock_irq(&state->lock);
}

bool ebb_limits_is_news(struct ebb_limit_state *state, const struct ebb_limits_seen *seen)
{
	bool is_news;

	spin_lock_irq(&state->lock);
	is_news = !seen->is_any || seen->seq != state->seq;
	spin_unlock_irq(&state->lock);
	return is_news;
}
