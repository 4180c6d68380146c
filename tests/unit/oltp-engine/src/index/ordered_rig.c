// SPDX-License-Identifier: GPL-2.0-or-later
/* See ordered_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ordered_rig.h"

static uint64_t group_of(void *ctx, uint64_t primary_key, const void *record)
{
	(void)ctx;
	(void)primary_key;
	return ((const struct ordered_row *)record)->group;
}

static uint64_t number_of(void *ctx, uint64_t primary_key, const void *record)
{
	(void)ctx;
	(void)primary_key;
	return ((const struct ordered_row *)record)->number;
}

void ordered_rig_indexes(struct ordered_rig *rig)
{
	const struct oltp_index_config by_group = {
		.key_of = group_of,
		.key_spans = { { offsetof(struct ordered_row, group), sizeof(uint64_t) } },
		.n_key_spans = 1,
	};
	const struct oltp_index_config by_number = {
		.key_of = number_of,
		.key_spans = { { offsetof(struct ordered_row, number), sizeof(uint64_t) } },
		.n_key_spans = 1,
		.is_unique = true,
	};

	assert_int_equal(oltp_index_create(rig->table, NULL, &rig->by_key), 0);
	assert_int_equal(oltp_index_create(rig->table, &by_group, &rig->by_group), 0);
	assert_int_equal(oltp_index_create(rig->table, &by_number, &rig->by_number), 0);
}

void ordered_rig_open(struct ordered_rig *rig, const struct oltp_config *config)
{
	assert_int_equal(oltp_engine_open(config, &rig->engine), 0);
	assert_int_equal(oltp_table_create(rig->engine, sizeof(struct ordered_row), 1000,
					   &rig->table), 0);
	ordered_rig_indexes(rig);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->other), 0);
}

void ordered_rig_close(struct ordered_rig *rig)
{
	oltp_worker_destroy(rig->w);
	oltp_worker_destroy(rig->other);
	oltp_engine_close(rig->engine);
}

enum oltp_rc ordered_insert_row(struct oltp_worker *w, struct oltp_table *table, uint64_t key,
				uint64_t group, uint64_t number)
{
	const struct ordered_row row = { group, number, key ^ group };

	return oltp_txn_insert(w, table, key, &row);
}

void ordered_add_row(struct ordered_rig *rig, uint64_t key, uint64_t group, uint64_t number)
{
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(ordered_insert_row(rig->w, rig->table, key, group, number), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

static int see(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct ordered_seen *seen = ctx;

	assert_true(seen->n < ORDERED_SEEN_MAX);
	seen->rows[seen->n].sort = sort_key;
	seen->rows[seen->n].key = primary_key;
	seen->rows[seen->n++].row = *(const struct ordered_row *)record;
	return seen->n == seen->stop_after;
}

enum oltp_rc ordered_scan(struct oltp_worker *w, struct oltp_index *index,
			  const struct oltp_range *range, struct ordered_seen *seen)
{
	seen->n = 0;
	return oltp_txn_scan(w, index, range, see, seen);
}

struct count {
	uint32_t n;
	uint64_t sort, key;
};

static int count_row(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct count *count = ctx;

	(void)record;
	if (count->n++)
		assert_true(count->sort < sort_key ||
			    (count->sort == sort_key && count->key < primary_key));
	count->sort = sort_key;
	count->key = primary_key;
	return 0;
}

uint32_t ordered_count(struct ordered_rig *rig, struct oltp_index *index)
{
	const struct oltp_range all = { .from = 0, .to = UINT64_MAX };
	struct count count = { 0, 0, 0 };

	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_scan(rig->w, index, &all, count_row, &count), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	return count.n;
}
