// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Filling the tables by the rules of section 4.3.3.1 of the TPC-C specification, with ordinary
 * transactions. Threads take one part after the other: the items, then each warehouse.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../workload.h"
#include "tpcc_private.h"

#define THREADS_MAX		256u
#define INSERTS_PER_TXN		32u
#define CREDIT_LIMIT_CENTS	5000000

struct loader {
	struct tpcc *tpcc;
	_Atomic uint32_t *next_part;	/* 0: the items, else a warehouse */
	struct bench_progress *progress;	/* may be NULL */
	pthread_t thread;
	struct oltp_worker *worker;
	struct random64 random;
	int64_t date;
	uint32_t order_of[TPCC_CUSTOMERS];	/* customers of a district in random order */
	enum oltp_rc rc;
};

/*
 * What a transaction has added and might have to add again: when memory moves, rows meet conflicts,
 * and with a disk to put others on, room has to be made.
 */
struct batch {
	uint32_t n;
	struct {
		enum tpcc_table table;
		uint64_t key;
		union {
			struct tpcc_warehouse warehouse;
			struct tpcc_district district;
			struct tpcc_customer customer;
			struct tpcc_history history;
			struct tpcc_new_order new_order;
			struct tpcc_order order;
			struct tpcc_line line;
			struct tpcc_item item;
			struct tpcc_stock stock;
		} row;
	} rows[INSERTS_PER_TXN];
};

static enum oltp_rc batch_try(struct loader *l, const struct batch *batch)
{
	enum oltp_rc rc = oltp_txn_begin(l->worker);

	for (uint32_t i = 0; !rc && i < batch->n; i++)
		rc = oltp_txn_insert(l->worker, l->tpcc->tables[batch->rows[i].table],
				     batch->rows[i].key, &batch->rows[i].row);
	if (!rc)
		rc = oltp_txn_commit(l->worker);
	if (rc)
		oltp_txn_abort(l->worker);
	return rc;
}

static void batch_write(struct loader *l, struct batch *batch)
{
	while (!l->rc && batch->n) {
		enum oltp_rc rc = batch_try(l, batch);

		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(l->worker) ?: OLTP_CONFLICT;
		if (rc == OLTP_CONFLICT)
			continue;
		l->rc = rc;
		break;
	}
	batch->n = 0;
}

static void add(struct loader *l, struct batch *batch, enum tpcc_table table, uint64_t key,
		const void *row, size_t bytes)
{
	batch->rows[batch->n].table = table;
	batch->rows[batch->n].key = key;
	memcpy(&batch->rows[batch->n].row, row, bytes);
	if (++batch->n == INSERTS_PER_TXN)
		batch_write(l, batch);
}

static void fill_address(struct random64 *random, struct tpcc_address *address)
{
	tpcc_letters(random, 10, 20, address->street_1, 20);
	tpcc_letters(random, 10, 20, address->street_2, 20);
	tpcc_letters(random, 10, 20, address->city, 20);
	tpcc_letters(random, 2, 2, address->state, 2);
	tpcc_zip(random, address->zip);
}

static void load_items(struct loader *l, struct batch *batch)
{
	for (uint32_t i = 1; !l->rc && i <= l->tpcc->config.items; i++) {
		struct tpcc_item item = {
			.image = tpcc_uniform(&l->random, 1, 10000),
			.price = tpcc_uniform(&l->random, 100, 10000),
		};

		tpcc_letters(&l->random, 14, 24, item.name, sizeof(item.name));
		tpcc_original_data(&l->random, item.data);
		add(l, batch, TPCC_ITEM, i, &item, sizeof(item));
	}
}

static void load_stock(struct loader *l, struct batch *batch, uint32_t w)
{
	for (uint32_t i = 1; !l->rc && i <= l->tpcc->config.items; i++) {
		struct tpcc_stock stock = {
			.quantity = (int32_t)tpcc_uniform(&l->random, 10, 100),
		};

		for (uint32_t d = 0; d < TPCC_DISTRICTS; d++)
			tpcc_letters(&l->random, 24, 24, stock.dist[d], 24);
		tpcc_original_data(&l->random, stock.data);
		add(l, batch, TPCC_STOCK, tpcc_stock_key(w, i), &stock, sizeof(stock));
	}
}

static void load_customer(struct loader *l, struct batch *batch, uint32_t w, uint32_t d, uint32_t c)
{
	struct random64 *random = &l->random;
	uint64_t key = tpcc_customer_key(w, d, c);
	bool is_bad = random64_below(random, 10) == 0;
	struct tpcc_customer customer = {
		.balance = -TPCC_PAID_CENTS,
		.ytd_payment = TPCC_PAID_CENTS,
		.payments = 1,
		.discount = tpcc_uniform(random, 0, 5000),
		.credit = { is_bad ? 'B' : 'G', 'C' },
		.middle = { 'O', 'E' },
		.since = l->date,
		.credit_limit = CREDIT_LIMIT_CENTS,
	};
	struct tpcc_history history = {
		.date = l->date,
		.amount = TPCC_PAID_CENTS,
		.w = (uint16_t)w,
		.d = (uint8_t)d,
		.c_d = (uint8_t)d,
		.c_w = (uint16_t)w,
		.c = (uint16_t)c,
	};
	uint32_t names = l->tpcc->config.customers < TPCC_LAST_NAMES ? l->tpcc->config.customers :
								       TPCC_LAST_NAMES;

	tpcc_last_name(c <= names ? c - 1 :
				    tpcc_nurand_draw(random, 255, l->tpcc->load_c.c_last, 0,
						     names - 1), customer.last);
	tpcc_letters(random, 8, 16, customer.first, sizeof(customer.first));
	tpcc_digits(random, sizeof(customer.phone), customer.phone);
	fill_address(random, &customer.address);
	tpcc_letters(random, 300, 500, customer.data, sizeof(customer.data));
	add(l, batch, TPCC_CUSTOMER, key, &customer, sizeof(customer));
	tpcc_letters(random, 12, 24, history.data, sizeof(history.data));
	add(l, batch, TPCC_HISTORY, tpcc_history_key(key, 1), &history, sizeof(history));
}

/* The last 30% are not delivered. */
static void load_order(struct loader *l, struct batch *batch, uint32_t w, uint32_t d, uint32_t o)
{
	bool is_delivered = o <= TPCC_DELIVERED(l->tpcc->config.customers);
	uint64_t key = tpcc_order_key(w, d, o);
	struct tpcc_order order = {
		.entry_date = l->date,
		.c = (uint16_t)l->order_of[o - 1],
		.lines = (uint8_t)tpcc_uniform(&l->random, TPCC_LINES_MIN, TPCC_LINES_MAX),
		.all_local = 1,
	};
	struct tpcc_new_order new_order = { .o = o };

	if (is_delivered)
		order.carrier = (uint8_t)tpcc_uniform(&l->random, 1, TPCC_CARRIERS);
	add(l, batch, TPCC_ORDER, key, &order, sizeof(order));
	for (uint32_t n = 1; n <= order.lines; n++) {
		struct tpcc_line line = {
			.delivery_date = is_delivered ? l->date : 0,
			.item = tpcc_uniform(&l->random, 1, l->tpcc->config.items),
			.amount = is_delivered ? 0 : tpcc_uniform(&l->random, 1, 999999),
			.supply_w = (uint16_t)w,
			.quantity = 5,
		};

		tpcc_letters(&l->random, 24, 24, line.dist_info, sizeof(line.dist_info));
		add(l, batch, TPCC_LINE, tpcc_line_key(key, n), &line, sizeof(line));
	}
	if (!is_delivered)
		add(l, batch, TPCC_NEW_ORDER_ROW, key, &new_order, sizeof(new_order));
}

static void shuffle_customers(struct loader *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)random64_below(&l->random, i + 1);

		l->order_of[i] = l->order_of[at];
		l->order_of[at] = i + 1;
	}
}

static void load_district(struct loader *l, struct batch *batch, uint32_t w, uint32_t d)
{
	uint32_t n = l->tpcc->config.customers;
	struct tpcc_district district = {
		.ytd = (int64_t)n * TPCC_PAID_CENTS,
		.next_o_id = n + 1,
		.tax = tpcc_uniform(&l->random, 0, 2000),
	};

	tpcc_letters(&l->random, 6, 10, district.name, sizeof(district.name));
	fill_address(&l->random, &district.address);
	add(l, batch, TPCC_DISTRICT, tpcc_district_key(w, d), &district, sizeof(district));
	for (uint32_t c = 1; !l->rc && c <= n; c++)
		load_customer(l, batch, w, d, c);
	shuffle_customers(l, n);
	for (uint32_t o = 1; !l->rc && o <= n; o++)
		load_order(l, batch, w, d, o);
}

static void load_warehouse(struct loader *l, struct batch *batch, uint32_t w)
{
	struct tpcc_warehouse warehouse = {
		.ytd = (int64_t)TPCC_DISTRICTS * l->tpcc->config.customers * TPCC_PAID_CENTS,
		.tax = tpcc_uniform(&l->random, 0, 2000),
	};

	tpcc_letters(&l->random, 6, 10, warehouse.name, sizeof(warehouse.name));
	fill_address(&l->random, &warehouse.address);
	add(l, batch, TPCC_WAREHOUSE, w, &warehouse, sizeof(warehouse));
	load_stock(l, batch, w);
	for (uint32_t d = 1; !l->rc && d <= TPCC_DISTRICTS; d++)
		load_district(l, batch, w, d);
}

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	struct batch *batch = calloc(1, sizeof(*batch));
	struct tpcc *tpcc = l->tpcc;
	uint32_t part;

	if (!batch || oltp_worker_create(tpcc->engine, &l->worker)) {
		l->rc = OLTP_NO_MEMORY;
		free(batch);
		return NULL;
	}
	while (!l->rc && (part = atomic_fetch_add(l->next_part, 1)) <= tpcc->config.warehouses) {
		/* By the part: what is in the tables does not depend on the threads. */
		l->random.state = random64_mix(tpcc->config.seed) ^ random64_mix(~(uint64_t)part);
		if (part)
			load_warehouse(l, batch, part);
		else
			load_items(l, batch);
		batch_write(l, batch);
		if (part && l->progress)
			atomic_fetch_add_explicit(&l->progress->done, 1, memory_order_relaxed);
	}
	oltp_worker_destroy(l->worker);
	free(batch);
	return NULL;
}

int tpcc_load(struct tpcc *tpcc, uint32_t n_threads, struct bench_progress *progress)
{
	_Atomic uint32_t next_part = 0;
	uint32_t n_started = 0;
	struct loader *loaders;
	int rc = 0;

	if (n_threads < 1)
		n_threads = 1;
	if (n_threads > THREADS_MAX)
		n_threads = THREADS_MAX;
	if (progress) {
		progress->unit = "warehouses";
		atomic_store(&progress->total, tpcc->config.warehouses);
	}
	loaders = calloc(n_threads, sizeof(*loaders));
	if (!loaders)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < n_threads; i++) {
		struct loader *l = &loaders[i];

		l->tpcc = tpcc;
		l->next_part = &next_part;
		l->progress = progress;
		l->date = (int64_t)time(NULL);
		rc = -pthread_create(&l->thread, NULL, loader_main, l);
		n_started += !rc;
	}
	for (uint32_t i = 0; i < n_started; i++) {
		pthread_join(loaders[i].thread, NULL);
		if (!rc && loaders[i].rc)
			rc = loaders[i].rc == OLTP_NO_MEMORY ? -ENOMEM : -EIO;
	}
	free(loaders);
	return rc ?: tpcc_begin(tpcc);
}
