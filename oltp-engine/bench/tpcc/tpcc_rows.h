/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The nine tables of the TPC-C-like workload: rows and keys. Columns are those of the TPC-C
 * specification, revision 5.11, section 1.3; amounts are in cents, rates in 1/10000, dates in
 * seconds since 1970 (0: null). What is used most comes first: with the engine's 16 bytes in front,
 * the first 48 bytes of a row are in one cache line.
 *
 * Numbers count from 1: districts of a warehouse to 10, customers of a district to 3000, items to
 * 100000, lines of an order to 15. Their keys are packed, highest bits first:
 *
 *	warehouse	w
 *	item		i
 *	district	w:16 d:4
 *	customer	w:16 d:4 c:12
 *	stock		w:16 i:20
 *	order, new order	w:16 d:4 o:32
 *	order line	w:16 d:4 o:32 line:4
 *	history		w:16 d:4 c:12 n:32, the customer's n-th payment
 *
 * Histories have no key in the specification; this one follows from the customer's row, which a
 * payment locks anyway.
 */
#ifndef BENCH_TPCC_ROWS_H
#define BENCH_TPCC_ROWS_H

#include <stdint.h>

#include "oltp-engine/src/base/tpcc_scale.h"

struct tpcc_address {
	char street_1[20], street_2[20], city[20], state[2], zip[9];
};

struct tpcc_warehouse {
	int64_t ytd;
	uint32_t tax;
	char name[10];
	struct tpcc_address address;
};

struct tpcc_district {
	int64_t ytd;
	int64_t archived_payments;	/* that histories which were recycled had; see tpcc.h */
	uint32_t next_o_id;
	uint32_t tax;
	char name[10];
	struct tpcc_address address;
};

struct tpcc_customer {
	int64_t balance;
	int64_t ytd_payment;
	uint32_t payments;
	uint32_t deliveries;
	uint32_t discount;
	char credit[2];			/* "GC" or "BC" */
	char middle[2];
	int64_t archived_lines;		/* delivered amounts of orders that were recycled */
	int64_t archived_payments;	/* as a district's */
	char last[16];
	char first[16];
	int64_t since;
	int64_t credit_limit;
	char phone[16];
	struct tpcc_address address;
	char data[500];
};

struct tpcc_history {
	int64_t date;
	uint32_t amount;
	uint16_t w;			/* where it was paid */
	uint8_t d;
	uint8_t c_d;			/* who paid */
	uint16_t c_w;
	uint16_t c;
	char data[24];
};

struct tpcc_new_order {
	uint32_t o;
};

struct tpcc_order {
	int64_t entry_date;
	uint16_t c;
	uint8_t carrier;		/* 0: null */
	uint8_t lines;
	uint8_t all_local;
};

struct tpcc_line {
	int64_t delivery_date;
	uint32_t item;
	uint32_t amount;
	uint16_t supply_w;
	uint8_t quantity;
	char dist_info[24];
};

struct tpcc_item {
	uint32_t image;
	uint32_t price;
	char name[24];
	char data[50];
};

struct tpcc_stock {
	int64_t ytd;
	int32_t quantity;
	uint32_t orders;
	uint32_t remotes;
	char dist[TPCC_DISTRICTS][24];
	char data[50];
};

_Static_assert(sizeof(struct tpcc_line) <= 48 && sizeof(struct tpcc_history) <= 48 &&
	       sizeof(struct tpcc_order) <= 48, "rows that come by the million take a cache line");

static inline uint64_t tpcc_district_key(uint32_t w, uint32_t d)
{
	return (uint64_t)w << 4 | d;
}

static inline uint64_t tpcc_customer_key(uint32_t w, uint32_t d, uint32_t c)
{
	return tpcc_district_key(w, d) << 12 | c;
}

static inline uint64_t tpcc_stock_key(uint32_t w, uint32_t i)
{
	return (uint64_t)w << 20 | i;
}

static inline uint64_t tpcc_order_key(uint32_t w, uint32_t d, uint32_t o)
{
	return tpcc_district_key(w, d) << 32 | o;
}

/* 0 as the line is before the first one, TPCC_LINES_MAX is the last one. */
static inline uint64_t tpcc_line_key(uint64_t order_key, uint32_t line)
{
	return order_key << 4 | line;
}

static inline uint64_t tpcc_history_key(uint64_t customer_key, uint32_t nth)
{
	return customer_key << 32 | nth;
}

/* The warehouse of a district's key. */
static inline uint32_t tpcc_w_of(uint64_t district_key)
{
	return (uint32_t)(district_key >> 4);
}

#endif
