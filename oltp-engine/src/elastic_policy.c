// SPDX-License-Identifier: GPL-2.0-or-later
/* Which CPUs to take and to give back: see elastic_policy.h. Rules are cited by number. */
#include <string.h>

#include "elastic_policy.h"

#define PAUSE_FIRST_NS	50000000ull
#define PAUSE_MAX_NS	1000000000ull

void elastic_policy_init(struct elastic_state *state, const struct elastic_config *config,
			 uint64_t now_ns)
{
	*state = (struct elastic_state){ .next_step_ns = now_ns + config->step_ns };
}

static bool is_listed(const struct elastic_action *action, uint32_t cpu)
{
	for (uint32_t i = 0; i < action->n_cpus; i++) {
		if (action->cpus[i] == cpu)
			return true;
	}
	return false;
}

static bool is_forced(const struct oltp_cpu_view *view, uint32_t cpu)
{
	for (uint32_t i = 0; i < view->n_forced; i++) {
		if (view->forced[i] == cpu)
			return true;
	}
	return false;
}

static void list_cpu(struct elastic_action *action, const struct elastic_cpu *cpu)
{
	if (cpu->is_startup || action->n_cpus == OLTP_MOVE_MAX || is_listed(action, cpu->cpu))
		return;
	action->cpus[action->n_cpus++] = cpu->cpu;
}

/* Lists up to n more CPUs, of one node or (node NULL) of any, those added last first. */
static void list_latest(const struct elastic_facts *facts, const uint32_t *node, uint32_t n,
			struct elastic_action *action)
{
	uint32_t wanted = action->n_cpus + n;

	for (uint32_t i = facts->n_cpus; i-- > 0 && action->n_cpus < wanted;) {
		if (!node || facts->cpus[i].node == *node)
			list_cpu(action, &facts->cpus[i]);
	}
}

/* P2, P3 and the first half of P5. */
static void list_due(const struct elastic_config *config, const struct elastic_facts *facts,
		     struct elastic_action *action)
{
	const struct oltp_cpu_view *view = facts->view;
	uint32_t left;

	for (uint32_t i = 0; i < facts->n_cpus; i++) {
		if (facts->cpus[i].is_idle || is_forced(view, facts->cpus[i].cpu))
			list_cpu(action, &facts->cpus[i]);
	}
	/* A forced CPU no longer counts as held, so it does not meet a demand either. */
	for (uint32_t i = 0; i < view->n_nodes; i++)
		list_latest(facts, &view->nodes[i].node, view->nodes[i].cpus_demanded, action);
	left = facts->n_cpus - action->n_cpus;
	if (config->max_cpus && left > config->max_cpus)
		list_latest(facts, NULL, left - config->max_cpus, action);
}

/* The node with the most to offer; NULL: nothing is offered or wanted. */
static const struct oltp_node_share *best_offer(const struct elastic_config *config,
						const struct elastic_facts *facts)
{
	const struct oltp_node_share *best = NULL;

	if (config->max_cpus && facts->n_cpus >= config->max_cpus)
		return NULL;
	for (uint32_t i = 0; i < facts->view->n_nodes; i++) {
		const struct oltp_node_share *share = &facts->view->nodes[i];

		if (share->cpus_offered && !share->cpus_demanded &&
		    (!best || share->cpus_offered > best->cpus_offered))
			best = share;
	}
	return best;
}

static bool is_paused(const struct elastic_pause *pause, uint64_t now_ns, uint64_t *wake_ns)
{
	if (!pause->length_ns || now_ns >= pause->until_ns)
		return false;
	if (pause->until_ns < *wake_ns)
		*wake_ns = pause->until_ns;
	return true;
}

/* P5 and P6. */
static void take_offer(const struct elastic_config *config, const struct elastic_facts *facts,
		       uint32_t most, struct elastic_action *action)
{
	const struct oltp_node_share *offer = best_offer(config, facts);
	uint32_t n;

	if (!offer)
		return;
	n = offer->cpus_offered < most ? offer->cpus_offered : most;
	if (config->max_cpus && n > config->max_cpus - facts->n_cpus)
		n = config->max_cpus - facts->n_cpus;
	action->kind = ELASTIC_ADD;
	action->node = offer->node;
	action->n_cpus = n;
}

static uint32_t count_added(const struct elastic_facts *facts)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < facts->n_cpus; i++)
		n += !facts->cpus[i].is_startup;
	return n;
}

/* P7. */
static void step(const struct elastic_config *config, struct elastic_state *state,
		 const struct elastic_facts *facts, struct elastic_action *action)
{
	if (state->direction == ELASTIC_DONE)
		return;
	if (facts->now_ns < state->next_step_ns) {
		if (state->next_step_ns < action->wake_ns)
			action->wake_ns = state->next_step_ns;
		return;
	}
	if (state->direction == ELASTIC_UP && !best_offer(config, facts)) {
		if (!count_added(facts))
			return;
		state->direction = ELASTIC_DOWN;
	} else if (state->direction == ELASTIC_DOWN && !count_added(facts)) {
		state->direction = ELASTIC_DONE;
		return;
	}
	if (state->direction == ELASTIC_UP) {
		if (!is_paused(&state->add_pause, facts->now_ns, &action->wake_ns))
			take_offer(config, facts, 1, action);
	} else if (!is_paused(&state->remove_pause, facts->now_ns, &action->wake_ns)) {
		list_latest(facts, NULL, 1, action);
		action->kind = ELASTIC_REMOVE;
	}
}

void elastic_policy_next(const struct elastic_config *config, struct elastic_state *state,
			 const struct elastic_facts *facts, struct elastic_action *ret_action)
{
	struct elastic_action action = { .wake_ns = UINT64_MAX };

	if (state->is_in_flight)
		goto out;
	list_due(config, facts, &action);
	if (action.n_cpus) {
		if (!is_paused(&state->remove_pause, facts->now_ns, &action.wake_ns))
			action.kind = ELASTIC_REMOVE;
		else
			action.n_cpus = 0;
	} else if (config->mode == OLTP_ELASTIC_STEP) {
		step(config, state, facts, &action);
	} else if (best_offer(config, facts) &&
		   !is_paused(&state->add_pause, facts->now_ns, &action.wake_ns)) {
		take_offer(config, facts, OLTP_MOVE_MAX, &action);
	}
out:
	*ret_action = action;
}

void elastic_policy_started(const struct elastic_config *config, struct elastic_state *state,
			    const struct elastic_action *action, uint64_t now_ns)
{
	state->is_in_flight = true;
	/* Steps keep their rhythm: the next is counted from when this was due, unless long past. */
	if (config->mode == OLTP_ELASTIC_STEP && now_ns >= state->next_step_ns &&
	    (action->kind == ELASTIC_ADD || state->direction == ELASTIC_DOWN)) {
		state->next_step_ns += config->step_ns;
		if (state->next_step_ns <= now_ns)
			state->next_step_ns = now_ns + config->step_ns;
	}
}

void elastic_policy_finished(struct elastic_state *state, enum elastic_kind kind, bool is_success,
			     uint64_t now_ns)
{
	struct elastic_pause *pause =
		kind == ELASTIC_ADD ? &state->add_pause : &state->remove_pause;

	state->is_in_flight = false;
	if (is_success) {
		pause->length_ns = 0;
		return;
	}
	pause->length_ns = pause->length_ns ? pause->length_ns * 2 : PAUSE_FIRST_NS;
	if (pause->length_ns > PAUSE_MAX_NS)
		pause->length_ns = PAUSE_MAX_NS;
	pause->until_ns = now_ns + pause->length_ns;
	if (state->next_step_ns > pause->until_ns)
		state->next_step_ns = pause->until_ns;
}
