// SPDX-License-Identifier: GPL-2.0-or-later
/* Going on with the rows of a run that was broken off: see ycsb_adopt. */
#include <errno.h>
#include <stdlib.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

/* Of the records that were inserted, by number from config.records. */
struct inserted {
	const struct ycsb *ycsb;
	uint64_t *seen;		/* one bit each */
	uint64_t room;
	uint64_t end;		/* behind the last one */
	uint64_t n_loaded;	/* others */
	bool has_strangers;	/* keys that no run can have inserted */
};

static int note(void *ctx, uint64_t key, const void *record)
{
	struct inserted *inserted = ctx;
	uint64_t number = ycsb_number(inserted->ycsb, key);
	uint64_t nth = number - inserted->ycsb->config.records;

	(void)record;
	if (number < inserted->ycsb->config.records) {
		inserted->n_loaded++;
	} else if (nth >= inserted->room) {
		inserted->has_strangers = true;
	} else {
		inserted->seen[nth / 64] |= 1ull << nth % 64;
		if (nth >= inserted->end)
			inserted->end = nth + 1;
	}
	return 0;
}

static bool is_seen(const struct inserted *inserted, uint64_t nth)
{
	return inserted->seen[nth / 64] >> nth % 64 & 1;
}

/*
 * Those whose transactions were not through yet, or not on disk: what was taken before may be there
 * and these not. Readers need all up to the frontier, so they are made up for.
 */
static int fill_gaps(struct ycsb *ycsb, const struct inserted *inserted)
{
	uint64_t records = ycsb->config.records;
	int rc = 0;

	for (uint64_t nth = 0; !rc && nth < inserted->end; nth++) {
		uint64_t first = nth;

		while (nth < inserted->end && !is_seen(inserted, nth))
			nth++;
		if (nth > first)
			rc = ycsb_load_range(ycsb, records + first, records + nth);
	}
	return rc;
}

static int adopt_inserts(struct ycsb *ycsb, struct ycsb_audit *audit)
{
	uint64_t records = ycsb->config.records;
	/*
	 * Nobody takes a number GROWTH_AHEAD beyond one that was not committed then; and what was
	 * committed before is on disk before. So the first that is missing is followed by no more.
	 */
	struct inserted inserted = {
		.ycsb = ycsb,
		.room = (audit->records > records ? audit->records - records : 0) + GROWTH_AHEAD,
	};
	int rc = 0;

	inserted.seen = calloc(inserted.room / 64 + 1, sizeof(*inserted.seen));
	if (!inserted.seen)
		return -ENOMEM;
	audit->rc = oltp_table_scan(ycsb->table, note, &inserted);
	audit->is_complete = !audit->rc && inserted.n_loaded == records && !inserted.has_strangers;
	if (audit->is_complete)
		rc = fill_gaps(ycsb, &inserted);
	growth_init(ycsb->growth, records + inserted.end, ycsb->growth->max);
	ycsb->books.inserts = inserted.end;
	for (uint64_t nth = 0; nth < inserted.end; nth++)
		ycsb->books.inserted_keys += ycsb_key_weight(ycsb_key(ycsb, records + nth));
	free(inserted.seen);
	return rc;
}

int ycsb_adopt(struct ycsb *ycsb, struct ycsb_audit *ret_audit)
{
	ycsb_audit(ycsb, ret_audit);
	ycsb->books.updates = ret_audit->updates;
	ycsb->books.weighted_updates = ret_audit->weighted_updates;
	return ycsb->growth && !ret_audit->rc ? adopt_inserts(ycsb, ret_audit) : 0;
}

bool ycsb_needs_no_adopt(const struct ycsb *ycsb)
{
	return !ycsb->growth;
}

#define FIRST_ROWS	10u

static enum oltp_rc read_rows(struct ycsb *ycsb, struct oltp_worker *worker)
{
	enum oltp_rc rc = oltp_txn_begin(worker);

	for (uint64_t i = 0; !rc && i < FIRST_ROWS; i++) {
		uint64_t number = ycsb->config.records * i / FIRST_ROWS;
		const void *record;

		rc = oltp_txn_read(worker, ycsb->table, ycsb_key(ycsb, number), &record);
		/* That is for ycsb_adopt to say. */
		if (rc == OLTP_NOT_FOUND)
			rc = OLTP_OK;
	}
	return rc ?: oltp_txn_commit(worker);
}

int ycsb_first(struct ycsb *ycsb)
{
	struct oltp_worker *worker;
	enum oltp_rc rc;
	int error;

	error = oltp_worker_create(ycsb->engine, &worker);
	if (error)
		return error;
	do {
		rc = read_rows(ycsb, worker);
		if (rc)
			oltp_txn_abort(worker);
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(worker) ?: OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	oltp_worker_destroy(worker);
	if (rc)
		return rc == OLTP_NO_MEMORY ? -ENOMEM : -EIO;
	return 0;
}
