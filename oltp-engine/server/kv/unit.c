// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/server/kv/private.h"

#define UNIT_KEYS	64u	/* or fields, read or removed in one transaction */

static int error_of(enum oltp_rc rc)
{
	switch (rc) {
	case OLTP_OK:
		return 0;
	case OLTP_EXISTS:
		return -EEXIST;
	case OLTP_NO_MEMORY:
	case OLTP_FULL:
		return -ENOMEM;
	case OLTP_COLD:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

/* One transaction until it is through. */
struct job {
	struct kv *kv;
	struct oltp_worker *worker;
	enum oltp_rc (*step)(struct job *job);
	bool leaves_cold;	/* job_run returns -EAGAIN instead of waiting for cold records */
	int64_t n_keys;		/* added */
	uint32_t n_dead;
	void *ctx;
};

static int job_run(struct job *job)
{
	struct meta *meta = &job->kv->meta;
	enum oltp_rc rc;

	do {
		job->n_keys = 0;
		job->n_dead = 0;
		rc = oltp_txn_begin(job->worker);
		if (rc)
			break;
		rc = job->step(job);
		if (!rc && job->n_keys)
			rc = meta_count_keys(meta, job->worker, job->n_keys);
		if (!rc)
			rc = oltp_txn_commit(job->worker);
		if (rc)
			oltp_txn_abort(job->worker);
		if (rc == OLTP_COLD && !job->leaves_cold)
			rc = oltp_cold_wait(job->worker) ? OLTP_IO : OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	if (!rc) {
		atomic_fetch_add(&meta->n_keys, job->n_keys);
		atomic_fetch_add(&meta->n_dead, job->n_dead);
	}
	return error_of(rc);
}

/* A row that a walk has shown, valid until its transaction ends. */
struct shown {
	uint64_t slot;
	const struct row *row;
	bool has_place;			/* its value is not read */
	struct oltp_place place;
};

struct shown_rows {
	struct shown list[UNIT_KEYS];
	uint32_t n;
};

/*
 * Announces together all records of other tables that belong to the rows. If one of these records
 * is cold, the engine then reads all cold ones at the same time.
 */
static void announce(const struct job *job, const struct shown_rows *rows)
{
	struct oltp_hint hints[UNIT_KEYS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < rows->n; i++)
		n += !rows->list[i].has_place &&
		     keyspace_hint(&job->kv->ks, rows->list[i].slot, rows->list[i].row, &hints[n]);
	if (n)
		oltp_txn_prefetch(job->worker, NULL, hints, n);
}

/* ---- reading ---- */

/* Records one after the other; is_full: no memory for more. */
struct records {
	uint8_t *bytes;
	size_t n, room;
	bool is_full;
};

/* value: n bytes of a value, or of a place. */
static void add_record(struct records *to, const struct kv_record *r, const char *name,
		       const void *value, uint32_t n)
{
	uint32_t length = kv_record_length(r);
	uint8_t *at;

	if (to->room - to->n < length) {
		size_t room = 2 * to->room + length;
		uint8_t *bytes = realloc(to->bytes, room);

		if (!bytes) {
			to->is_full = true;
			return;
		}
		to->bytes = bytes;
		to->room = room;
	}
	at = to->bytes + to->n;
	memset(at, 0, length);
	memcpy(at, r, sizeof(*r));
	memcpy(at + sizeof(*r), name, r->name_bytes);
	if (n)
		memcpy(at + sizeof(*r) + r->name_bytes, value, n);
	to->n += length;
}

/* A hash that was met: its fields are read in transactions of their own. */
struct met {
	uint64_t id;
	size_t at;	/* of its record in heads */
};

struct kv_unit_reader {
	struct job job;
	bool refers;
	struct kv_cold_reads *reads;	/* NULL: it waits for the disk itself */
	struct kv_cold_wait wait;
	struct oltp_range keys;		/* that are left; from is 0: none */
	/* Of a transaction: what it reads, keys or fields of a hash, and where the next begins. */
	struct oltp_range range;
	uint64_t next;
	bool has_fields;
	enum oltp_rc rc;
	struct shown_rows rows;		/* by the walk, and not read yet */
	struct records plain, heads;	/* of strings and fields; of hashes */
	struct met met[2 * (UNIT_KEYS + KEYSPACE_TIES)];
	uint32_t n_met, n_read;		/* of n_met n_read are through */
	uint64_t field;			/* fields of met[n_read] from here on are left; 0: all */
};

static enum oltp_rc read_row(struct kv_unit_reader *r, const struct shown *shown)
{
	struct oltp_worker *worker = r->job.worker;
	struct keyspace *ks = &r->job.kv->ks;
	const struct row *row = shown->row;
	struct kv_record record = { .type = row->type };
	struct resp_arg name, value = { 0 };
	enum oltp_rc rc = keyspace_name(ks, worker, shown->slot, row, &name);

	if (!rc && row->type != ROW_HASH && !shown->has_place)
		rc = keyspace_value(ks, worker, shown->slot, row, &value);
	if (rc)
		return rc;
	record.name_bytes = (uint16_t)name.n;
	record.value_bytes = row->value_bytes;
	if (shown->has_place) {
		record.flags = KV_RECORD_REFERS;
		add_record(&r->plain, &record, name.bytes, &shown->place, sizeof(shown->place));
		return OLTP_OK;
	}
	if (row->type != ROW_HASH) {
		add_record(&r->plain, &record, name.bytes, value.bytes, value.n);
		return OLTP_OK;
	}
	if (r->n_met == sizeof(r->met) / sizeof(r->met[0]))
		return OLTP_FULL;
	record.n_fields = keyspace_hash_head(row).n_fields;
	r->met[r->n_met++] = (struct met){ keyspace_hash_head(row).id, r->heads.n };
	add_record(&r->heads, &record, name.bytes, NULL, 0);
	return OLTP_OK;
}

static enum oltp_rc read_shown(struct kv_unit_reader *r)
{
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t i = 0; r->refers && i < r->rows.n; i++) {
		struct shown *shown = &r->rows.list[i];

		shown->has_place = !keyspace_value_place(&r->job.kv->ks, r->job.worker,
							 shown->slot, shown->row, &shown->place);
	}
	announce(&r->job, &r->rows);
	for (uint32_t i = 0; !rc && i < r->rows.n; i++)
		rc = read_row(r, &r->rows.list[i]);
	r->rows.n = 0;
	return rc;
}

static int note_row(void *ctx, uint64_t slot, const struct row *row)
{
	struct kv_unit_reader *r = ctx;

	if (r->rows.n == UNIT_KEYS)
		r->rc = read_shown(r);
	if (r->rc)
		return 1;
	r->rows.list[r->rows.n++] = (struct shown){ .slot = slot, .row = row };
	return 0;
}

static void read_again(void *ctx)
{
	struct kv_unit_reader *r = ctx;

	r->plain.n = 0;
	r->rows.n = 0;
	/* While fields are read no hash is met, and those that were are still needed. */
	if (!r->has_fields) {
		r->heads.n = 0;
		r->n_met = r->n_read = 0;
	}
}

static enum oltp_rc read_step(struct job *job)
{
	struct kv_unit_reader *r = job->ctx;
	const struct keyspace_walk walk = { note_row, read_again, r };
	enum oltp_rc rc;

	read_again(r);
	r->rc = OLTP_OK;
	rc = keyspace_walk(&job->kv->ks, job->worker, &r->range, UNIT_KEYS, &walk, &r->next);
	return rc ?: r->rc ?: read_shown(r);
}

/* One transaction. -EAGAIN: cold records are being read for it, it is to be run again then. */
static int read_run(struct kv_unit_reader *r)
{
	int rc = r->reads ? error_of(kv_cold_wait_result(r->reads, &r->wait)) : 0;

	if (!rc)
		rc = job_run(&r->job);
	if (rc == -EAGAIN)
		rc = error_of(kv_cold_wait_begin(r->reads, &r->wait)) ?: -EAGAIN;
	else if (r->reads)
		kv_cold_wait_end(r->reads, &r->wait);
	/* Nothing counts that it has read so far. */
	if (rc)
		read_again(r);
	return rc;
}

static int show(const struct records *records,
		int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	int rc = records->is_full ? -ENOMEM : 0;

	for (size_t at = 0, length; !rc && at < records->n; at += length) {
		length = kv_record_bytes(records->bytes + at, records->n - at);
		if (!length)
			return -EIO;
		rc = fn(ctx, records->bytes + at, (uint32_t)length);
	}
	return rc;
}

static int read_range(struct kv_unit_reader *r, const struct oltp_range *range, bool has_fields)
{
	r->range = *range;
	r->has_fields = has_fields;
	return read_run(r);
}

static int show_plain(struct kv_unit_reader *r,
		      int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	int rc = show(&r->plain, fn, ctx);

	free(r->plain.bytes);
	r->plain = (struct records){ 0 };
	return rc;
}

/* Of the hash that is next. */
static int read_fields(struct kv_unit_reader *r,
		       int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	const struct met *met = &r->met[r->n_read];
	const uint8_t *head = r->heads.bytes + met->at;
	struct oltp_range fields = keyspace_fields(met->id);
	bool is_first = !r->field;
	int rc;

	if (!is_first)
		fields.from = r->field;
	rc = read_range(r, &fields, true);
	if (rc)
		return rc;
	if (is_first)
		rc = fn(ctx, head, (uint32_t)kv_record_bytes(head, r->heads.n - met->at));
	if (!rc)
		rc = show_plain(r, fn, ctx);
	r->field = r->next;
	r->n_read += !r->next;
	return rc;
}

static int read_keys(struct kv_unit_reader *r,
		     int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	int rc = read_range(r, &r->keys, false);

	if (rc)
		return rc;
	r->keys.from = r->next;
	rc = show_plain(r, fn, ctx);
	return rc ?: r->heads.is_full ? -ENOMEM : 0;
}

static int read_begin(struct kv *kv, struct oltp_worker *worker, const struct oltp_range *keys,
		      struct kv_unit_reader **ret_reader)
{
	struct kv_unit_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->job = (struct job){ .kv = kv, .worker = worker, .step = read_step, .ctx = r };
	r->keys = *keys;
	*ret_reader = r;
	return 0;
}

int keys_read_begin(struct kv *kv, struct kv_cold_reads *reads, struct oltp_range keys,
		    struct kv_unit_reader **ret_reader)
{
	int rc = read_begin(kv, reads->worker, &keys, ret_reader);

	if (rc)
		return rc;
	(*ret_reader)->reads = reads;
	(*ret_reader)->job.leaves_cold = true;
	return 0;
}

int kv_unit_read_begin(struct kv *kv, struct kv_cold_reads *reads, uint32_t unit,
		       struct kv_unit_reader **ret_reader)
{
	return keys_read_begin(kv, reads, unit_range(kv, unit), ret_reader);
}

void kv_unit_read_refer(struct kv_unit_reader *r)
{
	r->refers = true;
}

bool kv_unit_read_waits(const struct kv_unit_reader *r)
{
	return r->reads && kv_cold_waits(r->reads, &r->wait);
}

int kv_unit_read_part(struct kv_unit_reader *r,
		      int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	int rc = r->n_read < r->n_met ? read_fields(r, fn, ctx) : read_keys(r, fn, ctx);

	return rc ?: r->n_read < r->n_met || r->keys.from;
}

void kv_unit_read_end(struct kv_unit_reader *r)
{
	if (!r)
		return;
	if (r->reads)
		kv_cold_wait_end(r->reads, &r->wait);
	free(r->plain.bytes);
	free(r->heads.bytes);
	free(r);
}

int keys_read(struct kv *kv, struct oltp_worker *worker, struct oltp_range keys,
	      int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	struct kv_unit_reader *reader = NULL;
	int rc = read_begin(kv, worker, &keys, &reader);

	if (rc)
		return rc;
	do
		rc = kv_unit_read_part(reader, fn, ctx);
	while (rc > 0);
	kv_unit_read_end(reader);
	return rc;
}

int kv_unit_read(struct kv *kv, struct oltp_worker *worker, uint32_t unit,
		 int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	return keys_read(kv, worker, unit_range(kv, unit), fn, ctx);
}

/* ---- putting ---- */

struct putter {
	uint32_t unit;
	struct kv_unit_put *put;	/* as of the last transaction that is through */
	struct kv_unit_put now;
	uint64_t stamps;		/* KV_UNIT_PUTS, for one transaction */
	uint32_t n_stamps;		/* used */
	const uint8_t *at;
	size_t bytes;
	bool is_wrong;			/* -EPROTO */
};

static enum oltp_rc put_record(struct job *job, struct putter *p, const struct kv_record *r,
			       const char *bytes)
{
	struct resp_arg name = { bytes, r->name_bytes };
	struct resp_arg value = { bytes + r->name_bytes, r->value_bytes };
	struct hash_head head = { .n_fields = r->n_fields };
	bool is_field = r->type == KV_RECORD_FIELD;
	uint64_t owner = is_field ? p->now.hash : OWNER_KEYS;
	struct keyspace *ks = &job->kv->ks;
	struct found found;
	enum oltp_rc rc;

	p->is_wrong = is_field ? !p->now.fields_left :
		      p->now.fields_left ||
		      unit_of(job->kv, keyspace_home(ks, OWNER_KEYS, &name)) != p->unit;
	if (p->is_wrong)
		return OLTP_INVALID;
	rc = keyspace_find(ks, job->worker, owner, &name, true, &found);
	if (rc)
		return rc;
	if (found.row)
		return OLTP_EXISTS;
	if (is_field)
		p->now.fields_left--;
	else
		job->n_keys++;
	if (r->type == KV_RECORD_HASH) {
		if (!meta_take_id(&job->kv->meta, &head.id))
			return OLTP_NO_MEMORY;
		value = (struct resp_arg){ (const char *)&head, sizeof(head) };
		p->now = (struct kv_unit_put){ head.id, r->n_fields };
	}
	return keyspace_insert(ks, job->worker, &found, (enum row_type)r->type, &value,
			       is_field ? 0 : p->stamps + p->n_stamps++);
}

static enum oltp_rc put_step(struct job *job)
{
	struct putter *p = job->ctx;
	const uint8_t *at = p->at;
	size_t left = p->bytes;
	enum oltp_rc rc = OLTP_OK;

	p->now = *p->put;
	p->n_stamps = 0;
	for (uint32_t i = 0; !rc && i < KV_UNIT_PUTS && left; i++) {
		size_t length = kv_record_bytes(at, left);
		struct kv_record r;

		if (length)
			memcpy(&r, at, sizeof(r));
		p->is_wrong = !length || r.flags;
		if (p->is_wrong)
			return OLTP_INVALID;
		rc = put_record(job, p, &r, (const char *)at + sizeof(r));
		at += length;
		left -= length;
	}
	return rc;
}

/* Past the records that put_step has put. */
static void put_done(struct putter *p)
{
	for (uint32_t i = 0; i < KV_UNIT_PUTS && p->bytes; i++) {
		size_t length = kv_record_bytes(p->at, p->bytes);

		p->at += length;
		p->bytes -= length;
	}
	*p->put = p->now;
}

static int reserve_ids(struct job *job)
{
	/* After a conflict somebody else may have reserved them: then there is nothing to do. */
	while (meta_lacks_ids(&job->kv->meta)) {
		enum oltp_rc rc = meta_reserve_ids(&job->kv->meta, job->worker);

		if (rc == OLTP_COLD && oltp_cold_wait(job->worker))
			return -EIO;
		if (rc && rc != OLTP_CONFLICT && rc != OLTP_COLD)
			return error_of(rc);
	}
	return 0;
}

int kv_unit_put(struct kv *kv, struct oltp_worker *worker, uint32_t unit, struct kv_unit_put *put,
		const uint8_t *records, size_t bytes)
{
	struct putter p = { .unit = unit, .put = put, .at = records, .bytes = bytes };
	struct job job = { .kv = kv, .worker = worker, .step = put_step, .ctx = &p };

	while (p.bytes) {
		int rc = reserve_ids(&job);

		if (!rc) {
			p.stamps = meta_stamps(&kv->meta, KV_UNIT_PUTS);
			rc = job_run(&job);
		}
		if (rc)
			return p.is_wrong ? -EPROTO : rc;
		put_done(&p);
	}
	return 0;
}

/* ---- removing ---- */

struct remover {
	struct job *job;
	struct oltp_range range;
	uint64_t next;
	enum oltp_rc rc;
	struct shown_rows rows;
};

static enum oltp_rc remove_row(struct remover *r, const struct shown *shown)
{
	struct kv *kv = r->job->kv;
	const struct resp_arg no_name = { 0 };
	struct found found = keyspace_found(shown->slot, shown->row, &no_name);
	enum oltp_rc rc = OLTP_OK;

	/* Its fields may be fewer than it says, if it was not put whole. */
	if (shown->row->type == ROW_HASH) {
		rc = meta_dead_add(&kv->meta, r->job->worker, keyspace_hash_head(shown->row).id);
		r->job->n_dead++;
	}
	r->job->n_keys--;
	return rc ?: keyspace_remove(&kv->ks, r->job->worker, &found);
}

static enum oltp_rc remove_shown(struct remover *r)
{
	enum oltp_rc rc = OLTP_OK;

	announce(r->job, &r->rows);
	for (uint32_t i = 0; !rc && i < r->rows.n; i++)
		rc = remove_row(r, &r->rows.list[i]);
	r->rows.n = 0;
	return rc;
}

static int note_removed(void *ctx, uint64_t slot, const struct row *row)
{
	struct remover *r = ctx;

	if (r->rows.n == UNIT_KEYS)
		r->rc = remove_shown(r);
	if (r->rc)
		return 1;
	r->rows.list[r->rows.n++] = (struct shown){ .slot = slot, .row = row };
	return 0;
}

/* More rows of one sort key than a walk expects, some of which may be removed already. */
static void remove_again(void *ctx)
{
	struct remover *r = ctx;

	r->rows.n = 0;
}

static enum oltp_rc remove_step(struct job *job)
{
	struct remover *r = job->ctx;
	const struct keyspace_walk walk = { note_removed, remove_again, r };
	enum oltp_rc rc;

	r->rc = OLTP_OK;
	r->rows.n = 0;
	r->next = 0;
	rc = keyspace_walk(&job->kv->ks, job->worker, &r->range, UNIT_KEYS, &walk, &r->next);
	return rc ?: r->rc ?: remove_shown(r);
}

static int remove_part(struct job *job, struct oltp_range keys)
{
	struct remover r = { .job = job, .range = keys };

	job->step = remove_step;
	job->ctx = &r;
	r.range.exclusive = true;
	return job_run(job) ?: r.next != 0;
}

int kv_unit_remove_part(struct kv *kv, struct oltp_worker *worker, uint32_t unit)
{
	struct job job = { .kv = kv, .worker = worker };

	return remove_part(&job, unit_range(kv, unit));
}

int kv_unit_remove_some(struct kv *kv, struct kv_cold_reads *reads, struct kv_cold_wait *wait,
			uint32_t unit)
{
	struct job job = { .kv = kv, .worker = reads->worker, .leaves_cold = true };
	int rc = error_of(kv_cold_wait_result(reads, wait));

	if (!rc)
		rc = remove_part(&job, unit_range(kv, unit));
	if (rc == -EAGAIN)
		return error_of(kv_cold_wait_begin(reads, wait)) ?: rc;
	kv_cold_wait_end(reads, wait);
	return rc;
}

int keys_remove(struct kv *kv, struct oltp_worker *worker, struct oltp_range keys)
{
	struct job job = { .kv = kv, .worker = worker };
	int rc;

	do
		rc = remove_part(&job, keys);
	while (rc > 0);
	return rc;
}

void kv_unit_returns(struct kv *kv, uint32_t unit)
{
	_Static_assert(KV_UNIT_BITS_MAX <= KEYSPACE_REMOVAL_BITS, "a unit has a part at least");
	keyspace_removals_add(&kv->ks, unit, kv->unit_bits);
}

/* ---- the secret ---- */

void kv_secret(const struct kv *kv, uint64_t ret_secret[2])
{
	ret_secret[0] = kv->ks.secret[0];
	ret_secret[1] = kv->ks.secret[1];
}

int kv_set_secret(struct kv *kv, struct oltp_worker *worker, const uint64_t secret[2])
{
	enum oltp_rc rc;

	do {
		rc = meta_set_secret(&kv->meta, worker, secret);
		if (rc == OLTP_COLD && oltp_cold_wait(worker))
			return -EIO;
	} while (rc == OLTP_CONFLICT || rc == OLTP_COLD);
	if (rc)
		return error_of(rc);
	kv->ks.secret[0] = secret[0];
	kv->ks.secret[1] = secret[1];
	return oltp_durable_wait(kv->engine, oltp_worker_epoch(worker));
}
