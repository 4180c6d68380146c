// SPDX-License-Identifier: GPL-2.0-or-later
/* What the engine says of its memory when the host asks; libebb is played here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/server/vom_ebb.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORDS		8000u	/* four blocks */
#define OBJECTS		8192u

static struct ebb_vom_cache caches[2];
static unsigned int n_caches;

int ebb_vom_register(struct ebb *ebb, const struct ebb_vom_cache *cache, unsigned int *ret_id)
{
	(void)ebb;
	*ret_id = n_caches;
	caches[n_caches++] = *cache;
	return 0;
}

int ebb_vom_unregister(struct ebb *ebb, unsigned int id)
{
	(void)ebb;
	(void)id;
	n_caches--;
	return 0;
}

/*
 * Of all objects of a kind: bytes, and the least that a MiB is worth. False as long as the engine
 * does not know what its memory is worth.
 */
static bool told(enum ebb_vom_kind kind, uint64_t *ret_bytes, double *ret_least)
{
	static struct ebb_vom_object objects[OBJECTS];
	uint64_t bytes = 0;

	*ret_least = 1e30;
	for (unsigned int c = 0; c < n_caches; c++) {
		int n;

		if (caches[c].kind != kind)
			continue;
		n = caches[c].read(caches[c].arg, objects, OBJECTS);
		if (n == -EAGAIN)
			return false;
		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			double value = (double)objects[i].sts_ns * objects[i].rate;

			bytes += kind == EBB_VOM_FREE ? objects[i].bytes :
							objects[i].stands_for_bytes;
			value *= (double)(1 << 20) / (double)objects[i].bytes;
			*ret_least = value < *ret_least ? value : *ret_least;
		}
	}
	*ret_bytes = bytes;
	return true;
}

/* Until what is told as free is so, or is not. Reads a record all the time if is_running. */
static uint64_t wait_free(struct rig *rig, bool is_running, bool is_free)
{
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms++) {
		uint64_t bytes;
		double least;

		if (is_running)
			assert_int_equal(rig_read(rig, 1, 0), OLTP_OK);
		if (told(EBB_VOM_FREE, &bytes, &least) && is_free == (bytes > 0))
			return bytes;
		rig_sleep_ms(1);
	}
	fail_msg("it is still %s", is_free ? "to be filled" : "free");
	return 0;
}

/* Until the samples stand for so much, none of it worth nothing. Reads a record all the time. */
static void wait_sampled(struct rig *rig, uint64_t bytes)
{
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms++) {
		uint64_t now;
		double least;

		assert_int_equal(rig_read(rig, 1, 0), OLTP_OK);
		if (told(EBB_VOM_SAMPLED, &now, &least) && now == bytes) {
			assert_true(least > 0);
			return;
		}
		rig_sleep_ms(1);
	}
	fail_msg("the samples do not stand for what is held");
}

/*
 * Half of the records are on disk, so that what is free in the blocks will be filled as soon as
 * somebody works: then it is worth something, and else it is not.
 */
static void test_free_memory(void **state)
{
	struct oltp_memory_stats stats;
	struct vom_ebb vom;
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(vom_ebb_begin(&vom, NULL, rig.engine), 0);
	assert_int_equal(n_caches, 2);
	wait_free(&rig, false, true);
	wait_free(&rig, true, false);
	stats = rig_stats(&rig);
	assert_true(stats.resident_bytes < stats.held_bytes);
	/* There are more records than that, and as many of them are told of as find room. */
	wait_sampled(&rig, stats.held_bytes);
	assert_true(wait_free(&rig, false, true) >= 1024);
	vom_ebb_end(&vom);
	assert_int_equal(n_caches, 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
