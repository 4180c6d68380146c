// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The thread rules of ebb.h, all used at once: one thread dispatches, one adds and
 * removes, several report and read statistics, while the monitor comes and goes.
 * Mostly of interest in the thread sanitizer's build.
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

#include "guest-monitor/libebb/link.h"
#include "tests/lib/ebb_rig.h"

#define NUM_REPORTERS	4
#define RUN_MS		1500
#define NS_PER_MS	1000000ull

struct job {
	struct ebb *ebb;
	atomic_int is_over;
	atomic_uint num_reports;
	atomic_uint num_reads;
	atomic_uint num_exchanges;
	atomic_int bad_result;		/* the first that the rules do not allow; 0: none */
};

static void judge(struct job *job, int r)
{
	int none = 0;

	if (r >= 0 || r == -ENOTCONN || r == -EAGAIN || r == -EDQUOT || r == -ETIMEDOUT)
		return;
	atomic_compare_exchange_strong(&job->bad_result, &none, r);
}

static void *reporter(void *arg)
{
	struct job *job = arg;
	struct ebb_stats stats = { 0 };

	while (!job->is_over) {
		int r;

		stats.committed++;
		r = ebb_report(job->ebb, &stats);
		judge(job, r);
		job->num_reports += r == 0;
		r = ebb_stats_get(job->ebb, NULL, &stats);
		judge(job, r);
		job->num_reads += r == 0;
		ebb_has_monitor(job->ebb);
	}
	return NULL;
}

static void *exchanger(void *arg)
{
	struct job *job = arg;
	struct ebb_cpu cpu;

	while (!job->is_over) {
		int r = ebb_cpu_add(job->ebb, 1, 0, 0, 0, &cpu, NULL);

		judge(job, r);
		if (r == 1) {
			judge(job, ebb_cpu_remove(job->ebb, cpu.cpu, 0, NULL));
			job->num_exchanges++;
		}
		usleep(200);
	}
	return NULL;
}

static void dispatch_once(struct job *job)
{
	struct pollfd p = { .fd = ebb_fd(job->ebb), .events = POLLIN };
	struct ebb_shares shares;

	poll(&p, 1, 5);
	judge(job, ebb_dispatch(job->ebb));
	ebb_shares_get(job->ebb, &shares);
}

static void dispatch_for(struct job *job, unsigned int ms)
{
	uint64_t until_ns = ebb_rig_now_ns() + ms * NS_PER_MS;

	while (ebb_rig_now_ns() < until_ns)
		dispatch_once(job);
}

/* At least for so long, and until there is more of all that the threads do. */
static void dispatch_some(struct job *job, unsigned int ms)
{
	const unsigned int reports = job->num_reports, reads = job->num_reads;
	const unsigned int exchanges = job->num_exchanges;
	uint64_t until_ns = ebb_rig_now_ns() + EBB_RIG_SOON_MS * NS_PER_MS;

	dispatch_for(job, ms);
	while (job->num_reports == reports || job->num_reads == reads ||
	       job->num_exchanges == exchanges) {
		dispatch_once(job);
		assert_true(ebb_rig_now_ns() < until_ns);
	}
}

static void all_threads_at_once(void **state)
{
	struct ebb_rig *rig = *state;
	struct job job = { 0 };
	pthread_t threads[NUM_REPORTERS + 1];
	struct ebb_stats stats;

	ebb_rig_monitor_start(rig);
	job.ebb = ebb_rig_open(rig, "busy", 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 5, 0);
	for (int i = 0; i < NUM_REPORTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reporter, &job), 0);
	assert_int_equal(pthread_create(&threads[NUM_REPORTERS], NULL, exchanger, &job), 0);

	dispatch_some(&job, RUN_MS);
	ebb_rig_monitor_end(rig, SIGKILL);
	dispatch_for(&job, 200);
	ebb_rig_monitor_start(rig);
	dispatch_some(&job, RUN_MS);

	job.is_over = 1;
	/* The others may wait for an answer that this thread reads. */
	dispatch_for(&job, 50);
	for (int i = 0; i <= NUM_REPORTERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(job.bad_result, 0);
	assert_true(job.num_reports > 0);
	assert_true(job.num_reads > 0);
	assert_true(job.num_exchanges > 0);
	assert_int_equal(ebb_has_monitor(job.ebb), 1);
	assert_int_equal(ebb_stats_get(job.ebb, NULL, &stats), 0);
	print_message("%u reports, %u reads, %u exchanges\n", job.num_reports, job.num_reads,
		      job.num_exchanges);
	ebb_close(job.ebb);
	/* Whatever happened in between, nothing is held now. */
	while (fake_ebb_dev_num_opens(rig->dev) > 1)
		usleep(1000);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 2);
}

/* The thread that dispatches takes most answers away from the one that waits for them. */
static void answers_read_by_another_thread_arrive(void **state)
{
	struct ebb_rig *rig = *state;
	struct job job = { 0 };
	pthread_t thread;
	uint64_t until_ns;

	ebb_rig_monitor_start(rig);
	job.ebb = ebb_rig_open(rig, "robbed", 0);
	assert_int_equal(pthread_create(&thread, NULL, reporter, &job), 0);
	/* One that is not woken waits for a second, and those are long now. */
	until_ns = ebb_rig_now_ns() + EBB_RIG_SOON_MS * NS_PER_MS;
	while (job.num_reads <= 50 && ebb_rig_now_ns() < until_ns)
		assert_int_equal(ebb_dispatch(job.ebb), 0);
	job.is_over = 1;
	pthread_join(thread, NULL);
	assert_int_equal(job.bad_result, 0);
	assert_true(job.num_reads > 50);
	ebb_close(job.ebb);
}

/* Reads without anybody dispatching: the reader finds its own answer. */
static void statistics_without_a_dispatching_thread(void **state)
{
	struct ebb_rig *rig = *state;
	struct job job = { 0 };
	pthread_t threads[NUM_REPORTERS];
	uint64_t until_ns;

	ebb_rig_monitor_start(rig);
	job.ebb = ebb_rig_open(rig, "lazy", 0);
	for (int i = 0; i < NUM_REPORTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reporter, &job), 0);
	until_ns = ebb_rig_now_ns() + EBB_RIG_SOON_MS * NS_PER_MS;
	while (job.num_reads <= 10 * NUM_REPORTERS && ebb_rig_now_ns() < until_ns)
		usleep(1000);
	job.is_over = 1;
	for (int i = 0; i < NUM_REPORTERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(job.bad_result, 0);
	assert_true(job.num_reads > 10 * NUM_REPORTERS);
	ebb_close(job.ebb);
}

static void stats_callback(void *arg, const struct ebb_shares *shares)
{
	struct job *job = arg;
	struct ebb_stats stats;

	(void)shares;
	judge(job, ebb_stats_get(job->ebb, NULL, &stats));
	job->num_reads++;
}

static void statistics_inside_the_callback(void **state)
{
	struct ebb_rig *rig = *state;
	struct job job = { 0 };

	ebb_rig_monitor_start(rig);
	job.ebb = ebb_rig_open(rig, "inside", 0);
	ebb_set_shares_callback(job.ebb, stats_callback, &job);
	for (uint32_t limit = 3; limit < 9; limit++) {
		const unsigned int reads = job.num_reads;
		const uint64_t until_ns = ebb_rig_now_ns() + EBB_RIG_SOON_MS * NS_PER_MS;

		fake_ebb_dev_set_limit(rig->dev, 0, limit, 0);
		while (job.num_reads == reads && ebb_rig_now_ns() < until_ns)
			dispatch_once(&job);
		assert_true(job.num_reads > reads);
	}
	assert_int_equal(job.bad_result, 0);
	ebb_close(job.ebb);
}

#define RIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, ebb_rig_setup, ebb_rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(all_threads_at_once),
		RIG_TEST(answers_read_by_another_thread_arrive),
		RIG_TEST(statistics_without_a_dispatching_thread),
		RIG_TEST(statistics_inside_the_callback),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_threads", tests, NULL, NULL);
}
