// SPDX-License-Identifier: GPL-2.0-or-later
/* The log's order under threads, and what the worker pool acknowledges. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "log_rig.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/pool/worker_pool.h"

#define KEYS		12u
#define THREADS		4u
#define TXNS		1500u
#define TXNS_PER_WORKER	100u

/* ---- order ---- */

struct mover {
	struct log_rig *rig;
	pthread_t thread;
	uint64_t random;
};

static uint64_t draw(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* Counts two rows up. */
static enum oltp_rc move(struct oltp_worker *w, struct oltp_table *table, uint64_t a, uint64_t b)
{
	static const struct oltp_span span = { 0, sizeof(uint64_t) };
	enum oltp_rc rc = oltp_txn_begin(w);
	struct log_rig_row *row;

	for (int i = 0; !rc && i < 2; i++) {
		rc = oltp_txn_update(w, table, i ? b : a, &span, 1, (void **)&row);
		if (!rc)
			row->counter++;
	}
	rc = rc ?: oltp_txn_commit(w);
	if (rc)
		oltp_txn_abort(w);
	return rc;
}

static void *mover_main(void *arg)
{
	struct mover *mover = arg;
	struct log_rig *rig = mover->rig;
	struct oltp_worker *w = NULL;
	uint64_t epoch = 0;

	for (uint32_t n = 0; n < TXNS; n++) {
		uint64_t a = draw(&mover->random) % KEYS, b = draw(&mover->random) % (KEYS - 1);

		if (n % TXNS_PER_WORKER == 0) {
			oltp_worker_destroy(w);
			if (oltp_worker_create(rig->engine, &w))
				abort();
		}
		while (move(w, rig->table, a, b >= a ? b + 1 : b))
			;
		if (oltp_worker_epoch(w) < epoch)
			abort();
		epoch = oltp_worker_epoch(w);
	}
	oltp_worker_destroy(w);
	return NULL;
}

struct order {
	uint64_t counters[KEYS];
	uint64_t csn;
};

/* Each change of a row is the one that follows the last. */
static void check_order(void *ctx, const struct log_group_header *group,
			const struct log_entry *entry, const struct log_op *op)
{
	struct order *order = ctx;
	const struct log_span *span;
	struct log_cursor cursor;
	uint64_t counter;

	(void)group;
	order->csn = entry->csn;
	if (op->kind != LOG_OP_UPDATE)
		return;
	log_spans_begin(&cursor, op);
	assert_int_equal(log_spans_next(&cursor, &span), 1);
	memcpy(&counter, log_span_data(span), sizeof(counter));
	assert_int_equal(counter, order->counters[op->key] + 1);
	order->counters[op->key] = counter;
}

static void conflicts_and_log_have_one_order(void **state)
{
	struct mover movers[THREADS];
	struct log_rig *rig = *state;
	struct order order = { 0 };
	struct log_seen seen;

	rig->config.cc = OLTP_CC_WAIT_DIE;
	rig->config.group_interval_us = 100;
	log_rig_open(rig);
	for (uint64_t key = 0; key < KEYS; key++)
		assert_int_equal(log_rig_insert(rig, key, 0), OLTP_OK);
	for (uint32_t i = 0; i < THREADS; i++) {
		movers[i] = (struct mover){ .rig = rig, .random = i * 7919 + 1 };
		assert_int_equal(pthread_create(&movers[i].thread, NULL, mover_main, &movers[i]),
				 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(movers[i].thread, NULL), 0);
	log_rig_close(rig);
	seen = log_rig_read(rig->dir, check_order, &order);
	assert_int_equal(seen.entries, KEYS + THREADS * TXNS);
	for (uint32_t key = 1; key < KEYS; key++)
		order.counters[0] += order.counters[key];
	assert_int_equal(order.counters[0], 2 * THREADS * TXNS);
}

/* ---- acknowledgement ---- */

static void acknowledgements_come_by_epoch(void **state)
{
	struct acks *acks = calloc(1, sizeof(*acks));
	struct hist *hist = calloc(1, sizeof(*hist));
	struct hist_view view = { 0 };

	(void)state;
	assert_non_null(acks);
	assert_non_null(hist);
	for (uint64_t round = 0; round < 5; round++) {
		uint64_t epoch = round * ACKS_EPOCHS + 1, pushed = 0;

		for (uint32_t i = 0; acks_have_room(acks, 1); i++, pushed++)
			acks_push(acks, epoch + i / 3, i % 2 ? 1000 + i : 0);
		/* The last epoch has but one: there is no room for more. */
		assert_int_equal(pushed, 3 * (ACKS_EPOCHS - 1) + 1);
		assert_int_equal(acks_oldest(acks), epoch);
		assert_int_equal(acks_newest(acks), epoch + ACKS_EPOCHS - 1);
		assert_false(acks_are_due(acks, epoch - 1));
		assert_int_equal(acks_take(acks, epoch - 1, 5000, hist), 0);
		assert_int_equal(acks_take(acks, epoch + 9, 5000, hist), 30);
		assert_int_equal(acks_take(acks, UINT64_MAX, 5000, hist), pushed - 30);
		assert_int_equal(acks->n + acks->n_starts, 0);
	}
	hist_view_add(&view, hist);
	assert_int_equal(hist_view_count(&view), 5 * (3 * (ACKS_EPOCHS - 1) + 1) / 2);
	free(acks);
	free(hist);
}

/* Counts a row of its own up, for ever. */
struct counting {
	struct log_rig *rig;
	struct oltp_worker *w;
	_Atomic uint64_t committed;
};

static int counting_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct counting *counting = ctx;

	counting->w = worker;
	*ret_local = counting;
	return 0;
}

static enum oltp_rc counting_run(void *local, uint32_t slot, bool retry)
{
	struct counting *counting = local;
	enum oltp_rc rc = log_rig_count_up(counting->w, counting->rig->table, 1);

	(void)slot;
	(void)retry;
	counting->committed += !rc;
	return rc;
}

static void counting_detach(void *local)
{
	(void)local;
}

static void pool_open(struct log_rig *rig, struct counting *counting, uint32_t latency_every,
		      struct oltp_pool **pool)
{
	const struct oltp_workload workload = {
		.attach = counting_attach,
		.run = counting_run,
		.detach = counting_detach,
		.ctx = counting,
	};
	struct oltp_pool_config config = {
		.workload = &workload,
		.latency_every = latency_every,
		.no_pin = true,
	};

	*counting = (struct counting){ .rig = rig };
	log_rig_open(rig);
	config.engine = rig->engine;
	assert_int_equal(log_rig_insert(rig, 1, 0), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	assert_int_equal(oltp_pool_create(&config, pool), 0);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Until so many have committed, whether or not they count. */
static void wait_committed(struct counting *counting, uint64_t n)
{
	while (counting->committed < n)
		sleep_ms(1);
}

/* Until there is no room for one more that waits for the disk. */
static void wait_stuck(struct counting *counting)
{
	uint64_t before;

	do {
		before = counting->committed;
		sleep_ms(50);
	} while (!before || before != counting->committed);
}

static void count_what_is_on_disk(struct log_rig *rig, uint32_t latency_every)
{
	struct oltp_totals totals;
	struct counting counting;
	struct oltp_sample sample;
	struct oltp_pool *pool;

	pool_open(rig, &counting, latency_every, &pool);
	log_fake_set(&rig->fake, LOG_FAKE_HOLD);
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	wait_stuck(&counting);
	oltp_pool_totals(pool, &totals);
	assert_int_equal(totals.committed, 0);
	/* It leaves while the disk keeps it waiting; what it did is acknowledged later. */
	assert_int_equal(oltp_pool_remove(pool, 0, &totals), 0);
	assert_int_equal(totals.committed, 0);
	oltp_pool_sample(pool, 1, &sample);
	assert_int_equal(sample.totals.committed, 0);
	log_fake_set(&rig->fake, LOG_FAKE_WRITE);
	assert_int_equal(oltp_durable_wait(rig->engine, log_epoch_now(rig->engine->log)), 0);
	oltp_pool_sample(pool, 2, &sample);
	assert_int_equal(sample.totals.committed, counting.committed);
	assert_int_equal(sample.totals.failed, 0);
	/* The disk is as it should be again. */
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	wait_committed(&counting, sample.totals.committed + 100);
	assert_int_equal(oltp_pool_remove(pool, 0, NULL), 0);
	assert_int_equal(oltp_durable_wait(rig->engine, log_epoch_now(rig->engine->log)), 0);
	oltp_pool_sample(pool, 3, &sample);
	assert_int_equal(sample.totals.committed, counting.committed);
	oltp_pool_destroy(pool);
}

static void the_pool_counts_what_is_on_disk(void **state)
{
	count_what_is_on_disk(*state, 1);
}

/* The worker's buffer of the log is full before there are too many times to remember. */
static void a_full_buffer_lets_a_worker_leave(void **state)
{
	count_what_is_on_disk(*state, 1024);
}

static void what_the_disk_refused_has_failed(void **state)
{
	struct log_rig *rig = *state;
	struct counting counting;
	struct oltp_sample sample;
	static struct log_model model;
	struct oltp_pool *pool;

	pool_open(rig, &counting, 1, &pool);
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	wait_committed(&counting, 100);
	log_fake_set(&rig->fake, LOG_FAKE_ENOSPC);
	do {
		sleep_ms(1);
		oltp_pool_sample(pool, 1, &sample);
	} while (!sample.totals.failed_io);
	assert_int_equal(oltp_pool_remove(pool, 0, NULL), 0);
	oltp_pool_sample(pool, 2, &sample);
	/* Each is one or the other; those that failed later had not even begun. */
	assert_true(sample.totals.committed + sample.totals.failed_io >= counting.committed);
	assert_true(sample.totals.committed <= counting.committed);
	oltp_pool_destroy(pool);
	log_rig_close(rig);
	log_rig_read(rig->dir, log_model_redo, &model);
	assert_int_equal(model.rows[1].row.counter, sample.totals.committed);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, log_rig_setup, log_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(conflicts_and_log_have_one_order),
		cmocka_unit_test(acknowledgements_come_by_epoch),
		WITH_RIG(the_pool_counts_what_is_on_disk),
		WITH_RIG(a_full_buffer_lets_a_worker_leave),
		WITH_RIG(what_the_disk_refused_has_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
