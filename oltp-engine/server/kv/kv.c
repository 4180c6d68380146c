// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening and closing. */
#include "oltp-engine/server/kv/kv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oltp-engine/server/kv/private.h"

#define ROWS_DEFAULT	(1ull << 20)

void kv_engine_config(struct oltp_config *config)
{
	if (config->txn_records_max < KV_TXN_RECORDS)
		config->txn_records_max = KV_TXN_RECORDS;
	if (config->txn_undo_bytes < KV_TXN_UNDO_BYTES)
		config->txn_undo_bytes = KV_TXN_UNDO_BYTES;
}

int kv_open(struct oltp_engine *engine, const struct kv_config *config, struct kv **ret_kv)
{
	static const struct kv_config defaults;
	const struct kv_config *with = config ?: &defaults;
	uint64_t rows = with->rows ?: ROWS_DEFAULT;
	uint64_t long_rows = with->long_rows ?: rows / 8 + 1;
	struct timespec now;
	struct kv *kv;
	int rc;

	if (with->hash_bits > 64 || with->unit_bits > KV_UNIT_BITS_MAX ||
	    with->unit_bits > (with->hash_bits ?: 64))
		return -EINVAL;
	kv = calloc(1, sizeof(*kv));
	if (!kv)
		return -ENOMEM;
	kv->engine = engine;
	kv->front = with->front;
	kv->front_ctx = with->front_ctx;
	kv->hash_bits = with->hash_bits ?: 64;
	kv->gate = with->gate;
	kv->gate_ctx = with->gate_ctx;
	kv->unit_bits = with->unit_bits;
	kv->relocate = with->relocate;
	kv->relocate_ctx = with->relocate_ctx;
	kv->rows = rows;
	kv->long_rows = long_rows;
	clock_gettime(CLOCK_MONOTONIC, &now);
	kv->started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	commands_index(kv);
	pthread_mutex_init(&kv->sessions_lock, NULL);
	if (with->password) {
		kv->password = strdup(with->password);
		if (!kv->password) {
			rc = -ENOMEM;
			goto fail;
		}
	}
	rc = meta_open(&kv->meta, engine);
	if (!rc)
		rc = keyspace_open(&kv->ks, engine, rows, long_rows, kv->hash_bits);
	if (rc)
		goto fail;
	*ret_kv = kv;
	return 0;
fail:
	kv_close(kv);
	return rc;
}

int kv_start(struct kv *kv)
{
	struct oltp_worker *worker;
	int rc = oltp_worker_create(kv->engine, &worker);

	if (rc)
		return rc;
	rc = meta_start(&kv->meta, worker, kv->hash_bits, kv->ks.secret);
	if (!rc)
		rc = oltp_durable_wait(kv->engine, oltp_worker_epoch(worker));
	oltp_worker_destroy(worker);
	return rc;
}

void kv_close(struct kv *kv)
{
	if (!kv)
		return;
	pthread_mutex_destroy(&kv->sessions_lock);
	free(kv->password);
	free(kv->page_marks);
	free(kv);
}
