// SPDX-License-Identifier: GPL-2.0-or-later
/* Running YCSB transactions: see ycsb.h. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

struct operation {
	bool is_update;
	uint8_t field;
};

/* Keys are drawn once per transaction, so that a retry is the same one. */
struct ycsb_txn {
	struct oltp_hint hints[YCSB_OPERATIONS_MAX];
	struct operation operations[YCSB_OPERATIONS_MAX];
};

/* One worker's side. */
struct ycsb_worker {
	struct ycsb *ycsb;
	struct oltp_worker *worker;
	struct bench_random random;
	struct ycsb_books books;
	uint8_t read_buffer[sizeof(struct ycsb_record)];
	struct ycsb_txn txns[OLTP_TICKETS];
};

static uint32_t field_offset(uint32_t field)
{
	return (uint32_t)offsetof(struct ycsb_record, fields) + field * YCSB_FIELD_BYTES;
}

int ycsb_create(struct oltp_engine *engine, const struct ycsb_config *config,
		struct ycsb **ret_ycsb)
{
	struct ycsb *ycsb;
	uint64_t hot;
	int rc;

	if (config->operations < 1 || config->operations > YCSB_OPERATIONS_MAX ||
	    !(config->update_share >= 0 && config->update_share <= 1) ||
	    !(config->cold_access >= 0 && config->cold_access <= 1) ||
	    (config->cold_access > 0 && !(config->cold_part > 0 && config->cold_part < 1)))
		return -EINVAL;
	ycsb = calloc(1, sizeof(*ycsb));
	if (!ycsb)
		return -ENOMEM;
	ycsb->config = *config;
	ycsb->engine = engine;
	hot = config->records;
	if (config->cold_access > 0) {
		hot -= (uint64_t)((double)config->records * config->cold_part);
		/* Nothing to be hot, or cold, in a table of one record. */
		hot = hot ?: 1;
		ycsb->cold_share = hot < config->records ?
					   (uint64_t)(config->cold_access * 0x1p32) : 0;
	}
	ycsb->hot = hot;
	rc = ycsb_set_theta(ycsb, config->theta);
	if (!rc)
		rc = zipf_init(&ycsb->spread, config->records, 0, true);
	if (!rc)
		rc = oltp_table_create(engine, sizeof(struct ycsb_record), config->records,
				       &ycsb->table);
	if (rc) {
		free(ycsb);
		return rc;
	}
	pthread_mutex_init(&ycsb->lock, NULL);
	*ret_ycsb = ycsb;
	return 0;
}

int ycsb_set_theta(struct ycsb *ycsb, double theta)
{
	uint32_t n = atomic_load_explicit(&ycsb->n_zipfs, memory_order_relaxed);
	int rc;

	if (n == YCSB_THETAS_MAX)
		return -ENOSPC;
	rc = zipf_init(&ycsb->zipfs[n], ycsb->hot, theta,
		       ycsb->config.is_scrambled && !ycsb->cold_share);
	/* Pairs with the acquire in draw_key. */
	if (!rc)
		atomic_store_explicit(&ycsb->n_zipfs, n + 1, memory_order_release);
	return rc;
}

void ycsb_destroy(struct ycsb *ycsb)
{
	if (!ycsb)
		return;
	pthread_mutex_destroy(&ycsb->lock);
	free(ycsb);
}

const struct ycsb_config *ycsb_config(const struct ycsb *ycsb)
{
	return &ycsb->config;
}

double ycsb_theta(const struct ycsb *ycsb)
{
	uint32_t n = atomic_load_explicit(&ycsb->n_zipfs, memory_order_acquire);

	return ycsb->zipfs[n - 1].theta;
}

struct oltp_table *ycsb_table(struct ycsb *ycsb)
{
	return ycsb->table;
}

static int worker_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct ycsb *ycsb = ctx;
	struct ycsb_worker *yw = aligned_alloc(128, (sizeof(*yw) + 127) & ~127ul);
	uint64_t nth;

	if (!yw)
		return -ENOMEM;
	memset(yw, 0, sizeof(*yw));
	nth = atomic_fetch_add_explicit(&ycsb->attached, 1, memory_order_relaxed);
	yw->ycsb = ycsb;
	yw->worker = worker;
	yw->random.state = bench_mix(ycsb->config.seed) ^ bench_mix(nth + 1);
	*ret_local = yw;
	return 0;
}

static void worker_detach(void *local)
{
	struct ycsb_worker *yw = local;
	struct ycsb_books *books = &yw->ycsb->books;

	pthread_mutex_lock(&yw->ycsb->lock);
	books->updates += yw->books.updates;
	books->weighted_updates += yw->books.weighted_updates;
	books->inconsistent_reads += yw->books.inconsistent_reads;
	pthread_mutex_unlock(&yw->ycsb->lock);
	free(yw);
}

static uint64_t draw_key(struct ycsb_worker *yw)
{
	const struct ycsb *ycsb = yw->ycsb;
	/* Pairs with the release in ycsb_set_theta. */
	uint32_t n = atomic_load_explicit(&ycsb->n_zipfs, memory_order_acquire);
	const struct zipf *zipf = &ycsb->zipfs[n - 1];
	uint64_t rank;

	if (!ycsb->cold_share)
		return zipf_next(zipf, &yw->random);
	/* The ranks behind those of the distribution are the cold part. */
	if (bench_random_next(&yw->random) >> 32 < ycsb->cold_share)
		rank = ycsb->hot + bench_random_below(&yw->random,
						      ycsb->config.records - ycsb->hot);
	else
		rank = zipf_next(zipf, &yw->random);
	return ycsb->config.is_scrambled ? zipf_scramble(&ycsb->spread, rank) : rank;
}

static void draw_transaction(struct ycsb_worker *yw, struct ycsb_txn *txn)
{
	const struct ycsb_config *config = &yw->ycsb->config;
	/* Compared with 32 random bits. */
	uint64_t share = (uint64_t)(config->update_share * 0x1p32);
	bool all_update = (bench_random_next(&yw->random) >> 32) < share;

	for (uint32_t i = 0; i < config->operations; i++) {
		uint64_t bits = bench_random_next(&yw->random);
		struct operation *op = &txn->operations[i];
		struct oltp_hint *hint = &txn->hints[i];

		op->is_update = config->mix_by_transaction ? all_update : bits >> 32 < share;
		op->field = (uint8_t)(((bits & 0xffffffff) * YCSB_FIELDS) >> 32);
		hint->key = draw_key(yw);
		hint->offset = field_offset(op->field);
		hint->bytes = YCSB_FIELD_BYTES;
		if (!op->is_update && config->read_all_fields) {
			hint->offset = 0;
			hint->bytes = sizeof(struct ycsb_record);
		}
	}
}

static enum oltp_rc run_read(struct ycsb_worker *yw, const struct oltp_hint *hint, uint32_t field)
{
	const void *bytes;
	const struct ycsb_record *record;
	enum oltp_rc rc = oltp_txn_read(yw->worker, yw->ycsb->table, hint->key, &bytes);

	if (rc)
		return rc;
	record = bytes;
	memcpy(yw->read_buffer, (const uint8_t *)record + hint->offset, hint->bytes);
	if (ycsb_field_stamp(record->fields[field]) > record->updates)
		yw->books.inconsistent_reads++;
	return OLTP_OK;
}

static enum oltp_rc run_update(struct ycsb_worker *yw, uint64_t key, uint32_t field)
{
	const struct oltp_span spans[] = {
		{ offsetof(struct ycsb_record, updates), sizeof(uint64_t) },
		{ field_offset(field), YCSB_FIELD_BYTES },
	};
	struct ycsb_record *record;
	void *bytes;
	enum oltp_rc rc = oltp_txn_update(yw->worker, yw->ycsb->table, key, spans, 2, &bytes);

	if (rc)
		return rc;
	record = bytes;
	record->updates++;
	ycsb_field_write(record->fields[field], key, field, record->updates);
	return OLTP_OK;
}

static enum oltp_rc run_operations(struct ycsb_worker *yw, const struct ycsb_txn *txn)
{
	uint32_t n = yw->ycsb->config.operations;
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t i = 0; !rc && i < n; i++) {
		const struct operation *op = &txn->operations[i];

		rc = op->is_update ? run_update(yw, txn->hints[i].key, op->field) :
				     run_read(yw, &txn->hints[i], op->field);
	}
	return rc;
}

static enum oltp_rc worker_run(void *local, uint32_t slot, bool retry)
{
	struct ycsb_worker *yw = local;
	struct ycsb_txn *txn = &yw->txns[slot];
	uint32_t n = yw->ycsb->config.operations;
	enum oltp_rc rc;

	if (!retry)
		draw_transaction(yw, txn);
	rc = oltp_txn_begin(yw->worker);
	if (rc)
		return rc;
	oltp_txn_prefetch(yw->worker, yw->ycsb->table, txn->hints, n);
	rc = run_operations(yw, txn);
	if (!rc)
		rc = oltp_txn_commit(yw->worker);
	if (rc) {
		oltp_txn_abort(yw->worker);
		return rc;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (txn->operations[i].is_update) {
			yw->books.updates++;
			yw->books.weighted_updates += ycsb_key_weight(txn->hints[i].key);
		}
	}
	return OLTP_OK;
}

struct oltp_workload ycsb_workload(struct ycsb *ycsb)
{
	return (struct oltp_workload){
		.attach = worker_attach,
		.run = worker_run,
		.detach = worker_detach,
		.ctx = ycsb,
	};
}
