// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * New-Order (section 2.4 of the specification). Stock comes before the district, whose lock every
 * other new order of the district wants, and the warehouse, which every payment wants, comes last:
 * their locks are held for as short as can be.
 */
#include <stddef.h>
#include <string.h>

#include "tpcc_private.h"

#define RATE_ONE		10000u	/* rates are in 1/10000 */

static uint16_t draw_supplier(struct tpcc_worker *tw, uint16_t home)
{
	uint32_t warehouses = tw->tpcc->config.warehouses;
	uint32_t w;

	if (warehouses == 1 || tpcc_uniform(&tw->random, 1, 100) > TPCC_REMOTE_LINE_PERCENT)
		return home;
	w = tpcc_uniform(&tw->random, 1, warehouses - 1);
	return (uint16_t)(w + (w >= home));
}

static void new_order_draw(struct tpcc_worker *tw, struct tpcc_txn *txn)
{
	const struct tpcc *tpcc = tw->tpcc;
	uint32_t n = tpcc_uniform(&tw->random, TPCC_LINES_MIN, TPCC_LINES_MAX);

	txn->who = (struct tpcc_who){
		.w = txn->w,
		.d = txn->d,
		.c = (uint16_t)tpcc_nurand_draw(&tw->random, TPCC_NURAND_CUSTOMER,
						tpcc->run_c.c_id, 1, tpcc->config.customers),
	};
	txn->new_order.n_lines = (uint8_t)n;
	txn->new_order.all_local = true;
	for (uint32_t i = 0; i < n; i++) {
		struct tpcc_order_line *line = &txn->new_order.lines[i];

		line->item = tpcc_nurand_draw(&tw->random, TPCC_NURAND_ITEM, tpcc->run_c.item, 1,
					      tpcc->config.items);
		line->supply_w = draw_supplier(tw, txn->w);
		line->quantity = (uint8_t)tpcc_uniform(&tw->random, 1, 10);
		txn->new_order.all_local &= line->supply_w == txn->w;
	}
	txn->new_order.has_unused_item =
		tpcc_uniform(&tw->random, 1, 100) <= TPCC_UNUSED_ITEM_PERCENT;
	if (txn->new_order.has_unused_item)
		txn->new_order.lines[n - 1].item = tpcc->config.items + 1;
}

/* What the order's rows are made of. */
struct order {
	uint32_t n;		/* lines with an item that there is */
	uint64_t total;		/* of their amounts */
	uint32_t discount, tax;	/* the customer's, the district's */
	struct tpcc_line lines[TPCC_LINES_MAX];
};

/* In the order in which they will be accessed. */
static void announce_reads(struct tpcc_worker *tw, const struct tpcc_txn *txn, uint32_t n)
{
	struct oltp_hint *hint = tw->hints;
	uint32_t dist = (uint32_t)offsetof(struct tpcc_stock, dist) + (txn->d - 1u) * 24;

	for (uint32_t i = 0; i < n; i++) {
		const struct tpcc_order_line *line = &txn->new_order.lines[i];

		*hint++ = tpcc_hint(tw, TPCC_ITEM, line->item, 0, sizeof(struct tpcc_item));
		*hint++ = tpcc_hint(tw, TPCC_STOCK, tpcc_stock_key(line->supply_w, line->item),
				    dist, 24);
	}
	*hint++ = tpcc_hint(tw, TPCC_CUSTOMER,
			    tpcc_customer_key(txn->w, txn->d, txn->who.c), 0, 48);
	*hint++ = tpcc_hint(tw, TPCC_DISTRICT, tpcc_district_key(txn->w, txn->d), 0, 48);
	*hint++ = tpcc_hint(tw, TPCC_WAREHOUSE, txn->w, 0, 48);
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, (uint32_t)(hint - tw->hints));
}

static enum oltp_rc take_stock(struct tpcc_worker *tw, const struct tpcc_txn *txn, uint32_t i,
			       struct order *order)
{
	static const struct oltp_span span = { 0, offsetof(struct tpcc_stock, dist) };
	const struct tpcc_order_line *wanted = &txn->new_order.lines[i];
	struct oltp_table **tables = tw->tpcc->tables;
	struct tpcc_line *line = &order->lines[i];
	const struct tpcc_item *item;
	struct tpcc_stock *stock;
	const void *found;
	void *changed;
	enum oltp_rc rc;

	rc = oltp_txn_read(tw->worker, tables[TPCC_ITEM], wanted->item, &found);
	if (rc)
		return rc;
	rc = oltp_txn_update(tw->worker, tables[TPCC_STOCK],
			     tpcc_stock_key(wanted->supply_w, wanted->item), &span, 1, &changed);
	if (rc)
		return rc;
	item = found;
	stock = changed;
	stock->quantity -= wanted->quantity;
	if (stock->quantity < 10)
		stock->quantity += 91;
	stock->ytd += wanted->quantity;
	stock->orders++;
	stock->remotes += wanted->supply_w != txn->w;
	*line = (struct tpcc_line){
		.item = wanted->item,
		.amount = wanted->quantity * item->price,
		.supply_w = wanted->supply_w,
		.quantity = wanted->quantity,
	};
	memcpy(line->dist_info, stock->dist[txn->d - 1], sizeof(line->dist_info));
	order->total += line->amount;
	/* Brand or generic. */
	tw->shown += tpcc_is_original(item->data) && tpcc_is_original(stock->data);
	return OLTP_OK;
}

/* The next number of the district; ret_order learns what it and the customer have to say. */
static enum oltp_rc take_number(struct tpcc_worker *tw, const struct tpcc_txn *txn, uint32_t *ret_o,
				struct order *ret_order)
{
	static const struct oltp_span span = { offsetof(struct tpcc_district, next_o_id),
					       sizeof(uint32_t) };
	struct oltp_table **tables = tw->tpcc->tables;
	const void *customer;
	struct tpcc_district *district;
	void *changed;
	enum oltp_rc rc;

	rc = oltp_txn_read(tw->worker, tables[TPCC_CUSTOMER],
			   tpcc_customer_key(txn->w, txn->d, txn->who.c), &customer) ?:
	     oltp_txn_update(tw->worker, tables[TPCC_DISTRICT], tpcc_district_key(txn->w, txn->d),
			     &span, 1, &changed);
	if (rc)
		return rc;
	district = changed;
	*ret_o = district->next_o_id++;
	ret_order->discount = ((const struct tpcc_customer *)customer)->discount;
	ret_order->tax = district->tax;
	return OLTP_OK;
}

/* What the terminal would show in the end. */
static enum oltp_rc show_total(struct tpcc_worker *tw, const struct tpcc_txn *txn,
			       const struct order *order)
{
	const struct tpcc_warehouse *warehouse;
	const void *found;
	enum oltp_rc rc;

	rc = oltp_txn_read(tw->worker, tw->tpcc->tables[TPCC_WAREHOUSE], txn->w, &found);
	if (rc)
		return rc;
	warehouse = found;
	tw->shown += order->total * (RATE_ONE - order->discount) / RATE_ONE *
		     (RATE_ONE + warehouse->tax + order->tax) / RATE_ONE;
	return OLTP_OK;
}

static void announce_rows(struct tpcc_worker *tw, uint64_t key, uint32_t n)
{
	struct oltp_hint *hint = tw->hints;

	*hint++ = tpcc_hint(tw, TPCC_ORDER, key, 0, 0);
	*hint++ = tpcc_hint(tw, TPCC_NEW_ORDER_ROW, key, 0, 0);
	for (uint32_t i = 0; i < n; i++)
		*hint++ = tpcc_hint(tw, TPCC_LINE, tpcc_line_key(key, i + 1), 0, 0);
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, n + 2);
}

static enum oltp_rc add_rows(struct tpcc_worker *tw, const struct tpcc_txn *txn, uint32_t o,
			     const struct order *order)
{
	uint64_t key = tpcc_order_key(txn->w, txn->d, o);
	struct oltp_table **tables = tw->tpcc->tables;
	const struct tpcc_order row = {
		.entry_date = txn->date,
		.c = txn->who.c,
		.lines = txn->new_order.n_lines,
		.all_local = txn->new_order.all_local,
	};
	enum oltp_rc rc;

	rc = oltp_txn_insert(tw->worker, tables[TPCC_ORDER], key, &row) ?:
	     oltp_txn_insert(tw->worker, tables[TPCC_NEW_ORDER_ROW], key,
			     &(struct tpcc_new_order){ .o = o });
	for (uint32_t i = 0; !rc && i < order->n; i++)
		rc = oltp_txn_insert(tw->worker, tables[TPCC_LINE], tpcc_line_key(key, i + 1),
				     &order->lines[i]);
	return rc;
}

static enum oltp_rc new_order_run(struct tpcc_worker *tw, const struct tpcc_txn *txn)
{
	uint32_t keep = tw->tpcc->config.keep_orders;
	struct order order = {
		.n = txn->new_order.n_lines - txn->new_order.has_unused_item,
	};
	enum oltp_rc rc = OLTP_OK;
	uint32_t o;

	announce_reads(tw, txn, order.n);
	for (uint32_t i = 0; !rc && i < order.n; i++)
		rc = take_stock(tw, txn, i, &order);
	rc = rc ?: take_number(tw, txn, &o, &order);
	if (rc)
		return rc;
	announce_rows(tw, tpcc_order_key(txn->w, txn->d, o), order.n);
	rc = add_rows(tw, txn, o, &order);
	/* The last one, after all others were done: that is what there is to roll back. */
	if (!rc && txn->new_order.has_unused_item)
		rc = take_stock(tw, txn, order.n, &order);
	if (!rc && keep && o > keep)
		rc = tpcc_order_recycle(tw, txn->w, txn->d, o - keep);
	return rc ?: show_total(tw, txn, &order);
}

const struct tpcc_kind_ops tpcc_new_order_ops = {
	.name = "new_order",
	.draw = new_order_draw,
	.run = new_order_run,
};
