// SPDX-License-Identifier: GPL-2.0-or-later
/* See broken_engine.h. */
#include "broken_engine.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/node_set.h"

static enum broken broken;

void broken_engine_set(enum broken what)
{
	broken = what;
}

enum oltp_rc __real_oltp_txn_read(struct oltp_worker *worker, struct oltp_table *table,
				  uint64_t key, const void **ret_record);
enum oltp_rc __real_oltp_txn_update(struct oltp_worker *worker, struct oltp_table *table,
				    uint64_t key, const struct oltp_span *spans, uint32_t n,
				    void **ret_record);
enum oltp_rc __real_oltp_txn_scan(struct oltp_worker *worker, struct oltp_index *index,
				  const struct oltp_range *range,
				  int (*fn)(void *ctx, uint64_t sort_key, uint64_t primary_key,
					    const void *record),
				  void *ctx);
void __real_oltp_txn_abort(struct oltp_worker *worker);
bool __real_node_set_is_valid(const struct oltp_worker *worker);

/* Locks of the kind that were taken since there were first accesses. */
static void let_go(struct oltp_worker *worker, uint32_t first, enum access_kind kind)
{
	for (uint32_t i = first; i < worker->n_accesses; i++) {
		struct access *access = &worker->accesses[i];

		if (access->kind != kind)
			continue;
		if (kind == ACCESS_SHARED)
			lock_release_shared(&access->record->lock, worker->stamp);
		else
			lock_release_exclusive(&access->record->lock, worker->stamp);
		access->kind = ACCESS_NONE;
	}
}

enum oltp_rc __wrap_oltp_txn_read(struct oltp_worker *worker, struct oltp_table *table,
				  uint64_t key, const void **ret_record)
{
	uint32_t before = worker->n_accesses;
	enum oltp_rc rc = __real_oltp_txn_read(worker, table, key, ret_record);

	if (!rc && broken == BROKEN_READ_LOCK)
		let_go(worker, before, ACCESS_SHARED);
	return rc;
}

enum oltp_rc __wrap_oltp_txn_scan(struct oltp_worker *worker, struct oltp_index *index,
				  const struct oltp_range *range,
				  int (*fn)(void *ctx, uint64_t sort_key, uint64_t primary_key,
					    const void *record),
				  void *ctx)
{
	uint32_t before = worker->n_accesses;
	enum oltp_rc rc = __real_oltp_txn_scan(worker, index, range, fn, ctx);

	if (!rc && broken == BROKEN_SCAN_LOCK)
		let_go(worker, before, ACCESS_SHARED);
	return rc;
}

enum oltp_rc __wrap_oltp_txn_update(struct oltp_worker *worker, struct oltp_table *table,
				    uint64_t key, const struct oltp_span *spans, uint32_t n,
				    void **ret_record)
{
	uint32_t before = worker->n_accesses;
	enum oltp_rc rc = __real_oltp_txn_update(worker, table, key, spans, n, ret_record);

	/* Not of a row that is going to be deleted: then its slot would be taken from others. */
	if (!rc && n && broken == BROKEN_WRITE_LOCK)
		let_go(worker, before, ACCESS_EXCLUSIVE);
	return rc;
}

void __wrap_oltp_txn_abort(struct oltp_worker *worker)
{
	if (broken == BROKEN_UNDO)
		worker->undo_last = UNDO_NONE;
	__real_oltp_txn_abort(worker);
}

bool __wrap_node_set_is_valid(const struct oltp_worker *worker)
{
	return broken == BROKEN_NOTES || __real_node_set_is_valid(worker);
}
