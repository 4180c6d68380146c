// SPDX-License-Identifier: GPL-2.0-or-later
/* An engine on a machine: see adapt_model.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "adapt_model.h"
#include "tests/lib/chance.h"

#define MS		1000000ull
#define TICK_NS		(10 * MS)
#define PER_CPU		1000.0	/* transactions per second, undisturbed */
#define DRIFT_S		1.0	/* how long it lasts, by order of magnitude */

static double throughput(const struct model *m, double n)
{
	return m->speed * n * PER_CPU / (1 + m->sigma * (n - 1) + m->kappa * n * (n - 1));
}

uint32_t model_cpus_there(const struct model *m)
{
	return m->node_cpus[0] + m->node_cpus[1];
}

uint32_t model_best_cpus(const struct model *m)
{
	uint32_t best = m->n_startup;

	for (uint32_t n = m->n_startup; n <= model_cpus_there(m); n++) {
		if (throughput(m, n) > throughput(m, best))
			best = n;
	}
	return best;
}

static double uniform(struct model *m)
{
	return (double)(chance_step(&m->random) >> 33) / (double)(1ull << 31);
}

/* Sum of twelve uniform ones: normal enough. */
static double normal(struct model *m)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(m);
	return sum;
}

void model_init(struct model *m, uint32_t n_startup, uint32_t node0, uint32_t node1)
{
	*m = (struct model){ .config = { .mode = OLTP_ELASTIC_ADAPT },
			     .n_startup = n_startup,
			     .node_cpus = { node0, node1 },
			     .now_ns = 1000 * MS,
			     .move_ns = 5 * MS,
			     .noise = 0.1,
			     .speed = 1,
			     .random = 42 };
	for (uint32_t i = 0; i < n_startup; i++)
		m->cpus[m->n_cpus++] = (struct elastic_cpu){ .cpu = i, .is_startup = true };
	m->view.n_nodes = 2;
	m->view.nodes[1].node = 1;
	elastic_policy_init(&m->state, &m->config, m->now_ns);
}

void model_reset(struct model *m)
{
	m->n_moves = 0;
	m->served = m->best_served = m->cpu_s = m->seconds = 0;
	m->worst_share = 1;
	m->window_arrived = m->window_served = 0;
	m->window_ticks = 0;
}

uint32_t model_held_on(const struct model *m, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_cpus; i++)
		n += m->cpus[i].node == node;
	return n;
}

static void offer_all(struct model *m)
{
	for (uint32_t node = 0; node < 2; node++) {
		uint32_t held = model_held_on(m, node);

		m->view.nodes[node].cpus_offered =
			m->node_cpus[node] > held ? m->node_cpus[node] - held : 0;
	}
}

static void end_move(struct model *m)
{
	static uint32_t next_cpu = 100;

	for (uint32_t i = 0; i < m->action.n_cpus; i++) {
		uint32_t at = 0;

		if (m->action.kind == ELASTIC_ADD) {
			m->cpus[m->n_cpus++] = (struct elastic_cpu){ .cpu = next_cpu++,
								     .node = m->action.node };
			continue;
		}
		while (m->cpus[at].cpu != m->action.cpus[i])
			at++;
		assert_false(m->cpus[at].is_startup);
		memmove(&m->cpus[at], &m->cpus[at + 1],
			(m->n_cpus - at - 1) * sizeof(m->cpus[0]));
		m->n_cpus--;
	}
	elastic_policy_finished(&m->state, m->action.kind, true, m->now_ns);
	m->action.kind = ELASTIC_NONE;
}

/* CPUs on their way do no work: workers stop first and start last. */
static double working(const struct model *m)
{
	return m->action.kind == ELASTIC_REMOVE ? m->n_cpus - m->action.n_cpus : m->n_cpus;
}

/* What throughput is of what it should be, in this tick. */
static double disturbance(struct model *m, double seconds)
{
	double part = seconds / DRIFT_S;

	/* Its variance stays what it is. */
	if (m->drift > 0)
		m->drift_now += -part * m->drift_now + m->drift * sqrt(2 * part) * normal(m);
	return m->still_ns > m->now_ns ? 0 : 1 + m->drift_now + m->noise * normal(m);
}

/* Every other stall is one of the workers alone, and the policy looks on. */
static void stall(struct model *m, double seconds)
{
	uint64_t length_ns;

	if (m->stalls_ps <= 0 || uniform(m) >= m->stalls_ps * seconds)
		return;
	/* Exponential: many short ones, few long ones. */
	length_ns = (uint64_t)(-log(1 - uniform(m)) * m->stall_s * 1e9);
	if (++m->n_stalls % 2)
		m->now_ns += length_ns;
	else
		m->still_ns = m->now_ns + length_ns;
}

/* Share of the time: what a CPU does not commit in, more or less. */
static double wasted(struct model *m, double n)
{
	double share = 1 - throughput(m, n) / (m->speed * n * PER_CPU);

	if (m->waste_noise > 0)
		share += m->waste_noise * normal(m);
	return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void work(struct model *m)
{
	double seconds = (double)TICK_NS / 1e9, n = working(m);
	double can = throughput(m, n) * seconds * disturbance(m, seconds);
	double does = can > 0 ? can : 0;

	if (m->load.is_open && !m->load.is_unlimited) {
		m->arrived += m->arrivals * seconds;
		m->backlog += m->arrivals * seconds;
		m->window_arrived += m->arrivals * seconds;
		if (m->backlog < does) {
			does = m->backlog;
			m->load.idles++;
		}
		m->backlog -= does;
	}
	m->committed += does;
	m->stalled_s += n * wasted(m, n) * seconds;
	m->served += does;
	m->best_served += throughput(m, model_best_cpus(m)) * seconds;
	m->cpu_s += n * seconds;
	m->seconds += seconds;
	m->window_served += does;
	if (++m->window_ticks == 10) {
		if (m->window_served < m->worst_share * m->window_arrived)
			m->worst_share = m->window_served / m->window_arrived;
		m->window_arrived = m->window_served = 0;
		m->window_ticks = 0;
	}
	m->load.committed = (uint64_t)m->committed;
	m->load.stalled_ns = (uint64_t)(m->stalled_s * 1e9);
	m->load.arrived = (uint64_t)m->arrived;
	m->load.waiting = (uint64_t)m->backlog;
}

void model_run(struct model *m, double seconds)
{
	uint64_t end_ns = m->now_ns + (uint64_t)(seconds * 1e9);

	while (m->now_ns < end_ns) {
		struct elastic_action action;

		m->now_ns += TICK_NS;
		stall(m, (double)TICK_NS / 1e9);
		work(m);
		if (m->action.kind != ELASTIC_NONE && m->now_ns >= m->done_ns)
			end_move(m);
		offer_all(m);
		elastic_policy_next(&m->config, &m->state,
				    &(struct elastic_facts){ m->now_ns, m->cpus, m->n_cpus,
							     &m->view, &m->load }, &action);
		if (action.kind == ELASTIC_NONE)
			continue;
		assert_true(m->action.kind == ELASTIC_NONE);
		m->action = action;
		m->done_ns = m->now_ns + m->move_ns * action.n_cpus;
		m->n_moves++;
		elastic_policy_started(&m->config, &m->state, &action, m->now_ns);
	}
}

void model_set_calm(struct model *m)
{
	m->sigma = 0.005;
	m->kappa = 0;
}

void model_set_contended(struct model *m, double peak)
{
	m->sigma = 0.05;
	m->kappa = (1 - m->sigma) / (peak * peak);
}

