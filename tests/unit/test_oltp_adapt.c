// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine's own choice of CPUs (elastic_search.h, elastic_queue.h) in a model of a machine: how
 * throughput depends on the number of CPUs is given, noise is added, moves take time. What is
 * checked is where the policy settles, how much throughput it gets on the way, and that it rests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/elastic_policy.h"

#define MS		1000000ull
#define TICK_NS		(10 * MS)
#define CPUS		64u
#define PER_CPU		1000.0	/* transactions per second, undisturbed */

struct model {
	struct elastic_config config;
	struct elastic_state state;
	struct elastic_cpu cpus[CPUS];
	uint32_t n_cpus, n_startup;
	uint32_t node_cpus[2];	/* how many there are */
	struct oltp_cpu_view view;
	struct elastic_load load;
	uint64_t now_ns, move_ns;	/* move_ns: what it takes to move one CPU */
	/* Scalability after Gunther: contention and coherency. */
	double sigma, kappa;
	double noise;		/* standard deviation of throughput in a tick */
	double speed;		/* of the machine */
	double arrivals;	/* per second; is_open */
	double backlog, committed, stalled_s, arrived;
	uint64_t random;
	/* The move that is going on. */
	struct elastic_action action;
	uint64_t done_ns;
	/* Since the last reset. */
	uint32_t n_moves;
	double served, best_served, cpu_s, seconds;
	double worst_share;	/* open: of what arrived in 100 ms, least that was served then */
	double window_arrived, window_served;
	uint32_t window_ticks;
};

static double throughput(const struct model *m, double n)
{
	return m->speed * n * PER_CPU / (1 + m->sigma * (n - 1) + m->kappa * n * (n - 1));
}

static uint32_t cpus_there(const struct model *m)
{
	return m->node_cpus[0] + m->node_cpus[1];
}

/* The number of CPUs with the highest throughput. */
static uint32_t best_cpus(const struct model *m)
{
	uint32_t best = m->n_startup;

	for (uint32_t n = m->n_startup; n <= cpus_there(m); n++) {
		if (throughput(m, n) > throughput(m, best))
			best = n;
	}
	return best;
}

static double uniform(struct model *m)
{
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(m->random >> 33) / (double)(1ull << 31);
}

/* Sum of twelve uniform ones: normal enough. */
static double normal(struct model *m)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(m);
	return sum;
}

static void model_init(struct model *m, uint32_t n_startup, uint32_t node0, uint32_t node1)
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

static void reset(struct model *m)
{
	m->n_moves = 0;
	m->served = m->best_served = m->cpu_s = m->seconds = 0;
	m->worst_share = 1;
	m->window_arrived = m->window_served = 0;
	m->window_ticks = 0;
}

static uint32_t held_on(const struct model *m, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_cpus; i++)
		n += m->cpus[i].node == node;
	return n;
}

static void offer_all(struct model *m)
{
	for (uint32_t node = 0; node < 2; node++) {
		uint32_t held = held_on(m, node);

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

static void work(struct model *m)
{
	double seconds = (double)TICK_NS / 1e9, n = working(m);
	double can = throughput(m, n) * seconds * (1 + m->noise * normal(m));
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
	/* Time in which a CPU does not commit it wastes. */
	m->stalled_s += (n - throughput(m, n) / (m->speed * PER_CPU)) * seconds;
	m->served += does;
	m->best_served += throughput(m, best_cpus(m)) * seconds;
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

static void run(struct model *m, double seconds)
{
	uint64_t end_ns = m->now_ns + (uint64_t)(seconds * 1e9);

	while (m->now_ns < end_ns) {
		struct elastic_action action;

		m->now_ns += TICK_NS;
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

static void say(const char *what, const struct model *m)
{
	print_message("%s: %u of %u CPUs (best %u), %.1f%% of the best throughput, %u moves\n",
		      what, m->n_cpus, cpus_there(m), best_cpus(m),
		      100 * m->served / m->best_served, m->n_moves);
}

static void set_calm(struct model *m)
{
	m->sigma = 0.005;
	m->kappa = 0;
}

/* Throughput peaks at peak CPUs and falls beyond. */
static void set_contended(struct model *m, double peak)
{
	m->sigma = 0.05;
	m->kappa = (1 - m->sigma) / (peak * peak);
}

/* Settled: within percent of the best throughput, and hardly a move. */
static void assert_settled(struct model *m, const char *what, double percent, uint32_t moves)
{
	reset(m);
	run(m, 20);
	say(what, m);
	assert_true(m->served >= (1 - percent / 100) * m->best_served);
	assert_true(m->n_moves <= moves);
}

static void test_calm_keeps_all(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 4, 4, 4);
	set_calm(&m);
	run(&m, 3);
	assert_int_equal(m.n_cpus, 8);
	/* Nothing is wasted, so there is nothing to try for half a minute. */
	assert_settled(&m, "calm", 2, 0);
	/* Then one CPU is tried now and then, and taken back. */
	reset(&m);
	run(&m, 120);
	say("calm, two minutes more", &m);
	assert_int_equal(m.n_cpus, 8);
	assert_true(m.served >= 0.98 * m.best_served);
	assert_true(m.n_moves <= 8);
}

/* The paper's figure 10: the second node goes while contention is high, and comes back. */
static void test_contention_comes_and_goes(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 4, 4, 4);
	set_calm(&m);
	run(&m, 10);
	assert_int_equal(m.n_cpus, 8);
	for (int round = 0; round < 3; round++) {
		set_contended(&m, 3);
		reset(&m);
		run(&m, 4);
		say("contention after 4 s", &m);
		assert_int_equal(m.n_cpus, 4);
		assert_int_equal(held_on(&m, 1), 0);
		assert_settled(&m, "contention", 5, 10);
		assert_int_equal(m.n_cpus, 4);
		set_calm(&m);
		reset(&m);
		run(&m, 4);
		say("calm after 4 s", &m);
		assert_int_equal(m.n_cpus, 8);
		assert_settled(&m, "calm again", 3, 2);
		assert_int_equal(m.n_cpus, 8);
	}
}

/* Wherever the peak is, and with more noise. */
static void test_settles_near_any_peak(void **state)
{
	(void)state;
	static const double peaks[] = { 2, 3, 4, 5, 6, 8, 10, 12, 16, 24 };
	static const double noises[] = { 0.02, 0.1, 0.3 };

	for (size_t i = 0; i < sizeof(peaks) / sizeof(peaks[0]); i++) {
		for (size_t j = 0; j < sizeof(noises) / sizeof(noises[0]); j++) {
			struct model m;
			char what[64];

			model_init(&m, 1, 8, 8);
			m.noise = noises[j];
			set_calm(&m);
			run(&m, 5);
			set_contended(&m, peaks[i]);
			run(&m, 60);
			snprintf(what, sizeof(what), "peak %g, noise %g", peaks[i], noises[j]);
			assert_settled(&m, what, 10, 12);
			/* And not with many more CPUs than that takes. */
			assert_true(m.n_cpus <= best_cpus(&m) + 2);
		}
	}
}

/* A machine that gets slower and faster is no reason to move anything, if all CPUs pay. */
static void test_a_wavering_machine(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 1, 4, 4);
	set_calm(&m);
	run(&m, 3);
	reset(&m);
	for (int i = 0; i < 20; i++) {
		m.speed = i % 2 ? 1 : 0.7;
		run(&m, 1.3);
	}
	say("wavering machine", &m);
	assert_int_equal(m.n_cpus, 8);
	assert_true(m.n_moves <= 2);
}

/* One that stands still now and then does not make fewer CPUs look as good as all of them. */
static void test_a_machine_that_stands_still(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 4, 4, 4);
	set_calm(&m);
	run(&m, 3);
	reset(&m);
	for (int i = 0; i < 40; i++) {
		m.speed = 1;
		run(&m, 1.7);
		m.speed = 0.001;
		run(&m, 0.2);
	}
	say("machine that stands still", &m);
	assert_true(m.cpu_s >= 0.95 * 8 * m.seconds);
}

/* A demand in the middle of a try, and CPUs that are offered late. */
static void test_host_has_its_way(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 2, 4, 4);
	set_contended(&m, 6);
	for (int i = 0; i < 50; i++) {
		run(&m, 0.37);
		/* The host takes a node away, and gives it back. */
		m.node_cpus[1] = i % 4 < 2 ? 4 : 0;
		m.view.nodes[1].cpus_demanded = held_on(&m, 1) > m.node_cpus[1] ?
						held_on(&m, 1) - m.node_cpus[1] : 0;
		if (m.view.nodes[1].cpus_demanded) {
			run(&m, 0.2);
			assert_int_equal(held_on(&m, 1), 0);
			m.view.nodes[1].cpus_demanded = 0;
		}
	}
	m.node_cpus[1] = 4;
	run(&m, 30);
	assert_settled(&m, "after a whimsical host", 10, 8);
}

static void open_load(struct model *m, double arrivals)
{
	m->load.is_open = true;
	m->arrivals = arrivals;
}

/* The paper's figures 11 and 12: traffic doubles, and halves again. */
static void traffic(double period_s, int periods, double lowest_share)
{
	struct model m;

	model_init(&m, 4, 4, 4);
	set_calm(&m);
	open_load(&m, 0);
	m.load.is_unlimited = true;
	run(&m, 1);
	assert_int_equal(m.n_cpus, 4);
	m.load.is_unlimited = false;
	m.arrivals = 3000;
	run(&m, 2);
	assert_int_equal(m.n_cpus, 4);
	for (int i = 0; i < periods; i++) {
		reset(&m);
		m.arrivals = i % 2 ? 3000 : 6000;
		run(&m, period_s);
		print_message("traffic %g, period %d: %u CPUs, %u moves, lowest share %.2f\n",
			      m.arrivals, i, m.n_cpus, m.n_moves, m.worst_share);
		assert_true(m.worst_share >= lowest_share);
		assert_true(m.served >= 0.99 * m.arrivals * m.seconds);
		if (i % 2)
			assert_int_equal(m.n_cpus, 4);
		else
			assert_in_range(m.n_cpus, 7, 8);
		assert_true(m.n_moves <= 5);
	}
}

static void test_traffic_doubles(void **state)
{
	(void)state;

	traffic(5, 8, 0.8);
	traffic(0.5, 20, 0.8);
}

/* Nothing was measured before: found all the same, and kept. */
static void test_traffic_without_calibration(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 1, 8, 8);
	set_calm(&m);
	open_load(&m, 7500);
	run(&m, 5);
	reset(&m);
	run(&m, 30);
	say("steady traffic", &m);
	assert_in_range(m.n_cpus, 8, 10);
	assert_true(m.served >= 0.995 * m.arrivals * m.seconds);
	assert_true(m.n_moves <= 10);
	m.arrivals = 500;
	run(&m, 5);
	assert_int_equal(m.n_cpus, 1);
	m.arrivals = 40000;
	run(&m, 1);
	/* One of them may be on trial just now. */
	assert_in_range(m.n_cpus, 15, 16);
}

/* More arrives than can be done, and contention is high: the CPUs that pay, not all of them. */
static void test_overload_under_contention(void **state)
{
	(void)state;
	struct model m;

	model_init(&m, 4, 4, 4);
	set_contended(&m, 3);
	open_load(&m, 20000);
	run(&m, 20);
	assert_settled(&m, "overload", 5, 8);
	assert_int_equal(m.n_cpus, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calm_keeps_all),
		cmocka_unit_test(test_contention_comes_and_goes),
		cmocka_unit_test(test_settles_near_any_peak),
		cmocka_unit_test(test_a_wavering_machine),
		cmocka_unit_test(test_a_machine_that_stands_still),
		cmocka_unit_test(test_host_has_its_way),
		cmocka_unit_test(test_traffic_doubles),
		cmocka_unit_test(test_traffic_without_calibration),
		cmocka_unit_test(test_overload_under_contention),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
