// SPDX-License-Identifier: GPL-2.0-or-later
/* See node_ycsb.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "node_ycsb.h"
#include "oltp-engine/bench/ycsb/ycsb_record.h"
#include "oltp-engine/bench/ycsb/zipf.h"
#include "redo.h"

enum operation_code {
	OPERATION_READ = 1,	/* arg: the field; replies the counter, then the field */
	OPERATION_UPDATE = 2,
};

struct node_ycsb {
	struct ycsb_config config;
	struct ycsb *own, *second;	/* second may be NULL */
	struct zipf zipf;
	struct dist_node *node;
	uint32_t remote;
	_Atomic uint64_t attached;
	pthread_mutex_t lock;		/* books: workers add theirs when they detach */
	struct node_ycsb_books books;
};

struct node_worker {
	struct node_ycsb *work;
	struct oltp_worker *worker;
	struct dist_client *client;	/* NULL: everything is in this engine */
	struct random64 random;
	struct node_ycsb_books books;
	struct dist_op ops[DIST_OPS_MAX];	/* own ones first */
	struct dist_reply reply;
	struct dist_redo redo;		/* for writes that nobody logs */
};

static uint32_t field_offset(uint32_t field)
{
	return (uint32_t)offsetof(struct ycsb_record, fields) + field * YCSB_FIELD_BYTES;
}

static enum oltp_rc execute_read(struct oltp_worker *worker, struct oltp_table *table,
				 const struct dist_op *op, struct dist_reply *reply)
{
	const struct ycsb_record *record;
	const void *bytes;
	enum oltp_rc rc;

	if (sizeof(reply->bytes) - reply->used < sizeof(uint64_t) + YCSB_FIELD_BYTES)
		return OLTP_FULL;
	rc = oltp_txn_read(worker, table, op->key, &bytes);
	if (rc)
		return rc;
	record = bytes;
	memcpy(reply->bytes + reply->used, &record->updates, sizeof(uint64_t));
	reply->used += sizeof(uint64_t);
	memcpy(reply->bytes + reply->used, record->fields[op->arg], YCSB_FIELD_BYTES);
	reply->used += YCSB_FIELD_BYTES;
	return OLTP_OK;
}

static enum oltp_rc execute_update(struct oltp_worker *worker, struct oltp_table *table,
				   const struct dist_op *op, struct dist_redo *redo)
{
	const struct oltp_span spans[] = {
		{ offsetof(struct ycsb_record, updates), sizeof(uint64_t) },
		{ field_offset(op->arg), YCSB_FIELD_BYTES },
	};
	struct ycsb_record *record;
	void *bytes;
	enum oltp_rc rc = oltp_txn_update(worker, table, op->key, spans, 2, &bytes);

	if (rc)
		return rc;
	record = bytes;
	record->updates++;
	ycsb_field_write(record->fields[op->arg], op->key, op->arg, record->updates);
	for (uint32_t i = 0; i < 2; i++)
		dist_redo_note(redo, op->key, record, spans[i].offset, spans[i].bytes);
	return OLTP_OK;
}

static enum oltp_rc execute_on(struct oltp_worker *worker, struct oltp_table *table,
			       const struct dist_op *op, struct dist_reply *reply,
			       struct dist_redo *redo)
{
	/* It may come from the other node, which is not trusted to keep to the bounds. */
	if (op->arg >= YCSB_FIELDS)
		return OLTP_INVALID;
	switch (op->code) {
	case OPERATION_READ:
		return execute_read(worker, table, op, reply);
	case OPERATION_UPDATE:
		return execute_update(worker, table, op, redo);
	default:
		return OLTP_INVALID;
	}
}

static enum oltp_rc app_execute(void *ctx, struct oltp_worker *worker, const struct dist_op *op,
				struct dist_reply *reply, struct dist_redo *redo)
{
	const struct node_ycsb *work = ctx;

	return execute_on(worker, ycsb_table(work->own), op, reply, redo);
}

static void prefetch_on(struct oltp_worker *worker, struct oltp_table *table,
			const struct dist_op *ops, uint32_t n)
{
	struct oltp_hint hints[DIST_OPS_MAX];

	for (uint32_t i = 0; i < n; i++)
		hints[i] = (struct oltp_hint){
			.key = ops[i].key,
			.offset = field_offset(ops[i].arg % YCSB_FIELDS),
			.bytes = YCSB_FIELD_BYTES,
		};
	oltp_txn_prefetch(worker, table, hints, n);
}

static void app_prefetch(void *ctx, struct oltp_worker *worker, const struct dist_op *ops,
			 uint32_t n)
{
	const struct node_ycsb *work = ctx;

	prefetch_on(worker, ycsb_table(work->own), ops, n);
}

struct dist_app node_ycsb_app(struct node_ycsb *work)
{
	return (struct dist_app){
		.execute = app_execute,
		.prefetch = app_prefetch,
		.ctx = work,
		.table = ycsb_table(work->own),
	};
}

static void draw(struct node_worker *nw)
{
	const struct ycsb_config *config = &nw->work->config;
	uint64_t share = (uint64_t)(config->update_share * 0x1p32);

	for (uint32_t i = 0; i < config->operations; i++) {
		uint64_t bits = random64_next(&nw->random);

		nw->ops[i] = (struct dist_op){
			.key = zipf_next(&nw->work->zipf, &nw->random),
			.code = bits >> 32 < share ? OPERATION_UPDATE : OPERATION_READ,
			.arg = (uint32_t)(((bits & 0xffffffff) * YCSB_FIELDS) >> 32),
		};
	}
}

static enum oltp_rc run_operations(struct node_worker *nw, struct ycsb *ycsb,
				   const struct dist_op *ops, uint32_t n, struct dist_redo *redo)
{
	enum oltp_rc rc = OLTP_OK;

	if (n)
		prefetch_on(nw->worker, ycsb_table(ycsb), ops, n);
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = execute_on(nw->worker, ycsb_table(ycsb), &ops[i], &nw->reply, redo);
	return rc;
}

static void check_reads(struct node_worker *nw, const struct dist_reply *reply)
{
	uint32_t step = sizeof(uint64_t) + YCSB_FIELD_BYTES;

	for (uint32_t at = 0; at + step <= reply->used; at += step) {
		uint64_t updates;

		memcpy(&updates, reply->bytes + at, sizeof(updates));
		nw->books.inconsistent_reads +=
			ycsb_field_stamp(reply->bytes + at + sizeof(updates)) > updates;
	}
}

static uint32_t count_updates(const struct dist_op *ops, uint32_t n)
{
	uint32_t updates = 0;

	for (uint32_t i = 0; i < n; i++)
		updates += ops[i].code == OPERATION_UPDATE;
	return updates;
}

static enum oltp_rc worker_run(void *local, uint32_t slot, bool retry)
{
	struct node_worker *nw = local;
	const struct node_ycsb *work = nw->work;
	uint32_t n_own = work->config.operations - work->remote;
	const struct dist_op *other = nw->ops + n_own;
	struct dist_redo *redo = &nw->redo;
	const struct dist_reply *said = NULL;
	enum oltp_rc rc;

	(void)slot;
	if (!retry)
		draw(nw);
	if (nw->client) {
		redo = dist_client_redo(nw->client);
		dist_client_begin(nw->client);
	}
	nw->redo.n = 0;
	nw->reply.used = 0;
	rc = oltp_txn_begin(nw->worker);
	if (!rc)
		rc = run_operations(nw, work->own, nw->ops, n_own, redo);
	if (!rc && !nw->client)
		rc = run_operations(nw, work->second, other, work->remote, redo);
	if (rc)
		oltp_txn_abort(nw->worker);
	else if (nw->client)
		rc = dist_client_commit(nw->client, other, work->remote, &said);
	else
		rc = oltp_txn_commit(nw->worker);
	if (rc)
		return rc;
	check_reads(nw, &nw->reply);
	if (said)
		check_reads(nw, said);
	nw->books.own_updates += count_updates(nw->ops, n_own);
	nw->books.other_updates += count_updates(other, work->remote);
	return OLTP_OK;
}

static void worker_detach(void *local)
{
	struct node_worker *nw = local;
	struct node_ycsb *work = nw->work;

	pthread_mutex_lock(&work->lock);
	work->books.own_updates += nw->books.own_updates;
	work->books.other_updates += nw->books.other_updates;
	work->books.inconsistent_reads += nw->books.inconsistent_reads;
	pthread_mutex_unlock(&work->lock);
	dist_client_destroy(nw->client);
	free(nw);
}

static int worker_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct node_ycsb *work = ctx;
	struct node_worker *nw = calloc(1, sizeof(*nw));
	uint64_t nth;
	int rc = 0;

	if (!nw)
		return -ENOMEM;
	nth = atomic_fetch_add_explicit(&work->attached, 1, memory_order_relaxed);
	nw->work = work;
	nw->worker = worker;
	nw->random.state = random64_mix(work->config.seed) ^ random64_mix(nth + 1);
	/* Transactions on one node alone need no protocol. */
	if (work->node && work->remote)
		rc = dist_client_create(work->node, worker, &nw->client);
	if (rc) {
		free(nw);
		return rc;
	}
	*ret_local = nw;
	return 0;
}

struct oltp_workload node_ycsb_workload(struct node_ycsb *work, struct dist_node *node,
					uint32_t remote)
{
	work->node = node;
	work->remote = remote;
	return (struct oltp_workload){
		.attach = worker_attach,
		.run = worker_run,
		.detach = worker_detach,
		.ctx = work,
	};
}

void node_ycsb_books_read(struct node_ycsb *work, struct node_ycsb_books *ret_books)
{
	pthread_mutex_lock(&work->lock);
	*ret_books = work->books;
	pthread_mutex_unlock(&work->lock);
}

void node_ycsb_audit(struct node_ycsb *work, bool second, struct ycsb_audit *ret_audit)
{
	ycsb_audit(second ? work->second : work->own, ret_audit);
}

/* Threads that load inherit where this one may run, and take memory from where they run. */
static int load_on(struct ycsb *ycsb, const struct node_ycsb_config *config)
{
	cpu_set_t before, set;
	int rc;

	if (!config->is_second_placed)
		return ycsb_load(ycsb, 1);
	if (config->second_cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(config->second_cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return -EINVAL;
	rc = ycsb_load(ycsb, 1);
	if (sched_setaffinity(0, sizeof(before), &before) && !rc)
		rc = -errno;
	return rc;
}

int node_ycsb_create(struct oltp_engine *engine, const struct node_ycsb_config *config,
		     struct node_ycsb **ret_work)
{
	struct node_ycsb *work = calloc(1, sizeof(*work));
	int rc;

	if (!work)
		return -ENOMEM;
	work->config = config->ycsb;
	pthread_mutex_init(&work->lock, NULL);
	rc = zipf_init(&work->zipf, config->ycsb.records, config->ycsb.theta,
		       config->ycsb.is_scrambled);
	if (!rc)
		rc = ycsb_create(engine, &config->ycsb, &work->own);
	if (!rc)
		rc = ycsb_load(work->own, 1);
	if (!rc && config->has_second)
		rc = ycsb_create(engine, &config->ycsb, &work->second);
	if (!rc && config->has_second)
		rc = load_on(work->second, config);
	if (rc) {
		node_ycsb_destroy(work);
		return rc;
	}
	*ret_work = work;
	return 0;
}

void node_ycsb_destroy(struct node_ycsb *work)
{
	if (!work)
		return;
	ycsb_destroy(work->own);
	ycsb_destroy(work->second);
	pthread_mutex_destroy(&work->lock);
	free(work);
}
