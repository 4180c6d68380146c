// SPDX-License-Identifier: GPL-2.0-or-later
/* A demand that the host takes back, or a part of it, while blocks are emptied for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/evict.h"
#include "oltp_memory_rig.h"

#define BLOCKS		12u
#define BLOCK_BYTES	OLTP_MEM_BLOCK_BYTES
#define LIMIT_BYTES	(64 * MIB)

static struct rig rig;
static uint64_t limit_then;	/* the new limit */
static _Atomic bool is_armed;	/* the limit changes when the first victims have been worked on */

void __real_evict_flush(struct evict *e);
void __wrap_evict_flush(struct evict *e);

void __wrap_evict_flush(struct evict *e)
{
	__real_evict_flush(e);
	if (!atomic_exchange(&is_armed, false))
		return;
	oltp_blocks_native_set_limit(rig.blocks, limit_then,
				     clock_now_ns() + RIG_DEADLINE_MS * 1000000ull);
}

/* All but two blocks are demanded; then the limit is n_kept blocks. So many are kept. */
static void demand_changes(uint32_t n_kept)
{
	const uint64_t start_ns = clock_now_ns();
	uint64_t demands;

	rig_open(&rig, OLTP_CC_WAIT_DIE, LIMIT_BYTES, true, 0);
	rig_insert(&rig, 0, BLOCKS * RIG_PER_BLOCK);
	limit_then = n_kept == BLOCKS ? LIMIT_BYTES : n_kept * BLOCK_BYTES;
	/* What it holds and does not use goes first, and is of no interest here. */
	rig_demand(&rig, BLOCKS * BLOCK_BYTES, RIG_DEADLINE_MS);
	assert_int_equal(oltp_blocks_native_held(rig.blocks), BLOCKS * BLOCK_BYTES);
	demands = rig_stats(&rig).demands;
	atomic_store(&is_armed, true);
	oltp_blocks_native_set_limit(rig.blocks, 2 * BLOCK_BYTES,
				     clock_now_ns() + RIG_DEADLINE_MS * 1000000ull);
	while (rig_stats(&rig).demands == demands) {
		assert_true(clock_now_ns() - start_ns < 2 * RIG_DEADLINE_MS * 1000000ull);
		rig_sleep_ms(1);
	}
	assert_false(is_armed);
	assert_int_equal(oltp_blocks_native_held(rig.blocks), n_kept * BLOCK_BYTES);
	assert_int_equal(rig_scan(&rig, BLOCKS * RIG_PER_BLOCK, NULL), 0);
	rig_close(&rig);
}

static void nothing_goes_once_all_is_taken_back(void **state)
{
	(void)state;
	demand_changes(BLOCKS);
}

static void only_the_rest_goes_once_a_part_is(void **state)
{
	(void)state;
	demand_changes(BLOCKS - 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_goes_once_all_is_taken_back),
		cmocka_unit_test(only_the_rest_goes_once_a_part_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
