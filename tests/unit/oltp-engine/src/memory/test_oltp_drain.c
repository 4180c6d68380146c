// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker that is to leave while all its transactions wait, for room that does not come or for a
 * disk that stands still. It keeps its CPU no longer than it may. While there is no room the clock
 * is slow: what gives a transaction up by itself is hours away, and the deadline is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/fetch.h"
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

static _Atomic bool is_disk_still;	/* no read of a worker ends */
static _Atomic uint32_t n_disk_waits;	/* for such a read */

struct io_request *__real_io_queue_next(struct io_queue *io);
struct io_request *__wrap_io_queue_next(struct io_queue *io);
void __real_io_queue_wait(struct io_queue *io, uint64_t timeout_ns);
void __wrap_io_queue_wait(struct io_queue *io, uint64_t timeout_ns);

static bool is_still(const struct io_queue *io)
{
	return io->depth == FETCH_READS_MAX && atomic_load(&is_disk_still);
}

struct io_request *__wrap_io_queue_next(struct io_queue *io)
{
	return is_still(io) ? NULL : __real_io_queue_next(io);
}

void __wrap_io_queue_wait(struct io_queue *io, uint64_t timeout_ns)
{
	if (!is_still(io)) {
		__real_io_queue_wait(io, timeout_ns);
		return;
	}
	io_queue_flush(io);
	n_disk_waits++;
	usleep(100);
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
	const struct oltp_workload workload = {
		.attach = adder_attach,
		.run = adder_run,
		.detach = adder_detach,
		.ctx = &adder,
	};
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

/* Reads rows that are on disk. */
static enum oltp_rc reader_run(void *local, uint32_t slot, bool retry)
{
	struct adder *reader = local;
	const void *found;
	enum oltp_rc rc;

	oltp_txn_begin(reader->w);
	rc = oltp_txn_read(reader->w, reader->rig->table, slot, &found) ?:
	     oltp_txn_commit(reader->w);
	if (rc)
		oltp_txn_abort(reader->w);
	reader->n_begun += !retry;
	return rc;
}

static void *let_disk_go_on(void *arg)
{
	const uint32_t n = n_disk_waits;

	(void)arg;
	while (n_disk_waits < n + 2)
		usleep(1000);
	atomic_store(&is_disk_still, false);
	return NULL;
}

/* close: while the disk still stands; else the manager ends the reads when it goes on. */
static void leave_still_disk(bool close)
{
	struct rig rig;
	struct adder reader = { .rig = &rig };
	const struct oltp_workload workload = {
		.attach = adder_attach,
		.run = reader_run,
		.detach = adder_detach,
		.ctx = &reader,
	};
	struct oltp_pool_config config = { .workload = &workload, .no_pin = true };
	struct oltp_totals totals;
	struct oltp_pool *pool;
	struct cold *cold;
	pthread_t thread;

	alarm(LIMIT_S);
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_age(&rig);
	assert_int_equal(rig_demand(&rig, 0, RIG_DEADLINE_MS).cold_records, RECORDS);
	cold = rig.engine->cold;
	config.engine = rig.engine;
	assert_int_equal(oltp_pool_create(&config, &pool), 0);
	atomic_store(&is_disk_still, true);
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	while (reader.n_begun < OLTP_TICKETS)
		usleep(1000);
	assert_int_equal(oltp_pool_stop_by(pool, 0, clock_ns(CLOCK_MONOTONIC) + DRAIN_NS), 0);
	assert_int_equal(oltp_pool_remove(pool, 0, &totals), 0);
	assert_true(is_disk_still);
	assert_int_equal(totals.committed, 0);
	assert_int_equal(totals.failed, OLTP_TICKETS);
	assert_true(cold->left_bytes > 0);
	if (close) {
		/* The kernel still writes to the buffers. */
		oltp_pool_destroy(pool);
		assert_int_equal(pthread_create(&thread, NULL, let_disk_go_on, NULL), 0);
		rig_close(&rig);
		assert_false(is_disk_still);
		pthread_join(thread, NULL);
		alarm(0);
		return;
	}
	/* The manager has looked after them, in vain. */
	rig_age(&rig);
	assert_true(cold->left_bytes > 0);
	atomic_store(&is_disk_still, false);
	while (cold->left_bytes)
		usleep(1000);
	assert_int_equal(rig_read(&rig, 0, 0), OLTP_OK);
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	do
		oltp_pool_totals(pool, &totals);
	while (!totals.committed && !usleep(1000));
	oltp_pool_destroy(pool);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
	alarm(0);
}

static void a_still_disk_is_no_reason_to_stay(void **state)
{
	(void)state;
	leave_still_disk(false);
}

static void an_engine_that_is_closed_waits_for_reads(void **state)
{
	(void)state;
	leave_still_disk(true);
}

/* What is left behind is bounded: a worker that comes then reads nothing. */
static void too_much_is_left(void **state)
{
	struct rig rig;

	(void)state;
	alarm(LIMIT_S);
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_age(&rig);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	rig.engine->cold->left_bytes += FETCH_LEFT_BYTES_MAX;
	assert_int_equal(rig_read(&rig, 0, 0), OLTP_NO_MEMORY);
	rig.engine->cold->left_bytes -= FETCH_LEFT_BYTES_MAX;
	assert_int_equal(rig_read(&rig, 0, 0), OLTP_OK);
	rig_close(&rig);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_room_is_no_reason_to_stay),
		cmocka_unit_test(a_still_disk_is_no_reason_to_stay),
		cmocka_unit_test(an_engine_that_is_closed_waits_for_reads),
		cmocka_unit_test(too_much_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
