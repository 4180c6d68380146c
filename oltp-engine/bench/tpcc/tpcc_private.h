/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the TPC-C-like workload share. */
#ifndef BENCH_TPCC_PRIVATE_H
#define BENCH_TPCC_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "../classes.h"
#include "tpcc.h"
#include "tpcc_random.h"
#include "tpcc_rows.h"

enum tpcc_table {
	TPCC_WAREHOUSE,
	TPCC_DISTRICT,
	TPCC_CUSTOMER,
	TPCC_HISTORY,
	TPCC_NEW_ORDER_ROW,
	TPCC_ORDER,
	TPCC_LINE,
	TPCC_ITEM,
	TPCC_STOCK,
	TPCC_TABLES,
};

/* What was committed, by all workers that have detached. */
struct tpcc_books {
	uint64_t commits[TPCC_KINDS];
	uint64_t rollbacks, deliveries;
};

/* Counters that only grow, of all rows together. */
struct tpcc_totals {
	uint64_t orders, payments, deliveries;
};

struct tpcc {
	struct tpcc_config config;
	struct oltp_engine *engine;
	struct oltp_table *tables[TPCC_TABLES];
	struct oltp_index *customers_by_name, *orders_by_customer;
	struct oltp_index *new_orders, *lines;	/* by primary key */
	struct tpcc_nurand load_c, run_c;
	struct tpcc_totals begun_with;
	_Atomic uint64_t attached;
	struct classes *classes;
	pthread_mutex_t lock;	/* books */
	struct tpcc_books books;
};

/* A customer, by number or, if that is 0, by the number of the last name. */
struct tpcc_who {
	uint16_t w;
	uint8_t d;
	uint16_t c;
	uint16_t name;
};

struct tpcc_order_line {
	uint32_t item;
	uint16_t supply_w;
	uint8_t quantity;
};

/* What a transaction is to do, drawn once, so that a retry is the same one. */
struct tpcc_txn {
	enum tpcc_kind kind;
	uint16_t w;
	uint8_t d;
	int64_t date;
	struct tpcc_who who;
	union {
		struct {
			uint8_t n_lines;
			bool all_local, has_unused_item;
			struct tpcc_order_line lines[TPCC_LINES_MAX];
		} new_order;
		uint32_t amount;	/* payment */
		uint8_t carrier;	/* delivery */
		int32_t threshold;	/* stock level */
	};
};

/* A row met while looking for a customer by name. */
struct tpcc_namesake {
	uint64_t key;
	const struct tpcc_customer *row;
};

#define TPCC_NAMESAKES_MAX	512u

struct tpcc_worker {
	struct tpcc *tpcc;
	struct oltp_worker *worker;
	struct class_worker *class_worker;
	struct random64 random;
	uint16_t home;		/* 0: any */
	uint32_t delivered;	/* orders, by the running transaction */
	uint64_t shown;		/* what a terminal would have shown, added up */
	struct tpcc_books books;
	struct oltp_hint hints[TPCC_RECORDS_MAX];
	uint32_t n_namesakes;
	struct tpcc_namesake namesakes[TPCC_NAMESAKES_MAX];
	/* Stock level: the items of the last orders, and a table to find them again. */
	uint32_t n_items;
	uint32_t items[TPCC_RECORDS_MAX];
	struct tpcc_txn txns[OLTP_TICKETS];
};

/*
 * The transactions: draw fills in what comes after date; run does all but begin and commit.
 * OLTP_NOT_FOUND: a row is missing that should be there, or an unused item was to be found.
 */
struct tpcc_kind_ops {
	const char *name;
	void (*draw)(struct tpcc_worker *tw, struct tpcc_txn *txn);
	enum oltp_rc (*run)(struct tpcc_worker *tw, const struct tpcc_txn *txn);
};

extern const struct tpcc_kind_ops tpcc_new_order_ops, tpcc_payment_ops, tpcc_order_status_ops,
	tpcc_delivery_ops, tpcc_stock_level_ops;

/* tpcc_customer.c: draws a customer of the district; finds the one drawn by name. */
void tpcc_who_draw(struct tpcc_worker *tw, uint16_t w, uint8_t d, struct tpcc_who *ret_who);
enum oltp_rc tpcc_who_find(struct tpcc_worker *tw, const struct tpcc_who *who,
			   uint64_t *ret_customer_key);

/* Sort keys of the secondary indexes. */
uint64_t tpcc_name_key(uint64_t district_key, const char last[16], const char first[16]);
#define TPCC_NAME_KEY_FIRST	0xffffffull	/* the bits that are of the first name */
uint64_t tpcc_customer_order_key(uint64_t customer_key, uint32_t o);

/* tpcc_recycle.c: deletes the order, if it is there, and keeps what it came to. */
enum oltp_rc tpcc_order_recycle(struct tpcc_worker *tw, uint16_t w, uint8_t d, uint32_t o);

/*
 * Deletes the history, if it is there; the customer and the district (w, d) are held by the
 * transaction, as rows to be changed.
 */
enum oltp_rc tpcc_history_recycle(struct tpcc_worker *tw, uint64_t history_key,
				  struct tpcc_customer *customer, uint64_t district_key,
				  struct tpcc_district *district);

/* tpcc_check.c: the totals as they are; errors as oltp_table_scan. */
int tpcc_totals_read(struct tpcc *tpcc, struct tpcc_totals *ret_totals);

static inline struct oltp_hint tpcc_hint(const struct tpcc_worker *tw, enum tpcc_table table,
					 uint64_t key, uint32_t offset, uint32_t bytes)
{
	return (struct oltp_hint){ .key = key, .offset = offset, .bytes = bytes,
				   .table = tw->tpcc->tables[table] };
}

#endif
