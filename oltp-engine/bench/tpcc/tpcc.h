/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A TPC-C-like workload: the tables, the rules of filling them and the five transactions of the
 * TPC-C specification, revision 5.11, without its terminals, think times and price: no result of it
 * is a TPC-C result, nor can be compared with one. Each worker runs one transaction after the
 * other, picked by the mix.
 *
 * A new order whose last item does not exist is rolled back (1%, as in 2.4.1.4): it ran to its end
 * as it should, and counts for the pool as committed.
 *
 * The specification knows no bound of orders. Each takes some 1.2 KiB with its ten lines, all in
 * all: 64 bytes for each row, and in indexes 16 (hash) and up to 32 (ordered). To run for long,
 * keep_orders deletes the oldest order of a district with each new one, and histories in the same
 * way; what their amounts were is kept, in columns of its own, in the customer and the district, so
 * that the consistency conditions can still be checked. That is not in the specification.
 */
#ifndef BENCH_TPCC_H
#define BENCH_TPCC_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"
#include "tpcc_rows.h"

struct bench_progress;
struct classes;

enum tpcc_kind {
	TPCC_NEW_ORDER,
	TPCC_PAYMENT,
	TPCC_ORDER_STATUS,
	TPCC_DELIVERY,
	TPCC_STOCK_LEVEL,
};
#define TPCC_KINDS	5u

/* Accesses in one transaction: oltp_config.txn_records_max must be this at least. */
#define TPCC_RECORDS_MAX	1024u

struct tpcc_config {
	uint32_t warehouses;	/* 1 to TPCC_WAREHOUSES_MAX */
	uint32_t mix[TPCC_KINDS];	/* percent, 100 together */
	bool home_of_worker;	/* a worker has one warehouse; else any is drawn each time */
	uint64_t orders;	/* the hash indexes have room for so many new ones */
	uint32_t keep_orders;	/* of each district; 0: all, else at least the customers */
	uint64_t seed;
	/* The scale: as the specification says, or smaller for tests. */
	uint32_t items;		/* 20 to TPCC_ITEMS */
	uint32_t customers;	/* of a district, 30 to TPCC_CUSTOMERS; orders to begin with, too */
};

/* One warehouse, standard mix and scale. */
#define TPCC_CONFIG_DEFAULT {			\
	.warehouses = 1,			\
	.mix = { 45, 43, 4, 4, 4 },		\
	.orders = 1000000,			\
	.seed = 1,				\
	.items = TPCC_ITEMS,			\
	.customers = TPCC_CUSTOMERS,		\
}

/* "new_order", "payment" and so on. */
const char *tpcc_kind_name(enum tpcc_kind kind);

/* "45,43,4,4,4" into ret_mix, whole percentages. Error: -EINVAL (syntax, sum). */
int tpcc_mix_parse(const char *text, uint32_t ret_mix[TPCC_KINDS]);

struct tpcc;

/* As it was created with. */
const struct tpcc_config *tpcc_config(const struct tpcc *tpcc);

/* Creates tables and indexes, empty. Errors: -EINVAL (config), -ENOMEM, -ENOSPC. */
int tpcc_create(struct oltp_engine *engine, const struct tpcc_config *config,
		struct tpcc **ret_tpcc);

/* Before the engine is closed, after all workers have gone. Accepts NULL. */
void tpcc_destroy(struct tpcc *tpcc);

/*
 * Fills the tables, several warehouses at a time on n_threads threads. progress, which may be NULL,
 * is of warehouses. Errors: -ENOMEM, -EIO, -EAGAIN (no thread).
 */
int tpcc_load(struct tpcc *tpcc, uint32_t n_threads, struct bench_progress *progress);

/*
 * Instead of tpcc_load, if the tables were filled otherwise: takes what is there as what the run
 * began with. Errors: those of oltp_table_scan.
 */
int tpcc_begin(struct tpcc *tpcc);

/* What the pool's workers run; valid as long as tpcc is. */
struct oltp_workload tpcc_workload(struct tpcc *tpcc);

/* Figures by kind; new orders that were rolled back are in none. Valid until destroy. */
struct classes *tpcc_classes(struct tpcc *tpcc);

#define TPCC_CONDITIONS	12u	/* of which there is no 11 here */

struct tpcc_verdict {
	int scan_rc;		/* of oltp_table_scan, or -ENOMEM; not 0: nothing is known */
	/*
	 * [n]: violations of the specification's consistency condition n (3.3.2.n), for 1 to 10 and
	 * 12: warehouses, districts, orders or customers that do not fulfil it. Number 11 is about
	 * tables that no transaction has changed.
	 */
	uint64_t violations[TPCC_CONDITIONS + 1];
	/* What the workers committed against what the tables have more than in the beginning. */
	uint64_t lost_orders, lost_payments, lost_deliveries;
	uint64_t rollbacks;		/* new orders with an item that does not exist: no error */
	uint64_t missing_rows;		/* of items and stock; or so many too many */
	bool is_good;			/* none of all this */
};

/* Reads all tables. No worker may be attached. */
void tpcc_verify(struct tpcc *tpcc, struct tpcc_verdict *ret_verdict);

#endif
