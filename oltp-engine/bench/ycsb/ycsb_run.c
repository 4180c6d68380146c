// SPDX-License-Identifier: GPL-2.0-or-later
/* The operations of a transaction. */
#include "ycsb_private.h"
#include "ycsb_record.h"

#define STEPS_PER_WORK	1000u

/* What a reader sees of a record; a field newer than its record is somebody's half-done update. */
static void look_at(struct ycsb_worker *yw, const struct ycsb_record *record,
		    const struct oltp_hint *hint, uint32_t field)
{
	memcpy(yw->read_buffer, (const uint8_t *)record + hint->offset, hint->bytes);
	if (ycsb_field_stamp(record->fields[field]) > record->updates)
		yw->books.inconsistent_reads++;
}

static enum oltp_rc run_read(struct ycsb_worker *yw, const struct oltp_hint *hint, uint32_t field)
{
	const void *record;
	enum oltp_rc rc = oltp_txn_read(yw->worker, yw->ycsb->table, hint->key, &record);

	if (!rc)
		look_at(yw, record, hint, field);
	return rc;
}

static enum oltp_rc run_update(struct ycsb_worker *yw, const struct oltp_hint *hint,
			       uint32_t field, bool read_first)
{
	const struct oltp_span spans[] = {
		{ offsetof(struct ycsb_record, updates), sizeof(uint64_t) },
		{ ycsb_field_offset(field), YCSB_FIELD_BYTES },
	};
	/* Ahead of the lock, which it would otherwise come after. */
	uint64_t base = ycsb_pattern_base(hint->key, field);
	struct ycsb_record *record;
	void *bytes;
	enum oltp_rc rc = oltp_txn_update(yw->worker, yw->ycsb->table, hint->key, spans, 2, &bytes);

	if (rc)
		return rc;
	record = bytes;
	if (read_first)
		look_at(yw, record, hint, field);
	record->updates++;
	ycsb_field_fill(record->fields[field], base, record->updates);
	return OLTP_OK;
}

static enum oltp_rc run_insert(struct ycsb_worker *yw, uint64_t key)
{
	struct ycsb_record record;

	ycsb_record_init(&record, key);
	return oltp_txn_insert(yw->worker, yw->ycsb->table, key, &record);
}

struct scan {
	struct ycsb_worker *yw;
	uint64_t least;		/* what the next key must be at least */
};

static int scan_row(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	static const struct oltp_hint whole = { .bytes = sizeof(struct ycsb_record) };
	struct scan *scan = ctx;

	(void)sort_key;
	if (key < scan->least)
		scan->yw->books.inconsistent_reads++;
	scan->least = key + 1;
	look_at(scan->yw, record, &whole, (uint32_t)(key % YCSB_FIELDS));
	return 0;
}

static enum oltp_rc run_scan(struct ycsb_worker *yw, uint64_t key, uint32_t rows)
{
	const struct oltp_range range = { .from = key, .to = UINT64_MAX, .limit = rows };
	struct scan scan = { .yw = yw, .least = key };

	return oltp_txn_scan(yw->worker, yw->ycsb->index, &range, scan_row, &scan);
}

static enum oltp_rc run_operation(struct ycsb_worker *yw, const struct ycsb_operation *op,
				  const struct oltp_hint *hint)
{
	switch ((enum ycsb_op)op->kind) {
	case YCSB_UPDATE:
	case YCSB_MODIFY:
		return run_update(yw, hint, op->field, op->kind == YCSB_MODIFY);
	case YCSB_INSERT:
		return run_insert(yw, hint->key);
	case YCSB_SCAN:
		return run_scan(yw, hint->key, op->rows);
	default:
		return run_read(yw, hint, op->field);
	}
}

/* A computation over the values that were read; its length does not depend on them. */
static void compute(struct ycsb_worker *yw, uint32_t work)
{
	uint64_t value = yw->computed;

	for (uint64_t step = 0; step < (uint64_t)work * STEPS_PER_WORK; step++)
		value = random64_mix(value + yw->read_buffer[step % sizeof(yw->read_buffer)]);
	yw->computed = value;
}

/*
 * Draws the next transaction and asks for its index lines while this one's records are on their
 * way. Not where there are inserts: they take numbers, and a number whose transaction never comes
 * would hold up the readers' frontier (growth.h).
 */
static void look_ahead(struct ycsb_worker *yw)
{
	if (yw->has_next || yw->ycsb->growth)
		return;
	ycsb_draw(yw, yw->next);
	yw->has_next = true;
	oltp_txn_prefetch_next(yw->worker, yw->ycsb->table, yw->next->hints,
			       yw->next->mix->operations);
}

enum oltp_rc ycsb_run(struct ycsb_worker *yw, const struct ycsb_txn *txn)
{
	uint32_t n = txn->mix->operations;
	enum oltp_rc rc = OLTP_OK;

	oltp_txn_prefetch(yw->worker, yw->ycsb->table, txn->hints, n);
	look_ahead(yw);
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = run_operation(yw, &txn->operations[i], &txn->hints[i]);
	if (!rc && txn->mix->work)
		compute(yw, txn->mix->work);
	return rc;
}
