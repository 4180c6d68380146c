// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lives of a database against a model: each recovers what the one before it left, lazily or not,
 * with plenty of memory or little, changes rows, makes checkpoints, and ends with a loss of power
 * or without. What is there must be what a prefix of all transactions made, with all of those that
 * were acknowledged, whether it is looked at before anything was read or at the end, row by row or
 * in the order of an index.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lazy_rig.h"

#define KEYS		600u	/* three blocks of a checkpoint */
#define TXNS_MAX	4000u
#define LIVES		100u
#define HALF		(RIG_RECORD_BYTES / 2)

/* As each transaction left it; 0 in both halves: it is not there. */
struct life_row {
	uint16_t first, second;
};

static struct life_row states[TXNS_MAX + 1][KEYS];

struct lives {
	struct fault_disk *disk;
	struct rig rig;
	uint64_t rng;
	struct oltp_index *index;	/* NULL: of tables without one */
	bool is_ordered;
	uint32_t n, acknowledged;	/* transactions; the n-th made states[n] */
	uint32_t n_lazy, n_losses;
};

static uint32_t draw(struct lives *lives, uint32_t below)
{
	lives->rng ^= lives->rng << 13;
	lives->rng ^= lives->rng >> 7;
	lives->rng ^= lives->rng << 17;
	return (uint32_t)(lives->rng % below);
}

static void fill_half(uint8_t *at, uint32_t key, uint32_t made_by)
{
	const uint32_t head[2] = { key, made_by };

	memset(at, (int)(made_by * 7 + key), HALF);
	memcpy(at, head, sizeof(head));
}

/* From row to row of the model. */
static enum oltp_rc change(struct lives *lives, uint32_t key, const struct life_row *from,
			   const struct life_row *to)
{
	const struct oltp_span second = { HALF, HALF };
	struct rig *rig = &lives->rig;
	uint8_t record[RIG_RECORD_BYTES];
	enum oltp_rc rc = OLTP_OK;
	void *at;

	if (from->first && from->first == to->first) {
		rc = oltp_txn_update(rig->w, rig->table, key, &second, 1, &at);
		if (!rc)
			fill_half((uint8_t *)at + HALF, key, to->second);
		return rc;
	}
	if (from->first)
		rc = oltp_txn_delete(rig->w, rig->table, key);
	if (rc || !to->first)
		return rc;
	fill_half(record, key, to->first);
	fill_half(record + HALF, key, to->second);
	return oltp_txn_insert(rig->w, rig->table, key, record);
}

/* Rows 0 and a few others change; row 0 says by which transaction. */
static void plan(struct lives *lives, const struct life_row *from, struct life_row *to,
		 uint16_t number)
{
	memcpy(to, from, KEYS * sizeof(*to));
	to[0] = (struct life_row){ from[0].first ?: number, number };
	for (uint32_t i = draw(lives, 4); i; i--) {
		struct life_row *row = &to[1 + draw(lives, KEYS - 1)];
		uint32_t what = draw(lives, 8);

		if (!row->first || !what)
			*row = (struct life_row){ number, number };
		else if (what == 1)
			*row = (struct life_row){ 0, 0 };
		else
			row->second = number;
	}
}

/* Once more as long as it met a cold row or the manager. */
static bool has_to_wait(struct rig *rig, enum oltp_rc *rc)
{
	if (*rc)
		oltp_txn_abort(rig->w);
	if (*rc == OLTP_COLD)
		*rc = oltp_cold_wait(rig->w) ?: OLTP_CONFLICT;
	return *rc == OLTP_CONFLICT;
}

static enum oltp_rc transaction(struct lives *lives)
{
	const struct life_row *from = states[lives->n];
	struct life_row *to = states[lives->n + 1];
	enum oltp_rc rc;

	plan(lives, from, to, (uint16_t)(lives->n + 1));
	do {
		rc = oltp_txn_begin(lives->rig.w);
		for (uint32_t key = 0; !rc && key < KEYS; key++) {
			if (memcmp(&from[key], &to[key], sizeof(*to)))
				rc = change(lives, key, &from[key], &to[key]);
		}
		rc = rc ?: oltp_txn_commit(lives->rig.w);
	} while (has_to_wait(&lives->rig, &rc));
	lives->n += !rc;
	return rc;
}

/* *ret_row: what it is. OLTP_IO: the power is gone. */
static enum oltp_rc look(struct lives *lives, uint32_t key, struct life_row *ret_row)
{
	uint8_t expected[RIG_RECORD_BYTES];
	struct rig *rig = &lives->rig;
	const void *record;
	uint32_t made[2];
	enum oltp_rc rc;

	do {
		*ret_row = (struct life_row){ 0, 0 };
		rc = oltp_txn_begin(rig->w) ?: oltp_txn_read(rig->w, rig->table, key, &record);
		if (!rc) {
			memcpy(&made[0], (const uint8_t *)record + 4, 4);
			memcpy(&made[1], (const uint8_t *)record + HALF + 4, 4);
			*ret_row = (struct life_row){ (uint16_t)made[0], (uint16_t)made[1] };
			fill_half(expected, key, made[0]);
			fill_half(expected + HALF, key, made[1]);
			assert_memory_equal(record, expected, sizeof(expected));
		}
		rc = rc ?: oltp_txn_commit(rig->w);
	} while (has_to_wait(rig, &rc));
	return rc == OLTP_NOT_FOUND ? OLTP_OK : rc;
}

/* Each row has its own, another one when it has been deleted and added again. */
static uint64_t sort_key(void *ctx, uint64_t key, const void *record)
{
	uint32_t made_by;

	(void)ctx;
	memcpy(&made_by, (const uint8_t *)record + 4, sizeof(made_by));
	return (uint64_t)made_by << 32 | key;
}

struct walk {
	struct lives *lives;
	uint64_t next;		/* sort key */
	uint32_t n, n_shown;	/* rows; in this transaction */
	uint64_t last;
};

static int show(void *ctx, uint64_t sort, uint64_t key, const void *record)
{
	struct walk *walk = ctx;
	const struct life_row *row = &states[walk->lives->n][key];
	uint8_t expected[RIG_RECORD_BYTES];

	assert_true(sort >= walk->next && (!walk->n_shown || sort > walk->last));
	assert_int_equal(sort, (uint64_t)row->first << 32 | key);
	fill_half(expected, (uint32_t)key, row->first);
	fill_half(expected + HALF, (uint32_t)key, row->second);
	assert_memory_equal(record, expected, sizeof(expected));
	walk->last = sort;
	walk->n_shown++;
	return 0;
}

/* All rows in the order of the index, and no others. */
static bool order_is_right(struct lives *lives)
{
	struct walk walk = { .lives = lives, .n_shown = 1 };
	struct rig *rig = &lives->rig;
	uint32_t n = 0;

	for (uint32_t key = 0; key < KEYS; key++)
		n += states[lives->n][key].first != 0;
	while (lives->is_ordered && walk.n_shown) {
		const struct oltp_range range = { .from = walk.next, .to = UINT64_MAX,
						  .limit = 1 + draw(lives, 60) };
		enum oltp_rc rc;

		do {
			walk.n_shown = 0;
			rc = oltp_txn_begin(rig->w) ?:
			     oltp_txn_scan(rig->w, lives->index, &range, show, &walk);
			rc = rc ?: oltp_txn_commit(rig->w);
		} while (has_to_wait(rig, &rc));
		if (rc)
			return false;
		walk.n += walk.n_shown;
		walk.next = walk.last + 1;
	}
	assert_int_equal(walk.n, lives->is_ordered ? n : 0);
	return true;
}

static bool all_is_there(struct lives *lives)
{
	for (uint32_t i = 0, from = draw(lives, KEYS); i < KEYS; i++) {
		uint32_t key = (i + from) % KEYS;
		struct life_row row;

		if (look(lives, key, &row))
			return false;
		assert_memory_equal(&row, &states[lives->n][key], sizeof(row));
	}
	return order_is_right(lives);
}

/* 0: it is open, and has a prefix of what was done, with all that was acknowledged. -EIO: not. */
static int begin(struct lives *lives)
{
	/* 0: not lazily. */
	const uint32_t rates[] = { 0, OLTP_LAZY_NO_LOAD, OLTP_LAZY_NO_LOAD, 4, 4096 };
	struct oltp_recover_config config = { .lazy_mib_s = rates[draw(lives, ARRAY_SIZE(rates))] };
	struct oltp_recovery recovery;
	struct life_row row = { 0, 0 };
	int rc;

	config.lazy = config.lazy_mib_s;
	rc = lazy_rig_try_open(&lives->rig, lives->disk, draw(lives, 2) ? PLENTY : 4 * MIB, true);
	if (rc) {
		assert_true(fault_disk_is_dead(lives->disk));
		return -EIO;
	}
	if (lives->is_ordered)
		assert_int_equal(oltp_index_create(lives->rig.table, &(struct oltp_index_config){
			.key_of = sort_key,
			.key_spans = { { 4, 4 } },
			.n_key_spans = 1,
			/* Now and then the checkpoint has no keys for it. */
			.key_version = !draw(lives, 20),
			.is_unique = true }, &lives->index), 0);
	rc = oltp_recover(lives->rig.engine, &config, &recovery);
	if (!rc)
		rc = oltp_worker_create(lives->rig.engine, &lives->rig.w);
	if (rc || look(lives, 0, &row)) {
		assert_true(fault_disk_is_dead(lives->disk));
		rig_close(&lives->rig);
		return -EIO;
	}
	lives->n_lazy += recovery.lazy_rows != 0;
	assert_in_range(row.second, lives->acknowledged, lives->n);
	lives->n = lives->acknowledged = row.second;
	if (!draw(lives, 3) && !order_is_right(lives)) {
		assert_true(fault_disk_is_dead(lives->disk));
		rig_close(&lives->rig);
		return -EIO;
	}
	return 0;
}

static void work(struct lives *lives)
{
	for (uint32_t i = draw(lives, 80); i && lives->n < TXNS_MAX; i--) {
		if (transaction(lives))
			return;
		if (!draw(lives, 40) && oltp_checkpoint(lives->rig.engine))
			return;
		if (draw(lives, 4))
			continue;
		if (oltp_durable_wait(lives->rig.engine, oltp_worker_epoch(lives->rig.w)))
			return;
		lives->acknowledged = lives->n;
	}
	all_is_there(lives);
}

static void live(struct lives *lives)
{
	fault_disk_lose_power_at(lives->disk, draw(lives, draw(lives, 2) ? 160 : 400));
	if (!begin(lives)) {
		work(lives);
		rig_close(&lives->rig);
	}
	lives->n_losses += fault_disk_is_dead(lives->disk);
	fault_disk_restart(lives->disk, draw(lives, 8));
}

static void run(bool is_ordered)
{
	struct lives lives = { .rng = 20261126, .is_ordered = is_ordered };

	memset(states[0], 0, sizeof(states[0]));
	lives.disk = fault_disk_create(11);
	/* All rows, and a checkpoint. */
	assert_int_equal(begin(&lives), 0);
	for (uint32_t key = 0; key < KEYS; key++) {
		struct life_row *to = states[1];

		to[key] = (struct life_row){ 1, 1 };
		do {
			assert_int_equal(oltp_txn_begin(lives.rig.w), OLTP_OK);
		} while (change(&lives, key, &states[0][key], &to[key]) ||
			 oltp_txn_commit(lives.rig.w));
	}
	lives.n = lives.acknowledged = 1;
	assert_int_equal(oltp_checkpoint(lives.rig.engine), 0);
	rig_close(&lives.rig);
	fault_disk_restart(lives.disk, true);
	for (uint32_t i = 0; i < LIVES; i++)
		live(&lives);
	fault_disk_calm(lives.disk);
	assert_int_equal(begin(&lives), 0);
	assert_true(all_is_there(&lives));
	rig_close(&lives.rig);
	fault_disk_destroy(lives.disk);
	print_message("%u lives of %u lazy, %u losses of power, %u transactions\n", lives.n_lazy,
		      LIVES, lives.n_losses, lives.n);
	assert_true(lives.n_lazy > LIVES / 8);
	assert_true(lives.n_losses > LIVES / 4);
	assert_true(lives.n > LIVES);
}

static void test_lives(void **state)
{
	(void)state;
	run(false);
}

static void test_lives_in_order(void **state)
{
	(void)state;
	run(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_lives_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
