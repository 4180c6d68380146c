// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Applications and monitor together, on a simulated device: who is offered what,
 * and what happens when somebody dies.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/handle.h"
#include "guest-monitor/monitord/divide.h"
#include "tests/lib/ebb_rig.h"

#define SOON_MS		EBB_RIG_SOON_MS

/* What shares are waited for: of up to three applications on node 0. */
struct expected {
	struct ebb *apps[3];
	size_t num;
	uint32_t offered[3];
	uint32_t demanded[3];
};

static bool shares_are(void *arg)
{
	const struct expected *e = arg;

	for (size_t i = 0; i < e->num; i++) {
		struct ebb_node_share s = ebb_rig_share(e->apps[i], 0);

		if (s.cpus_offered != e->offered[i] || s.cpus_demanded != e->demanded[i])
			return false;
	}
	return true;
}

static void expect(struct expected *e)
{
	if (ebb_rig_until(e->apps, e->num, shares_are, e, SOON_MS))
		return;
	for (size_t i = 0; i < e->num; i++) {
		struct ebb_node_share s = ebb_rig_share(e->apps[i], 0);

		print_error("application %zu: offered %u, expected %u; demanded %u, expected %u\n",
			    i, s.cpus_offered, e->offered[i], s.cpus_demanded, e->demanded[i]);
	}
	fail();
}

static void expect_offers(struct expected *e, uint32_t a, uint32_t b)
{
	memset(e->demanded, 0, sizeof(e->demanded));
	e->offered[0] = a;
	e->offered[1] = b;
	expect(e);
}

static void expect_demands(struct expected *e, uint32_t a, uint32_t b)
{
	memset(e->offered, 0, sizeof(e->offered));
	e->demanded[0] = a;
	e->demanded[1] = b;
	expect(e);
}

/* Facts about node 0 that come with the host's next word. */
static void expect_node(struct expected *e, uint32_t tier, uint32_t held)
{
	struct ebb_node_share share = ebb_rig_share(e->apps[0], 0);

	for (unsigned int ms = 0; ms < SOON_MS && (share.tier != tier || share.cpus_held != held);
	     ms += 10) {
		ebb_rig_run(e->apps, 2, 10);
		share = ebb_rig_share(e->apps[0], 0);
	}
	assert_int_equal(share.tier, tier);
	assert_int_equal(share.cpus_held, held);
}

/*
 * The monitor has looked at all that there was before, and what it says about that has been
 * read. It takes a connection in one round and hears of its end in a later one, so that the round
 * in which all was there is over by then. (Answers to questions do not show that: the monitor
 * may answer several in one turn of an application, before it comes to the next application.)
 */
static void settle(struct ebb_rig *rig, struct expected *e)
{
	for (size_t i = 0; i < e->num; i++)
		assert_int_equal(ebb_dispatch(e->apps[i]), 0);
	ebb_rig_monitor_round(rig);
	for (size_t i = 0; i < e->num; i++)
		assert_int_equal(ebb_dispatch(e->apps[i]), 0);
}

static struct expected two_open(struct ebb_rig *rig)
{
	struct expected e = { .num = 2 };

	ebb_rig_monitor_start(rig);
	e.apps[0] = ebb_rig_open(rig, "a", 0);
	e.apps[1] = ebb_rig_open(rig, "b", 0);
	assert_int_equal(ebb_has_monitor(e.apps[0]), 1);
	return e;
}

static void all_close(struct expected *e)
{
	for (size_t i = 0; i < e->num; i++)
		ebb_close(e->apps[i]);
}

static void two_applications_share_offers(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_cpu cpus[4];

	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect_offers(&e, 2, 2);
	assert_int_equal(ebb_rig_share(e.apps[0], 0).cpus_limit, 6);
	assert_int_equal(ebb_rig_share(e.apps[0], 0).cpus_held, 2);
	fake_ebb_dev_set_limit(rig->dev, 0, 7, 0);
	expect_offers(&e, 3, 2);
	/* The fast one gets no more than its part. */
	assert_int_equal(ebb_cpu_add(e.apps[0], 3, 0, 0, 0, cpus, NULL), 3);
	expect_offers(&e, 0, 2);
	all_close(&e);
}

static void demand_goes_to_the_one_that_owns_most(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_cpu a[3], b[1];
	uint32_t added, removed;

	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	assert_int_equal(ebb_cpu_add(e.apps[0], 3, 0, 0, 0, a, NULL), 3);
	assert_int_equal(ebb_cpu_add(e.apps[1], 1, 0, 0, 0, b, NULL), 1);
	expect_offers(&e, 0, 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 987654321);
	expect_demands(&e, 2, 0);
	assert_int_equal(ebb_rig_share(e.apps[0], 0).deadline_ns, 987654321);
	assert_int_equal(ebb_rig_share(e.apps[1], 0).deadline_ns, 0);
	/* Half of it done: the other half stays where it is. */
	assert_int_equal(ebb_cpu_remove(e.apps[0], a[0].cpu, 0, NULL), 0);
	expect_demands(&e, 1, 0);
	assert_int_equal(ebb_cpu_remove(e.apps[0], a[1].cpu, 0, NULL), 0);
	expect_demands(&e, 0, 0);
	settle(rig, &e);
	fake_ebb_dev_traffic(rig->dev, &added, &removed);
	assert_int_equal(added, 4);
	assert_int_equal(removed, 2);
	all_close(&e);
}

/* What is lent is nobody's: it meets a demand, and the next offer has it for either. */
static void lent_cpus_are_shared_again(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = { 0 };
	struct ebb_cpu a[2], b[2];

	fake_ebb_dev_set_lend(rig->dev, 1);
	fake_ebb_dev_set_tier(rig->dev, 0, VIRTIO_EBB_TIER_LEND);
	e = two_open(rig);
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 0);
	expect_offers(&e, 1, 1);
	assert_int_equal(ebb_rig_share(e.apps[1], 0).tier, VIRTIO_EBB_TIER_LEND);
	assert_int_equal(ebb_rig_share(e.apps[1], 1).tier, VIRTIO_EBB_TIER_ANY);
	assert_int_equal(ebb_cpu_add(e.apps[0], 2, 0, 0, 0, a, NULL), 2);
	fake_ebb_dev_set_limit(rig->dev, 0, 2, 987654321);
	expect_demands(&e, 2, 0);
	assert_int_equal(ebb_cpu_lend(e.apps[0], a[1].cpu, 0, 0, NULL), 0);
	expect_demands(&e, 1, 0);
	assert_int_equal(ebb_cpu_lend(e.apps[0], a[0].cpu, 0, 0, NULL), 0);
	expect_demands(&e, 0, 0);
	expect_node(&e, VIRTIO_EBB_TIER_LEND, 2);
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 0);
	expect_offers(&e, 1, 1);
	assert_int_equal(ebb_cpu_add(e.apps[1], 1, 0, 0, 0, b, NULL), 1);
	assert_int_equal(b[0].cpu, a[0].cpu);
	expect_offers(&e, 1, 0);
	/* News of the tier alone are news. */
	fake_ebb_dev_set_tier(rig->dev, 0, VIRTIO_EBB_TIER_UNPLUG);
	expect_offers(&e, 1, 0);
	expect_node(&e, VIRTIO_EBB_TIER_UNPLUG, 3);
	all_close(&e);
}

static void late_limits_do_not_ask_twice(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_cpu a[2], b[2];

	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect_offers(&e, 2, 2);
	fake_ebb_dev_delay_limits(rig->dev, 1);
	assert_int_equal(ebb_cpu_add(e.apps[0], 2, 0, 0, 0, a, NULL), 2);
	expect_offers(&e, 0, 2);
	settle(rig, &e);
	expect_offers(&e, 0, 2);
	assert_int_equal(ebb_cpu_add(e.apps[1], 2, 0, 0, 0, b, NULL), 2);
	expect_offers(&e, 0, 0);
	settle(rig, &e);
	expect_offers(&e, 0, 0);

	fake_ebb_dev_delay_limits(rig->dev, 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 5, 1);
	expect_demands(&e, 0, 1);
	fake_ebb_dev_delay_limits(rig->dev, 1);
	assert_int_equal(ebb_cpu_remove(e.apps[1], b[0].cpu, 0, NULL), 0);
	expect_demands(&e, 0, 0);
	/* The host still counts it; the other, which now owns most, must not pay for that. */
	settle(rig, &e);
	expect_demands(&e, 0, 0);
	fake_ebb_dev_delay_limits(rig->dev, 0);
	settle(rig, &e);
	expect_demands(&e, 0, 0);
	all_close(&e);
}

static void offer_that_is_not_taken_goes_to_the_other(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);

	fake_ebb_dev_set_limit(rig->dev, 0, 3, 0);
	expect_offers(&e, 1, 0);
	ebb_rig_time_pass(EBB_DIVIDE_PATIENCE_MS);
	expect_offers(&e, 0, 1);
	ebb_rig_time_pass(EBB_DIVIDE_PATIENCE_MS);
	expect_offers(&e, 1, 0);
	all_close(&e);
}

static atomic_bool is_host_asked, is_host_ready;

/* A host that takes its time for CPUs. */
static int slow_ioctl(void *dev, unsigned long cmd, void *arg)
{
	if (cmd == EBB_IOC_CPU_ADD)
		is_host_asked = true;
	while (cmd == EBB_IOC_CPU_ADD && !is_host_ready)
		usleep(1000);
	return fake_ebb_dev_ops.ioctl(dev, cmd, arg);
}

static void *add_one(void *arg)
{
	struct ebb_cpu cpu;

	return ebb_cpu_add(arg, 1, 0, 0, 0, &cpu, NULL) == 1 ? arg : NULL;
}

static void application_that_waits_for_cpus_keeps_its_offer(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb_options options = {
		.app_name = "slow", .device = rig->dev_path, .monitor_socket = rig->mon_path,
	};
	struct ebb_dev_ops ops = fake_ebb_dev_ops;
	struct expected e = { .num = 2 };
	struct expected only_b = { .num = 1 };
	struct ebb_cpu b[2];
	pthread_t thread;
	void *ret;

	is_host_asked = is_host_ready = false;
	ops.ioctl = slow_ioctl;
	ebb_rig_monitor_start(rig);
	assert_int_equal(ebb_open_dev(&options, &ops, &e.apps[0]), 0);
	e.apps[1] = only_b.apps[0] = ebb_rig_open(rig, "b", 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect_offers(&e, 2, 2);
	/* From here on the first one neither dispatches nor has anything to show. */
	assert_int_equal(pthread_create(&thread, NULL, add_one, e.apps[0]), 0);
	while (!is_host_asked)
		usleep(1000);
	assert_int_equal(ebb_cpu_add(e.apps[1], 2, 0, 0, 0, b, NULL), 2);
	expect_offers(&only_b, 0, 0);
	ebb_rig_time_pass(EBB_DIVIDE_PATIENCE_MS + 500);
	settle(rig, &only_b);
	assert_int_equal(ebb_rig_share(e.apps[1], 0).cpus_offered, 0);
	is_host_ready = true;
	pthread_join(thread, &ret);
	assert_ptr_equal(ret, e.apps[0]);
	expect_offers(&e, 1, 0);
	all_close(&e);
}

static void application_that_does_not_dispatch_is_passed_over(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct expected only_b = { .apps = { e.apps[1] }, .num = 1 };

	fake_ebb_dev_set_limit(rig->dev, 0, 2, 0);
	settle(rig, &e);
	/* From here on the first one sleeps. */
	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect_offers(&only_b, 2, 0);
	ebb_rig_time_pass(EBB_DIVIDE_ABSENT_MS);
	expect_offers(&only_b, 4, 0);
	/* It is back, and that is noticed though no time passes. */
	expect_offers(&e, 2, 2);
	all_close(&e);
}

static void application_that_missed_much_hears_the_newest(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct expected only_b = { .apps = { e.apps[1] }, .num = 1 };

	fake_ebb_dev_set_limit(rig->dev, 0, 2, 0);
	settle(rig, &e);
	/* More than the monitor sends unread. */
	for (uint32_t i = 1; i <= 2 * EBB_MSG_WINDOW; i++) {
		fake_ebb_dev_set_limit(rig->dev, 0, 2 + 2 * (1 + i % 3), 0);
		expect_offers(&only_b, 1 + i % 3, 0);
	}
	fake_ebb_dev_set_limit(rig->dev, 0, 10, 0);
	expect_offers(&only_b, 4, 0);
	expect_offers(&e, 4, 4);
	all_close(&e);
}

static bool held_is_limit(void *arg)
{
	struct ebb_rig *rig = arg;

	return fake_ebb_dev_held(rig->dev, 0) == 8;
}

static void application_killed_while_it_holds_cpus(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = { .num = 1 };
	pid_t engine;

	ebb_rig_monitor_start(rig);
	fake_ebb_dev_set_limit(rig->dev, 0, 8, 0);
	engine = ebb_rig_engine_start(rig, "engine");
	assert_true(ebb_rig_until(NULL, 0, held_is_limit, rig, SOON_MS));
	e.apps[0] = ebb_rig_open(rig, "survivor", 0);
	expect_offers(&e, 0, 0);
	ebb_rig_end(engine, SIGKILL);
	expect_offers(&e, 6, 0);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 2);
	/* Its name is free. */
	ebb_close(ebb_rig_open(rig, "engine", 0));
	all_close(&e);
}

static bool has_monitor(void *arg)
{
	return ebb_has_monitor(arg);
}

static bool has_no_monitor(void *arg)
{
	return !ebb_has_monitor(arg);
}

static void monitor_killed_and_restarted(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_stats stats = { .committed = 1 };
	struct ebb_cpu a[3], b[2];
	uint32_t added, removed;

	fake_ebb_dev_set_limit(rig->dev, 0, 7, 0);
	assert_int_equal(ebb_cpu_add(e.apps[0], 3, 0, 0, 0, a, NULL), 3);
	assert_int_equal(ebb_cpu_add(e.apps[1], 2, 0, 0, 0, b, NULL), 2);
	expect_offers(&e, 0, 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 6, 1);
	expect_demands(&e, 1, 0);

	ebb_rig_monitor_end(rig, SIGKILL);
	assert_true(ebb_rig_until(e.apps, 2, has_no_monitor, e.apps[0], SOON_MS));
	assert_int_equal(ebb_report(e.apps[0], &stats), -ENOTCONN);
	/* What it said last still holds: the other is not asked for the same CPU. */
	expect_demands(&e, 1, 0);
	assert_int_equal(ebb_cpu_remove(e.apps[0], a[0].cpu, 0, NULL), 0);
	expect_demands(&e, 0, 0);

	/* What changes while it is away is known to the next one, and so is who owns what. */
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 1);
	ebb_rig_monitor_start(rig);
	assert_true(ebb_rig_until(e.apps, 2, has_monitor, e.apps[0], SOON_MS));
	assert_true(ebb_rig_until(e.apps, 2, has_monitor, e.apps[1], SOON_MS));
	expect_demands(&e, 1, 1);
	assert_int_equal(ebb_report(e.apps[0], &stats), 0);
	fake_ebb_dev_traffic(rig->dev, &added, &removed);
	assert_int_equal(added, 5);
	assert_int_equal(removed, 1);
	all_close(&e);
}

static void without_monitor_for_long_the_limits_are_the_vms_own(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);

	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect_offers(&e, 2, 2);
	assert_int_equal(ebb_rig_monitor_end(rig, SIGTERM), 0);
	assert_int_equal(access(rig->mon_path, F_OK), -1);
	assert_true(ebb_rig_until(e.apps, 2, has_no_monitor, e.apps[0], SOON_MS));
	assert_true(ebb_rig_until(e.apps, 2, has_no_monitor, e.apps[1], SOON_MS));
	ebb_rig_time_pass(EBB_MONITOR_GRACE_MS);
	expect_offers(&e, 4, 4);
	ebb_rig_monitor_start(rig);
	expect_offers(&e, 2, 2);
	all_close(&e);
}

static void monitor_that_comes_later_is_found(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *a = ebb_rig_open(rig, "a", 0);
	struct ebb *b = ebb_rig_open(rig, "b", EBB_OPEN_NO_MONITOR);
	struct ebb *both[] = { a, b };

	ebb_rig_run(both, 2, 50);
	assert_int_equal(ebb_has_monitor(a), 0);
	ebb_rig_monitor_start(rig);
	assert_true(ebb_rig_until(both, 2, has_monitor, a, SOON_MS));
	assert_int_equal(ebb_has_monitor(b), 0);
	ebb_close(a);
	ebb_close(b);
}

static void names_are_unique(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb *ebb;

	assert_int_equal(ebb_rig_try_open(rig, "a", 0, &ebb), -EEXIST);
	/* Nothing of the failed open is left. */
	while (fake_ebb_dev_num_opens(rig->dev) > 3)
		;
	assert_int_equal(ebb_rig_try_open(rig, "a", EBB_OPEN_NO_MONITOR, &ebb), 0);
	ebb_close(ebb);
	ebb_close(e.apps[0]);
	e.apps[0] = ebb_rig_open(rig, "a", 0);
	all_close(&e);
}

static void statistics_are_stored_and_read_back(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_stats stats = {
		.committed = 1000, .aborted = 100, .failed = 10, .accesses = 10000, .p50_us = 1,
		.p95_us = 2, .p99_us = 3, .workers = 4, .interval_ms = 500,
		.committed_ps = 1e9, .cpus_online = 99,
	};
	struct ebb_stats back = { .committed = 7 };

	assert_int_equal(ebb_stats_get(e.apps[1], NULL, &back), 0);
	assert_int_equal(back.committed, 0);
	assert_int_equal(ebb_report(e.apps[0], &stats), 0);
	assert_int_equal(ebb_stats_get(e.apps[0], NULL, &back), 0);
	assert_int_equal(back.committed, 1000);
	assert_int_equal(back.aborted, 100);
	assert_int_equal(back.failed, 10);
	assert_int_equal(back.accesses, 10000);
	assert_int_equal(back.p50_us, 1);
	assert_int_equal(back.p95_us, 2);
	assert_int_equal(back.p99_us, 3);
	assert_int_equal(back.workers, 4);
	assert_int_equal(back.interval_ms, 500);
	assert_int_equal(back.cpus_online, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(back.mem_total_bytes >= back.mem_available_bytes);
	assert_true(back.mem_available_bytes > 0);

	/*
	 * By the other, which has no part in it.  A report that is read in a round which began
	 * before that time is none to judge by.
	 */
	do {
		ebb_rig_time_pass(1000);
		stats.committed += 1000;
		assert_int_equal(ebb_report(e.apps[0], &stats), 0);
		settle(rig, &e);
		assert_int_equal(ebb_stats_get(e.apps[1], "a", &back), 0);
		assert_int_equal(back.committed, stats.committed);
	} while (back.committed_ps == 0 && stats.committed < 100000);
	/* From the times at which the monitor got them, not what the application says (1e9). */
	assert_true(back.committed_ps > 0 && back.committed_ps < 1e6);
	assert_true(back.aborted_ps == 0);

	back.committed = 7;
	assert_int_equal(ebb_stats_get(e.apps[1], "nobody", &back), -ENOENT);
	assert_int_equal(ebb_stats_get(e.apps[1], "no/name", &back), -ENOENT);
	assert_int_equal(back.committed, 7);
	all_close(&e);
}

static void monitor_that_hangs_is_not_waited_for(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_stats stats = { 0 };
	struct ebb *c;
	int r;

	kill(rig->monitor, SIGSTOP);
	ebb_rig_time_slow(1);
	assert_int_equal(ebb_stats_get(e.apps[0], NULL, &stats), -ETIMEDOUT);
	/* Reports pile up until the socket is full; nothing waits. */
	for (int i = 0; i < 100000 && ebb_report(e.apps[0], &stats) == 0; i++)
		;
	assert_int_equal(ebb_report(e.apps[0], &stats), -EAGAIN);
	assert_int_equal(ebb_dispatch(e.apps[0]), 0);
	/* Who opens now does so without it, after a second. */
	c = ebb_rig_open(rig, "c", 0);
	assert_int_equal(ebb_has_monitor(c), 0);
	ebb_rig_time_slow(EBB_RIG_SLOW);
	kill(rig->monitor, SIGCONT);
	assert_true(ebb_rig_until(&c, 1, has_monitor, c, SOON_MS));
	/* Once it has read some of the reports. */
	do
		r = ebb_stats_get(e.apps[0], NULL, &stats);
	while (r == -EAGAIN);
	assert_int_equal(r, 0);
	ebb_close(c);
	all_close(&e);
}

struct telemetry_wait {
	struct ebb_rig *rig;
	uint64_t committed;
	uint16_t num_apps;
};

static bool telemetry_says(void *arg)
{
	const struct telemetry_wait *w = arg;
	struct virtio_ebb_telemetry t;

	return fake_ebb_dev_telemetry(w->rig->dev, &t) > 0 && t.committed == w->committed &&
	       t.num_apps == w->num_apps;
}

static void host_hears_the_sum(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct telemetry_wait w = { .rig = rig };
	struct ebb_stats stats = { .committed = 1000, .p99_us = 70, .workers = 3 };
	struct virtio_ebb_telemetry t;

	assert_int_equal(ebb_report(e.apps[0], &stats), 0);
	stats.committed = 500;
	stats.p99_us = 60;
	assert_int_equal(ebb_report(e.apps[1], &stats), 0);
	w.committed = 1500;
	w.num_apps = 2;
	assert_true(ebb_rig_until(e.apps, 2, telemetry_says, &w, SOON_MS));
	fake_ebb_dev_telemetry(rig->dev, &t);
	assert_int_equal(t.p99_us, 70);
	assert_int_equal(t.workers, 6);
	assert_int_equal(t.cpus_online, sysconf(_SC_NPROCESSORS_ONLN));

	/* One leaves and comes back as another process would: nothing is lost or counted twice. */
	ebb_close(e.apps[1]);
	w.num_apps = 1;
	assert_true(ebb_rig_until(e.apps, 1, telemetry_says, &w, SOON_MS));
	e.apps[1] = ebb_rig_open(rig, "b", 0);
	stats.committed = 11;
	assert_int_equal(ebb_report(e.apps[1], &stats), 0);
	w.num_apps = 2;
	w.committed = 1511;
	assert_true(ebb_rig_until(e.apps, 2, telemetry_says, &w, SOON_MS));
	all_close(&e);
}

static bool has_no_nodes(void *arg)
{
	struct ebb_shares shares;

	ebb_shares_get(arg, &shares);
	return shares.num_nodes == 0;
}

static void device_that_goes_and_comes(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_stats stats;

	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect_offers(&e, 2, 2);
	fake_ebb_dev_unplug(rig->dev);
	assert_int_equal(ebb_dispatch(e.apps[0]), -ENODEV);
	/* Statistics need no device. */
	assert_int_equal(ebb_stats_get(e.apps[0], NULL, &stats), 0);
	fake_ebb_dev_replug(rig->dev);
	/* Now it looks for it again, unless it has yet to notice. */
	ebb_rig_time_pass(1000);
	ebb_close(e.apps[0]);
	e.apps[0] = ebb_rig_open(rig, "a", 0);
	ebb_close(e.apps[1]);
	e.apps[1] = ebb_rig_open(rig, "b", 0);
	expect_offers(&e, 2, 2);
	assert_false(has_no_nodes(e.apps[0]));
	all_close(&e);
}

static uint32_t engines_limit;

static bool engines_have_settled(void *arg)
{
	struct ebb_rig *rig = arg;

	return fake_ebb_dev_held(rig->dev, 0) == engines_limit;
}

static void three_engines_follow_the_limit_without_detours(void **state)
{
	static const uint32_t limits[] = { 10, 4, 9, 3, 8, 2, 10, 7, 5, 6 };
	struct ebb_rig *rig = *state;
	struct expected e = { .num = 3 };
	struct ebb **apps = e.apps;
	uint32_t held = 2, adds = 0, removals = 0;
	uint32_t added, removed;

	ebb_rig_monitor_start(rig);
	apps[0] = ebb_rig_open(rig, "a", 0);
	apps[1] = ebb_rig_open(rig, "b", 0);
	apps[2] = ebb_rig_open(rig, "c", 0);
	for (int i = 0; i < 3; i++)
		ebb_set_shares_callback(apps[i], ebb_rig_engine_shares, apps[i]);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		engines_limit = limits[i];
		fake_ebb_dev_set_limit(rig->dev, 0, limits[i], 1);
		assert_true(ebb_rig_until(apps, 3, engines_have_settled, rig, SOON_MS));
		/* It stays there. */
		settle(rig, &e);
		assert_int_equal(fake_ebb_dev_held(rig->dev, 0), limits[i]);
		adds += limits[i] > held ? limits[i] - held : 0;
		removals += limits[i] < held ? held - limits[i] : 0;
		held = limits[i];
		fake_ebb_dev_traffic(rig->dev, &added, &removed);
		assert_int_equal(added, adds);
		assert_int_equal(removed, removals);
	}
	/* Four CPUs above the startup set, three applications: as even as can be. */
	for (int i = 0; i < 3; i++)
		assert_in_range(ebb_rig_share(apps[i], 0).cpus_owned, 1, 2);
	for (int i = 0; i < 3; i++)
		ebb_close(apps[i]);
}

#define RIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, ebb_rig_setup, ebb_rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(two_applications_share_offers),
		RIG_TEST(demand_goes_to_the_one_that_owns_most),
		RIG_TEST(lent_cpus_are_shared_again),
		RIG_TEST(late_limits_do_not_ask_twice),
		RIG_TEST(offer_that_is_not_taken_goes_to_the_other),
		RIG_TEST(application_that_waits_for_cpus_keeps_its_offer),
		RIG_TEST(application_that_does_not_dispatch_is_passed_over),
		RIG_TEST(application_that_missed_much_hears_the_newest),
		RIG_TEST(application_killed_while_it_holds_cpus),
		RIG_TEST(monitor_killed_and_restarted),
		RIG_TEST(without_monitor_for_long_the_limits_are_the_vms_own),
		RIG_TEST(monitor_that_comes_later_is_found),
		RIG_TEST(names_are_unique),
		RIG_TEST(statistics_are_stored_and_read_back),
		RIG_TEST(monitor_that_hangs_is_not_waited_for),
		RIG_TEST(host_hears_the_sum),
		RIG_TEST(device_that_goes_and_comes),
		RIG_TEST(three_engines_follow_the_limit_without_detours),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_monitor", tests, NULL, NULL);
}
