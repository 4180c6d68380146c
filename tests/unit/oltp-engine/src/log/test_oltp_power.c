// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loss of power at any point of a database's life: while it begins, runs, makes checkpoints, rolls
 * over segments, recovers. What is on disk of the writes under way is chosen at random, sector by
 * sector; of the names that were not synced, name by name. After each the book of durable_rig.h
 * must hold.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/durable_rig.h"

/*
 * A life makes some 100 calls in which power may go, so this meets each kind several times; most of
 * a life is waiting for threads, which on a busy machine takes ten times as long as on an idle one.
 */
#define POINTS		(320u / DURABLE_FEWER)
#define LIVES		10u	/* of one disk */
/* Of the draws at each call, where names are at stake. */
#define DRAWS		(8u / DURABLE_FEWER)

static struct durable_rig rig;
static uint32_t n_torn;		/* recoveries that met a torn group */

/* One life: recovery, work and a loss of power somewhere in it. True: it went off meanwhile. */
static bool live(uint64_t seed)
{
	uint64_t rng = seed * 0x9e3779b97f4a7c15ull + 3;
	bool lost;
	int rc;

	/* Most calls come after the recovery, some of it are hit as well. */
	durable_draw(&rng, 2);
	fault_disk_lose_power_at(rig.disk, durable_draw(&rng, durable_draw(&rng, 2) ? 40 : 160));
	rc = durable_recover(&rig);
	if (!rc) {
		n_torn += rig.recovery.torn_bytes != 0;
		durable_run(&rig, DURABLE_WORKERS, 60, (uint32_t)durable_draw(&rng, 3));
	} else {
		assert_true(fault_disk_is_dead(rig.disk));
	}
	lost = fault_disk_is_dead(rig.disk);
	durable_close(&rig);
	/* Now and then it is the process alone that dies, with all that it wrote on its way. */
	fault_disk_restart(rig.disk, durable_draw(&rng, 8));
	return lost;
}

static void lose_power(enum oltp_durability durability, uint32_t points)
{
	uint32_t n_lost = 0, n_checkpoints = 0, n_segments = 0;
	uint64_t transactions = 0;

	for (uint32_t seed = 1; n_lost < points; seed++) {
		durable_init(&rig, seed);
		rig.config.durability = durability;
		for (uint32_t i = 0; i < LIVES; i++) {
			n_lost += live(seed * LIVES + i);
			n_segments += durable_count(&rig, "log-");
			n_checkpoints += durable_count(&rig, "checkpoint-");
		}
		assert_int_equal(durable_recover(&rig), 0);
		transactions += rig.shared_found;
		durable_finish(&rig);
		assert_true(seed < points);
	}
	/* It all came to something. */
	assert_true(transactions > points);
	assert_true(n_checkpoints > points / 10);
	assert_true(n_segments > points);
	/* About one in fourteen; with few points there may be none. */
	assert_true(n_torn > points / 100 || DURABLE_FEWER > 1);
	print_message("%u losses of power, %u torn groups\n", n_lost, n_torn);
}

static void test_power_loss(void **state)
{
	(void)state;
	lose_power(OLTP_DURABILITY_COMMIT, POINTS);
}

/* Here too what is waited for is there, and of the rest a beginning. */
static void test_power_loss_in_mode_async(void **state)
{
	(void)state;
	lose_power(OLTP_DURABILITY_ASYNC, POINTS / 5);
}

/* The next process finds all that there must be. */
static void come_back(void)
{
	durable_close(&rig);
	fault_disk_restart(rig.disk, true);
	if (durable_recover(&rig))
		fail_msg("%s", rig.recovery.error);
}

/* At each call of the very first process, until it gets through. */
static void test_power_loss_at_the_beginning(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= DRAWS; seed++) {
		bool is_through = false;

		for (uint64_t nth = 0; !is_through; nth++) {
			durable_init(&rig, seed);
			fault_disk_lose_power_at(rig.disk, nth);
			is_through = !durable_recover(&rig);
			come_back();
			durable_finish(&rig);
		}
	}
}

/* At each call of a checkpoint, until one is there: the log before it goes only then. */
static void test_power_loss_in_a_checkpoint(void **state)
{
	(void)state;
	static struct durable_rig saved;
	uint32_t n_segments;

	durable_init(&saved, 1);
	assert_int_equal(durable_recover(&saved), 0);
	durable_run(&saved, DURABLE_WORKERS, 120, 0);
	durable_close(&saved);
	n_segments = durable_count(&saved, "log-");
	assert_true(n_segments > 2);
	for (uint64_t seed = 1; seed <= DRAWS; seed++) {
		bool is_through = false;

		for (uint64_t nth = 0; !is_through; nth++) {
			durable_copy(&rig, &saved, seed);
			assert_int_equal(durable_recover(&rig), 0);
			fault_disk_calm(rig.disk);
			fault_disk_lose_power_at(rig.disk, nth);
			durable_checkpoint(&rig);
			is_through = !fault_disk_is_dead(rig.disk);
			if (is_through)
				assert_true(durable_count(&rig, "log-") < n_segments);
			come_back();
			durable_close(&rig);
			fault_disk_destroy(rig.disk);
		}
	}
	durable_finish(&saved);
}

/* Right after a table was created: it is known of which size its records are. */
static void test_power_loss_behind_a_new_table(void **state)
{
	(void)state;
	struct oltp_table *table;

	for (uint64_t seed = 1; seed <= DRAWS; seed++) {
		durable_init(&rig, seed);
		assert_int_equal(durable_recover(&rig), 0);
		assert_int_equal(oltp_table_create(rig.engine, 104, 16, &table), 0);
		fault_disk_lose_power_at(rig.disk, 0);
		durable_close(&rig);
		fault_disk_restart(rig.disk, true);
		assert_int_equal(durable_open(&rig), 0);
		assert_int_equal(oltp_table_create(rig.engine, 96, 16, &table), -EINVAL);
		assert_int_equal(oltp_table_create(rig.engine, 104, 16, &table), 0);
		durable_finish(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DURABLE_TEST(test_power_loss),
		DURABLE_TEST(test_power_loss_in_mode_async),
		DURABLE_TEST(test_power_loss_at_the_beginning),
		DURABLE_TEST(test_power_loss_in_a_checkpoint),
		DURABLE_TEST(test_power_loss_behind_a_new_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
