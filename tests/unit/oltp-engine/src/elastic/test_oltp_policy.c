// SPDX-License-Identifier: GPL-2.0-or-later
/* The elastic policy, rule by rule, and a long random walk against its invariants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/elastic/elastic_policy.h"
#include "tests/lib/chance.h"

#define MS	1000000ull
#define CPUS	200u

struct fixture {
	struct elastic_config config;
	struct elastic_state state;
	struct elastic_cpu cpus[CPUS];
	uint32_t n_cpus;
	struct oltp_cpu_view view;
	uint64_t now_ns;
	struct elastic_action action;
};

/* CPUs 0 to n_startup - 1 on node 0; two nodes that offer nothing. */
static void fixture_init(struct fixture *f, enum oltp_elastic_mode mode, uint32_t n_startup)
{
	*f = (struct fixture){ .config = { .mode = mode, .step_ns = 5000 * MS }, .now_ns = 1000 };
	for (uint32_t i = 0; i < n_startup; i++)
		f->cpus[f->n_cpus++] = (struct elastic_cpu){ .cpu = i, .is_startup = true };
	f->view.n_nodes = 2;
	f->view.nodes[1].node = 1;
	elastic_policy_init(&f->state, &f->config, f->now_ns);
}

static void hold(struct fixture *f, uint32_t cpu, uint32_t node)
{
	f->cpus[f->n_cpus++] = (struct elastic_cpu){ .cpu = cpu, .node = node };
}

static const struct elastic_action *next(struct fixture *f)
{
	elastic_policy_next(&f->config, &f->state,
			    &(struct elastic_facts){ f->now_ns, f->cpus, f->n_cpus, &f->view,
						     NULL },
			    &f->action);
	return &f->action;
}

static void assert_add(struct fixture *f, uint32_t node, uint32_t n)
{
	next(f);
	assert_int_equal(f->action.kind, ELASTIC_ADD);
	assert_int_equal(f->action.node, node);
	assert_int_equal(f->action.n_cpus, n);
}

static void assert_remove(struct fixture *f, uint32_t n, const uint32_t *cpus)
{
	next(f);
	assert_int_equal(f->action.kind, ELASTIC_REMOVE);
	assert_int_equal(f->action.n_cpus, n);
	assert_memory_equal(f->action.cpus, cpus, n * sizeof(*cpus));
}

static void assert_nothing(struct fixture *f)
{
	assert_int_equal(next(f)->kind, ELASTIC_NONE);
}

static void test_takes_all_that_is_offered(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	assert_nothing(&f);
	assert_int_equal(f.action.wake_ns, UINT64_MAX);
	f.view.nodes[0].cpus_offered = 2;
	f.view.nodes[1].cpus_offered = 5;
	assert_add(&f, 1, 5);
	f.view.nodes[1].cpus_offered = OLTP_MOVE_MAX + 1;
	assert_add(&f, 1, OLTP_MOVE_MAX);
}

static void test_one_move_at_a_time(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	f.view.nodes[0].cpus_offered = 3;
	assert_add(&f, 0, 3);
	elastic_policy_started(&f.config, &f.state, &f.action, f.now_ns);
	f.view.nodes[1].cpus_offered = 3;
	assert_nothing(&f);
	elastic_policy_finished(&f.state, ELASTIC_ADD, true, f.now_ns);
	assert_add(&f, 0, 3);
}

static void test_demand_takes_the_latest_of_that_node(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 2);
	hold(&f, 10, 0);
	hold(&f, 11, 1);
	hold(&f, 12, 0);
	hold(&f, 13, 1);
	hold(&f, 14, 0);
	f.view.nodes[0].cpus_demanded = 2;
	/* Before an offer elsewhere. */
	f.view.nodes[1].cpus_offered = 4;
	assert_remove(&f, 2, (uint32_t[]){ 14, 12 });
	f.view.nodes[1].cpus_offered = 0;
	f.view.nodes[1].cpus_demanded = 1;
	assert_remove(&f, 3, (uint32_t[]){ 14, 12, 13 });
}

static void test_half_of_the_time_is_for_giving_back(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	hold(&f, 10, 0);
	hold(&f, 11, 1);
	hold(&f, 12, 0);
	hold(&f, 13, 0);
	f.view.n_forced = 1;
	f.view.forced[0] = 13;
	f.view.nodes[0].cpus_demanded = 1;
	f.view.nodes[0].deadline_ns = f.now_ns + 100 * MS;
	/* Without a deadline. */
	f.view.nodes[1].cpus_demanded = 1;
	assert_remove(&f, 3, (uint32_t[]){ 13, 12, 11 });
	assert_int_equal(f.action.stop_by_ns[0], f.now_ns);
	assert_int_equal(f.action.stop_by_ns[1], f.now_ns + 50 * MS);
	assert_int_equal(f.action.stop_by_ns[2], UINT64_MAX);
	f.now_ns += 200 * MS;
	assert_remove(&f, 3, (uint32_t[]){ 13, 12, 11 });
	assert_int_equal(f.action.stop_by_ns[1], f.now_ns);
	/* What is given back for other reasons has time. */
	f.view = (struct oltp_cpu_view){ .n_nodes = 2 };
	f.view.nodes[0].deadline_ns = f.now_ns;
	f.config.max_cpus = 4;
	assert_remove(&f, 1, (uint32_t[]){ 13 });
	assert_int_equal(f.action.stop_by_ns[0], UINT64_MAX);
}

static void test_startup_cpus_stay(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 3);
	f.view.nodes[0].cpus_demanded = 3;
	assert_nothing(&f);
	f.view.n_forced = 1;
	f.view.forced[0] = 2;
	assert_nothing(&f);
	hold(&f, 10, 0);
	assert_remove(&f, 1, (uint32_t[]){ 10 });
}

static void test_useless_cpus_go_first(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	hold(&f, 10, 0);
	hold(&f, 11, 0);
	hold(&f, 12, 0);
	f.cpus[2].is_idle = true;
	f.view.n_forced = 2;
	f.view.forced[0] = 10;
	f.view.forced[1] = 999;
	f.view.nodes[0].cpus_demanded = 1;
	/* The demand is for CPUs beside the forced one, and no CPU is listed twice. */
	assert_remove(&f, 3, (uint32_t[]){ 10, 11, 12 });
	f.view.n_forced = 0;
	f.view.nodes[0].cpus_demanded = 0;
	f.view.nodes[0].cpus_offered = 9;
	assert_remove(&f, 1, (uint32_t[]){ 11 });
}

static void test_bound_by_max_cpus(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	f.config.max_cpus = 4;
	f.view.nodes[0].cpus_offered = 10;
	assert_add(&f, 0, 3);
	for (uint32_t i = 0; i < 3; i++)
		hold(&f, 10 + i, 0);
	assert_nothing(&f);
	f.config.max_cpus = 2;
	assert_remove(&f, 2, (uint32_t[]){ 12, 11 });
	/* What a demand takes counts. */
	f.view.nodes[0].cpus_offered = 0;
	f.view.nodes[0].cpus_demanded = 1;
	assert_remove(&f, 2, (uint32_t[]){ 12, 11 });
}

static void finish(struct fixture *f, enum elastic_kind kind, bool is_success)
{
	elastic_policy_started(&f->config, &f->state, &f->action, f->now_ns);
	elastic_policy_finished(&f->state, kind, is_success, f->now_ns);
}

static void test_pause_after_failure(void **state)
{
	(void)state;
	static const uint64_t pauses_ms[] = { 50, 100, 200, 400, 800, 1000, 1000 };
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	hold(&f, 10, 1);
	f.view.nodes[0].cpus_offered = 1;
	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
		assert_add(&f, 0, 1);
		finish(&f, ELASTIC_ADD, false);
		assert_nothing(&f);
		assert_int_equal(f.action.wake_ns, f.now_ns + pauses_ms[i] * MS);
		/* A pause for adding does not keep a demand waiting. */
		f.view.nodes[1].cpus_demanded = 1;
		assert_remove(&f, 1, (uint32_t[]){ 10 });
		f.view.nodes[1].cpus_demanded = 0;
		f.now_ns += pauses_ms[i] * MS - 1;
		assert_nothing(&f);
		f.now_ns++;
	}
	assert_add(&f, 0, 1);
	finish(&f, ELASTIC_ADD, true);
	assert_add(&f, 0, 1);
}

static void test_pause_after_failed_remove(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 1);
	hold(&f, 10, 0);
	f.view.nodes[0].cpus_demanded = 1;
	assert_remove(&f, 1, (uint32_t[]){ 10 });
	finish(&f, ELASTIC_REMOVE, false);
	assert_nothing(&f);
	assert_int_equal(f.action.n_cpus, 0);
	f.now_ns = f.action.wake_ns;
	assert_remove(&f, 1, (uint32_t[]){ 10 });
}

/* Up to a ceiling of four and down again, five seconds a step. */
static void test_steps_up_and_down(void **state)
{
	(void)state;
	struct fixture f;
	uint64_t start_ns;

	fixture_init(&f, OLTP_ELASTIC_STEP, 1);
	start_ns = f.now_ns;
	f.view.nodes[0].cpus_offered = 3;
	for (uint32_t step = 1; step <= 3; step++) {
		assert_nothing(&f);
		assert_int_equal(f.action.wake_ns, start_ns + step * 5000 * MS);
		/* A little late: the rhythm stays. */
		f.now_ns = f.action.wake_ns + 3 * MS;
		assert_add(&f, 0, 1);
		finish(&f, ELASTIC_ADD, true);
		hold(&f, 9 + step, 0);
		f.view.nodes[0].cpus_offered--;
	}
	for (uint32_t step = 4; step <= 6; step++) {
		assert_nothing(&f);
		assert_int_equal(f.action.wake_ns, start_ns + step * 5000 * MS);
		f.now_ns = f.action.wake_ns;
		assert_remove(&f, 1, (uint32_t[]){ f.cpus[f.n_cpus - 1].cpu });
		finish(&f, ELASTIC_REMOVE, true);
		f.n_cpus--;
		f.view.nodes[0].cpus_offered++;
	}
	/* The last plateau is as long as the others. */
	assert_nothing(&f);
	assert_int_equal(f.state.direction, ELASTIC_DOWN);
	assert_int_equal(f.action.wake_ns, start_ns + 7 * 5000 * MS);
	f.now_ns = f.action.wake_ns;
	assert_nothing(&f);
	assert_int_equal(f.state.direction, ELASTIC_DONE);
	f.now_ns += 60000 * MS;
	assert_nothing(&f);
	assert_int_equal(f.action.wake_ns, UINT64_MAX);
}

static void test_steps_wait_for_the_first_offer(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_STEP, 1);
	f.now_ns += 20000 * MS;
	assert_nothing(&f);
	assert_int_equal(f.state.direction, ELASTIC_UP);
	f.view.nodes[1].cpus_offered = 1;
	assert_add(&f, 1, 1);
	elastic_policy_started(&f.config, &f.state, &f.action, f.now_ns);
	/* Long past the rhythm: the next is a whole step away. */
	assert_int_equal(f.state.next_step_ns, f.now_ns + 5000 * MS);
}

static void test_steps_turn_at_max_cpus_and_obey_demands(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_STEP, 1);
	f.config.max_cpus = 3;
	hold(&f, 10, 0);
	hold(&f, 11, 0);
	f.view.nodes[0].cpus_offered = 5;
	/* Between steps a demand is met at once. */
	f.view.nodes[0].cpus_demanded = 1;
	assert_remove(&f, 1, (uint32_t[]){ 11 });
	f.view.nodes[0].cpus_demanded = 0;
	f.now_ns += 5000 * MS;
	assert_remove(&f, 1, (uint32_t[]){ 11 });
	assert_int_equal(f.state.direction, ELASTIC_DOWN);
}

static void test_failed_step_is_due_again_soon(void **state)
{
	(void)state;
	struct fixture f;

	fixture_init(&f, OLTP_ELASTIC_STEP, 1);
	f.view.nodes[0].cpus_offered = 1;
	f.now_ns += 5000 * MS;
	assert_add(&f, 0, 1);
	finish(&f, ELASTIC_ADD, false);
	assert_nothing(&f);
	f.now_ns += 50 * MS;
	assert_add(&f, 0, 1);
}

/*
 * A host that changes its mind all the time, and moves that fail. What must hold at each turn: only
 * one move, only CPUs that are held and not of the startup set, no CPU twice, never more than the
 * offer, and a demand that stands is met in the end.
 */
static void test_random_host(void **state)
{
	(void)state;
	static struct fixture f;
	uint64_t random = 7;
	uint32_t next_cpu = 1000;

	fixture_init(&f, OLTP_ELASTIC_FOLLOW, 2);
	for (int turn = 0; turn < 200000; turn++) {
		struct oltp_node_share *share;
		bool is_success;

		chance_step(&random);
		f.now_ns += (random >> 40) % (200 * MS);
		share = &f.view.nodes[(random >> 33) % 2];
		share->cpus_offered = (random >> 50) % 3 ? 0 : (random >> 52) % 20;
		share->cpus_demanded = (random >> 57) % 3 ? 0 : (random >> 58) % 20;
		next(&f);
		if (f.action.kind == ELASTIC_NONE)
			continue;
		is_success = (random >> 35) % 5;
		elastic_policy_started(&f.config, &f.state, &f.action, f.now_ns);
		assert_int_equal(next(&f)->kind, ELASTIC_NONE);
		elastic_policy_finished(&f.state, ELASTIC_NONE, true, f.now_ns);
		next(&f);
		if (f.action.kind == ELASTIC_ADD) {
			share = &f.view.nodes[f.action.node];
			assert_true(f.action.n_cpus >= 1);
			assert_true(f.action.n_cpus <= share->cpus_offered);
			assert_int_equal(share->cpus_demanded, 0);
			for (uint32_t i = 0; is_success && i < f.action.n_cpus; i++) {
				if (f.n_cpus < CPUS)
					hold(&f, next_cpu++, f.action.node);
			}
			share->cpus_offered = 0;
		} else if (f.action.kind == ELASTIC_REMOVE) {
			for (uint32_t i = 0; i < f.action.n_cpus; i++) {
				uint32_t at = 0;

				while (at < f.n_cpus && f.cpus[at].cpu != f.action.cpus[i])
					at++;
				assert_true(at < f.n_cpus);
				assert_false(f.cpus[at].is_startup);
				if (!is_success)
					continue;
				share = &f.view.nodes[f.cpus[at].node];
				assert_true(share->cpus_demanded > 0);
				share->cpus_demanded--;
				memmove(&f.cpus[at], &f.cpus[at + 1],
					(f.n_cpus - at - 1) * sizeof(f.cpus[0]));
				f.n_cpus--;
			}
		}
		elastic_policy_finished(&f.state, f.action.kind, is_success, f.now_ns);
	}
	/* Left alone with a demand for everything, it gives everything but the startup set. */
	f.view.nodes[0].cpus_demanded = f.view.nodes[1].cpus_demanded = CPUS;
	for (int turn = 0; turn < 20 && f.n_cpus > 2; turn++) {
		f.now_ns += 2000 * MS;
		assert_int_equal(next(&f)->kind, ELASTIC_REMOVE);
		f.n_cpus -= f.action.n_cpus;
		elastic_policy_finished(&f.state, ELASTIC_REMOVE, true, f.now_ns);
	}
	assert_int_equal(f.n_cpus, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_all_that_is_offered),
		cmocka_unit_test(test_one_move_at_a_time),
		cmocka_unit_test(test_demand_takes_the_latest_of_that_node),
		cmocka_unit_test(test_half_of_the_time_is_for_giving_back),
		cmocka_unit_test(test_startup_cpus_stay),
		cmocka_unit_test(test_useless_cpus_go_first),
		cmocka_unit_test(test_bound_by_max_cpus),
		cmocka_unit_test(test_pause_after_failure),
		cmocka_unit_test(test_pause_after_failed_remove),
		cmocka_unit_test(test_steps_up_and_down),
		cmocka_unit_test(test_steps_wait_for_the_first_offer),
		cmocka_unit_test(test_steps_turn_at_max_cpus_and_obey_demands),
		cmocka_unit_test(test_failed_step_is_due_again_soon),
		cmocka_unit_test(test_random_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
