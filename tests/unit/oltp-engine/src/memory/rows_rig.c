// SPDX-License-Identifier: GPL-2.0-or-later
/* See rows_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "rows_rig.h"

struct ordered_seen rows_seen;

enum oltp_rc rows_insert(struct rig *rig, uint64_t key)
{
	const struct ordered_row row = { key / 10, ~key, key };
	uint8_t bytes[RIG_RECORD_BYTES] = { 0 };

	memcpy(bytes, &row, sizeof(row));
	return oltp_txn_insert(rig->w, rig->table, key, bytes);
}

void rows_fill(struct rig *rig, struct ordered_rig *ret_rows, uint64_t n)
{
	*ret_rows = (struct ordered_rig){ .engine = rig->engine, .table = rig->table };
	ordered_rig_indexes(ret_rows);
	for (uint64_t key = 0; key < n; key++) {
		oltp_txn_begin(rig->w);
		assert_int_equal(rows_insert(rig, key), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	}
	/* Their slots go to rows that are being added. */
	oltp_txn_begin(rig->w);
	for (uint64_t key = n - 10; key < n; key++)
		assert_int_equal(oltp_txn_delete(rig->w, rig->table, key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	oltp_txn_begin(rig->w);
	for (uint64_t key = 9000; key < 9005; key++)
		assert_int_equal(rows_insert(rig, key), OLTP_OK);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 2500), OLTP_OK);
	assert_int_equal(rows_insert(rig, 2500), OLTP_OK);
}

enum oltp_rc rows_scan(struct rig *rig, struct oltp_index *index, uint64_t first, uint64_t last)
{
	const struct oltp_range range = { .from = first, .to = last };
	enum oltp_rc rc;

	oltp_txn_begin(rig->w);
	rc = ordered_scan(rig->w, index, &range, &rows_seen);
	if (!rc)
		rc = oltp_txn_commit(rig->w);
	oltp_txn_abort(rig->w);
	return rc;
}
