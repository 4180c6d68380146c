// SPDX-License-Identifier: GPL-2.0-or-later
/* Which CPUs to take and to give back: see elastic_policy.h. Rules are cited by number. */
#include <string.h>

#include "elastic_policy.h"

#define PAUSE_FIRST_NS	50000000ull
#define PAUSE_MAX_NS	1000000000ull

void elastic_policy_init(struct elastic_state *state, const struct elastic_config *config,
			 uint64_t now_ns)
{
	*state = (struct elastic_state){ .next_step_ns = now_ns + config->step_ns,
					 .goal = UINT32_MAX };
	search_init(&state->search, now_ns);
	queue_init(&state->queue);
}

/* The most CPUs that may be held. */
static uint32_t cpus_max(const struct elastic_config *config, const struct elastic_state *state)
{
	uint32_t most = config->max_cpus ?: UINT32_MAX;

	return most < state->goal ? most : state->goal;
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

static uint32_t count_held(const struct elastic_facts *facts, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < facts->n_cpus; i++)
		n += facts->cpus[i].node == node;
	return n;
}

/*
 * *ret_node: the node with the fewest CPUs, of those with CPUs that may go and are not listed.
 * Returns how many of its CPUs may go; 0: there is no such node.
 */
static uint32_t smallest_node(const struct elastic_facts *facts,
			      const struct elastic_action *action, uint32_t *ret_node)
{
	uint32_t least = UINT32_MAX, spare = 0;

	for (uint32_t i = 0; i < facts->n_cpus; i++) {
		const struct elastic_cpu *cpu = &facts->cpus[i];
		uint32_t held = count_held(facts, cpu->node);

		if (cpu->is_startup || is_listed(action, cpu->cpu))
			continue;
		if (held < least) {
			least = held;
			spare = 0;
			*ret_node = cpu->node;
		}
		spare += cpu->node == *ret_node;
	}
	return spare;
}

/* P8: lists n more CPUs, of the nodes with the fewest. */
static void list_from_small_nodes(const struct elastic_facts *facts, uint32_t n,
				  struct elastic_action *action)
{
	uint32_t node = 0, spare;

	while (n && (spare = smallest_node(facts, action, &node)) != 0) {
		uint32_t before = action->n_cpus;

		list_latest(facts, &node, spare < n ? spare : n, action);
		if (action->n_cpus == before)
			return;
		n -= action->n_cpus - before;
	}
}

/* P2, P3 and the first half of P5. */
static void list_due(const struct elastic_config *config, const struct elastic_state *state,
		     const struct elastic_facts *facts, struct elastic_action *action)
{
	uint32_t most = cpus_max(config, state);
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
	if (left <= most)
		return;
	if (config->mode == OLTP_ELASTIC_ADAPT)
		list_from_small_nodes(facts, left - most, action);
	else
		list_latest(facts, NULL, left - most, action);
}

/* P10. */
static uint64_t stop_by(const struct elastic_facts *facts, uint32_t number)
{
	const struct oltp_cpu_view *view = facts->view;
	const struct elastic_cpu *cpu = facts->cpus;

	if (is_forced(view, number))
		return facts->now_ns;
	while (cpu->cpu != number)
		cpu++;
	for (uint32_t i = 0; i < view->n_nodes; i++) {
		const struct oltp_node_share *share = &view->nodes[i];

		if (share->node == cpu->node && share->cpus_demanded && share->deadline_ns)
			return share->deadline_ns <= facts->now_ns ? facts->now_ns :
			       facts->now_ns + (share->deadline_ns - facts->now_ns) / 2;
	}
	return UINT64_MAX;
}

/*
 * The offer of the highest rank is taken: with ADAPT where most CPUs are held (P8), else the
 * largest.
 */
static uint32_t offer_rank(const struct elastic_config *config, const struct elastic_facts *facts,
			   const struct oltp_node_share *share)
{
	return config->mode == OLTP_ELASTIC_ADAPT ? count_held(facts, share->node) :
						    share->cpus_offered;
}

/* The node to take CPUs on; NULL: nothing is offered or wanted. */
static const struct oltp_node_share *best_offer(const struct elastic_config *config,
						const struct elastic_state *state,
						const struct elastic_facts *facts)
{
	const struct oltp_node_share *best = NULL;

	if (facts->n_cpus >= cpus_max(config, state))
		return NULL;
	for (uint32_t i = 0; i < facts->view->n_nodes; i++) {
		const struct oltp_node_share *share = &facts->view->nodes[i];

		if (share->cpus_offered && !share->cpus_demanded &&
		    (!best || offer_rank(config, facts, share) > offer_rank(config, facts, best)))
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
static void take_offer(const struct elastic_config *config, const struct elastic_state *state,
		       const struct elastic_facts *facts, uint32_t most,
		       struct elastic_action *action)
{
	const struct oltp_node_share *offer = best_offer(config, state, facts);
	uint32_t n;

	if (!offer)
		return;
	n = offer->cpus_offered < most ? offer->cpus_offered : most;
	if (n > cpus_max(config, state) - facts->n_cpus)
		n = cpus_max(config, state) - facts->n_cpus;
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
	if (state->direction == ELASTIC_UP && !best_offer(config, state, facts)) {
		if (!count_added(facts))
			return;
		state->direction = ELASTIC_DOWN;
	} else if (state->direction == ELASTIC_DOWN && !count_added(facts)) {
		state->direction = ELASTIC_DONE;
		return;
	}
	if (state->direction == ELASTIC_UP) {
		if (!is_paused(&state->add_pause, facts->now_ns, &action->wake_ns))
			take_offer(config, state, facts, 1, action);
	} else if (!is_paused(&state->remove_pause, facts->now_ns, &action->wake_ns)) {
		list_latest(facts, NULL, 1, action);
		action->kind = ELASTIC_REMOVE;
	}
}

static uint32_t count_offered(const struct elastic_facts *facts)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < facts->view->n_nodes; i++) {
		if (!facts->view->nodes[i].cpus_demanded)
			n += facts->view->nodes[i].cpus_offered;
	}
	return n;
}

/* P8. */
static void adapt(const struct elastic_config *config, struct elastic_state *state,
		  const struct elastic_facts *facts, struct elastic_action *action)
{
	const struct elastic_load *load = facts->load;
	uint32_t most = facts->n_cpus + count_offered(facts), node;
	struct search_facts search = {
		.now_ns = facts->now_ns,
		.n_cpus = facts->n_cpus,
		.n_min = facts->n_cpus - count_added(facts),
		.n_spare = smallest_node(facts, &(struct elastic_action){ 0 }, &node),
		.is_moving = state->is_in_flight,
		.committed = load->committed,
		.stalled_ns = load->stalled_ns,
	};
	uint32_t needed = UINT32_MAX;

	search.n_max = config->max_cpus && most > config->max_cpus ? config->max_cpus : most;
	/* Unlimited work serves to measure the rate of a worker; it is no reason to take CPUs. */
	search.is_busy = load->idles == state->idles && !load->is_unlimited;
	state->idles = load->idles;
	if (load->is_open)
		needed = queue_next(&state->queue, &(struct queue_facts){
							   .now_ns = facts->now_ns,
							   .n_cpus = facts->n_cpus,
							   .n_min = search.n_min,
							   .n_max = search.n_max,
							   .is_moving = state->is_in_flight,
							   .is_unlimited = load->is_unlimited,
							   .committed = load->committed,
							   .arrived = load->arrived,
							   .waiting = load->waiting,
							   .idles = load->idles });
	if (needed < search.n_max && needed <= state->search.goal) {
		/*
		 * The CPUs could do more than there is to do, so throughput does not say which of
		 * them pay.
		 */
		search_init(&state->search, facts->now_ns);
		state->goal = needed;
	} else {
		state->goal = search_next(&state->search, &search);
	}
	action->wake_ns = facts->now_ns + (load->is_open ? QUEUE_LOOK_NS : SEARCH_LOOK_NS);
}

void elastic_policy_next(const struct elastic_config *config, struct elastic_state *state,
			 const struct elastic_facts *facts, struct elastic_action *ret_action)
{
	struct elastic_action action = { .wake_ns = UINT64_MAX };

	if (config->mode == OLTP_ELASTIC_ADAPT && facts->load)
		adapt(config, state, facts, &action);
	if (state->is_in_flight)
		goto out;
	list_due(config, state, facts, &action);
	if (action.n_cpus) {
		if (!is_paused(&state->remove_pause, facts->now_ns, &action.wake_ns))
			action.kind = ELASTIC_REMOVE;
		else
			action.n_cpus = 0;
	} else if (config->mode == OLTP_ELASTIC_STEP) {
		step(config, state, facts, &action);
	} else if (best_offer(config, state, facts) &&
		   !is_paused(&state->add_pause, facts->now_ns, &action.wake_ns)) {
		take_offer(config, state, facts, OLTP_MOVE_MAX, &action);
	}
	for (uint32_t i = 0; action.kind == ELASTIC_REMOVE && i < action.n_cpus; i++)
		action.stop_by_ns[i] = stop_by(facts, action.cpus[i]);
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
