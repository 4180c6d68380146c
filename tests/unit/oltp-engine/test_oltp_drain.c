// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker that is to leave while all its transactions wait for room that does not come. It keeps
 * its CPU no longer than it may. The clock is slow here: what gives a transaction up by itself is
 * hours away, and the deadline is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"

#define RECORDS		RIG_PER_BLOCK
#define SLOWDOWN	1000u
/* 200 ms of everybody else's. */
#define DRAIN_NS	200000u
/* Longer is a hang. */
#define LIMIT_S		120u

static _Atomic uint64_t slow_from_ns;	/* 0: the clock goes as it should */

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t from_ns = atomic_load(&slow_from_ns), ns;
	int rc = __real_clock_gettime(clock, ret_time);

	if (rc || clock != CLOCK_MONOTONIC || !from_ns)
		return rc;
	ns = (uint64_t)ret_time->tv_sec * 1000000000ull + (uint64_t)ret_time->tv_nsec;
	ns = from_ns + (ns - from_ns) / SLOWDOWN;
	*ret_time = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	return 0;
}

/* Adds rows for which there is no room. */
struct adder {
	struct rig *rig;
	struct oltp_worker *w;
	_Atomic uint64_t next_key;
	_Atomic uint32_t n_begun;
};

static int adder_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct adder *adder = ctx;

	adder->w = worker;
	*ret_local = adder;
	return 0;
}

static enum oltp_rc adder_run(void *local, uint32_t slot, bool retry)
{
	struct adder *adder = local;
	uint8_t record[RIG_RECORD_BYTES] = { 0 };
	enum oltp_rc rc;

	(void)slot;
	oltp_txn_begin(adder->w);
	rc = oltp_txn_insert(adder->w, adder->rig->table, adder->next_key++, record) ?:
	     oltp_txn_commit(adder->w);
	if (rc)
		oltp_txn_abort(adder->w);
	adder->n_begun += !retry;
	return rc;
}

static void adder_detach(void *local)
{
	(void)local;
}

static void no_room_is_no_reason_to_stay(void **state)
{
	struct rig rig;
	struct adder adder = { .rig = &rig, .next_key = RECORDS };
	const struct oltp_workload workload = { adder_attach, adder_run, adder_detach, &adder };
	struct oltp_pool_config config = { .workload = &workload, .no_pin = true };
	struct oltp_totals totals;
	struct oltp_pool *pool;

	(void)state;
	alarm(LIMIT_S);
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_age(&rig);
	assert_int_equal(rig_demand(&rig, 0, RIG_DEADLINE_MS).held_bytes, 0);
	config.engine = rig.engine;
	assert_int_equal(oltp_pool_create(&config, &pool), 0);
	atomic_store(&slow_from_ns, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	while (adder.n_begun < OLTP_TICKETS)
		usleep(1000);
	assert_int_equal(oltp_pool_stop_by(pool, 0, clock_ns(CLOCK_MONOTONIC) + DRAIN_NS), 0);
	assert_int_equal(oltp_pool_remove(pool, 0, &totals), 0);
	assert_int_equal(totals.committed, 0);
	assert_int_equal(totals.failed, OLTP_TICKETS);
	atomic_store(&slow_from_ns, 0);
	/* Nothing of them is left. */
	rig_demand(&rig, 8 * MIB, 0);
	adder.next_key = RECORDS;
	assert_int_equal(oltp_pool_add(pool, 1), 0);
	do
		oltp_pool_totals(pool, &totals);
	while (!totals.committed && !usleep(1000));
	oltp_pool_destroy(pool);
	rig_close(&rig);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_room_is_no_reason_to_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
