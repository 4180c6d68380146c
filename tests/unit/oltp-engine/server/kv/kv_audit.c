// SPDX-License-Identifier: GPL-2.0-or-later
/* See kv_audit.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kv_audit.h"
#include "oltp-engine/server/kv/private.h"
#include "oltp-engine/server/kv/siphash.h"

/* One row with its name, and the bytes of its class table. */
struct audited {
	uint64_t slot;
	struct row row;
	char name[KV_NAME_MAX];
	bool has_name;
	uint32_t n_fields;	/* of a hash: rows that are its fields */
};

struct audit {
	struct kv *kv;
	struct audited *rows;
	uint32_t n, room;
	uint32_t place;		/* the class table that is being walked, plus 1 */
	uint32_t n_out, n_dead;
	int64_t n_keys;		/* of the counters in the database */
};

static int add_row(void *ctx, uint64_t slot, const void *record)
{
	struct audit *a = ctx;
	struct audited *row;

	if (a->n == a->room) {
		a->room = a->room ? 2 * a->room : 1024;
		a->rows = realloc(a->rows, a->room * sizeof(*a->rows));
		assert_non_null(a->rows);
	}
	row = &a->rows[a->n++];
	*row = (struct audited){ .slot = slot };
	memcpy(&row->row, record, sizeof(row->row));
	return 0;
}

static int by_slot(const void *left, const void *right)
{
	const struct audited *a = left, *b = right;

	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static struct audited *row_at(const struct audit *a, uint64_t slot)
{
	const struct audited key = { .slot = slot };

	return a->n ? bsearch(&key, a->rows, a->n, sizeof(*a->rows), by_slot) : NULL;
}

/* The name is out of the row only if it does not fit there: then it is in front. */
static bool is_name_out(const struct row *row)
{
	return row->name_bytes > ROW_BODY_BYTES -
				 (row->type == ROW_HASH ? sizeof(struct hash_head) : 0);
}

static int see_out(void *ctx, uint64_t slot, const void *record)
{
	struct audit *a = ctx;
	struct audited *row = row_at(a, slot);

	assert_non_null(row);
	assert_int_equal(row->row.place, a->place);
	if (is_name_out(&row->row)) {
		memcpy(row->name, record, row->row.name_bytes);
		row->has_name = true;
	}
	a->n_out++;
	return 0;
}

static int see_meta(void *ctx, uint64_t key, const void *record)
{
	struct audit *a = ctx;
	int64_t count;

	memcpy(&count, record, sizeof(count));
	if (key >= 64 && key < 64 + META_COUNTERS)
		a->n_keys += count;
	a->n_dead += key >> 62 == 1;
	return 0;
}

static uint64_t home_of(const struct audit *a, const struct audited *row)
{
	struct siphash s;

	siphash_begin(&s, a->kv->ks.secret);
	siphash_word(&s, row->row.owner);
	return siphash_end(&s, row->name, row->row.name_bytes, 1) & a->kv->ks.hash_mask;
}

static struct audited *hash_of(struct audit *a, uint64_t id)
{
	for (uint32_t i = 0; i < a->n; i++) {
		struct audited *row = &a->rows[i];

		if (row->row.type == ROW_HASH && keyspace_hash_head(&row->row).id == id)
			return row;
	}
	return NULL;
}

static void audit_row(struct audit *a, struct audited *row)
{
	if (row->row.type == ROW_GONE) {
		assert_int_equal(row->row.more, 1);
		return;
	}
	assert_true(row->has_name);
	for (uint64_t slot = home_of(a, row); slot != row->slot; slot++) {
		const struct audited *before = row_at(a, slot);

		assert_non_null(before);
		assert_int_equal(before->row.more, 1);
		assert_false(before->row.type != ROW_GONE &&
			     before->row.owner == row->row.owner &&
			     before->row.name_bytes == row->row.name_bytes &&
			     !memcmp(before->name, row->name, row->row.name_bytes));
	}
	if (row->row.type == ROW_FIELD) {
		struct audited *hash = hash_of(a, row->row.owner);

		if (hash)
			hash->n_fields++;
		else
			assert_true(a->n_dead > 0);
	}
}

void kv_audit(struct kv *kv)
{
	struct audit a = { .kv = kv };
	uint32_t n_out = 0;
	int64_t n_keys = 0;

	assert_int_equal(oltp_table_scan(kv->ks.rows, add_row, &a), 0);
	if (a.n)
		qsort(a.rows, a.n, sizeof(*a.rows), by_slot);
	for (a.place = 1; a.place <= KEYSPACE_CLASSES; a.place++)
		assert_int_equal(oltp_table_scan(kv->ks.classes[a.place - 1], see_out, &a), 0);
	assert_int_equal(oltp_table_scan(kv->meta.table, see_meta, &a), 0);
	for (uint32_t i = 0; i < a.n; i++) {
		struct audited *row = &a.rows[i];

		n_out += row->row.place > 0;
		n_keys += row->row.type == ROW_STRING || row->row.type == ROW_HASH;
		if (row->row.type != ROW_GONE && !is_name_out(&row->row)) {
			memcpy(row->name, row->row.body, row->row.name_bytes);
			row->has_name = true;
		}
	}
	/* Each record of a class table was of a row: so with equal numbers none is missing. */
	assert_int_equal(n_out, a.n_out);
	for (uint32_t i = 0; i < a.n; i++)
		audit_row(&a, &a.rows[i]);
	for (uint32_t i = 0; i < a.n; i++) {
		if (a.rows[i].row.type == ROW_HASH)
			assert_int_equal(keyspace_hash_head(&a.rows[i].row).n_fields,
					 a.rows[i].n_fields);
	}
	assert_int_equal(a.n_keys, n_keys);
	assert_int_equal(kv->meta.n_keys, n_keys);
	free(a.rows);
}
