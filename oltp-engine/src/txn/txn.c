// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transactions: strict two-phase locking with in-place updates and before-images. Adding and
 * deleting is in txn_rows.c, scanning in txn_scan.c.
 *
 *   state	transitions
 *   IDLE	oltp_txn_begin -> ACTIVE
 *   ACTIVE	oltp_txn_commit, oltp_txn_abort -> IDLE; conflict, full, no memory -> DOOMED
 *   DOOMED	oltp_txn_abort -> IDLE
 *
 * ACTIVE and DOOMED: accesses[] names every lock held (T1); the undo list holds every byte range
 * handed out for writing as it was before (T2). IDLE: no lock is held, both are empty (T3). What an
 * ACTIVE one has seen to be missing is in its node set (node_set.h).
 */
#include <string.h>

#include "engine.h"
#include "node_set.h"
#include "ordered.h"
#include "revoked.h"
#include "txn.h"

/*
 * Transactions per clock step. The age orders only those that run at the same time, so the clock
 * may be coarse; it must move on, lest a worker stay the oldest for ever. With 42 bits of clock
 * this lasts for 7 * 10^13 transactions.
 */
#define TXNS_PER_CLOCK_STEP	16u

/* Locks that are given back together: what most transactions have. */
#define RELEASE_MAX		32u

enum oltp_rc oltp_txn_begin(struct oltp_worker *worker)
{
	if (worker->state != TXN_IDLE)
		return OLTP_INVALID;
	if (unlikely(worker->log)) {
		enum oltp_rc rc = worker->engine->ops->begin(worker);

		if (rc)
			return rc;
	}
	worker->state = TXN_ACTIVE;
	worker->undo_last = UNDO_NONE;
	txn_wants_clear(worker);
	lock_slot_clear_wound(worker->slot);
	worker->stamp = epoch_now(&worker->engine->epoch);
	worker->revokes_seen = atomic_load_explicit(&worker->engine->revoked.swept,
						    memory_order_acquire);
	epoch_enter(&worker->engine->epoch, &worker->announced, worker->stamp);
	if (!worker->n_retries) {
		if (++worker->began % TXNS_PER_CLOCK_STEP == 0)
			counter_add(&worker->clock, 1);
		worker->ts = worker_ts(worker);
	}
	return OLTP_OK;
}

enum oltp_rc txn_doom(struct oltp_worker *worker, enum oltp_rc rc)
{
	worker->state = TXN_DOOMED;
	worker->doom_rc = rc;
	if (rc == OLTP_CONFLICT) {
		worker->n_retries++;
		counter_add(&worker->conflicts, 1);
	} else {
		/* Others come before it is run again. */
		worker->n_retries = 0;
		if (rc == OLTP_COLD)
			counter_add(&worker->colds, 1);
	}
	return rc;
}

struct access *txn_access_push(struct oltp_worker *worker, struct oltp_table *table,
			       struct record *record, const struct index_ref *ref,
			       enum access_kind kind)
{
	struct access *access = &worker->accesses[worker->n_accesses++];

	*access = (struct access){ .record = record, .ref = *ref, .table = table, .kind = kind };
	return access;
}

/* flags: LOCK_TAKEN and LOCK_COUNTED, to go with the stamp. */
static inline void lock_release(const struct oltp_worker *worker, struct record *record,
				bool exclusive, uint64_t flags)
{
	if (exclusive)
		lock_release_exclusive(&record->lock, worker->stamp | flags);
	else
		lock_release_shared(&record->lock, worker->stamp | flags);
}

static inline uint64_t access_flags(const struct access *access)
{
	return access->is_taken ? LOCK_TAKEN : 0;
}

/* Does an older transaction wait to write a record that this one holds shared? */
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
	/* The next transaction is younger than any that was met: no worker stays the oldest. */
	if (clock > counter_read(&worker->clock))
		atomic_store_explicit(&worker->clock, clock, memory_order_relaxed);
	return rc;
}

/*
 * The record's lock is not free. *ret_is_held: this transaction itself holds a lock that suffices,
 * and nothing was taken; OLTP_NOT_FOUND if it has deleted the record, else OLTP_OK. If it holds
 * none, OLTP_OK (the lock was taken) or OLTP_CONFLICT.
 */
__attribute__((noinline)) static enum oltp_rc
lock_busy(struct oltp_worker *worker, struct record *record, bool exclusive, bool *ret_is_held)
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

/* Of the accesses announced, wants those after the present one that are on disk, too. */
static void want_ahead(struct oltp_worker *worker)
{
	for (uint32_t i = worker->ahead_next; i < worker->n_ahead; i++) {
		const struct ahead *ahead = &worker->ahead[i];
		struct index_ref ref;

		if (!index_find(&ahead->table->index, ahead->key, ahead->hash, &ref) && ref.entry)
			txn_want(worker, ahead->table, ahead->key, ahead->hash);
	}
}

void txn_want(struct oltp_worker *worker, struct oltp_table *table, uint64_t key, uint64_t hash)
{
	if (worker->n_wants < worker->engine->txn_records_max)
		worker->wants[worker->n_wants++] = (struct cold_want){ table, key, hash };
}

static enum oltp_rc not_in_memory(struct oltp_worker *worker, struct oltp_table *table,
				  uint64_t key, uint64_t hash, const struct index_ref *ref)
{
	if (!ref->entry && !revoked_may_hide(worker->engine, table, hash))
		return OLTP_NOT_FOUND;
	if (!ref->entry || (ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
		return txn_doom(worker, OLTP_LOST);
	txn_want(worker, table, key, hash);
	want_ahead(worker);
	return txn_doom(worker, OLTP_COLD);
}

/* The record is locked and the one that was meant; its lock word was seen before that. */
static __attribute__((always_inline)) inline void
access_note(struct oltp_worker *worker, struct oltp_table *table, struct record *record,
	    const struct index_ref *ref, bool exclusive, uint64_t hash, uint64_t seen)
{
	struct access *access = txn_access_push(worker, table, record, ref,
						exclusive ? ACCESS_EXCLUSIVE : ACCESS_SHARED);

	if (unlikely(promise_watches(&worker->engine->promise, hash)))
		access->is_taken = promise_use(worker, table, seen, exclusive);
	worker->n_operations++;
}

/*
 * The record found may be taken out of the index before it is locked. What is missing is looked for
 * once more, with the chain's version read before that.
 */
enum oltp_rc txn_access(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			uint64_t hash, enum txn_access how, struct record **ret_record)
{
	bool exclusive = how & TXN_EXCLUSIVE, has_version = false;
	const _Atomic uint64_t *word = index_version_of(&table->index, hash);
	uint64_t version = 0;

	if (worker->n_accesses == worker->engine->txn_records_max)
		return txn_doom(worker, OLTP_FULL);
	if (unlikely(lock_slot_is_wounded(worker->slot, worker->ts))) {
		counter_add(&worker->wounds, 1);
		return txn_doom(worker, OLTP_CONFLICT);
	}
	for (;;) {
		struct index_ref ref;
		struct record *record = index_find(&table->index, key, hash, &ref);
		uint64_t seen;

		if (unlikely(!record)) {
			enum oltp_rc rc = not_in_memory(worker, table, key, hash, &ref);

			*ret_record = NULL;
			if (rc != OLTP_NOT_FOUND || how & TXN_NO_NODE)
				return rc;
			if (has_version)
				return node_set_add(worker, word, version, INDEX_VERSION_MASK) ?:
				       OLTP_NOT_FOUND;
			version = atomic_load_explicit(word, memory_order_acquire);
			has_version = true;
			continue;
		}
		if (unlikely(!(exclusive ?
				       lock_try_exclusive(&record->lock, worker->ts, &seen) :
				       lock_try_shared(&record->lock, worker->ts, &seen)))) {
			bool is_held;
			enum oltp_rc rc = lock_busy(worker, record, exclusive, &is_held);

			*ret_record = record;
			if (rc)
				return is_held ? rc : txn_doom(worker, rc);
			if (is_held) {
				worker->n_operations++;
				return OLTP_OK;
			}
		}
		if (likely(index_ref_is_live(&ref) &&
			   atomic_load_explicit(&record->key, memory_order_relaxed) == key)) {
			if (unlikely(ref.entry & INDEX_BUFFERED))
				worker->engine->ops->cold_used(record, exclusive);
			access_note(worker, table, record, &ref, exclusive, hash, seen);
			*ret_record = record;
			return OLTP_OK;
		}
		lock_release(worker, record, exclusive, 0);
	}
}

/*
 * The usual case of txn_access: the record is found at first sight, in memory for good and free.
 * NULL: it is not so, and nothing was done but hashing. Inlined, so that what follows from
 * exclusive is not looked up.
 */
static __attribute__((always_inline)) inline struct record *
access_free(struct oltp_worker *worker, struct oltp_table *table, uint64_t key, bool exclusive,
	    uint64_t *ret_hash)
{
	const struct ahead *ahead = txn_ahead(worker, table, key);
	uint64_t hash = ahead ? ahead->hash : index_hash(key), seen;
	struct record *record;
	struct index_ref ref;

	*ret_hash = hash;
	if (unlikely(worker->n_accesses == worker->engine->txn_records_max ||
		     lock_slot_is_wounded(worker->slot, worker->ts)))
		return NULL;
	record = index_find_at(ahead ? ahead->slot : index_guess_slot(&table->index, hash), key,
			       &ref);
	if (unlikely(!record || !lock_try_free(&record->lock, worker->ts, exclusive, &seen)))
		return NULL;
	if (unlikely(!index_ref_is_live(&ref) ||
		     atomic_load_explicit(&record->key, memory_order_relaxed) != key)) {
		lock_release(worker, record, exclusive, 0);
		return NULL;
	}
	access_note(worker, table, record, &ref, exclusive, hash, seen);
	return record;
}

struct record *txn_record_alloc(struct oltp_worker *worker, struct oltp_table *table, uint64_t key)
{
	struct record *record = storage_slot_alloc(&table->engine->storage, table, worker->node,
						   worker->ts);

	if (record)
		atomic_store_explicit(&record->key, key, memory_order_relaxed);
	return record;
}

void txn_record_free(struct oltp_worker *worker, struct record *record)
{
	storage_slot_free(&worker->engine->storage, record);
	lock_release_exclusive(&record->lock, worker->stamp);
}

struct access *txn_access_of(struct oltp_worker *worker, const struct record *record)
{
	for (uint32_t i = worker->n_accesses; i--;) {
		struct access *access = &worker->accesses[i];

		if (access->record == record && access->kind >= ACCESS_EXCLUSIVE)
			return access;
	}
	return NULL;
}

enum oltp_rc oltp_txn_read(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			   const void **ret_record)
{
	struct record *record;
	uint64_t hash;

	if (unlikely(worker->state != TXN_ACTIVE))
		return OLTP_INVALID;
	record = access_free(worker, table, key, false, &hash);
	if (unlikely(!record)) {
		enum oltp_rc rc = txn_access(worker, table, key, hash, TXN_SHARED, &record);

		if (rc)
			return rc;
	}
	*ret_record = record->data;
	return OLTP_OK;
}

/* As txn_save; nth: which access holds the record. */
static inline enum oltp_rc save(struct oltp_worker *worker, uint32_t nth,
				const struct record *record, uint32_t offset, uint32_t bytes)
{
	uint32_t room = worker->engine->txn_undo_bytes - worker->undo_used;
	struct undo *undo = (struct undo *)(worker->undo + worker->undo_used);

	if (unlikely(!bytes))
		return OLTP_OK;
	if (unlikely(room < sizeof(*undo) + UNDO_ALIGN ||
		     room - sizeof(*undo) - UNDO_ALIGN < bytes))
		return txn_doom(worker, OLTP_FULL);
	*undo = (struct undo){ nth, offset, bytes, worker->undo_last };
	worker->undo_last = worker->undo_used;
	worker->undo_used += (uint32_t)sizeof(*undo) + ((bytes + UNDO_ALIGN - 1) &
							~(UNDO_ALIGN - 1));
	/* A counter or a pointer is not worth a call. */
	if (bytes == sizeof(uint64_t))
		memcpy(undo + 1, record->data + offset, sizeof(uint64_t));
	else
		memcpy(undo + 1, record->data + offset, bytes);
	return OLTP_OK;
}

enum oltp_rc txn_save(struct oltp_worker *worker, const struct access *access, uint32_t offset,
		      uint32_t bytes)
{
	return save(worker, (uint32_t)(access - worker->accesses), access->record, offset, bytes);
}

/* May the spans of a record of the table be written? */
static inline bool spans_are_valid(const struct oltp_table *table, const struct oltp_span *spans,
				   uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (unlikely((uint64_t)spans[i].offset + spans[i].bytes > table->record_bytes))
			return false;
	}
	for (uint32_t i = 0; unlikely(table->n_key_spans) && i < n; i++) {
		if (ordered_is_key(table, &spans[i]))
			return false;
	}
	return true;
}

enum oltp_rc oltp_txn_update(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			     const struct oltp_span *spans, uint32_t n, void **ret_record)
{
	struct record *record;
	uint64_t hash;
	uint32_t nth;

	if (unlikely(worker->state != TXN_ACTIVE || !spans_are_valid(table, spans, n)))
		return OLTP_INVALID;
	record = access_free(worker, table, key, true, &hash);
	/* Mostly the access that was made just now. */
	nth = worker->n_accesses - 1;
	if (unlikely(!record)) {
		enum oltp_rc rc = txn_access(worker, table, key, hash, TXN_EXCLUSIVE, &record);

		if (rc)
			return rc;
		nth = (uint32_t)(txn_access_of(worker, record) - worker->accesses);
	}
	for (uint32_t i = 0; i < n; i++) {
		enum oltp_rc rc = save(worker, nth, record, spans[i].offset, spans[i].bytes);

		if (unlikely(rc))
			return rc;
	}
	*ret_record = record->data;
	return OLTP_OK;
}

/* Announcing what a transaction is going to touch: see oltp.h. */

static inline void prefetch_record(struct ahead *ahead)
{
	const struct record *record;
	const uint8_t *first, *last, *second;

	ahead->slot = index_guess_slot(&ahead->table->index, ahead->hash);
	record = index_guess_record(ahead->slot);
	if (!record)
		return;
	__builtin_prefetch(record, 1);
	first = record->data + ahead->offset;
	last = first + ahead->bytes - 1;
	first -= (uintptr_t)first % CACHE_LINE_BYTES;
	second = first + CACHE_LINE_BYTES < last ? first + CACHE_LINE_BYTES : last;
	/* One may be there twice: cheaper than a jump that depends on where the span lies. */
	__builtin_prefetch(first, 1);
	__builtin_prefetch(second, 1);
	__builtin_prefetch(last, 1);
	for (const uint8_t *line = first + 2 * CACHE_LINE_BYTES; line + CACHE_LINE_BYTES <= last;
	     line += CACHE_LINE_BYTES)
		__builtin_prefetch(line, 1);
}

static void ask_records(struct ahead *ahead, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (ahead[i].bytes)
			prefetch_record(&ahead[i]);
		else
			ahead[i].slot = NULL;
	}
}

/* The first half. Returns how many. */
static uint32_t ask_index(const struct oltp_worker *worker, struct ahead *ahead,
			  struct oltp_table *table, const struct oltp_hint *hints, uint32_t n)
{
	if (n > worker->engine->txn_records_max)
		n = worker->engine->txn_records_max;
	for (uint32_t i = 0; i < n; i++) {
		ahead[i].key = hints[i].key;
		ahead[i].hash = index_hash(hints[i].key);
		ahead[i].table = hints[i].table ?: table;
		ahead[i].offset = hints[i].offset;
		ahead[i].bytes = hints[i].bytes;
		index_prefetch(&ahead[i].table->index, ahead[i].hash);
	}
	return n;
}

/* If hints were announced as those of the next transaction, they are the present one's now. */
static bool take_later(struct oltp_worker *worker, const struct oltp_hint *hints)
{
	struct ahead *later = worker->later;

	if (!hints || hints != worker->later_hints)
		return false;
	worker->later = worker->ahead;
	worker->later_hints = NULL;
	worker->ahead = later;
	worker->n_ahead = worker->n_later;
	return true;
}

void oltp_txn_prefetch(struct oltp_worker *worker, struct oltp_table *table,
		       const struct oltp_hint *hints, uint32_t n)
{
	bool is_later = take_later(worker, hints);

	if (!is_later)
		worker->n_ahead = ask_index(worker, worker->ahead, table, hints, n);
	worker->ahead_next = 0;
	if (!is_later || !worker->is_later_asked)
		ask_records(worker->ahead, worker->n_ahead);
}

void oltp_txn_prefetch_next(struct oltp_worker *worker, struct oltp_table *table,
			    const struct oltp_hint *hints, uint32_t n)
{
	worker->n_later = ask_index(worker, worker->later, table, hints, n);
	worker->later_hints = hints;
	worker->is_later_asked = false;
}

static inline void ask_later_records(struct oltp_worker *worker)
{
	if (worker->later_hints && !worker->is_later_asked) {
		ask_records(worker->later, worker->n_later);
		worker->is_later_asked = true;
	}
}

/*
 * Whether an access is shared cannot be predicted. So they are sorted first, without a jump that
 * depends on it: one that was predicted wrong costs as much as a lock.
 */
static void release_all(const struct oltp_worker *worker)
{
	const struct access *access = worker->accesses, *end = access + worker->n_accesses;

	while (access < end) {
		const struct access *shared[RELEASE_MAX], *exclusive[RELEASE_MAX];
		uint32_t n_shared = 0, n_exclusive = 0;

		for (uint32_t i = 0; i < RELEASE_MAX && access < end; i++, access++) {
			shared[n_shared] = access;
			n_shared += access->kind == ACCESS_SHARED;
			exclusive[n_exclusive] = access;
			n_exclusive += access->kind > ACCESS_SHARED;
		}
		for (uint32_t i = 0; i < n_exclusive; i++)
			lock_release_exclusive(&exclusive[i]->record->lock,
					       worker->stamp | access_flags(exclusive[i]));
		for (uint32_t i = 0; i < n_shared; i++)
			lock_release_alone(&shared[i]->record->lock, worker->ts,
					   worker->stamp | access_flags(shared[i]));
	}
}

static void txn_end(struct oltp_worker *worker)
{
	worker->state = TXN_IDLE;
	worker->n_accesses = 0;
	worker->n_operations = 0;
	worker->n_ahead = 0;
	worker->undo_used = 0;
	worker->n_nodes = 0;
	worker->has_inserts = false;
	worker->has_deletes = false;
	worker->has_ordered = false;
	epoch_leave(&worker->announced);
}

enum oltp_rc oltp_txn_commit(struct oltp_worker *worker)
{
	if (worker->state != TXN_ACTIVE)
		return OLTP_INVALID;
	if (revoked_was_accessed(worker))
		return txn_doom(worker, OLTP_LOST);
	if (unlikely(worker->n_nodes) && !node_set_is_valid(worker))
		return txn_doom(worker, OLTP_CONFLICT);
	if (unlikely(worker->log)) {
		enum oltp_rc rc = worker->engine->ops->commit(worker);

		if (rc)
			return txn_doom(worker, rc);
	}
	if (unlikely(worker->has_deletes))
		txn_rows_commit(worker);
	release_all(worker);
	/* No lock is held for longer because of it. */
	ask_later_records(worker);
	counter_add(&worker->accesses_committed, worker->n_operations);
	txn_end(worker);
	worker->n_retries = 0;
	counter_add(&worker->commits, 1);
	return OLTP_OK;
}

/* Newest first: of two images of the same bytes the older one must win. */
static void undo_apply(struct oltp_worker *worker)
{
	while (worker->undo_last != UNDO_NONE) {
		const struct undo *undo =
			(const struct undo *)(worker->undo + worker->undo_last);
		struct record *record = worker->accesses[undo->access].record;

		memcpy(record->data + undo->offset, undo + 1, undo->bytes);
		worker->undo_last = undo->prev_offset;
	}
}

void oltp_txn_abort(struct oltp_worker *worker)
{
	if (worker->state == TXN_IDLE)
		return;
	if (worker->state == TXN_ACTIVE)
		worker->n_retries = 0;
	if (worker->has_ordered)
		txn_rows_abort(worker);
	undo_apply(worker);
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];
		struct record *record = access->record;
		uint64_t key;

		switch (access->kind) {
		case ACCESS_NONE:
			break;
		case ACCESS_SHARED:
		case ACCESS_EXCLUSIVE:
		case ACCESS_REPLACE:
		case ACCESS_DELETE:
			lock_release(worker, record, access->kind != ACCESS_SHARED,
				     LOCK_COUNTED | access_flags(access));
			break;
		case ACCESS_INSERT:
		case ACCESS_UNDONE:
			key = atomic_load_explicit(&record->key, memory_order_relaxed);
			index_remove(&access->table->index, index_hash(key), &access->ref);
			if (access->is_taken)
				promise_delete(worker, access->table);
			txn_record_free(worker, record);
			break;
		}
	}
	txn_end(worker);
	counter_add(&worker->aborts, 1);
}

void oltp_prefetch_index(struct oltp_table *table, const struct oltp_hint *hints, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct oltp_table *of = hints[i].table ?: table;

		index_prefetch(&of->index, index_hash(hints[i].key));
	}
}
