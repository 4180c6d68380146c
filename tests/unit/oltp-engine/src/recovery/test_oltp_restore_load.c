// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory is taken by force, with a log, while threads change rows: all of them come back. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "restore_rig.h"

/*
 * Threads, each with rows of its own, which they change, delete and add again; memory is taken at
 * any moment, also what was put back. The index is so small that many keys look like lost ones.
 */
#define THREADS		3u
#define THREAD_ROWS	1500u
#define CHANGES_AT_ONCE	4u

struct client {
	struct rig *rig;
	struct oltp_worker *w;
	_Atomic bool *stop;
	_Atomic uint64_t n_ok, n_lost;
	uint32_t number;
	unsigned int seed;
	pthread_t thread;
	/* By row: its counter, 0: it is not there. The last, and the last that was acknowledged. */
	uint64_t last[THREAD_ROWS];
};

static uint64_t key_of(const struct client *c, uint32_t row)
{
	return (uint64_t)row * THREADS + c->number;
}

static enum oltp_rc change(struct client *c, uint32_t row, uint64_t to)
{
	const struct oltp_span all = { 0, RIG_RECORD_BYTES };
	uint64_t key = key_of(c, row);
	uint8_t bytes[RIG_RECORD_BYTES];
	enum oltp_rc rc;
	void *record;

	oltp_txn_begin(c->w);
	rig_fill_record(bytes, key, to);
	if (!to) {
		rc = oltp_txn_delete(c->w, c->rig->table, key);
	} else if (!c->last[row]) {
		rc = oltp_txn_insert(c->w, c->rig->table, key, bytes);
	} else {
		rc = oltp_txn_update(c->w, c->rig->table, key, &all, 1, &record);
		/* What is there was committed, or the transaction does not commit. */
		if (!rc) {
			bool is_right = rig_record_is(record, key, c->last[row]);

			memcpy(record, bytes, sizeof(bytes));
			rc = oltp_txn_commit(c->w);
			assert_true(rc || is_right);
			oltp_txn_abort(c->w);
			return rc == OLTP_COLD ? oltp_cold_wait(c->w) ?: OLTP_CONFLICT : rc;
		}
	}
	rc = rc ?: oltp_txn_commit(c->w);
	oltp_txn_abort(c->w);
	return rc == OLTP_COLD ? oltp_cold_wait(c->w) ?: OLTP_CONFLICT : rc;
}

static void *client_main(void *arg)
{
	struct client *c = arg;
	uint64_t n = 0;

	while (!atomic_load(c->stop)) {
		uint32_t row = (uint32_t)rand_r(&c->seed) % THREAD_ROWS;
		uint64_t to = c->last[row] && rand_r(&c->seed) % 4 == 0 ? 0 : ++n;
		enum oltp_rc rc;

		do {
			rc = change(c, row, to);
		} while (rc == OLTP_CONFLICT);
		if (rc == OLTP_LOST) {
			c->n_lost++;
			rig_sleep_ms(1);
			continue;
		}
		assert_int_equal(rc, OLTP_OK);
		c->last[row] = to;
		c->n_ok++;
		/*
		 * No faster than a restore can read: each reads the log since the last checkpoint,
		 * and would otherwise take longer than the one before, without end under TSan.
		 */
		if (c->n_ok % CHANGES_AT_ONCE == 0)
			rig_sleep_ms(1);
	}
	return NULL;
}

static void check_clients(struct rig *rig, struct client *clients)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		for (uint32_t row = 0; row < THREAD_ROWS; row++) {
			struct client *c = &clients[i];

			assert_int_equal(rig_read(rig, key_of(c, row), c->last[row]),
					 c->last[row] ? OLTP_OK : OLTP_NOT_FOUND);
		}
	}
}

static void wait_progress(struct client *clients)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		uint64_t n_ok = clients[i].n_ok;

		while (clients[i].n_ok < n_ok + 20)
			rig_sleep_ms(1);
	}
}

static void under_load(bool with_disk)
{
	static struct client clients[THREADS];
	const struct restore_setup setup = {
		fault_disk_create(1), OLTP_DURABILITY_COMMIT, 60, with_disk, true,
	};
	_Atomic bool stop = false;
	struct taker t;
	struct rig rig;

	memset(clients, 0, sizeof(clients));
	restore_open(&t, &rig, &setup);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct client *c = &clients[i];

		*c = (struct client){ .rig = &rig, .stop = &stop, .number = i, .seed = i + 1 };
		assert_int_equal(oltp_worker_create(rig.engine, &c->w), 0);
		pthread_create(&c->thread, NULL, client_main, c);
	}
	for (uint32_t turn = 0; turn < 12; turn++) {
		uint32_t block;

		wait_progress(clients);
		block = turn * 7 % t.n;
		if (turn == 5)
			assert_int_equal(oltp_checkpoint(rig.engine), 0);
		if (!t.addrs[block])
			continue;
		taker_take(&t, block);
		/* Some find out by themselves, and sometimes more goes before all is back. */
		rig_sleep_ms(turn % 4);
		taker_tell(&t, &rig, block);
		if (turn % 3)
			assert_int_equal(oltp_restore_wait(rig.engine), 0);
	}
	atomic_store(&stop, true);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(clients[i].thread, NULL);
		oltp_worker_destroy(clients[i].w);
	}
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	check_clients(&rig, clients);
	assert_true(restore_stats(&rig).records > 0);
	assert_int_equal(restore_stats(&rig).failed, 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	taker_close(&t, &rig);
	fault_disk_restart(setup.disk, false);
	restore_open(&t, &rig, &setup);
	check_clients(&rig, clients);
	taker_close(&t, &rig);
	fault_disk_destroy(setup.disk);
}

static void test_under_load(void **state)
{
	(void)state;
	under_load(false);
}

static void test_under_load_with_a_disk(void **state)
{
	(void)state;
	under_load(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_under_load),
		cmocka_unit_test(test_under_load_with_a_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
