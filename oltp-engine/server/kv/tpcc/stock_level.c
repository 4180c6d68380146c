// SPDX-License-Identifier: GPL-2.0-or-later
/* Stock-Level (section 2.8 of the specification), serializable as all others. */
#include <stdio.h>
#include <stdlib.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"

#define ITEMS_MAX	(TPCC_RECENT_ORDERS * TPCC_LINES_MAX)

struct items {
	uint32_t n;
	uint32_t list[ITEMS_MAX];
};

static enum oltp_rc collect(struct call *c, uint32_t w, uint32_t d, uint32_t o, struct items *items)
{
	struct tpcc_order order;
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:o:%u:%u:%u", w, d, o);
	rc = tpcc_must_open(c, &row, false) ?: tpcc_get(c, &row, "a", &order, sizeof(order));
	if (!rc && order.lines > TPCC_LINES_MAX)
		rc = tpcc_bad_row(c, &row);
	for (uint32_t i = 1; !rc && i <= order.lines; i++) {
		struct tpcc_line line;
		char field[16];

		snprintf(field, sizeof(field), "%u", i);
		rc = tpcc_get(c, &row, field, &line, sizeof(line));
		if (!rc)
			items->list[items->n++] = line.item;
	}
	return rc;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sorted, none twice. */
static void sort(struct items *items)
{
	uint32_t n = 0;

	qsort(items->list, items->n, sizeof(*items->list), compare);
	for (uint32_t i = 0; i < items->n; i++) {
		if (!n || items->list[n - 1] != items->list[i])
			items->list[n++] = items->list[i];
	}
	items->n = n;
}

static enum oltp_rc count_low(struct call *c, uint32_t w, const struct items *items,
			      uint32_t threshold, uint32_t *ret_n)
{
	enum oltp_rc rc = OLTP_OK;
	struct tpcc_row row;

	*ret_n = 0;
	for (uint32_t i = 0; i < items->n; i++) {
		tpcc_name(&row, "tpcc:s:%u:%u", w, items->list[i]);
		rc = call_need(c, &row.name) ?: rc;
	}
	for (uint32_t i = 0; !rc && i < items->n; i++) {
		struct tpcc_stock stock;

		tpcc_name(&row, "tpcc:s:%u:%u", w, items->list[i]);
		rc = tpcc_must_open(c, &row, false) ?:
		     tpcc_get(c, &row, "a", &stock, sizeof(stock));
		if (!rc)
			*ret_n += stock.quantity < (int64_t)threshold;
	}
	return rc;
}

enum oltp_rc tpcc_stock_level(struct call *c, uint32_t n_keys)
{
	uint32_t numbers[3], n, first, n_low;
	struct items items = { .n = 0 };
	struct tpcc_district district;
	struct tpcc_row row;
	enum oltp_rc rc;

	rc = tpcc_numbers(c, n_keys, 3, 3, numbers, &n) ?:
	     tpcc_check_district(c, numbers[0], numbers[1]);
	if (rc)
		return rc;
	tpcc_name(&row, "tpcc:d:%u:%u", numbers[0], numbers[1]);
	rc = tpcc_must_open(c, &row, false) ?:
	     tpcc_get(c, &row, "a", &district, sizeof(district));
	if (rc)
		return rc;
	first = district.next_o > TPCC_RECENT_ORDERS ? district.next_o - TPCC_RECENT_ORDERS : 1;
	for (uint32_t o = first; o < district.next_o; o++) {
		tpcc_name(&row, "tpcc:o:%u:%u:%u", numbers[0], numbers[1], o);
		rc = call_need(c, &row.name) ?: rc;
	}
	for (uint32_t o = first; !rc && o < district.next_o; o++)
		rc = collect(c, numbers[0], numbers[1], o, &items);
	if (rc)
		return rc;
	sort(&items);
	rc = count_low(c, numbers[0], &items, numbers[2], &n_low);
	if (!rc)
		resp_out_integer(c->out, n_low);
	return rc;
}
