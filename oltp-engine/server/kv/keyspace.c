// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/keyspace.h"

#include <stddef.h>
#include <string.h>

#include "oltp-engine/server/kv/layout.h"
#include "oltp-engine/server/kv/siphash.h"

#define STAMP_AT	offsetof(struct row, stamp)
#define BODY_AT		offsetof(struct row, body)

static struct layout layout_of_row(const struct row *row)
{
	return layout_of(row->type, row->name_bytes, row->value_bytes);
}

static uint64_t sort_key(uint64_t owner, uint64_t slot)
{
	if (owner == OWNER_KEYS)
		return KEYSPACE_KEYS_FIRST | slot >> 1;
	return owner << FIELD_SORT_BITS | slot >> (64 - FIELD_SORT_BITS);
}

static uint64_t key_of(void *ctx, uint64_t primary_key, const void *record)
{
	const struct row *row = record;

	(void)ctx;
	return sort_key(row->owner, primary_key);
}

int keyspace_open(struct keyspace *ks, struct oltp_engine *engine, uint64_t rows,
		  uint64_t long_rows, uint32_t hash_bits)
{
	const struct oltp_index_config order = {
		.key_of = key_of,
		.key_spans = { { offsetof(struct row, owner), sizeof(uint64_t) } },
		.n_key_spans = 1,
	};
	int rc;

	ks->hash_mask = UINT64_MAX << (64 - hash_bits);
	rc = oltp_table_create(engine, sizeof(struct row), rows, &ks->rows);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < KEYSPACE_CLASSES; i++) {
		rc = oltp_table_create(engine, keyspace_class_bytes[i], long_rows,
				       &ks->classes[i]);
		if (rc)
			return rc;
	}
	return oltp_index_create(ks->rows, &order, &ks->order);
}

uint64_t keyspace_home(const struct keyspace *ks, uint64_t owner, const struct resp_arg *name)
{
	struct siphash s;

	siphash_begin(&s, ks->secret);
	siphash_word(&s, owner);
	return siphash_end(&s, name->bytes, name->n, 1) & ks->hash_mask;
}

/*
 * The row in the slot has been changed. It is locked until the transaction ends, so that a copier
 * that takes the mark before that and then reads the row waits for the end.
 */
static void note_change(struct keyspace *ks, uint64_t owner, uint64_t slot)
{
	_Atomic uint64_t *marks = atomic_load_explicit(&ks->marks, memory_order_acquire);
	uint64_t part;

	if (!marks || owner != OWNER_KEYS)
		return;
	part = slot >> ks->mark_shift;
	/*
	 * Also if it is set already: the release has to reach the copier that takes the mark, with
	 * the lock that this transaction has taken.
	 */
	atomic_fetch_or_explicit(&marks[part / KEYSPACE_MARK_BITS],
				 1ull << part % KEYSPACE_MARK_BITS, memory_order_acq_rel);
}

static uint64_t removals_part(uint64_t slot)
{
	return slot >> (64 - KEYSPACE_REMOVAL_BITS);
}

uint32_t keyspace_removals(const struct keyspace *ks, const struct resp_arg *name)
{
	uint64_t part = removals_part(keyspace_home(ks, OWNER_KEYS, name));

	return atomic_load(&ks->removals[part]);
}

void keyspace_removals_add(struct keyspace *ks, uint32_t first, uint32_t bits)
{
	uint32_t n = 1u << (KEYSPACE_REMOVAL_BITS - bits);

	for (uint32_t i = first * n; i < (first + 1) * n; i++)
		atomic_fetch_add(&ks->removals[i], 1);
}

/* The record in the class table: to be read. */
static enum oltp_rc out_read(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			     const struct row *row, const char **ret_bytes)
{
	const void *record;
	enum oltp_rc rc = oltp_txn_read(worker, ks->classes[row->place - 1], slot, &record);

	if (rc)	/* It is there as long as the row is, and that one is locked. */
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	*ret_bytes = record;
	return OLTP_OK;
}

enum oltp_rc keyspace_name(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			   const struct row *row, struct resp_arg *ret_name)
{
	ret_name->bytes = row->body;
	ret_name->n = row->name_bytes;
	if (!layout_of_row(row).is_name_out)
		return OLTP_OK;
	return out_read(ks, worker, slot, row, &ret_name->bytes);
}

enum oltp_rc keyspace_value(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			    const struct row *row, struct resp_arg *ret_value)
{
	const struct layout layout = layout_of_row(row);
	enum oltp_rc rc;

	ret_value->n = row->value_bytes;
	ret_value->bytes = layout.is_name_out ? row->body : row->body + row->name_bytes;
	if (!row->place || !row->value_bytes)
		return OLTP_OK;
	rc = out_read(ks, worker, slot, row, &ret_value->bytes);
	if (!rc && layout.is_name_out)
		ret_value->bytes += row->name_bytes;
	return rc;
}

enum oltp_rc keyspace_value_place(const struct keyspace *ks, struct oltp_worker *worker,
				  uint64_t slot, const struct row *row,
				  struct oltp_place *ret_place)
{
	if (!keyspace_value_record_bytes((enum row_type)row->type, row->name_bytes,
					 row->value_bytes))
		return OLTP_NOT_FOUND;
	return oltp_txn_place(worker, ks->classes[row->place - 1], slot, ret_place);
}

bool keyspace_hint(const struct keyspace *ks, uint64_t slot, const struct row *row,
		   struct oltp_hint *ret_hint)
{
	if (!row->place)
		return false;
	*ret_hint = (struct oltp_hint){
		.key = slot, .bytes = sizeof(uint64_t), .table = ks->classes[row->place - 1],
	};
	return true;
}

static enum oltp_rc is_name(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			    const struct row *row, uint64_t owner, const struct resp_arg *name,
			    bool *ret_is)
{
	struct resp_arg other;
	enum oltp_rc rc;

	*ret_is = false;
	if (row->type == ROW_GONE || row->owner != owner || row->name_bytes != name->n)
		return OLTP_OK;
	rc = keyspace_name(ks, worker, slot, row, &other);
	if (!rc)
		*ret_is = !memcmp(other.bytes, name->bytes, name->n);
	return rc;
}

static enum oltp_rc row_lock(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			     bool exclusive, const struct row **ret_row)
{
	const void *record;
	void *writable;
	enum oltp_rc rc;

	if (!exclusive) {
		rc = oltp_txn_read(worker, ks->rows, slot, &record);
		*ret_row = record;
		return rc;
	}
	rc = oltp_txn_update(worker, ks->rows, slot, NULL, 0, &writable);
	*ret_row = writable;
	return rc;
}

enum oltp_rc keyspace_find(struct keyspace *ks, struct oltp_worker *worker, uint64_t owner,
			   const struct resp_arg *name, bool exclusive, struct found *ret_found)
{
	const struct row *row = NULL;
	uint64_t slot;
	enum oltp_rc rc;
	bool is_it;

	*ret_found = (struct found){ .owner = owner, .name = *name };
	for (slot = keyspace_home(ks, owner, name);; slot++) {
		rc = row_lock(ks, worker, slot, exclusive, &row);
		if (rc == OLTP_NOT_FOUND)
			return OLTP_OK;
		if (rc)
			return rc;
		rc = is_name(ks, worker, slot, row, owner, name, &is_it);
		if (rc)
			return rc;
		if (is_it)
			break;
		if (row->type == ROW_GONE && !ret_found->has_gone) {
			ret_found->has_gone = true;
			ret_found->gone = slot;
		}
		if (!row->more)
			return OLTP_OK;
	}
	ret_found->row = row;
	ret_found->slot = slot;
	return OLTP_OK;
}

static enum oltp_rc row_update(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			       uint32_t offset, uint32_t bytes, struct row **ret_row)
{
	const struct oltp_span span = { offset, bytes };
	void *record;
	enum oltp_rc rc = oltp_txn_update(worker, ks->rows, slot, &span, 1, &record);

	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	*ret_row = record;
	return OLTP_OK;
}

/* Stamp, lengths and marks are written in any case; with them so many bytes of the body. */
static uint32_t span_bytes(uint32_t body_bytes)
{
	return BODY_AT - STAMP_AT + body_bytes;
}

enum oltp_rc keyspace_overwrite(struct keyspace *ks, struct oltp_worker *worker, uint64_t owner,
				enum row_type type, const struct resp_arg *name,
				const struct resp_arg *value, uint64_t stamp,
				struct found *ret_found, enum overwrite *ret_what)
{
	struct oltp_span span = { STAMP_AT, span_bytes(name->n + value->n) };
	void *record;
	struct row *row;
	enum oltp_rc rc;

	*ret_what = OVERWRITE_NO;
	if (name->n + value->n > ROW_BODY_BYTES)
		return OLTP_OK;
	rc = oltp_txn_update(worker, ks->rows, keyspace_home(ks, owner, name), &span, 1, &record);
	if (rc == OLTP_NOT_FOUND) {
		*ret_found = (struct found){ .owner = owner, .name = *name };
		*ret_what = OVERWRITE_ABSENT;
		return OLTP_OK;
	}
	if (rc)
		return rc;
	/* Perhaps nothing will be changed after all: that does no harm. */
	note_change(ks, owner, keyspace_home(ks, owner, name));
	row = record;
	if (row->type != type || row->owner != owner || row->place != 0 ||
	    row->name_bytes != name->n || memcmp(row->body, name->bytes, name->n) != 0)
		return OLTP_OK;
	row->stamp = stamp;
	row->value_bytes = (uint16_t)value->n;
	memcpy(row->body + name->n, value->bytes, value->n);
	*ret_what = OVERWRITE_DONE;
	return OLTP_OK;
}

/* The record of the class table, with name and value as far as they are out of the row. */
static enum oltp_rc out_insert(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			       const struct layout *layout, const struct resp_arg *name,
			       const struct resp_arg *value)
{
	char bytes[KV_NAME_MAX + KV_VALUE_MAX + 16];
	uint32_t n = 0, room;
	enum oltp_rc rc;

	if (!layout->place)
		return OLTP_OK;
	room = keyspace_class_bytes[layout->place - 1];
	if (layout->is_name_out) {
		memcpy(bytes, name->bytes, name->n);
		n = name->n;
	}
	if (layout->is_value_out && value->n > 0) {
		memcpy(bytes + n, value->bytes, value->n);
		n += value->n;
	}
	memset(bytes + n, 0, room - n);
	rc = oltp_txn_insert(worker, ks->classes[layout->place - 1], slot, bytes);
	return rc == OLTP_EXISTS ? OLTP_INVALID : rc;
}

static enum oltp_rc out_delete(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			       uint8_t place)
{
	enum oltp_rc rc = place ? oltp_txn_delete(worker, ks->classes[place - 1], slot) : OLTP_OK;

	return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
}

/* The row into the first free slot from its home on; those before it get the mark: N1. */
static enum oltp_rc insert_from_home(struct keyspace *ks, struct oltp_worker *worker,
				     const struct row *row, uint64_t home, uint64_t *ret_slot)
{
	for (uint64_t slot = home;; slot++) {
		enum oltp_rc rc = oltp_txn_insert(worker, ks->rows, slot, row);
		const void *record;
		struct row *other;

		*ret_slot = slot;
		if (rc != OLTP_EXISTS)
			return rc;
		rc = oltp_txn_read(worker, ks->rows, slot, &record);
		if (!rc && !((const struct row *)record)->more) {
			rc = row_update(ks, worker, slot, offsetof(struct row, more), 1, &other);
			if (!rc)
				other->more = 1;
		}
		if (rc)
			return rc;
	}
}

/* Its sort key is another one then: it is deleted and added. */
static enum oltp_rc replace(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			    const struct row *row)
{
	enum oltp_rc rc = oltp_txn_delete(worker, ks->rows, slot);

	if (!rc)
		rc = oltp_txn_insert(worker, ks->rows, slot, row);
	return rc == OLTP_NOT_FOUND || rc == OLTP_EXISTS ? OLTP_INVALID : rc;
}

enum oltp_rc keyspace_insert(struct keyspace *ks, struct oltp_worker *worker, struct found *found,
			     enum row_type type, const struct resp_arg *value, uint64_t stamp)
{
	const struct resp_arg *name = &found->name;
	uint32_t value_bytes = type == ROW_HASH ? 0 : value->n;
	struct layout layout = layout_of(type, name->n, value_bytes);
	struct row row = {
		.owner = found->owner,
		.stamp = stamp,
		.name_bytes = (uint16_t)name->n,
		.value_bytes = (uint16_t)value_bytes,
		.type = (uint8_t)type,
		.place = layout.place,
	};
	enum oltp_rc rc;

	if (!layout.is_name_out)
		memcpy(row.body, name->bytes, name->n);
	if (type == ROW_HASH)
		memcpy(row.body + HASH_HEAD_AT, value->bytes, sizeof(struct hash_head));
	else if (!layout.is_value_out)
		memcpy(row.body + name->n, value->bytes, value->n);
	if (found->has_gone) {
		found->slot = found->gone;
		row.more = 1;
		rc = replace(ks, worker, found->slot, &row);
	} else {
		rc = insert_from_home(ks, worker, &row, keyspace_home(ks, found->owner, name),
				      &found->slot);
	}
	if (!rc)
		note_change(ks, found->owner, found->slot);
	return rc ?: out_insert(ks, worker, found->slot, &layout, name, value);
}

enum oltp_rc keyspace_set(struct keyspace *ks, struct oltp_worker *worker, struct found *found,
			  const struct resp_arg *value, uint64_t stamp)
{
	struct layout layout = layout_of(found->row->type, found->name.n, value->n);
	uint8_t old_place = found->row->place;
	uint32_t in_body = layout.is_value_out ? 0 : found->name.n + value->n;
	struct row *row;
	enum oltp_rc rc;

	if (layout.place == old_place && layout.place) {
		uint32_t at = layout.is_name_out ? found->name.n : 0;
		const struct oltp_span span = { at, value->n };
		void *record;

		rc = oltp_txn_update(worker, ks->classes[layout.place - 1], found->slot, &span, 1,
				     &record);
		if (rc)
			return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
		if (value->n > 0)
			memcpy((char *)record + at, value->bytes, value->n);
	} else {
		rc = out_delete(ks, worker, found->slot, old_place) ?:
		     out_insert(ks, worker, found->slot, &layout, &found->name, value);
		if (rc)
			return rc;
	}
	rc = row_update(ks, worker, found->slot, STAMP_AT, span_bytes(in_body), &row);
	if (rc)
		return rc;
	note_change(ks, row->owner, found->slot);
	row->stamp = stamp;
	row->value_bytes = (uint16_t)value->n;
	row->place = layout.place;
	if (!layout.is_value_out && value->n > 0)
		memcpy(row->body + found->name.n, value->bytes, value->n);
	return OLTP_OK;
}

enum oltp_rc keyspace_remove(struct keyspace *ks, struct oltp_worker *worker,
			     struct found *found)
{
	const struct row gone = { .owner = OWNER_GONE, .type = ROW_GONE, .more = 1 };
	enum oltp_rc rc = out_delete(ks, worker, found->slot, found->row->place);
	uint64_t owner;

	if (rc)
		return rc;
	owner = found->row->owner;
	found->has_gone = found->row->more;
	found->gone = found->slot;
	found->row = NULL;
	if (found->has_gone)
		rc = replace(ks, worker, found->slot, &gone);
	else
		rc = oltp_txn_delete(worker, ks->rows, found->slot);
	if (!rc)
		note_change(ks, owner, found->slot);
	if (!rc && owner == OWNER_KEYS)
		atomic_fetch_add(&ks->removals[removals_part(found->slot)], 1);
	return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
}

struct hash_head keyspace_hash_head(const struct row *row)
{
	struct hash_head head;

	memcpy(&head, row->body + HASH_HEAD_AT, sizeof(head));
	return head;
}

enum oltp_rc keyspace_hash_set_head(struct keyspace *ks, struct oltp_worker *worker,
				    struct found *found, const struct hash_head *head,
				    uint64_t stamp)
{
	const struct oltp_span spans[] = {
		{ STAMP_AT, sizeof(uint64_t) },
		{ BODY_AT + HASH_HEAD_AT, sizeof(*head) },
	};
	void *record;
	struct row *row;
	enum oltp_rc rc = oltp_txn_update(worker, ks->rows, found->slot, spans, 2, &record);

	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	note_change(ks, OWNER_KEYS, found->slot);
	row = record;
	row->stamp = stamp;
	memcpy(row->body + HASH_HEAD_AT, head, sizeof(*head));
	return OLTP_OK;
}

struct found keyspace_found(uint64_t slot, const struct row *row, const struct resp_arg *name)
{
	return (struct found){ .owner = row->owner, .name = *name, .row = row, .slot = slot };
}

struct oltp_range keyspace_fields(uint64_t owner)
{
	return (struct oltp_range){
		.from = owner << FIELD_SORT_BITS,
		.to = owner << FIELD_SORT_BITS | ((1u << FIELD_SORT_BITS) - 1),
	};
}

struct walk {
	const struct keyspace_walk *caller;
	uint64_t count, n_seen, n_shown, last;
	uint64_t next;		/* the first sort key that was not shown */
	bool is_cut;		/* at next */
	bool is_ended;		/* by the caller */
};

static int walk_row(void *ctx, uint64_t sort, uint64_t slot, const void *record)
{
	struct walk *w = ctx;
	const struct row *row = record;

	if (w->n_shown >= w->count && sort != w->last) {
		w->next = sort;
		w->is_cut = true;
		return 1;
	}
	w->n_seen++;
	w->last = sort;
	if (row->type == ROW_GONE)
		return 0;
	w->n_shown++;
	w->is_ended = w->caller->fn(w->caller->ctx, slot, row);
	return w->is_ended;
}

enum oltp_rc keyspace_walk(struct keyspace *ks, struct oltp_worker *worker,
			   const struct oltp_range *range, uint64_t count,
			   const struct keyspace_walk *walk, uint64_t *ret_next)
{
	struct oltp_range part = *range;

	/* A limit, so that no more is fetched from disk than is shown. */
	for (part.limit = count + KEYSPACE_TIES;; part.limit *= 2) {
		struct walk w = { .caller = walk, .count = count };
		enum oltp_rc rc = oltp_txn_scan(worker, ks->order, &part, walk_row, &w);

		if (rc || w.is_ended)
			return rc;
		if (w.is_cut || w.n_seen < part.limit) {
			*ret_next = w.is_cut ? w.next : 0;
			return OLTP_OK;
		}
		walk->restart(walk->ctx);
	}
}

void keyspace_prefetch(struct keyspace *ks, const struct resp_arg *name)
{
	const struct oltp_hint hint = { .key = keyspace_home(ks, OWNER_KEYS, name) };

	oltp_prefetch_index(ks->rows, &hint, 1);
}
