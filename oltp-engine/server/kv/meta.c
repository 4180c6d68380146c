// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/meta.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define META_FORMAT	0x4542424b56303031ull	/* "EBBKV001" */

/* Keys of the table. */
#define META_HEAD	0u
#define META_NUMBERS	1u
#define META_COUNTER	64u		/* and those that follow, META_COUNTERS in all */
#define META_DEAD	(1ull << 62)	/* plus the id of the hash */

/* A start has 2^46 stamps: at a million writes per second, two years. */
#define STAMP_BITS	46u
#define IDS_AT_ONCE	(1u << 20)
#define IDS_LOW		(1u << 16)	/* more than all transactions that run now can take */
#define IDS_ALL		((1ull << 43) - 1)

struct meta_head {
	uint64_t format;
	uint64_t hash_bits;
	uint64_t secret[2];
};

struct meta_numbers {
	uint64_t starts;
	uint64_t ids_end;	/* ids below this may have been given away */
};

union meta_record {
	struct meta_head head;
	struct meta_numbers numbers;
	int64_t count;
	uint8_t bytes[48];
};

int meta_open(struct meta *meta, struct oltp_engine *engine)
{
	int rc = oltp_table_create(engine, sizeof(union meta_record), 4096, &meta->table);

	return rc ?: oltp_index_create(meta->table, NULL, &meta->order);
}

static enum oltp_rc update(struct meta *meta, struct oltp_worker *worker, uint64_t key,
			   union meta_record **ret_record)
{
	const struct oltp_span span = { 0, sizeof(union meta_record) };
	void *record;
	enum oltp_rc rc = oltp_txn_update(worker, meta->table, key, &span, 1, &record);

	if (!rc)
		*ret_record = record;
	return rc;
}

static enum oltp_rc make(struct meta *meta, struct oltp_worker *worker,
			 const union meta_record *head)
{
	union meta_record zero = { 0 };
	enum oltp_rc rc = oltp_txn_insert(worker, meta->table, META_HEAD, head);

	zero.numbers.ids_end = 1;
	if (!rc)
		rc = oltp_txn_insert(worker, meta->table, META_NUMBERS, &zero);
	memset(&zero, 0, sizeof(zero));
	for (uint32_t i = 0; !rc && i < META_COUNTERS; i++)
		rc = oltp_txn_insert(worker, meta->table, META_COUNTER + i, &zero);
	return rc;
}

static int count_row(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	int64_t *n = ctx;

	(void)sort_key;
	(void)primary_key;
	(void)record;
	(*n)++;
	return 0;
}

static enum oltp_rc count_all(struct meta *meta, struct oltp_worker *worker, int64_t *ret_keys,
			      int64_t *ret_dead)
{
	/* More need not be known: there are some, and reaping finds the next ones. */
	const struct oltp_range dead = { .from = META_DEAD, .to = UINT64_MAX, .limit = 8 };
	int64_t n = 0;

	for (uint32_t i = 0; i < META_COUNTERS; i++) {
		const void *record;
		enum oltp_rc rc = oltp_txn_read(worker, meta->table, META_COUNTER + i, &record);

		if (rc)
			return rc;
		n += ((const union meta_record *)record)->count;
	}
	*ret_keys = n;
	*ret_dead = 0;
	return oltp_txn_scan(worker, meta->order, &dead, count_row, ret_dead);
}

/* One attempt, up to the commit. OLTP_INVALID: what is there was not made by this program. */
static enum oltp_rc start(struct meta *meta, struct oltp_worker *worker,
			  const union meta_record *fresh, union meta_record *ret_head,
			  uint64_t *ret_starts, int64_t *ret_keys, int64_t *ret_dead)
{
	const void *record;
	union meta_record *numbers;
	enum oltp_rc rc = oltp_txn_read(worker, meta->table, META_HEAD, &record);

	if (rc == OLTP_NOT_FOUND) {
		rc = make(meta, worker, fresh);
		record = fresh;
	}
	if (rc)
		return rc;
	*ret_head = *(const union meta_record *)record;
	if (ret_head->head.format != META_FORMAT ||
	    ret_head->head.hash_bits != fresh->head.hash_bits)
		return OLTP_INVALID;
	rc = update(meta, worker, META_NUMBERS, &numbers);
	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	*ret_starts = ++numbers->numbers.starts;
	atomic_store(&meta->next_id, numbers->numbers.ids_end);
	atomic_store(&meta->ids_end, numbers->numbers.ids_end);
	rc = count_all(meta, worker, ret_keys, ret_dead);
	return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
}

static int error_of(enum oltp_rc rc)
{
	switch (rc) {
	case OLTP_OK:
		return 0;
	case OLTP_NO_MEMORY:
	case OLTP_FULL:
		return -ENOMEM;
	case OLTP_INVALID:
		return -EUCLEAN;
	default:
		return -EIO;
	}
}

int meta_start(struct meta *meta, struct oltp_worker *worker, uint32_t hash_bits,
	       uint64_t ret_secret[2])
{
	union meta_record fresh = { .head = { META_FORMAT, hash_bits, { 0 } } }, head = fresh;
	int64_t n_keys = 0, n_dead = 0;
	uint64_t starts = 0;
	enum oltp_rc rc;

	if (getrandom(fresh.head.secret, sizeof(fresh.head.secret), 0) !=
	    (ssize_t)sizeof(fresh.head.secret))
		return errno ? -errno : -EIO;
	do {
		rc = oltp_txn_begin(worker);
		if (rc)
			break;
		rc = start(meta, worker, &fresh, &head, &starts, &n_keys, &n_dead);
		if (!rc)
			rc = oltp_txn_commit(worker);
		if (rc)
			oltp_txn_abort(worker);
		if (rc == OLTP_COLD && oltp_cold_wait(worker))
			break;
	} while (rc == OLTP_CONFLICT || rc == OLTP_COLD);
	if (rc)
		return error_of(rc);
	atomic_store(&meta->next_stamp, starts << STAMP_BITS);
	atomic_store(&meta->n_keys, n_keys);
	atomic_store(&meta->n_dead, n_dead);
	ret_secret[0] = head.head.secret[0];
	ret_secret[1] = head.head.secret[1];
	return 0;
}

int meta_read(struct meta *meta, struct oltp_worker *worker, uint32_t hash_bits,
	      uint64_t ret_secret[2])
{
	union meta_record head = { 0 };
	const void *record;
	enum oltp_rc rc;

	do {
		rc = oltp_txn_begin(worker);
		if (rc)
			break;
		rc = oltp_txn_read(worker, meta->table, META_HEAD, &record);
		if (!rc) {
			head = *(const union meta_record *)record;
			rc = oltp_txn_commit(worker);
		}
		if (rc)
			oltp_txn_abort(worker);
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(worker) ? OLTP_IO : OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	if (rc)
		return rc == OLTP_NOT_FOUND ? -ENODATA : error_of(rc);
	if (head.head.format != META_FORMAT || head.head.hash_bits != hash_bits)
		return -EUCLEAN;
	ret_secret[0] = head.head.secret[0];
	ret_secret[1] = head.head.secret[1];
	return 0;
}

enum oltp_rc meta_set_secret(struct meta *meta, struct oltp_worker *worker,
			     const uint64_t secret[2])
{
	union meta_record *head;
	int64_t n_keys, n_dead;
	enum oltp_rc rc = oltp_txn_begin(worker);

	if (rc)
		return rc;
	rc = count_all(meta, worker, &n_keys, &n_dead);
	if (!rc && (n_keys || n_dead))
		rc = OLTP_EXISTS;
	if (!rc)
		rc = update(meta, worker, META_HEAD, &head);
	if (!rc) {
		head->head.secret[0] = secret[0];
		head->head.secret[1] = secret[1];
		rc = oltp_txn_commit(worker);
	}
	if (rc)
		oltp_txn_abort(worker);
	return rc;
}

uint64_t meta_stamps(struct meta *meta, uint32_t n)
{
	return atomic_fetch_add_explicit(&meta->next_stamp, n, memory_order_relaxed);
}

bool meta_lacks_ids(const struct meta *meta)
{
	return atomic_load_explicit(&meta->next_id, memory_order_relaxed) + IDS_LOW >
	       atomic_load_explicit(&meta->ids_end, memory_order_relaxed);
}

enum oltp_rc meta_reserve_ids(struct meta *meta, struct oltp_worker *worker)
{
	union meta_record *numbers;
	uint64_t end = 0, before;
	enum oltp_rc rc = oltp_txn_begin(worker);

	if (rc)
		return rc;
	rc = update(meta, worker, META_NUMBERS, &numbers);
	if (!rc) {
		end = numbers->numbers.ids_end + IDS_AT_ONCE;
		if (end > IDS_ALL)
			rc = OLTP_FULL;
		else
			numbers->numbers.ids_end = end;
	}
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc) {
		oltp_txn_abort(worker);
		return rc;
	}
	/* Another worker may have reserved more meanwhile. */
	before = atomic_load(&meta->ids_end);
	while (before < end && !atomic_compare_exchange_weak(&meta->ids_end, &before, end))
		;
	return OLTP_OK;
}

bool meta_take_id(struct meta *meta, uint64_t *ret_id)
{
	*ret_id = atomic_fetch_add_explicit(&meta->next_id, 1, memory_order_relaxed);
	return *ret_id < atomic_load_explicit(&meta->ids_end, memory_order_relaxed);
}

static uint64_t counter_here(void)
{
	static _Atomic uint32_t threads;
	static _Thread_local uint32_t thread;

	if (!thread)
		thread = 1 + atomic_fetch_add(&threads, 1) % META_COUNTERS;
	return META_COUNTER + thread - 1;
}

enum oltp_rc meta_count_keys(struct meta *meta, struct oltp_worker *worker, int64_t n)
{
	const struct oltp_span span = { 0, sizeof(int64_t) };
	void *record;
	enum oltp_rc rc = oltp_txn_update(worker, meta->table, counter_here(), &span, 1, &record);

	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	((union meta_record *)record)->count += n;
	return OLTP_OK;
}

enum oltp_rc meta_dead_add(struct meta *meta, struct oltp_worker *worker, uint64_t id)
{
	const union meta_record zero = { 0 };

	return oltp_txn_insert(worker, meta->table, META_DEAD + id, &zero);
}

enum oltp_rc meta_dead_remove(struct meta *meta, struct oltp_worker *worker, uint64_t id)
{
	return oltp_txn_delete(worker, meta->table, META_DEAD + id);
}

static int first_dead(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	uint64_t *id = ctx;

	(void)primary_key;
	(void)record;
	*id = sort_key - META_DEAD;
	return 1;
}

enum oltp_rc meta_dead_first(struct meta *meta, struct oltp_worker *worker, uint64_t *ret_id)
{
	const struct oltp_range range = { .from = META_DEAD, .to = UINT64_MAX, .limit = 1 };

	*ret_id = 0;
	return oltp_txn_scan(worker, meta->order, &range, first_dead, ret_id);
}
