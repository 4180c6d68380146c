// SPDX-License-Identifier: GPL-2.0-or-later
/* See restore.h. First the set of rows that are being put together, then the work itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/revoked.h"
#include "oltp-engine/src/txn/txn.h"
#include "recover_read.h"
#include "recover_redo.h"
#include "restore.h"

/*
 * Rows that are being put together: the last state of some keys in checkpoint and log. Pure, but
 * for the memory that they take.
 */
struct restore_row {
	struct oltp_table *table;	/* NULL: the place is free */
	uint64_t key;
	uint8_t *data;		/* NULL: there is no such row */
	bool is_missing;	/* there was none when it was updated, see recover_redo.h */
};

/* All zero: empty. */
struct restore_rows {
	struct restore_row *places;	/* open addressing; room is a power of two */
	size_t n, room;
};

#define ROOM_MIN	1024u

/* About how many bytes a row takes. */
static uint64_t row_bytes(const struct oltp_table *table)
{
	/* Up to two places for each, and what malloc needs for itself. */
	return 2 * sizeof(struct restore_row) + 2 * sizeof(void *) + table->record_bytes;
}

static struct restore_row *place_of(const struct restore_rows *rows, const struct oltp_table *table,
				    uint64_t key)
{
	size_t i = (size_t)(index_hash(key) ^ table->id) & (rows->room - 1);

	while (rows->places[i].table &&
	       (rows->places[i].table != table || rows->places[i].key != key))
		i = (i + 1) & (rows->room - 1);
	return &rows->places[i];
}

/* Room for one more, and half as many free places as used ones. */
static int reserve(struct restore_rows *rows)
{
	struct restore_rows more = { .n = rows->n, .room = 2 * rows->room ?: ROOM_MIN };

	if (3 * (rows->n + 1) <= 2 * rows->room)
		return 0;
	more.places = calloc(more.room, sizeof(*more.places));
	if (!more.places)
		return -ENOMEM;
	for (size_t i = 0; i < rows->room; i++) {
		const struct restore_row *row = &rows->places[i];

		if (row->table)
			*place_of(&more, row->table, row->key) = *row;
	}
	free(rows->places);
	*rows = more;
	return 0;
}

/* The row of the key, or a new one of which nothing is known. NULL: out of memory. */
static struct restore_row *row_of(struct restore_rows *rows, struct oltp_table *table, uint64_t key)
{
	struct restore_row *row;

	if (reserve(rows))
		return NULL;
	row = place_of(rows, table, key);
	if (!row->table) {
		*row = (struct restore_row){ .table = table, .key = key };
		rows->n++;
	}
	return row;
}

/* As in recover_redo.h. Errors: -ENOMEM, -EUCLEAN (the spans do not fit the table). */
static int rows_put(struct restore_rows *rows, struct oltp_table *table, uint64_t key,
		    const void *data)
{
	struct restore_row *row = row_of(rows, table, key);

	if (!row)
		return -ENOMEM;
	if (!row->data)
		row->data = malloc(table->record_bytes);
	if (!row->data)
		return -ENOMEM;
	memcpy(row->data, data, table->record_bytes);
	row->is_missing = false;
	return 0;
}

/* Looks at all spans, whether the row is there (data) or not (NULL). */
static int set_spans(const struct oltp_table *table, uint8_t *data, struct log_cursor spans)
{
	const struct log_span *span;
	int rc;

	while ((rc = log_spans_next(&spans, &span)) > 0) {
		if (!log_span_fits(span, table->record_bytes))
			return -EUCLEAN;
		if (data)
			memcpy(data + span->offset, log_span_data(span), span->bytes);
	}
	return rc ? -EUCLEAN : 0;
}

static int rows_update(struct restore_rows *rows, struct oltp_table *table, uint64_t key,
		       struct log_cursor spans)
{
	struct restore_row *row = row_of(rows, table, key);

	if (!row)
		return -ENOMEM;
	row->is_missing |= !row->data;
	return set_spans(table, row->data, spans);
}

static int rows_remove(struct restore_rows *rows, struct oltp_table *table, uint64_t key)
{
	struct restore_row *row = row_of(rows, table, key);

	if (!row)
		return -ENOMEM;
	free(row->data);
	row->data = NULL;
	row->is_missing = false;
	return 0;
}

/* After all was read: was a row updated that is neither in the checkpoint nor in the log? */
static bool rows_has_missing(const struct restore_rows *rows)
{
	for (size_t i = 0; i < rows->room; i++) {
		if (rows->places[i].is_missing)
			return true;
	}
	return false;
}

static void rows_clear(struct restore_rows *rows)
{
	for (size_t i = 0; i < rows->room; i++)
		free(rows->places[i].data);
	free(rows->places);
	*rows = (struct restore_rows){ 0 };
}

/* The most memory for rows that are not put back yet. */
#define ROWS_BYTES	(64ull << 20)
#define WAIT_NS		1000000u
#define LOG_WAIT_NS	20000000ull
/* Without room for any row for so long, lacks_room is set. */
#define ROOM_WAIT_NS	1000000000ull

struct restore {
	struct oltp_engine *engine;
	struct restore_progress *progress;
	struct oltp_worker *worker;
	uint64_t times;		/* that blocks were revoked, when this attempt began */
	uint64_t end_group;
	uint64_t n_parts, part;	/* keys are divided by their hashes; which of them it is about */
	struct restore_rows rows;
};

bool restore_is_due(const struct oltp_engine *engine)
{
	return atomic_load_explicit(&engine->revoked.times, memory_order_acquire) !=
	       atomic_load_explicit(&engine->revoked.restored, memory_order_acquire);
}

/* -EAGAIN: more was taken. */
static int check(const struct restore *r)
{
	if (atomic_load_explicit(r->progress->is_stopping, memory_order_relaxed))
		return -ECANCELED;
	return atomic_load_explicit(&r->engine->revoked.times, memory_order_seq_cst) == r->times ?
		       0 : -EAGAIN;
}

/* Waits until the index knows what was taken, and sets times. */
static int wait_swept(struct restore *r)
{
	struct oltp_engine *engine = r->engine;
	int rc;

	for (;; clock_sleep(WAIT_NS)) {
		if (!engine->manager)
			revoked_sweep(engine);
		r->times = atomic_load_explicit(&engine->revoked.swept, memory_order_acquire);
		rc = check(r);
		if (rc != -EAGAIN)
			return rc;
	}
}

static int wait_ended(struct restore *r)
{
	uint64_t epoch = epoch_advance(&r->engine->epoch);
	int rc = 0;

	while (!rc && !epoch_wait(&r->engine->epoch, epoch, clock_now_ns() + WAIT_NS))
		rc = check(r);
	return rc;
}

/* Waits until the log has all on disk that was committed up to now. */
static int wait_log(struct restore *r)
{
	struct log *log = r->engine->log;
	uint64_t epoch = log_epoch_now(log);
	int rc;

	do {
		rc = check(r) ?: log_wait(log, epoch, clock_now_ns() + LOG_WAIT_NS);
	} while (rc == -ETIMEDOUT);
	r->end_group = log_group_durable(log) + 1;
	return rc;
}

/* How much memory the missing rows take here. */
static uint64_t missing_bytes(const struct restore *r)
{
	const struct oltp_engine *engine = r->engine;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < tables_count(engine); i++)
		bytes += revoked_count(engine->tables[i]) * row_bytes(engine->tables[i]);
	return bytes;
}

/* 1: the row is to be put back. */
static int look(struct restore *r, struct oltp_table *table, uint64_t key)
{
	struct epoch *epoch = &r->engine->epoch;
	uint64_t hash = index_hash(key);
	enum revoked_look is;

	if ((hash >> 16) % r->n_parts != r->part)
		return 0;
	epoch_enter(epoch, &r->worker->announced, epoch_now(epoch));
	is = revoked_look(table, key, hash);
	epoch_leave(&r->worker->announced);
	return is == REVOKED_NOT_KNOWN ? -EAGAIN : is == REVOKED_YES;
}

static int sink_put(void *ctx, struct oltp_table *table, uint64_t key, const void *row)
{
	struct restore *r = ctx;
	int rc = look(r, table, key);

	return rc > 0 ? rows_put(&r->rows, table, key, row) : rc;
}

static int sink_update(void *ctx, struct oltp_table *table, uint64_t key,
		       struct log_cursor spans)
{
	struct restore *r = ctx;
	int rc = look(r, table, key);

	return rc > 0 ? rows_update(&r->rows, table, key, spans) : rc;
}

static int sink_remove(void *ctx, struct oltp_table *table, uint64_t key)
{
	struct restore *r = ctx;
	int rc = look(r, table, key);

	return rc > 0 ? rows_remove(&r->rows, table, key) : rc;
}

static int sink_flush(void *ctx)
{
	return check(ctx);
}

static const struct recover_sink sink = { sink_put, sink_update, sink_remove, sink_flush };

static int read_files(struct restore *r)
{
	struct recover_read *read = calloc(1, sizeof(*read));
	int rc;

	if (!read)
		return -ENOMEM;
	*read = (struct recover_read){ .engine = r->engine, .sink = &sink, .ctx = r,
				       .end_group = r->end_group };
	recover_read_begin(read);
	rc = recover_read_look(read) ?: recover_read_checkpoint(read) ?: recover_read_log(read);
	if (!rc && (read->log.next_group != r->end_group || rows_has_missing(&r->rows)))
		rc = -EUCLEAN;
	recover_read_finish(read);
	free(read);
	return rc;
}

/* An exclusively locked record, in a transaction; waits for room outside of any. */
static int record_make(struct restore *r, const struct restore_row *row, struct record **ret_record)
{
	struct restore_progress *progress = r->progress;
	uint64_t start_ns = clock_now_ns();

	for (;;) {
		oltp_txn_begin(r->worker);
		*ret_record = txn_record_alloc(r->worker, row->table, row->key);
		room_check(&r->engine->room, row->table);
		if (*ret_record)
			break;
		oltp_txn_abort(r->worker);
		if (atomic_load_explicit(progress->is_stopping, memory_order_relaxed))
			return -ECANCELED;
		if (clock_now_ns() - start_ns >= ROOM_WAIT_NS)
			atomic_store_explicit(&progress->lacks_room, true, memory_order_relaxed);
		room_want(&r->engine->room, row->table);
		clock_sleep(WAIT_NS);
	}
	if (atomic_load_explicit(&progress->lacks_room, memory_order_relaxed))
		atomic_store_explicit(&progress->lacks_room, false, memory_order_relaxed);
	return 0;
}

static int put_back(struct restore *r, const struct restore_row *row)
{
	struct oltp_worker *worker = r->worker;
	struct record *record;
	bool is_back;
	int rc;

	rc = record_make(r, row, &record);
	if (rc)
		return rc;
	memcpy(record->data, row->data, row->table->record_bytes);
	is_back = revoked_replace(row->table, record, row->key);
	if (is_back)
		lock_release_exclusive(&record->lock, worker->stamp);
	else
		txn_record_free(worker, record);
	oltp_txn_commit(worker);
	if (is_back)
		atomic_fetch_add_explicit(&r->progress->records, 1, memory_order_relaxed);
	return is_back ? 0 : -EUCLEAN;
}

static int restore_part(struct restore *r)
{
	/* Checked once more after everything was read. */
	int rc = read_files(r) ?: check(r);

	for (size_t i = 0; !rc && i < r->rows.room; i++) {
		if (r->rows.places[i].data)
			rc = put_back(r, &r->rows.places[i]);
	}
	rows_clear(&r->rows);
	return rc;
}

/* -EAGAIN: more was taken meanwhile. */
static int attempt(struct restore *r)
{
	uint64_t bytes;
	int rc;

	rc = wait_swept(r) ?: wait_ended(r);
	if (rc)
		return rc;
	bytes = missing_bytes(r);
	if (!bytes)
		return check(r);
	rc = wait_log(r);
	r->n_parts = (bytes + ROWS_BYTES - 1) / ROWS_BYTES;
	for (r->part = 0; !rc && r->part < r->n_parts; r->part++)
		rc = restore_part(r);
	if (rc)
		return rc;
	/* Rows that are missing still, though no more memory was taken, are not in the files. */
	bytes = missing_bytes(r);
	return check(r) ?: bytes ? -EUCLEAN : 0;
}

int restore_revoked(struct oltp_engine *engine, struct restore_progress *progress,
		    uint64_t *ret_ns)
{
	struct restore r = { .engine = engine, .progress = progress };
	uint64_t start_ns = clock_now_ns(), since_ns;
	int rc;

	rc = redo_worker_create(engine, &r.worker);
	if (rc)
		return rc;
	do {
		rc = attempt(&r);
	} while (rc == -EAGAIN);
	oltp_worker_destroy(r.worker);
	atomic_store_explicit(&progress->lacks_room, false, memory_order_relaxed);
	if (rc)
		return rc;
	since_ns = revoked_restored(engine, r.times);
	*ret_ns = clock_now_ns() - (since_ns ?: start_ns);
	return 0;
}
