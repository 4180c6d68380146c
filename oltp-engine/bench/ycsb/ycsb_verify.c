// SPDX-License-Identifier: GPL-2.0-or-later
/* Comparing the table with the workers' books: V1 to V4 of ycsb.h. */
#include <stdlib.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

static bool record_is_sound(uint64_t key, const struct ycsb_record *record)
{
	uint64_t newest = 0;

	for (uint32_t f = 0; f < YCSB_FIELDS; f++) {
		uint64_t stamp = ycsb_field_stamp(record->fields[f]);
		uint8_t expected[YCSB_FIELD_BYTES];

		ycsb_field_write(expected, key, f, stamp);
		if (memcmp(expected, record->fields[f], sizeof(expected)))
			return false;
		newest = stamp > newest ? stamp : newest;
	}
	return newest == record->updates;
}

static int add_record(void *ctx, uint64_t key, const void *bytes)
{
	const struct ycsb_record *record = bytes;
	struct ycsb_audit *audit = ctx;
	uint64_t content = ycsb_key_weight(key);

	audit->records++;
	audit->keys += ycsb_key_weight(key);
	audit->updates += record->updates;
	audit->weighted_updates += record->updates * ycsb_key_weight(key);
	audit->damaged_records += !record_is_sound(key, record);
	for (uint32_t f = 0; f < YCSB_FIELDS; f++)
		content = random64_mix(content ^ ycsb_field_stamp(record->fields[f]));
	audit->content += random64_mix(content ^ record->updates);
	return 0;
}

static uint64_t loaded_keys(const struct ycsb *ycsb)
{
	uint64_t keys = 0;

	for (uint64_t number = 0; number < ycsb->config.records; number++)
		keys += ycsb_key_weight(ycsb_key(ycsb, number));
	return keys;
}

void ycsb_audit(struct ycsb *ycsb, struct ycsb_audit *ret_audit)
{
	struct ycsb_audit audit = { 0 };

	audit.rc = oltp_table_scan(ycsb->table, add_record, &audit);
	/* While inserts go on, nobody knows what the keys should be. */
	audit.is_complete = !audit.rc &&
			    (ycsb->growth ? audit.records >= ycsb->config.records :
			     audit.records == ycsb->config.records &&
			     audit.keys == loaded_keys(ycsb));
	*ret_audit = audit;
}

struct walk {
	uint64_t rows;
	uint64_t keys;		/* sum of their weights */
	uint64_t next;		/* the least key to come */
	bool is_at_end;		/* of all keys that there are */
	bool is_ordered;
};

static int walk_row(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	struct walk *walk = ctx;

	(void)record;
	walk->is_ordered = walk->is_ordered && key >= walk->next && sort_key == key;
	walk->rows++;
	walk->keys += ycsb_key_weight(key);
	walk->is_at_end = key == UINT64_MAX;
	walk->next = key + 1;
	return 0;
}

/* A part of the index; what does not succeed changes nothing. */
static enum oltp_rc walk_some(struct ycsb *ycsb, struct oltp_worker *worker, struct walk *walk)
{
	const struct oltp_range range = { .from = walk->next, .to = UINT64_MAX, .limit = 32 };
	struct walk more = *walk;
	enum oltp_rc rc = oltp_txn_begin(worker);

	if (!rc)
		rc = oltp_txn_scan(worker, ycsb->index, &range, walk_row, &more);
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc) {
		oltp_txn_abort(worker);
		/* Maintenance may hold records for a moment. */
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(worker) ?: OLTP_CONFLICT;
		return rc;
	}
	more.is_at_end |= more.rows == walk->rows;
	*walk = more;
	return OLTP_OK;
}

static bool index_is_equal(struct ycsb *ycsb, const struct ycsb_audit *audit)
{
	struct walk walk = { .is_ordered = true };
	struct oltp_worker *worker;
	enum oltp_rc rc = OLTP_OK;

	if (!ycsb->index)
		return true;
	if (oltp_worker_create(ycsb->engine, &worker))
		return false;
	while (!walk.is_at_end && (!rc || rc == OLTP_CONFLICT))
		rc = walk_some(ycsb, worker, &walk);
	oltp_worker_destroy(worker);
	return walk.is_at_end && walk.is_ordered && walk.rows == audit->records &&
	       walk.keys == audit->keys;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void compare(const struct ycsb *ycsb, const struct ycsb_audit *audit,
		    struct ycsb_verdict *v)
{
	const struct ycsb_books *books = &ycsb->books;
	uint64_t expected = ycsb->config.records + books->inserts;

	v->records = audit->records;
	v->records_missing = audit->records < expected ? expected - audit->records : 0;
	v->inserts_committed = books->inserts;
	v->are_keys_equal = audit->records == expected &&
			    audit->keys == loaded_keys(ycsb) + books->inserted_keys;
	v->scan_rc = audit->rc;
	v->updates_committed = books->updates;
	v->updates_found = audit->updates;
	v->is_checksum_equal = audit->weighted_updates == books->weighted_updates;
	v->damaged_records = audit->damaged_records;
	v->inconsistent_reads = books->inconsistent_reads;
}

void ycsb_verify(struct ycsb *ycsb, struct ycsb_verdict *ret_verdict)
{
	struct ycsb_verdict v = { 0 };
	struct ycsb_audit audit;

	ycsb_audit(ycsb, &audit);
	pthread_mutex_lock(&ycsb->lock);
	compare(ycsb, &audit, &v);
	pthread_mutex_unlock(&ycsb->lock);
	v.is_index_equal = index_is_equal(ycsb, &audit);

	v.lost_updates = distance(v.updates_committed, v.updates_found);
	/* The number is right but not the place, or not the bytes: at least so many are lost. */
	if (!v.lost_updates && v.damaged_records)
		v.lost_updates = v.damaged_records;
	if (!v.lost_updates && (!v.is_checksum_equal || !audit.is_complete || !v.are_keys_equal ||
				!v.is_index_equal))
		v.lost_updates = 1;
	*ret_verdict = v;
}
