/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doing again what committed transactions did, through the normal paths: rows are evicted, and
 * indexes maintained, as at any other time.
 *
 * A fuzzy checkpoint shows each row as it was at some moment after the start of what is redone, so
 * the beginning of a row's history is done a second time. That must be harmless. Rules:
 *
 *   insert	puts the whole row, whether or not there is one under the key
 *   update	sets the bytes; of a row that is missing it is passed over, and the key remembered
 *   delete	takes the row, if there is one
 *
 * Why that is right, for one row, o1 .. on being redone over its state after oj. If one of them is
 * an insert or delete, take the last: after it the row is as it was then, whatever was before, and
 * the updates behind it do what they did. If none is, the row was there all the time, so none is
 * passed over, and each byte ends as the last one that sets it says, or is as the checkpoint has
 * it. An update is passed over only if the row was gone when the checkpoint looked; that delete
 * comes later, and takes the key off the remembered ones. So a key that is left at the end was
 * never in the checkpoint although it should: something is damaged.
 *
 * Meanwhile rows of different times are side by side, and two may have the same unique sort key. So
 * uniqueness is not checked during redo (struct oltp_worker, is_redo). It held when the
 * transactions committed, so it must hold in the end: redo_has_double.
 */
#ifndef OLTP_RECOVER_REDO_H
#define OLTP_RECOVER_REDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/src/log/log_decode.h"
#include "oltp.h"

/* A set of (table, key), for what recovery has to remember. */
struct recover_key {
	uint64_t key;
	uint32_t table;
	bool is_used;
};

/* All zero: empty. */
struct recover_keys {
	struct recover_key *slots;	/* open addressing; room is a power of two */
	size_t n, room;
};

/* Adds a key, unless it is there. Errors: -ENOMEM. */
int recover_keys_add(struct recover_keys *keys, uint32_t table, uint64_t key);
void recover_keys_remove(struct recover_keys *keys, uint32_t table, uint64_t key);

/* NULL: empty. */
const struct recover_key *recover_keys_any(const struct recover_keys *keys);

void recover_keys_finish(struct recover_keys *keys);

enum redo_kind {
	REDO_INSERT,
	REDO_UPDATE,
	REDO_DELETE,
};

struct redo_span {
	uint32_t offset, bytes;
	const uint8_t *data;
};

struct redo_op {
	enum redo_kind kind;
	struct oltp_table *table;
	uint64_t key;
	uint64_t hash;		/* filled in by redo_add */
	const uint8_t *row;	/* INSERT */
	bool is_done;		/* DELETE: also if its batch is aborted */
	uint32_t first_span, n_spans;	/* UPDATE: in redo.spans */
};

#define REDO_BATCH	32u	/* operations whose cache misses, and reads from disk, overlap */
#define REDO_SPANS	256u

struct redo_counts {
	uint64_t puts, updates, deletes;	/* done */
	uint64_t passed_over;		/* updates and deletes of rows that were not there */
};

struct redo {
	struct oltp_engine *engine;
	struct oltp_worker *worker;
	uint32_t n_ops, n_spans;
	struct redo_op ops[REDO_BATCH];
	struct redo_span spans[REDO_SPANS];
	uint32_t batch_max;		/* operations in a transaction, for now */
	struct recover_keys missing;
	struct redo_counts counts;
	uint8_t *scratch;		/* a row */
	size_t scratch_bytes;
};

/* A worker whose transactions are in the log already. Errors: -ENOMEM, -ENOSPC (none is free). */
int redo_worker_create(struct oltp_engine *engine, struct oltp_worker **ret_worker);

/* Errors: as above. */
int redo_init(struct redo *redo, struct oltp_engine *engine);

/* May be called for one that is all zero. */
void redo_finish(struct redo *redo);

/*
 * Row and spans must stay valid until redo_flush. Errors: -ENOMEM (memory for rows is exhausted,
 * and there is no disk to put others on, or it is full), -EIO (a row that went to disk could not be
 * read), -ENOSPC (txn_records_max is too small), -EUCLEAN (the operation does not fit the table).
 */
int redo_put(struct redo *redo, struct oltp_table *table, uint64_t key, const void *row);
int redo_delete(struct redo *redo, struct oltp_table *table, uint64_t key);

/* spans: see log_spans_begin. */
int redo_update(struct redo *redo, struct oltp_table *table, uint64_t key, struct log_cursor spans);

/* Errors: as above. */
int redo_flush(struct redo *redo);

/* After everything has been redone: is a row missing that must be there? */
bool redo_has_missing(const struct redo *redo, uint32_t *ret_table, uint64_t *ret_key);

struct redo_double {
	uint32_t table, index;	/* numbers, as they were created */
	uint64_t keys[2];	/* primary */
};

/*
 * After everything has been redone: do two rows have the same key in a unique index? No other
 * thread may work yet.
 */
bool redo_has_double(struct redo *redo, struct redo_double *ret_double);

#endif
