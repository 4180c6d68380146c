// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Payment (section 2.5 of the specification). The warehouse, whose lock every other payment wants,
 * comes last.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tpcc_private.h"

#define NAME_GAP		4u	/* between the names in the data of a history */

static void payment_draw(struct tpcc_worker *tw, struct tpcc_txn *txn)
{
	uint32_t warehouses = tw->tpcc->config.warehouses;
	uint16_t w = txn->w;
	uint8_t d = txn->d;

	if (warehouses > 1 && tpcc_uniform(&tw->random, 1, 100) > TPCC_HOME_CUSTOMER_PERCENT) {
		uint32_t other = tpcc_uniform(&tw->random, 1, warehouses - 1);

		w = (uint16_t)(other + (other >= w));
		d = (uint8_t)tpcc_uniform(&tw->random, 1, TPCC_DISTRICTS);
	}
	tpcc_who_draw(tw, w, d, &txn->who);
	txn->amount = tpcc_uniform(&tw->random, 100, 500000);
}

static void announce(struct tpcc_worker *tw, const struct tpcc_txn *txn)
{
	struct oltp_hint *hint = tw->hints;

	if (txn->who.c)
		*hint++ = tpcc_hint(tw, TPCC_CUSTOMER,
				    tpcc_customer_key(txn->who.w, txn->who.d, txn->who.c), 0, 48);
	*hint++ = tpcc_hint(tw, TPCC_DISTRICT, tpcc_district_key(txn->w, txn->d), 0, 48);
	*hint++ = tpcc_hint(tw, TPCC_WAREHOUSE, txn->w, 0, 48);
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, (uint32_t)(hint - tw->hints));
}

/* Adds the payment to the data of a customer with bad credit (2.5.2.2). */
static enum oltp_rc note_payment(struct tpcc_worker *tw, const struct tpcc_txn *txn, uint64_t key)
{
	static const struct oltp_span span = { offsetof(struct tpcc_customer, data), 500 };
	struct tpcc_customer *customer;
	void *changed;
	char note[64];
	enum oltp_rc rc;
	size_t bytes;

	rc = oltp_txn_update(tw->worker, tw->tpcc->tables[TPCC_CUSTOMER], key, &span, 1, &changed);
	if (rc)
		return rc;
	customer = changed;
	bytes = (size_t)snprintf(note, sizeof(note), "%u %u %u %u %u %u.%02u ",
				 (unsigned int)(key & 0xfff), txn->who.d, txn->who.w, txn->d,
				 txn->w, txn->amount / 100, txn->amount % 100);
	memmove(customer->data + bytes, customer->data, sizeof(customer->data) - bytes);
	memcpy(customer->data, note, bytes);
	return OLTP_OK;
}

/* Books the payment on the customer. */
static enum oltp_rc pay(struct tpcc_worker *tw, const struct tpcc_txn *txn, uint64_t key,
			struct tpcc_customer **ret_customer)
{
	static const struct oltp_span spans[] = {
		{ 0, offsetof(struct tpcc_customer, deliveries) },
		{ offsetof(struct tpcc_customer, archived_payments), sizeof(int64_t) },
	};
	struct tpcc_customer *customer;
	struct oltp_hint hint;
	void *changed;
	enum oltp_rc rc;

	rc = oltp_txn_update(tw->worker, tw->tpcc->tables[TPCC_CUSTOMER], key, spans,
			     tw->tpcc->config.keep_orders ? 2 : 1, &changed);
	if (rc)
		return rc;
	customer = changed;
	customer->balance -= txn->amount;
	customer->ytd_payment += txn->amount;
	customer->payments++;
	hint = tpcc_hint(tw, TPCC_HISTORY, tpcc_history_key(key, customer->payments), 0, 0);
	oltp_txn_prefetch(tw->worker, NULL, &hint, 1);
	*ret_customer = customer;
	return customer->credit[0] == 'B' ? note_payment(tw, txn, key) : OLTP_OK;
}

static enum oltp_rc take_in(struct tpcc_worker *tw, const struct tpcc_txn *txn,
			    const char **ret_warehouse_name, struct tpcc_district **ret_district)
{
	static const struct oltp_span spans[] = {
		{ offsetof(struct tpcc_district, ytd), sizeof(int64_t) },
		{ offsetof(struct tpcc_district, archived_payments), sizeof(int64_t) },
	};
	struct oltp_table **tables = tw->tpcc->tables;
	struct tpcc_warehouse *warehouse;
	void *changed;
	enum oltp_rc rc;

	rc = oltp_txn_update(tw->worker, tables[TPCC_DISTRICT], tpcc_district_key(txn->w, txn->d),
			     spans, tw->tpcc->config.keep_orders ? 2 : 1, &changed);
	if (rc)
		return rc;
	*ret_district = changed;
	(*ret_district)->ytd += txn->amount;
	rc = oltp_txn_update(tw->worker, tables[TPCC_WAREHOUSE], txn->w, spans, 1, &changed);
	if (rc)
		return rc;
	warehouse = changed;
	warehouse->ytd += txn->amount;
	*ret_warehouse_name = warehouse->name;
	return OLTP_OK;
}

static enum oltp_rc payment_run(struct tpcc_worker *tw, const struct tpcc_txn *txn)
{
	const struct tpcc_config *config = &tw->tpcc->config;
	uint32_t keep = config->keep_orders / config->customers;
	struct tpcc_history history = {
		.date = txn->date,
		.amount = txn->amount,
		.w = txn->w,
		.d = txn->d,
		.c_d = txn->who.d,
		.c_w = txn->who.w,
	};
	struct tpcc_customer *customer;
	struct tpcc_district *district;
	const char *warehouse_name;
	enum oltp_rc rc;
	uint64_t key;

	announce(tw, txn);
	rc = tpcc_who_find(tw, &txn->who, &key) ?:
	     pay(tw, txn, key, &customer) ?:
	     take_in(tw, txn, &warehouse_name, &district);
	if (rc)
		return rc;
	history.c = key & 0xfff;
	memcpy(history.data, warehouse_name, sizeof(district->name));
	memset(history.data + sizeof(district->name), ' ', NAME_GAP);
	memcpy(history.data + sizeof(district->name) + NAME_GAP, district->name,
	       sizeof(district->name));
	rc = oltp_txn_insert(tw->worker, tw->tpcc->tables[TPCC_HISTORY],
			     tpcc_history_key(key, customer->payments), &history);
	if (rc || !keep || customer->payments <= keep)
		return rc;
	return tpcc_history_recycle(tw, tpcc_history_key(key, customer->payments - keep), customer,
				    tpcc_district_key(txn->w, txn->d), district);
}

const struct tpcc_kind_ops tpcc_payment_ops = {
	.name = "payment",
	.draw = payment_draw,
	.run = payment_run,
};
