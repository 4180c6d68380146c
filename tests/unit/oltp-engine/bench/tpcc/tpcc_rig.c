// SPDX-License-Identifier: GPL-2.0-or-later
/* See tpcc_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tpcc_rig.h"

struct tpcc_config tpcc_rig_config(void)
{
	struct tpcc_config config = TPCC_CONFIG_DEFAULT;

	config.warehouses = RIG_WAREHOUSES;
	config.items = RIG_ITEMS;
	config.customers = RIG_CUSTOMERS;
	config.orders = 10000;
	config.seed = 7;
	return config;
}

void tpcc_rig_detach(struct tpcc_rig *rig)
{
	if (rig->tw)
		rig->workload.detach(rig->tw);
	rig->tw = NULL;
}

void tpcc_rig_open(struct tpcc_rig *rig, const struct tpcc_config *config, enum oltp_cc cc)
{
	const struct oltp_config engine = { .cc = cc, .txn_records_max = TPCC_RECORDS_MAX };
	void *local;

	assert_int_equal(oltp_engine_open(&engine, &rig->engine), 0);
	assert_int_equal(tpcc_create(rig->engine, config, &rig->tpcc), 0);
	assert_int_equal(tpcc_load(rig->tpcc, 2, NULL), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->worker), 0);
	rig->workload = tpcc_workload(rig->tpcc);
	assert_int_equal(rig->workload.attach(rig->workload.ctx, rig->worker, &local), 0);
	rig->tw = local;
}

void tpcc_rig_close(struct tpcc_rig *rig)
{
	tpcc_rig_detach(rig);
	oltp_worker_destroy(rig->worker);
	tpcc_destroy(rig->tpcc);
	oltp_engine_close(rig->engine);
}

int tpcc_rig_setup(void **state)
{
	static struct tpcc_rig rig;
	struct tpcc_config config = tpcc_rig_config();

	tpcc_rig_open(&rig, &config, OLTP_CC_NO_WAIT);
	*state = &rig;
	return 0;
}

int tpcc_rig_teardown(void **state)
{
	tpcc_rig_close(*state);
	return 0;
}

bool tpcc_rig_get(struct tpcc_rig *rig, enum tpcc_table table, uint64_t key, void *ret_row,
		  size_t bytes)
{
	const void *row;
	enum oltp_rc rc;

	assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
	rc = oltp_txn_read(rig->worker, rig->tpcc->tables[table], key, &row);
	if (!rc)
		memcpy(ret_row, row, bytes);
	assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
	assert_true(rc == OLTP_OK || rc == OLTP_NOT_FOUND);
	return !rc;
}

void tpcc_rig_put(struct tpcc_rig *rig, enum tpcc_table table, uint64_t key, uint32_t offset,
		  const void *bytes, uint32_t n)
{
	const struct oltp_span span = { offset, n };
	void *row;

	assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
	assert_int_equal(oltp_txn_update(rig->worker, rig->tpcc->tables[table], key, &span, 1,
					 &row), OLTP_OK);
	memcpy((uint8_t *)row + offset, bytes, n);
	assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
}

void tpcc_rig_delete(struct tpcc_rig *rig, enum tpcc_table table, uint64_t key)
{
	assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
	assert_int_equal(oltp_txn_delete(rig->worker, rig->tpcc->tables[table], key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
}

static int count_row(void *ctx, uint64_t key, const void *row)
{
	(void)key;
	(void)row;
	++*(uint64_t *)ctx;
	return 0;
}

uint64_t tpcc_rig_count(struct tpcc_rig *rig, enum tpcc_table table)
{
	uint64_t n = 0;

	assert_int_equal(oltp_table_scan(rig->tpcc->tables[table], count_row, &n), 0);
	return n;
}

struct content {
	size_t row_bytes;
	uint64_t sum;
};

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return random64_mix(hash);
}

static int add_row(void *ctx, uint64_t key, const void *row)
{
	struct content *content = ctx;

	content->sum += hash_bytes(random64_mix(key), row, content->row_bytes);
	return 0;
}

struct keys {
	uint64_t sum, last;
	uint32_t n;
};

static int add_key(void *ctx, uint64_t sort_key, uint64_t key, const void *row)
{
	struct keys *keys = ctx;

	(void)row;
	keys->sum += random64_mix(sort_key ^ random64_mix(key));
	keys->last = sort_key;
	keys->n++;
	return 0;
}

/* A part at a time: a transaction holds so many records at most. Few have the same sort key. */
static uint64_t index_content(struct tpcc_rig *rig, struct oltp_index *index)
{
	struct oltp_range range = { .to = UINT64_MAX, .limit = TPCC_RECORDS_MAX / 2 };
	struct keys keys = { 0 };

	do {
		keys.n = 0;
		assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
		assert_int_equal(oltp_txn_scan(rig->worker, index, &range, add_key, &keys),
				 OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
		range.from = keys.last + 1;
	} while (keys.n == range.limit);
	return keys.sum;
}

uint64_t tpcc_rig_content(struct tpcc_rig *rig)
{
	static const size_t row_bytes[TPCC_TABLES] = {
		[TPCC_WAREHOUSE] = sizeof(struct tpcc_warehouse),
		[TPCC_DISTRICT] = sizeof(struct tpcc_district),
		[TPCC_CUSTOMER] = sizeof(struct tpcc_customer),
		[TPCC_HISTORY] = sizeof(struct tpcc_history),
		[TPCC_NEW_ORDER_ROW] = sizeof(struct tpcc_new_order),
		[TPCC_ORDER] = sizeof(struct tpcc_order),
		[TPCC_LINE] = sizeof(struct tpcc_line),
		[TPCC_ITEM] = sizeof(struct tpcc_item),
		[TPCC_STOCK] = sizeof(struct tpcc_stock),
	};
	struct tpcc *tpcc = rig->tpcc;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TPCC_TABLES; i++) {
		struct content content = { .row_bytes = row_bytes[i] };

		assert_int_equal(oltp_table_scan(tpcc->tables[i], add_row, &content), 0);
		sum = random64_mix(sum + content.sum);
	}
	return sum + index_content(rig, tpcc->customers_by_name) +
	       3 * index_content(rig, tpcc->orders_by_customer) +
	       5 * index_content(rig, tpcc->new_orders) + 7 * index_content(rig, tpcc->lines);
}

enum oltp_rc tpcc_rig_run(struct tpcc_rig *rig, const struct tpcc_kind_ops *ops,
			  const struct tpcc_txn *txn)
{
	enum oltp_rc rc = oltp_txn_begin(rig->worker);

	assert_int_equal(rc, OLTP_OK);
	rc = ops->run(rig->tw, txn);
	if (!rc)
		rc = oltp_txn_commit(rig->worker);
	if (rc)
		oltp_txn_abort(rig->worker);
	return rc;
}

void tpcc_rig_assert_good(struct tpcc_rig *rig)
{
	struct tpcc_verdict verdict;

	tpcc_verify(rig->tpcc, &verdict);
	if (!verdict.is_good) {
		print_error("scan_rc=%d missing_rows=%lu lost=%lu,%lu,%lu\n", verdict.scan_rc,
			    verdict.missing_rows, verdict.lost_orders, verdict.lost_payments,
			    verdict.lost_deliveries);
		for (uint32_t i = 0; i <= TPCC_CONDITIONS; i++)
			print_error("condition %u: %lu violations\n", i, verdict.violations[i]);
	}
	assert_true(verdict.is_good);
}
