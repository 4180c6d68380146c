// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fills the tables by the rules of section 4.3.3.1 of the specification, a part of them in each
 * call. What is random follows from seed, part and number: parts may be loaded in any order, and
 * one again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"
#include "oltp-engine/src/base/random.h"

#define ROWS_MAX	200u	/* of one call; each takes at most some 20 accesses */
#define CREDIT_LIMIT	5000000
#define C_LAST		123u	/* of NURand, while names are given (2.1.6.1) */
#define PLACES		'.'	/* what letters that nobody looks at are */

struct part {
	struct call *c;
	uint32_t w, d, from, n;
	uint32_t customers, items;	/* of a district, of all */
	uint64_t seed;
	int64_t date;
};

/* Which table a random number is for. */
enum sort {
	SORT_WAREHOUSE, SORT_DISTRICT, SORT_CUSTOMER, SORT_NAME, SORT_ORDER, SORT_STOCK, SORT_ITEM,
	SORT_ORDER_OF,
};

static struct random64 random_of(const struct part *p, enum sort sort, uint32_t number)
{
	uint64_t place = (uint64_t)p->w << 48 | (uint64_t)p->d << 44 | (uint64_t)sort << 40;

	/* An item is the same one in every warehouse. */
	if (sort == SORT_ITEM)
		place = (uint64_t)sort << 40;
	return (struct random64){ random64_mix(p->seed) ^ random64_mix(place | number) };
}

static uint32_t uniform(struct random64 *random, uint32_t from, uint32_t to)
{
	return from + (uint32_t)random64_below(random, (uint64_t)to - from + 1);
}

/* The rest of the room is zero. */
static void letters(struct random64 *random, uint32_t from, uint32_t to, char *ret, uint32_t room)
{
	uint32_t n = uniform(random, from, to);

	for (uint32_t i = 0; i < n; i++)
		ret[i] = (char)('a' + random64_below(random, 26));
	memset(ret + n, 0, room - n);
}

static enum oltp_rc make(const struct part *p, struct tpcc_row *row)
{
	return call_need(p->c, &row->name) ?: hash_make(p->c, &row->name, &row->hash);
}

static enum oltp_rc load_warehouse(const struct part *p, uint32_t w)
{
	struct random64 random = random_of(p, SORT_WAREHOUSE, 0);
	struct tpcc_warehouse warehouse = {
		.ytd = (int64_t)TPCC_DISTRICTS * p->customers * TPCC_PAID_CENTS,
		.tax = uniform(&random, 0, 2000),
	};
	struct tpcc_row row;
	char rest[71];

	letters(&random, 6, 10, warehouse.name, sizeof(warehouse.name));
	memset(rest, PLACES, sizeof(rest));
	tpcc_name(&row, "tpcc:w:%u", w);
	return make(p, &row) ?: tpcc_put(p->c, &row, "a", &warehouse, sizeof(warehouse)) ?:
	       tpcc_put(p->c, &row, "x", rest, sizeof(rest)) ?: hash_close(p->c, &row.hash);
}

struct named {
	uint32_t last;
	char first[16];
	uint16_t c;
};

static uint32_t last_names(const struct part *p)
{
	return p->customers < TPCC_LAST_NAMES ? p->customers : TPCC_LAST_NAMES;
}

static struct named name_of(const struct part *p, uint32_t c)
{
	struct random64 random = random_of(p, SORT_NAME, c);
	uint32_t names = last_names(p), bits;
	struct named named = { .last = c - 1, .c = (uint16_t)c };

	if (c > names) {
		bits = uniform(&random, 0, TPCC_NURAND_LAST_NAME) | uniform(&random, 0, names - 1);
		named.last = (bits + C_LAST) % names;
	}
	letters(&random, 8, 16, named.first, sizeof(named.first));
	return named;
}

static int compare_names(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = (x->last > y->last) - (x->last < y->last);

	if (!order)
		order = memcmp(x->first, y->first, sizeof(x->first));
	return order ?: (x->c > y->c) - (x->c < y->c);
}

static enum oltp_rc put_names(const struct part *p, struct tpcc_row *row, const struct named *all)
{
	uint16_t numbers[TPCC_CUSTOMERS];
	enum oltp_rc rc = OLTP_OK;
	uint32_t n;

	for (uint32_t i = 0; !rc && i < p->customers; i += n) {
		char field[16];

		for (n = 0; i + n < p->customers && all[i + n].last == all[i].last; n++)
			numbers[n] = all[i + n].c;
		snprintf(field, sizeof(field), "%u", all[i].last);
		rc = tpcc_put(p->c, row, field, numbers, n * (uint32_t)sizeof(*numbers));
	}
	return rc;
}

static enum oltp_rc load_names(const struct part *p)
{
	struct named *all = calloc(p->customers, sizeof(*all));
	struct tpcc_row row;
	enum oltp_rc rc;

	if (!all)
		return OLTP_NO_MEMORY;
	for (uint32_t i = 0; i < p->customers; i++)
		all[i] = name_of(p, i + 1);
	qsort(all, p->customers, sizeof(*all), compare_names);
	tpcc_name(&row, "tpcc:n:%u:%u", p->w, p->d);
	rc = make(p, &row) ?: put_names(p, &row, all) ?: hash_close(p->c, &row.hash);
	free(all);
	return rc;
}

/* With its new orders, which are the orders that were not delivered. */
static enum oltp_rc load_district(const struct part *p)
{
	struct random64 random = random_of(p, SORT_DISTRICT, 0);
	struct tpcc_district district = {
		.ytd = (int64_t)p->customers * TPCC_PAID_CENTS,
		.next_o = p->customers + 1,
		.next_delivery = TPCC_DELIVERED(p->customers) + 1,
		.tax = uniform(&random, 0, 2000),
	};
	struct tpcc_row row;
	enum oltp_rc rc;
	char rest[71];

	letters(&random, 6, 10, district.name, sizeof(district.name));
	memset(rest, PLACES, sizeof(rest));
	tpcc_name(&row, "tpcc:d:%u:%u", p->w, p->d);
	rc = make(p, &row) ?: tpcc_put(p->c, &row, "a", &district, sizeof(district)) ?:
	     tpcc_put(p->c, &row, "x", rest, sizeof(rest));
	for (uint32_t o = district.next_delivery; !rc && o < district.next_o; o++) {
		char field[16];

		snprintf(field, sizeof(field), "n%u", o);
		rc = tpcc_put(p->c, &row, field, &o, sizeof(o));
	}
	return rc ?: hash_close(p->c, &row.hash) ?: load_names(p);
}

/* Customers are a permutation of orders: i -> (step * i + first) modulo their number. */
static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct permutation {
	uint32_t n, step, first;
};

static struct permutation permutation_of(const struct part *p)
{
	struct random64 random = random_of(p, SORT_ORDER_OF, 0);
	struct permutation perm = { .n = p->customers, .first = uniform(&random, 0, p->customers) };

	do {
		perm.step = uniform(&random, 1, p->customers);
	} while (greatest_divisor(perm.step, p->customers) != 1);
	return perm;
}

static uint32_t customer_of(const struct permutation *perm, uint32_t o)
{
	return (uint32_t)(((uint64_t)perm->step * (o - 1) + perm->first) % perm->n) + 1;
}

/* Found by looking: there is one. */
static uint32_t order_of(const struct permutation *perm, uint32_t c)
{
	uint32_t o = 1;

	while (customer_of(perm, o) != c)
		o++;
	return o;
}

static enum oltp_rc load_customer(const struct part *p, const struct permutation *perm, uint32_t c)
{
	struct random64 random = random_of(p, SORT_CUSTOMER, c);
	struct named named = name_of(p, c);
	bool is_bad = random64_below(&random, 10) == 0;
	struct tpcc_customer customer = {
		.balance = -TPCC_PAID_CENTS,
		.ytd_payment = TPCC_PAID_CENTS,
		.payments = 1,
		.last_o = order_of(perm, c),
		.discount = uniform(&random, 0, 5000),
		.credit = { is_bad ? 'B' : 'G', 'C' },
	};
	struct tpcc_person person = { .middle = { 'O', 'E' }, .since = p->date,
				      .credit_limit = CREDIT_LIMIT };
	struct tpcc_history history = { .date = p->date, .amount = TPCC_PAID_CENTS,
					.w = (uint16_t)p->w, .d = (uint8_t)p->d };
	struct tpcc_row row;
	char data[500];

	snprintf(person.last, sizeof(person.last), "%u", named.last);
	memcpy(person.first, named.first, sizeof(person.first));
	memset(person.phone, PLACES, sizeof(person.phone));
	memset(person.address, PLACES, sizeof(person.address));
	memset(history.data, PLACES, sizeof(history.data));
	letters(&random, 300, 500, data, sizeof(data));
	tpcc_name(&row, "tpcc:c:%u:%u:%u", p->w, p->d, c);
	return make(p, &row) ?: tpcc_put(p->c, &row, "a", &customer, sizeof(customer)) ?:
	       tpcc_put(p->c, &row, "x", &person, sizeof(person)) ?:
	       tpcc_put(p->c, &row, "t", data, (uint32_t)strnlen(data, sizeof(data))) ?:
	       tpcc_put(p->c, &row, "h1", &history, sizeof(history)) ?:
	       hash_close(p->c, &row.hash);
}

static enum oltp_rc load_order(const struct part *p, const struct permutation *perm, uint32_t o)
{
	struct random64 random = random_of(p, SORT_ORDER, o);
	bool is_delivered = o <= TPCC_DELIVERED(p->customers);
	struct tpcc_order order = {
		.entry_date = p->date,
		.c = customer_of(perm, o),
		.lines = (uint8_t)uniform(&random, TPCC_LINES_MIN, TPCC_LINES_MAX),
		.all_local = 1,
	};
	struct tpcc_row row;
	enum oltp_rc rc;

	if (is_delivered)
		order.carrier = (uint8_t)uniform(&random, 1, TPCC_CARRIERS);
	tpcc_name(&row, "tpcc:o:%u:%u:%u", p->w, p->d, o);
	rc = make(p, &row) ?: tpcc_put(p->c, &row, "a", &order, sizeof(order));
	for (uint32_t i = 1; !rc && i <= order.lines; i++) {
		struct tpcc_line line = {
			.delivery_date = is_delivered ? p->date : 0,
			.item = uniform(&random, 1, p->items),
			.amount = is_delivered ? 0 : uniform(&random, 1, 999999),
			.supply_w = (uint16_t)p->w,
			.quantity = 5,
		};
		char field[16];

		letters(&random, 24, 24, line.dist_info, sizeof(line.dist_info));
		snprintf(field, sizeof(field), "%u", i);
		rc = tpcc_put(p->c, &row, field, &line, sizeof(line));
	}
	return rc ?: hash_close(p->c, &row.hash);
}

static enum oltp_rc load_stock(const struct part *p, uint32_t i)
{
	struct random64 random = random_of(p, SORT_STOCK, i), item = random_of(p, SORT_ITEM, i);
	struct tpcc_stock stock = { .quantity = (int32_t)uniform(&random, 10, 100) };
	struct tpcc_goods goods = { .price = uniform(&item, 100, 10000) };
	struct tpcc_row row;

	letters(&item, 14, 24, goods.item_name, sizeof(goods.item_name));
	letters(&item, 26, 50, goods.item_data, sizeof(goods.item_data));
	letters(&random, 26, 50, goods.data, sizeof(goods.data));
	for (uint32_t d = 0; d < TPCC_DISTRICTS; d++)
		letters(&random, 24, 24, goods.dist[d], sizeof(goods.dist[d]));
	tpcc_name(&row, "tpcc:s:%u:%u", p->w, i);
	return make(p, &row) ?: tpcc_put(p->c, &row, "a", &stock, sizeof(stock)) ?:
	       tpcc_put(p->c, &row, "x", &goods, sizeof(goods)) ?: hash_close(p->c, &row.hash);
}

static enum oltp_rc load_rows(const struct part *p, const struct resp_arg *name)
{
	bool is_stock = arg_is(name, "STOCK"), is_order = arg_is(name, "ORDERS");
	uint32_t last = is_stock ? p->items : p->customers;
	struct permutation perm = permutation_of(p);
	enum oltp_rc rc = OLTP_OK;

	if (!p->from || !p->n || p->n > ROWS_MAX || p->from > last || p->n > last - p->from + 1)
		return answer_error(p->c, "ERR tpcc: no such rows, or too many");
	for (uint32_t i = p->from; !rc && i < p->from + p->n; i++)
		rc = is_stock ? load_stock(p, i) :
		     is_order ? load_order(p, &perm, i) : load_customer(p, &perm, i);
	return rc;
}

enum oltp_rc tpcc_load_part(struct call *c, uint32_t n_keys)
{
	const struct resp_arg *name = &c->args[3 + n_keys];
	struct part p = { .c = c, .date = tpcc_now() };
	uint32_t numbers[7], n;
	enum oltp_rc rc;

	if (c->n < 4 + n_keys)
		return answer_error(c, "ERR tpcc: wrong number of arguments");
	rc = tpcc_numbers(c, n_keys + 1, 7, 7, numbers, &n);
	if (rc)
		return rc;
	p.w = numbers[0];
	p.d = numbers[1];
	p.from = numbers[2];
	p.n = numbers[3];
	p.customers = numbers[4];
	p.items = numbers[5];
	p.seed = numbers[6];
	rc = tpcc_check_district(c, p.w, p.d);
	if (!rc && (p.customers < 30 || p.customers > TPCC_CUSTOMERS || p.items < 20 ||
		    p.items > TPCC_ITEMS))
		rc = answer_error(c, "ERR tpcc: 30 to 3000 customers, 20 to 100000 items");
	if (rc)
		return rc;
	if (arg_is(name, "WAREHOUSE"))
		rc = load_warehouse(&p, p.w);
	else if (arg_is(name, "DISTRICT"))
		rc = load_district(&p);
	else if (arg_is(name, "STOCK") || arg_is(name, "ORDERS") || arg_is(name, "CUSTOMERS"))
		rc = load_rows(&p, name);
	else
		return answer_error(c, "ERR tpcc: loads warehouse, district, stock, orders or "
				       "customers");
	if (!rc)
		resp_out_simple(c->out, "OK");
	return rc;
}
