// SPDX-License-Identifier: GPL-2.0-or-later
/* See tpcc.h. */
#include "tpcc.h"

#include "oltp-engine/src/base/random.h"

/* Of NURand, during the run (2.1.6.1); that of last names is 100 above that of the load. */
#define C_LAST_NAME	223u
#define C_CUSTOMER	259u
#define C_ITEM		7911u

/* Rows of one part. */
#define STOCK_ROWS	100u
#define OTHER_ROWS	50u

static uint32_t uniform(struct random64 *random, uint32_t from, uint32_t to)
{
	return from + (uint32_t)random64_below(random, (uint64_t)to - from + 1);
}

static uint32_t nurand(struct random64 *random, uint32_t a, uint32_t c, uint32_t from, uint32_t to)
{
	uint32_t bits = uniform(random, 0, a) | uniform(random, from, to);

	return (bits + c) % (to - from + 1) + from;
}

static bool is_percent(struct random64 *random, uint32_t percent)
{
	return uniform(random, 1, 100) <= percent;
}

static uint32_t other_warehouse(const struct load_tpcc *tpcc, struct random64 *random, uint32_t w)
{
	uint32_t other = uniform(random, 1, tpcc->warehouses - 1);

	return other + (other >= w);
}

static void add(struct load_tpcc_call *call, uint32_t number)
{
	call->numbers[call->n++] = number;
}

/* A number and 0, or 0 and the number of a last name. */
static void add_customer(const struct load_tpcc *tpcc, struct random64 *random,
			 struct load_tpcc_call *call)
{
	uint32_t n = tpcc->customers;
	uint32_t names = n < TPCC_LAST_NAMES ? n : TPCC_LAST_NAMES;

	if (is_percent(random, TPCC_BY_NAME_PERCENT)) {
		add(call, 0);
		add(call, nurand(random, TPCC_NURAND_LAST_NAME, C_LAST_NAME, 0, names - 1));
	} else {
		add(call, nurand(random, TPCC_NURAND_CUSTOMER, C_CUSTOMER, 1, n));
		add(call, 0);
	}
}

static void draw_new_order(const struct load_tpcc *tpcc, struct random64 *random, uint32_t w,
			   struct load_tpcc_call *call)
{
	uint32_t n = uniform(random, TPCC_LINES_MIN, TPCC_LINES_MAX);

	add(call, nurand(random, TPCC_NURAND_CUSTOMER, C_CUSTOMER, 1, tpcc->customers));
	call->has_unused_item = is_percent(random, TPCC_UNUSED_ITEM_PERCENT);
	for (uint32_t i = 1; i <= n; i++) {
		bool is_unused = i == n && call->has_unused_item;
		bool is_remote = tpcc->warehouses > 1 &&
				 is_percent(random, TPCC_REMOTE_LINE_PERCENT);

		add(call, is_unused ? tpcc->items + 1 :
				      nurand(random, TPCC_NURAND_ITEM, C_ITEM, 1, tpcc->items));
		add(call, is_remote ? other_warehouse(tpcc, random, w) : w);
		add(call, uniform(random, 1, 10));
	}
}

static void draw_payment(const struct load_tpcc *tpcc, struct random64 *random, uint32_t w,
			 uint32_t d, struct load_tpcc_call *call)
{
	bool is_home = tpcc->warehouses == 1 || is_percent(random, TPCC_HOME_CUSTOMER_PERCENT);

	add(call, is_home ? w : other_warehouse(tpcc, random, w));
	add(call, is_home ? d : uniform(random, 1, TPCC_DISTRICTS));
	add_customer(tpcc, random, call);
	add(call, uniform(random, 100, 500000));
}

void load_tpcc_draw(const struct load_tpcc *tpcc, enum load_kind kind, uint64_t seed,
		    struct load_tpcc_call *ret_call)
{
	struct random64 random = { seed };
	uint32_t w = uniform(&random, 1, tpcc->warehouses);
	uint32_t d = uniform(&random, 1, TPCC_DISTRICTS);
	struct load_tpcc_call call = { .n = 0 };

	add(&call, w);
	if (kind != LOAD_DELIVERY)
		add(&call, d);
	switch (kind) {
	case LOAD_NEW_ORDER:
		draw_new_order(tpcc, &random, w, &call);
		break;
	case LOAD_PAYMENT:
		draw_payment(tpcc, &random, w, d, &call);
		break;
	case LOAD_ORDER_STATUS:
		add_customer(tpcc, &random, &call);
		break;
	case LOAD_DELIVERY:
		add(&call, uniform(&random, 1, TPCC_CARRIERS));
		break;
	default:
		add(&call, uniform(&random, 10, 20));
		break;
	}
	*ret_call = call;
}

static uint32_t pieces(uint32_t rows, uint32_t of_rows)
{
	return (rows + of_rows - 1) / of_rows;
}

/* The district itself, then customers and orders. */
static uint32_t district_parts(const struct load_tpcc *tpcc)
{
	return 1 + 2 * pieces(tpcc->customers, OTHER_ROWS);
}

/* The warehouse itself, then stock, then districts. */
static uint32_t warehouse_parts(const struct load_tpcc *tpcc)
{
	return 1 + pieces(tpcc->items, STOCK_ROWS) + TPCC_DISTRICTS * district_parts(tpcc);
}

uint64_t load_tpcc_parts(const struct load_tpcc *tpcc)
{
	return (uint64_t)tpcc->warehouses * warehouse_parts(tpcc);
}

static struct load_tpcc_part piece(struct load_tpcc_part part, uint32_t i, uint32_t of_rows,
				   uint32_t rows)
{
	part.from = 1 + i * of_rows;
	part.n = rows - (part.from - 1) < of_rows ? rows - (part.from - 1) : of_rows;
	return part;
}

struct load_tpcc_part load_tpcc_part(const struct load_tpcc *tpcc, uint64_t i)
{
	uint32_t stock = pieces(tpcc->items, STOCK_ROWS);
	uint32_t rows = pieces(tpcc->customers, OTHER_ROWS);
	uint32_t left = (uint32_t)(i % warehouse_parts(tpcc));
	struct load_tpcc_part part = { .name = "warehouse", .d = 1,
				       .w = (uint32_t)(i / warehouse_parts(tpcc)) + 1 };

	if (left == 0)
		return part;
	left--;
	if (left < stock) {
		part.name = "stock";
		return piece(part, left, STOCK_ROWS, tpcc->items);
	}
	left -= stock;
	part.d = left / district_parts(tpcc) + 1;
	left %= district_parts(tpcc);
	part.name = left == 0 ? "district" : left <= rows ? "customers" : "orders";
	return left == 0 ? part : piece(part, (left - 1) % rows, OTHER_ROWS, tpcc->customers);
}
