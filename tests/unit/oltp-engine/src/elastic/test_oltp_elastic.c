// SPDX-License-Identifier: GPL-2.0-or-later
/* Workers that come and go under load: the pool by itself, then driven by a source of CPUs. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/ycsb.h"

#define RECORDS	300u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

#define PATIENCE_NS	60000000000ull	/* a hang, not slowness */

struct fixture {
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct oltp_pool *pool;
};

static void fixture_open_with(struct fixture *f, bool no_pin, struct oltp_arrivals *arrivals)
{
	const struct ycsb_config config = { .records = RECORDS, .operations = 10,
					    .update_share = 0.5, .theta = 0.8, .seed = 1 };
	struct oltp_workload workload;

	assert_int_equal(oltp_engine_open(NULL, &f->engine), 0);
	assert_int_equal(ycsb_create(f->engine, &config, &f->ycsb), 0);
	assert_int_equal(ycsb_load(f->ycsb, 1), 0);
	workload = ycsb_workload(f->ycsb);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = f->engine,
								      .workload = &workload,
								      .latency_every = 4,
								      .no_pin = no_pin,
								      .arrivals = arrivals },
					  &f->pool), 0);
}

static void fixture_open(struct fixture *f, bool no_pin)
{
	fixture_open_with(f, no_pin, NULL);
}

/* All workers are gone: nothing is lost, and the pool's totals are those of the table. */
static void fixture_close(struct fixture *f)
{
	struct oltp_sample sample;
	struct ycsb_verdict v;

	oltp_pool_sample(f->pool, now_ns(), &sample);
	assert_int_equal(sample.workers, 0);
	assert_int_equal(sample.totals.failed, 0);
	ycsb_verify(f->ycsb, &v);
	assert_int_equal(v.lost_updates, 0);
	assert_int_equal(v.inconsistent_reads, 0);
	oltp_pool_destroy(f->pool);
	ycsb_destroy(f->ycsb);
	oltp_engine_close(f->engine);
}

static uint32_t first_cpu(void)
{
	cpu_set_t set;
	uint32_t cpu = 0;

	CPU_ZERO(&set);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

static void test_pool_refuses(void **state)
{
	(void)state;
	uint32_t cpu = first_cpu();
	struct fixture f;
	int rcs[3];

	fixture_open(&f, false);
	assert_int_equal(oltp_pool_add(f.pool, cpu), 0);
	assert_int_equal(oltp_pool_add(f.pool, cpu), -EEXIST);
	/* No machine has it. */
	assert_int_equal(oltp_pool_add(f.pool, 60000), -EINVAL);
	assert_int_equal(oltp_pool_count(f.pool), 1);
	assert_int_equal(oltp_pool_stop(f.pool, cpu + 1), -ENOENT);
	assert_int_equal(oltp_pool_remove(f.pool, cpu + 1, NULL), -ENOENT);
	assert_int_equal(oltp_pool_remove(f.pool, cpu, NULL), 0);
	/* Several at once: those that can be are started. */
	oltp_pool_add_all(f.pool, (uint32_t[]){ 60000, cpu, cpu }, 3, rcs);
	assert_int_equal(rcs[0], -EINVAL);
	assert_int_equal(rcs[1], 0);
	assert_int_equal(rcs[2], -EEXIST);
	assert_int_equal(oltp_pool_count(f.pool), 1);
	assert_int_equal(oltp_pool_remove(f.pool, cpu, NULL), 0);
	fixture_close(&f);
}

static int attach_fails(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	(void)ctx;
	(void)worker;
	(void)ret_local;
	return -ENOMEM;
}

static enum oltp_rc run_never(void *local, uint32_t slot, bool retry)
{
	(void)local;
	(void)slot;
	(void)retry;
	abort();
}

static void detach_never(void *local)
{
	(void)local;
	abort();
}

static void test_attach_that_fails(void **state)
{
	(void)state;
	const struct oltp_workload workload = {
		.attach = attach_fails,
		.run = run_never,
		.detach = detach_never,
	};
	struct oltp_engine *engine;
	struct oltp_pool *pool;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = engine,
								      .workload = &workload },
					  &pool), 0);
	assert_int_equal(oltp_pool_add(pool, first_cpu()), -ENOMEM);
	assert_int_equal(oltp_pool_count(pool), 0);
	oltp_pool_destroy(pool);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = engine,
								      .workload = &workload,
								      .latency_every = 3 },
					  &pool), -EINVAL);
	oltp_engine_close(engine);
}

/* Counts: three conflicts, then a failure or a commit in turn. */
struct scripted {
	_Atomic uint64_t runs, retries;
};

static int scripted_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	(void)worker;
	*ret_local = ctx;
	return 0;
}

static enum oltp_rc scripted_run(void *local, uint32_t slot, bool retry)
{
	struct scripted *s = local;
	uint64_t n = s->runs++;

	/* Nothing waits for a disk here. */
	if (slot)
		abort();
	s->retries += retry;
	if (retry != (n % 4 != 0))
		abort();
	if (n % 4 < 3)
		return OLTP_CONFLICT;
	return n / 4 % 2 ? OLTP_NOT_FOUND : OLTP_OK;
}

static void scripted_detach(void *local)
{
	(void)local;
}

static void test_conflicts_are_retried_and_failures_counted(void **state)
{
	(void)state;
	struct scripted scripted = { 0 };
	const struct oltp_workload workload = {
		.attach = scripted_attach,
		.run = scripted_run,
		.detach = scripted_detach,
		.ctx = &scripted,
	};
	struct oltp_totals totals;
	struct oltp_engine *engine;
	struct oltp_pool *pool;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = engine,
								      .workload = &workload,
								      .no_pin = true },
					  &pool), 0);
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	while (scripted.runs < 1000)
		sleep_ms(1);
	assert_int_equal(oltp_pool_remove(pool, 0, &totals), 0);
	/* It ended after a whole transaction. */
	assert_int_equal(scripted.runs % 4, 0);
	assert_int_equal(totals.conflicts, scripted.retries);
	assert_int_equal(totals.committed + totals.failed, scripted.runs / 4);
	assert_int_equal(totals.failed, scripted.runs / 8);
	oltp_pool_destroy(pool);
	oltp_engine_close(engine);
}

static void test_samples_add_up_across_removals(void **state)
{
	(void)state;
	struct oltp_sample sample, whole;
	struct oltp_totals totals, sum = { 0 };
	uint64_t committed = 0;
	struct fixture f;

	fixture_open(&f, true);
	oltp_pool_sample(f.pool, now_ns(), &sample);
	assert_true(sample.tps == 0);
	for (uint32_t round = 0; round < 10; round++) {
		assert_int_equal(oltp_pool_add(f.pool, round), 0);
		assert_int_equal(oltp_pool_add(f.pool, 100 + round), 0);
		sleep_ms(5);
		oltp_pool_sample(f.pool, now_ns(), &sample);
		assert_int_equal(sample.workers, 2);
		assert_true(sample.totals.committed >= committed);
		committed = sample.totals.committed;
		if (sample.measured) {
			assert_true(sample.p50_us > 0);
			assert_true(sample.p50_us <= sample.p95_us);
			assert_true(sample.p95_us <= sample.p99_us);
		}
		assert_int_equal(oltp_pool_remove(f.pool, 100 + round, &totals), 0);
		sum.committed += totals.committed;
		sum.cpu_ns += totals.cpu_ns;
		assert_int_equal(oltp_pool_remove(f.pool, round, &totals), 0);
		sum.committed += totals.committed;
		sum.cpu_ns += totals.cpu_ns;
	}
	oltp_pool_sample(f.pool, now_ns(), &sample);
	assert_int_equal(sample.totals.committed, sum.committed);
	assert_int_equal(sample.totals.accesses, sum.committed * 10);
	oltp_pool_whole(f.pool, &whole);
	assert_int_equal(whole.totals.committed, sum.committed);
	assert_int_equal(whole.totals.cpu_ns, sum.cpu_ns);
	assert_true(sum.cpu_ns > 0);
	assert_true(whole.measured >= sum.committed / 4);
	fixture_close(&f);
}

/* Whatever arrives is run once, and nothing else is; what cannot be run waits. */
static void test_arrivals(void **state)
{
	(void)state;
	struct oltp_arrivals *arrivals;
	struct oltp_sample sample;
	struct fixture f;
	uint64_t start_ns, unlimited;

	assert_int_equal(oltp_arrivals_create(&arrivals), 0);
	fixture_open_with(&f, true, arrivals);
	assert_int_equal(oltp_pool_add(f.pool, 0), 0);
	assert_int_equal(oltp_pool_add(f.pool, 1), 0);
	/* Unlimited until there is a rate. */
	do {
		sleep_ms(1);
		oltp_pool_sample(f.pool, now_ns(), &sample);
	} while (sample.totals.committed < 100);
	assert_true(sample.offered_ps == 0);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, -1, now_ns()), -EINVAL);
	/* Nobody works while rates of the past are set: whoever looks between two takes more. */
	oltp_pool_remove(f.pool, 0, NULL);
	oltp_pool_remove(f.pool, 1, NULL);
	oltp_pool_sample(f.pool, now_ns(), &sample);
	unlimited = sample.totals.committed;
	/* 1000 at one rate, then 500 at another, all of them 100 ms and more ago. */
	start_ns = now_ns() - 200000000;
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, start_ns), 0);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 100000, start_ns + 10000000), 0);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 50000, start_ns + 20000000), 0);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, start_ns + 30000000), 0);
	oltp_pool_sample(f.pool, now_ns(), &sample);
	assert_int_equal(sample.queue, 1500);
	assert_int_equal(oltp_pool_add(f.pool, 0), 0);
	assert_int_equal(oltp_pool_add(f.pool, 1), 0);
	do {
		sleep_ms(1);
		oltp_pool_sample(f.pool, now_ns(), &sample);
	} while (sample.totals.committed < unlimited + 1500);
	oltp_pool_remove(f.pool, 0, NULL);
	oltp_pool_remove(f.pool, 1, NULL);
	oltp_pool_sample(f.pool, now_ns(), &sample);
	assert_int_equal(sample.totals.committed, unlimited + 1500);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 1, start_ns), -EINVAL);
	/* Their latency says how long they waited. */
	oltp_pool_whole(f.pool, &sample);
	assert_true(sample.p99_us >= 100000);
	/* Without workers they wait. */
	start_ns = now_ns();
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 1000, start_ns), 0);
	oltp_pool_sample(f.pool, start_ns, &sample);
	oltp_pool_sample(f.pool, start_ns + 2000000000ull, &sample);
	assert_in_range(sample.queue, 1999, 2000);
	assert_true(sample.offered_ps > 900 && sample.offered_ps < 1100);
	fixture_close(&f);
	oltp_arrivals_destroy(arrivals);
}

/*
 * Runs the control loop until the pool has n workers and the source (if it counts) has n_out CPUs
 * out.
 */
static void run_until(struct oltp_elastic *e, struct oltp_pool *pool, uint32_t n,
		      const _Atomic int *out, int n_out)
{
	uint64_t end_ns = now_ns() + PATIENCE_NS;

	while (oltp_pool_count(pool) != n || (out && *out != n_out)) {
		struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
		uint64_t wake_ns;
		int own[2];

		assert_true(now_ns() < end_ns);
		assert_int_equal(oltp_elastic_run(e, now_ns(), &wake_ns), 0);
		oltp_elastic_fds(e, own);
		fds[0].fd = own[0];
		fds[1].fd = own[1];
		poll(fds, 2, oltp_pool_count(pool) == n ? 0 : 20);
	}
}

static void test_follows_a_moving_limit(void **state)
{
	(void)state;
	static const uint32_t cpus[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	static const uint32_t limits[] = { 8, 1, 5, 3, 8, 2, 7, 0, 4 };
	struct oltp_elastic_figures figures;
	struct oltp_elastic *e;
	struct fixture f;
	void *source;

	fixture_open(&f, true);
	assert_int_equal(oltp_source_fixed_create(cpus, 8, 1, &source), 0);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool,
						     .ops = &oltp_source_fixed_ops,
						     .source = source }, &e), 0);
	assert_int_equal(oltp_pool_count(f.pool), 1);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		oltp_source_fixed_set_limit(source, limits[i]);
		/* The startup CPU stays whatever is demanded. */
		run_until(e, f.pool, limits[i] ? limits[i] : 1, NULL, 0);
		sleep_ms(3);
	}
	oltp_elastic_stop(e);
	oltp_elastic_figures_get(e, &figures);
	assert_int_equal(figures.cpus_added, figures.cpus_removed);
	assert_int_equal(figures.cpus_added, 7 + 4 + 5 + 5 + 3);
	assert_int_equal(figures.adds_failed + figures.removes_failed, 0);
	assert_int_equal(figures.add.n, 5);
	assert_int_equal(figures.remove.n, figures.cpus_removed);
	assert_true(figures.add.median_ms <= figures.add.p95_ms);
	oltp_elastic_destroy(e);
	oltp_source_fixed_destroy(source);
	fixture_close(&f);
}

/* A source that is slow and fails now and then, and counts what it has out. */
struct flaky {
	void *fixed;
	uint32_t calls;
	_Atomic int out;
};

static int flaky_startup(void *source, struct oltp_cpu *ret_cpus, uint32_t max)
{
	return oltp_source_fixed_ops.startup(((struct flaky *)source)->fixed, ret_cpus, max);
}

static int flaky_fd(void *source)
{
	return oltp_source_fixed_ops.fd(((struct flaky *)source)->fixed);
}

static int flaky_view(void *source, struct oltp_cpu_view *ret_view)
{
	return oltp_source_fixed_ops.view(((struct flaky *)source)->fixed, ret_view);
}

static int flaky_add(void *source, uint32_t node, uint32_t count, struct oltp_cpu *ret_cpus,
		     struct oltp_move_times *ret_times)
{
	struct flaky *flaky = source;
	int n;

	sleep_ms(2);
	if (flaky->calls++ % 3 == 0)
		return -EAGAIN;
	n = oltp_source_fixed_ops.add(flaky->fixed, node, count > 2 ? 2 : count, ret_cpus,
				      ret_times);
	if (n > 0)
		flaky->out += n;
	return n;
}

static int flaky_remove(void *source, uint32_t cpu, struct oltp_move_times *ret_times)
{
	struct flaky *flaky = source;
	int rc;

	sleep_ms(2);
	if (flaky->calls++ % 3 == 0)
		return -EBUSY;
	rc = oltp_source_fixed_ops.remove(flaky->fixed, cpu, ret_times);
	if (rc)
		return rc;
	flaky->out--;
	return flaky->calls % 2 ? 0 : -EINPROGRESS;
}

static const struct oltp_cpu_source_ops flaky_ops = {
	flaky_startup, flaky_fd, flaky_view, flaky_add, flaky_remove, NULL,
};

static int publish_nothing(void *source, const struct oltp_sample *sample)
{
	(void)source;
	(void)sample;
	return 0;
}

static void count_move(void *ctx, const struct oltp_move *move)
{
	uint32_t *counts = ctx;

	counts[move->is_add * 2 + (move->rc != 0 && move->rc != -EINPROGRESS)]++;
}

static void test_failing_source_is_asked_again(void **state)
{
	(void)state;
	static const uint32_t cpus[] = { 0, 1, 2, 3, 4, 5 };
	struct oltp_cpu_source_ops ops = flaky_ops;
	struct oltp_elastic_figures figures;
	uint32_t counts[4] = { 0 };
	struct oltp_elastic *e;
	struct flaky flaky = { 0 };
	struct fixture f;

	fixture_open(&f, true);
	assert_int_equal(oltp_source_fixed_create(cpus, 6, 1, &flaky.fixed), 0);
	/* Every hook is required. */
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &ops,
						     .source = &flaky }, &e), -EINVAL);
	ops.publish = publish_nothing;
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &ops, .source = &flaky,
						     .on_move = count_move, .on_move_ctx = counts },
					     &e), 0);
	run_until(e, f.pool, 6, &flaky.out, 5);
	oltp_source_fixed_set_limit(flaky.fixed, 2);
	run_until(e, f.pool, 2, &flaky.out, 1);
	oltp_source_fixed_set_limit(flaky.fixed, 6);
	run_until(e, f.pool, 6, &flaky.out, 5);
	oltp_elastic_figures_get(e, &figures);
	assert_true(figures.adds_failed > 0 && figures.removes_failed > 0);
	assert_int_equal(counts[1], figures.removes_failed);
	assert_int_equal(counts[3], figures.adds_failed);
	oltp_elastic_destroy(e);
	oltp_source_fixed_destroy(flaky.fixed);
	fixture_close(&f);
}

/* Ends in the middle of a move: what the move brings is given back too. */
static void test_stop_with_a_move_in_flight(void **state)
{
	(void)state;
	static const uint32_t cpus[] = { 0, 1, 2 };
	struct oltp_cpu_source_ops ops = flaky_ops;
	struct oltp_elastic *e;
	struct flaky flaky = { .calls = 1 };
	uint64_t wake_ns;
	struct fixture f;

	fixture_open(&f, true);
	ops.publish = publish_nothing;
	assert_int_equal(oltp_source_fixed_create(cpus, 3, 1, &flaky.fixed), 0);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &ops,
						     .source = &flaky }, &e), 0);
	assert_int_equal(oltp_elastic_run(e, now_ns(), &wake_ns), 0);
	oltp_elastic_stop(e);
	assert_int_equal(oltp_pool_count(f.pool), 0);
	/* One of the two refused (every third call does); closing the source would return it. */
	assert_true(flaky.out <= 1);
	oltp_elastic_destroy(e);
	oltp_source_fixed_destroy(flaky.fixed);
	fixture_close(&f);
}

static void test_steps(void **state)
{
	(void)state;
	static const uint32_t cpus[] = { 0, 1, 2, 3 };
	struct oltp_elastic_figures figures;
	uint64_t end_ns = now_ns() + PATIENCE_NS;
	struct oltp_elastic *e;
	struct fixture f;
	void *source;

	fixture_open(&f, true);
	assert_int_equal(oltp_source_fixed_create(cpus, 4, 1, &source), 0);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &oltp_source_fixed_ops,
						     .source = source, .mode = OLTP_ELASTIC_STEP },
					     &e), -EINVAL);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &oltp_source_fixed_ops,
						     .source = source, .mode = OLTP_ELASTIC_STEP,
						     .step_ns = 20000000 },
					     &e), 0);
	do {
		uint64_t wake_ns;

		assert_true(now_ns() < end_ns);
		assert_int_equal(oltp_elastic_run(e, now_ns(), &wake_ns), 0);
		sleep_ms(1);
		oltp_elastic_figures_get(e, &figures);
	} while (!figures.is_step_done);
	assert_int_equal(oltp_pool_count(f.pool), 1);
	assert_int_equal(figures.cpus_added, 3);
	assert_int_equal(figures.cpus_removed, 3);
	oltp_elastic_destroy(e);
	oltp_source_fixed_destroy(source);
	fixture_close(&f);
}

/* The queue makes it grow, its end lets it shrink. */
static void test_adapts_to_a_queue(void **state)
{
	(void)state;
	static const uint32_t cpus[] = { 0, 1, 2, 3 };
	struct oltp_arrivals *arrivals;
	struct oltp_elastic *e;
	struct fixture f;
	void *source;

	assert_int_equal(oltp_arrivals_create(&arrivals), 0);
	fixture_open_with(&f, true, arrivals);
	assert_int_equal(oltp_source_fixed_create(cpus, 4, 1, &source), 0);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &oltp_source_fixed_ops,
						     .source = source, .mode = OLTP_ELASTIC_ADAPT },
					     &e), 0);
	/* More than any machine can do, then nothing. */
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 1e9, now_ns()), 0);
	run_until(e, f.pool, 4, NULL, 0);
	oltp_elastic_destroy(e);
	oltp_source_fixed_destroy(source);
	fixture_close(&f);
	oltp_arrivals_destroy(arrivals);

	assert_int_equal(oltp_arrivals_create(&arrivals), 0);
	fixture_open_with(&f, true, arrivals);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, now_ns()), 0);
	assert_int_equal(oltp_source_fixed_create(cpus, 4, 1, &source), 0);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &oltp_source_fixed_ops,
						     .source = source }, &e), 0);
	/* FOLLOW takes all whatever there is to do. */
	run_until(e, f.pool, 4, NULL, 0);
	oltp_elastic_destroy(e);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f.pool, .ops = &oltp_source_fixed_ops,
						     .source = source, .mode = OLTP_ELASTIC_ADAPT },
					     &e), 0);
	for (uint64_t end_ns = now_ns() + 300000000; now_ns() < end_ns; sleep_ms(5)) {
		uint64_t wake_ns;

		assert_int_equal(oltp_elastic_run(e, now_ns(), &wake_ns), 0);
		assert_true(wake_ns <= now_ns() + 10000000);
		assert_int_equal(oltp_pool_count(f.pool), 1);
	}
	oltp_elastic_destroy(e);
	oltp_source_fixed_destroy(source);
	fixture_close(&f);
	oltp_arrivals_destroy(arrivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_refuses),
		cmocka_unit_test(test_attach_that_fails),
		cmocka_unit_test(test_conflicts_are_retried_and_failures_counted),
		cmocka_unit_test(test_samples_add_up_across_removals),
		cmocka_unit_test(test_arrivals),
		cmocka_unit_test(test_follows_a_moving_limit),
		cmocka_unit_test(test_failing_source_is_asked_again),
		cmocka_unit_test(test_stop_with_a_move_in_flight),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_adapts_to_a_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
