// SPDX-License-Identifier: GPL-2.0-or-later
/* Locking a record that is locked already, see txn.c and lock.h. */
#include "txn.h"

/* Of the youngest: an older transaction waits for something that this one holds shared. */
static bool is_in_the_way(const void *holder)
{
	const struct oltp_worker *worker = holder;

	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];

		if (access->kind == ACCESS_SHARED &&
		    lock_is_in_the_way(&worker->engine->locks, worker->ts, &access->record->lock))
			return true;
	}
	return false;
}

static enum oltp_rc wait_for(struct oltp_worker *worker, struct record *record, bool exclusive,
			     uint64_t mine)
{
	struct lock_wait wait = {
		.scheme = worker->engine->scheme,
		.book = &worker->engine->locks,
		.word = &record->lock,
		.ts = worker->ts,
		.exclusive = exclusive,
		.mine = mine,
		.n_retries = worker->n_retries,
		.is_in_the_way = is_in_the_way,
		.holder = worker,
	};
	enum oltp_rc rc = lock_contended(&wait);
	uint64_t clock = wait.youngest >> LOCK_TS_WORKER_BITS;

	if (wait.has_waited)
		counter_add(&worker->waits, 1);
	if (wait.was_wounded)
		counter_add(&worker->wounds, 1);
	/* Whoever met a younger one is young next time: no worker stays the oldest. */
	if (clock > counter_read(&worker->clock))
		atomic_store_explicit(&worker->clock, clock, memory_order_relaxed);
	return rc;
}

enum oltp_rc txn_lock_busy(struct oltp_worker *worker, struct record *record, bool exclusive,
			   bool *ret_is_held)
{
	uint64_t mine = 0;
	enum oltp_rc rc;

	*ret_is_held = true;
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];

		if (access->record != record || access->kind == ACCESS_NONE)
			continue;
		if (access->kind >= ACCESS_DELETE)
			return OLTP_NOT_FOUND;
		if (access->kind != ACCESS_SHARED || !exclusive)
			return OLTP_OK;
		mine++;
	}
	*ret_is_held = false;
	rc = wait_for(worker, record, exclusive, mine);
	if (rc)
		return rc;
	for (uint32_t i = 0; mine && i < worker->n_accesses; i++) {
		if (worker->accesses[i].record == record)
			worker->accesses[i].kind = ACCESS_NONE;
	}
	return OLTP_OK;
}
