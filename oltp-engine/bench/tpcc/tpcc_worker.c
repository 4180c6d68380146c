// SPDX-License-Identifier: GPL-2.0-or-later
/* One worker of the TPC-C-like workload: draws transactions, runs them, keeps books. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tpcc_private.h"

static const struct tpcc_kind_ops *const kinds[TPCC_KINDS] = {
	[TPCC_NEW_ORDER] = &tpcc_new_order_ops,
	[TPCC_PAYMENT] = &tpcc_payment_ops,
	[TPCC_ORDER_STATUS] = &tpcc_order_status_ops,
	[TPCC_DELIVERY] = &tpcc_delivery_ops,
	[TPCC_STOCK_LEVEL] = &tpcc_stock_level_ops,
};

const char *tpcc_kind_name(enum tpcc_kind kind)
{
	return kinds[kind]->name;
}

static int worker_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct tpcc *tpcc = ctx;
	struct tpcc_worker *tw = aligned_alloc(128, (sizeof(*tw) + 127) & ~127ul);
	uint64_t nth;

	if (!tw)
		return -ENOMEM;
	memset(tw, 0, sizeof(*tw));
	if (classes_attach(tpcc->classes, &tw->class_worker)) {
		free(tw);
		return -ENOMEM;
	}
	nth = atomic_fetch_add_explicit(&tpcc->attached, 1, memory_order_relaxed);
	tw->tpcc = tpcc;
	tw->worker = worker;
	tw->random.state = random64_mix(tpcc->config.seed) ^ random64_mix(nth + 1);
	if (tpcc->config.home_of_worker)
		tw->home = (uint16_t)(nth % tpcc->config.warehouses + 1);
	*ret_local = tw;
	return 0;
}

static void books_add(struct tpcc_books *sum, const struct tpcc_books *books)
{
	for (uint32_t i = 0; i < TPCC_KINDS; i++)
		sum->commits[i] += books->commits[i];
	sum->rollbacks += books->rollbacks;
	sum->deliveries += books->deliveries;
}

static void worker_detach(void *local)
{
	struct tpcc_worker *tw = local;
	struct tpcc *tpcc = tw->tpcc;

	pthread_mutex_lock(&tpcc->lock);
	books_add(&tpcc->books, &tw->books);
	pthread_mutex_unlock(&tpcc->lock);
	classes_detach(tw->class_worker);
	free(tw);
}

static enum tpcc_kind draw_kind(struct tpcc_worker *tw)
{
	uint32_t percent = tpcc_uniform(&tw->random, 0, 99), kind = 0;

	while (percent >= tw->tpcc->config.mix[kind])
		percent -= tw->tpcc->config.mix[kind++];
	return kind;
}

static void draw(struct tpcc_worker *tw, struct tpcc_txn *txn)
{
	struct timespec now;

	/* Dates are in seconds: the coarse clock is near enough, and almost free. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	txn->kind = draw_kind(tw);
	txn->date = now.tv_sec;
	txn->w = tw->home ?: (uint16_t)tpcc_uniform(&tw->random, 1, tw->tpcc->config.warehouses);
	txn->d = (uint8_t)tpcc_uniform(&tw->random, 1, TPCC_DISTRICTS);
	kinds[txn->kind]->draw(tw, txn);
}

static bool is_rollback(const struct tpcc_txn *txn, enum oltp_rc rc)
{
	return rc == OLTP_NOT_FOUND && txn->kind == TPCC_NEW_ORDER &&
	       txn->new_order.has_unused_item;
}

static void worker_arrived(void *local, uint64_t arrival_ns)
{
	struct tpcc_worker *tw = local;

	class_arrived(tw->class_worker, arrival_ns);
}

static enum oltp_rc worker_run(void *local, uint32_t slot, bool retry)
{
	struct tpcc_worker *tw = local;
	struct tpcc_txn *txn = &tw->txns[slot];
	enum oltp_rc rc;

	if (!retry) {
		draw(tw, txn);
		class_begin(tw->class_worker, slot, txn->kind);
	}
	tw->delivered = 0;
	rc = oltp_txn_begin(tw->worker);
	if (rc)
		return rc;
	rc = kinds[txn->kind]->run(tw, txn);
	if (!rc)
		rc = oltp_txn_commit(tw->worker);
	if (rc)
		oltp_txn_abort(tw->worker);
	if (is_rollback(txn, rc)) {
		tw->books.rollbacks++;
		return OLTP_OK;
	}
	class_attempted(tw->class_worker, slot, rc);
	if (!rc) {
		tw->books.commits[txn->kind]++;
		tw->books.deliveries += tw->delivered;
	}
	return rc;
}

struct oltp_workload tpcc_workload(struct tpcc *tpcc)
{
	return (struct oltp_workload){
		.attach = worker_attach,
		.run = worker_run,
		.arrived = worker_arrived,
		.detach = worker_detach,
		.ctx = tpcc,
	};
}
