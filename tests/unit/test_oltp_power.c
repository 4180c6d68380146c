// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loss of power at any point of a database's life: while it begins, runs, makes checkpoints, rolls
 * over segments, recovers. What is on disk of the writes under way is chosen at random, sector by
 * sector. After each the book of durable_rig.h must hold.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "durable_rig.h"

#define POINTS		(1000u / DURABLE_FEWER)
#define LIVES		10u	/* of one disk */

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

static void test_power_loss(void **state)
{
	(void)state;
	uint32_t n_lost = 0, n_checkpoints = 0, n_segments = 0;
	uint64_t transactions = 0;

	for (uint32_t seed = 1; n_lost < POINTS; seed++) {
		durable_init(&rig, seed);
		for (uint32_t i = 0; i < LIVES; i++) {
			n_lost += live(seed * LIVES + i);
			n_segments += fault_disk_count(rig.disk, "log-");
			n_checkpoints += fault_disk_count(rig.disk, "checkpoint-");
		}
		assert_int_equal(durable_recover(&rig), 0);
		transactions += rig.shared_found;
		durable_finish(&rig);
		assert_true(seed < POINTS);
	}
	/* It all came to something. */
	assert_true(transactions > POINTS);
	assert_true(n_checkpoints > POINTS / 10);
	assert_true(n_segments > POINTS);
	/* About one in fourteen; with few points there may be none. */
	assert_true(n_torn > POINTS / 50 || DURABLE_FEWER > 1);
	print_message("%u losses of power, %u torn groups\n", n_lost, n_torn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
