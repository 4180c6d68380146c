// SPDX-License-Identifier: GPL-2.0-or-later
/* The engine on libebb, on a simulated device: offers, demands, force, and a device that goes. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/ycsb.h"
#include "oltp-engine/server/source_ebb.h"
#include "tests/lib/ebb_rig.h"

#define PATIENCE_NS	60000000000ull	/* a hang, not slowness */

struct fixture {
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct oltp_pool *pool;
	struct oltp_elastic *elastic;
	void *source;
	struct ebb *ebb;
	int gone;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void note_gone(void *ctx, int rc)
{
	struct fixture *f = ctx;

	assert_int_equal(rc, -ENODEV);
	f->gone++;
}

static void fixture_open_tier(struct fixture *f, struct ebb_rig *rig, unsigned int flags,
			      enum oltp_tier tier)
{
	const struct ycsb_config config = { .records = 300, .operations = 10,
					    .update_share = 0.5, .theta = 0.5, .seed = 1 };
	struct oltp_workload workload;

	memset(f, 0, sizeof(*f));
	f->ebb = ebb_rig_open(rig, "engine", flags);
	assert_int_equal(source_ebb_create(&(struct source_ebb_config){ .ebb = f->ebb,
									.interval_ms = 100,
									.tier = tier,
									.on_gone = note_gone,
									.ctx = f },
					   &f->source), 0);
	assert_int_equal(oltp_engine_open(NULL, &f->engine), 0);
	assert_int_equal(ycsb_create(f->engine, &config, &f->ycsb), 0);
	assert_int_equal(ycsb_load(f->ycsb, 1), 0);
	workload = ycsb_workload(f->ycsb);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = f->engine,
								      .workload = &workload,
								      .no_pin = true },
					  &f->pool), 0);
	assert_int_equal(oltp_elastic_create(&(struct oltp_elastic_config){
						     .pool = f->pool, .ops = &source_ebb_ops,
						     .source = f->source }, &f->elastic), 0);
	/* The rig's VM boots with two CPUs on each of its two nodes. */
	assert_int_equal(oltp_pool_count(f->pool), 4);
}

static void fixture_open(struct fixture *f, struct ebb_rig *rig, unsigned int flags)
{
	fixture_open_tier(f, rig, flags, OLTP_TIER_NONE);
}

static void fixture_close(struct fixture *f)
{
	struct ycsb_verdict v;

	oltp_elastic_destroy(f->elastic);
	oltp_pool_destroy(f->pool);
	ycsb_verify(f->ycsb, &v);
	assert_int_equal(v.lost_updates, 0);
	ycsb_destroy(f->ycsb);
	oltp_engine_close(f->engine);
	source_ebb_destroy(f->source);
	ebb_close(f->ebb);
}

/* One turn of the control loop. */
static void turn(struct fixture *f)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	uint64_t wake_ns;
	int own[2];

	assert_int_equal(oltp_elastic_run(f->elastic, now_ns(), &wake_ns), 0);
	oltp_elastic_fds(f->elastic, own);
	fds[0].fd = own[0];
	fds[1].fd = own[1];
	poll(fds, 2, 20);
}

/* Until both sides agree on how many CPUs there are on each node. */
static void run_until(struct fixture *f, struct ebb_rig *rig, uint32_t node0, uint32_t node1)
{
	uint64_t end_ns = now_ns() + PATIENCE_NS;

	while (oltp_pool_count(f->pool) != node0 + node1 ||
	       fake_ebb_dev_held(rig->dev, 0) != node0 || fake_ebb_dev_held(rig->dev, 1) != node1) {
		assert_true(now_ns() < end_ns);
		turn(f);
	}
}

static void limits(struct ebb_rig *rig, uint32_t node0, uint32_t node1)
{
	fake_ebb_dev_set_limit(rig->dev, 0, node0, now_ns() + 2000000000ull);
	fake_ebb_dev_set_limit(rig->dev, 1, node1, now_ns() + 2000000000ull);
}

static void follows_limits(void **state)
{
	struct ebb_rig *rig = *state;
	struct oltp_elastic_figures figures;
	struct fixture f;

	fixture_open(&f, rig, EBB_OPEN_NO_MONITOR);
	limits(rig, 6, 2);
	run_until(&f, rig, 6, 2);
	limits(rig, 3, 5);
	run_until(&f, rig, 3, 5);
	limits(rig, 10, 10);
	run_until(&f, rig, 10, 10);
	limits(rig, 2, 2);
	run_until(&f, rig, 2, 2);
	/* Below the startup set there is nothing to give. */
	limits(rig, 0, 0);
	for (int i = 0; i < 5; i++)
		turn(&f);
	assert_int_equal(oltp_pool_count(f.pool), 4);
	oltp_elastic_figures_get(f.elastic, &figures);
	assert_int_equal(figures.cpus_added, figures.cpus_removed);
	assert_int_equal(figures.cpus_added, 4 + 3 + 7 + 5);
	assert_int_equal(figures.removes_failed, 0);
	fixture_close(&f);
}

/* Grows by two on node 0 and shrinks again; says by which tiers. */
static struct oltp_elastic_figures there_and_back(struct fixture *f, struct ebb_rig *rig)
{
	struct oltp_elastic_figures figures;

	limits(rig, 4, 2);
	run_until(f, rig, 4, 2);
	limits(rig, 2, 2);
	run_until(f, rig, 2, 2);
	/* The host is told before the call has ended. */
	oltp_elastic_figures_get(f->elastic, &figures);
	while (figures.cpus_removed < figures.cpus_added) {
		turn(f);
		oltp_elastic_figures_get(f->elastic, &figures);
	}
	return figures;
}

static void lends_where_it_can(void **state)
{
	struct ebb_rig *rig = *state;
	struct oltp_elastic_figures figures;
	uint32_t added, removed;
	struct fixture f;

	fake_ebb_dev_set_lend(rig->dev, 1);
	fixture_open(&f, rig, EBB_OPEN_NO_MONITOR);
	figures = there_and_back(&f, rig);
	assert_int_equal(figures.tier_add[OLTP_TIER_UNPLUG].n, 1);
	assert_int_equal(figures.tier_remove[OLTP_TIER_LEND].n, 2);
	/* What it lent it has again, and knows so. */
	figures = there_and_back(&f, rig);
	assert_int_equal(figures.tier_add[OLTP_TIER_LEND].n, 1);
	assert_int_equal(figures.tier_remove[OLTP_TIER_LEND].n, 4);
	assert_int_equal(figures.add.n, 2);
	assert_int_equal(figures.remove.n, 4);
	fake_ebb_dev_traffic(rig->dev, &added, &removed);
	assert_int_equal(removed, 0);
	assert_int_equal(fake_ebb_dev_num_lent(rig->dev), 4);
	/* A forced CPU is no more use to it than any other that it has to give. */
	limits(rig, 3, 2);
	run_until(&f, rig, 3, 2);
	assert_int_equal(fake_ebb_dev_force(rig->dev, 2), 0);
	limits(rig, 2, 2);
	run_until(&f, rig, 2, 2);
	fixture_close(&f);
	assert_int_equal(fake_ebb_dev_num_lent(rig->dev), 5);
}

static void follows_the_hosts_wish_or_its_users(void **state)
{
	static const struct {
		uint32_t host;
		enum oltp_tier user;
		enum oltp_tier used;
	} cases[] = {
		{ VIRTIO_EBB_TIER_LEND, OLTP_TIER_NONE, OLTP_TIER_LEND },
		{ VIRTIO_EBB_TIER_PARK, OLTP_TIER_NONE, OLTP_TIER_PARK },
		{ VIRTIO_EBB_TIER_UNPLUG, OLTP_TIER_NONE, OLTP_TIER_UNPLUG },
		{ VIRTIO_EBB_TIER_UNPLUG, OLTP_TIER_PARK, OLTP_TIER_PARK },
		{ VIRTIO_EBB_TIER_PARK, OLTP_TIER_LEND, OLTP_TIER_LEND },
		{ VIRTIO_EBB_TIER_LEND, OLTP_TIER_UNPLUG, OLTP_TIER_UNPLUG },
	};
	struct ebb_rig *rig = *state;

	fake_ebb_dev_set_lend(rig->dev, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct oltp_elastic_figures figures;
		struct fixture f;

		fake_ebb_dev_set_tier(rig->dev, 0, cases[i].host);
		fixture_open_tier(&f, rig, EBB_OPEN_NO_MONITOR, cases[i].user);
		figures = there_and_back(&f, rig);
		assert_int_equal(figures.tier_remove[cases[i].used].n, 2);
		assert_int_equal(figures.remove.n, 2);
		fixture_close(&f);
	}
}

static void tiers_have_names(void **state)
{
	enum oltp_tier tier = OLTP_TIER_NONE;

	(void)state;
	for (uint32_t i = OLTP_TIER_LEND; i < OLTP_TIERS; i++) {
		assert_int_equal(oltp_tier_parse(oltp_tier_name((enum oltp_tier)i), &tier), 0);
		assert_int_equal(tier, i);
	}
	assert_int_equal(oltp_tier_parse("none", &tier), -EINVAL);
	assert_int_equal(oltp_tier_parse("", &tier), -EINVAL);
	assert_string_equal(oltp_tier_name((enum oltp_tier)77), "none");
}

/* Whatever is wished for, a device that does not lend has them back. */
static void removes_where_it_can_not_lend(void **state)
{
	struct ebb_rig *rig = *state;
	struct oltp_elastic_figures figures;
	uint32_t added, removed;
	struct fixture f;

	fixture_open_tier(&f, rig, EBB_OPEN_NO_MONITOR, OLTP_TIER_PARK);
	figures = there_and_back(&f, rig);
	assert_int_equal(figures.tier_remove[OLTP_TIER_UNPLUG].n, 2);
	assert_int_equal(figures.removes_failed, 0);
	fake_ebb_dev_traffic(rig->dev, &added, &removed);
	assert_int_equal(removed, 2);
	fixture_close(&f);
}

static void gives_back_what_was_forced(void **state)
{
	struct ebb_rig *rig = *state;
	struct oltp_elastic_figures figures;
	struct fixture f;
	struct ebb_cpu cpus[FAKE_EBB_MAX_CPUS];
	uint64_t end_ns = now_ns() + PATIENCE_NS;
	uint32_t removed, added;
	int n;

	fixture_open(&f, rig, EBB_OPEN_NO_MONITOR);
	limits(rig, 4, 2);
	run_until(&f, rig, 4, 2);
	n = ebb_cpu_list(f.ebb, cpus, FAKE_EBB_MAX_CPUS);
	assert_int_equal(n, 6);
	limits(rig, 3, 2);
	for (int i = 0; i < n; i++) {
		if (cpus[i].flags & EBB_CPU_OWNED) {
			assert_int_equal(fake_ebb_dev_force(rig->dev, cpus[i].cpu), 0);
			break;
		}
	}
	/* It no longer counts as held, so only the engine's own books say when it is gone. */
	do {
		turn(&f);
		oltp_elastic_figures_get(f.elastic, &figures);
	} while (!figures.cpus_removed && now_ns() < end_ns);
	assert_int_equal(figures.cpus_removed, 1);
	assert_int_equal(oltp_pool_count(f.pool), 5);
	fake_ebb_dev_traffic(rig->dev, &added, &removed);
	assert_int_equal(removed, 1);
	/* Nothing more is given: the demand was met by force. */
	for (int i = 0; i < 5; i++)
		turn(&f);
	fake_ebb_dev_traffic(rig->dev, &added, &removed);
	assert_int_equal(removed, 1);
	fixture_close(&f);
}

static void carries_on_without_the_device(void **state)
{
	struct ebb_rig *rig = *state;
	struct oltp_sample sample;
	struct fixture f;
	uint64_t before;

	fixture_open(&f, rig, EBB_OPEN_NO_MONITOR);
	limits(rig, 3, 2);
	run_until(&f, rig, 3, 2);
	fake_ebb_dev_unplug(rig->dev);
	for (uint64_t end_ns = now_ns() + PATIENCE_NS; !f.gone && now_ns() < end_ns;)
		turn(&f);
	for (int i = 0; i < 5; i++)
		turn(&f);
	assert_int_equal(f.gone, 1);
	oltp_pool_sample(f.pool, now_ns(), &sample);
	before = sample.totals.committed;
	do {
		turn(&f);
		oltp_pool_sample(f.pool, now_ns(), &sample);
	} while (sample.totals.committed == before);
	assert_int_equal(source_ebb_ops.publish(f.source, &sample), -ENODEV);
	fixture_close(&f);
}

static void publishes_to_the_monitor(void **state)
{
	struct ebb_rig *rig = *state;
	struct oltp_sample sample;
	struct ebb_stats stats = { 0 };
	struct fixture f;

	ebb_rig_monitor_start(rig);
	fixture_open(&f, rig, 0);
	limits(rig, 4, 3);
	run_until(&f, rig, 4, 3);
	oltp_pool_sample(f.pool, now_ns(), &sample);
	do {
		turn(&f);
		oltp_pool_sample(f.pool, now_ns(), &sample);
	} while (!sample.measured);
	assert_int_equal(source_ebb_ops.publish(f.source, &sample), 0);
	assert_int_equal(ebb_stats_get(f.ebb, NULL, &stats), 0);
	assert_int_equal(stats.workers, 7);
	assert_int_equal(stats.committed, sample.totals.committed);
	assert_int_equal(stats.accesses, sample.totals.accesses);
	assert_int_equal(stats.interval_ms, 100);
	assert_true(stats.p50_us > 0 && stats.p99_us >= stats.p50_us);
	fixture_close(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(follows_limits, ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test(tiers_have_names),
		cmocka_unit_test_setup_teardown(lends_where_it_can, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(follows_the_hosts_wish_or_its_users, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(removes_where_it_can_not_lend, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(gives_back_what_was_forced, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(carries_on_without_the_device, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(publishes_to_the_monitor, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
