// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Payment (section 2.5 of the specification). The warehouse, whose lock every other payment wants,
 * comes last.
 */
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"

#define DATA_BYTES	500u	/* of C_DATA at most */

struct payment {
	uint32_t w, d, customer_w, customer_d, customer, last_name, amount;
};

/* Adds the payment to the data of a customer with bad credit (2.5.2.2). */
static enum oltp_rc note_in_data(struct call *c, struct tpcc_row *row, const struct payment *p)
{
	const struct resp_arg name = { "t", 1 };
	struct resp_arg old = { NULL, 0 };
	char text[64 + DATA_BYTES];
	struct found found;
	uint32_t n, room;
	enum oltp_rc rc = hash_find(c, &row->hash, &name, true, &found);

	if (rc)
		return rc;
	if (!found.row)
		return tpcc_bad_row(c, row);
	rc = keyspace_value(&c->kv->ks, c->worker, found.slot, found.row, &old);
	if (rc)
		return rc;
	n = (uint32_t)snprintf(text, 64, "%u %u %u %u %u %u.%02u ", p->customer, p->customer_d,
			       p->customer_w, p->d, p->w, p->amount / 100, p->amount % 100);
	room = old.n < DATA_BYTES - n ? old.n : DATA_BYTES - n;
	memcpy(text + n, old.bytes, room);
	return hash_set_found(c, &row->hash, &found, &(struct resp_arg){ text, n + room });
}

static enum oltp_rc book(struct call *c, const struct payment *p,
			 const struct tpcc_history *history, int64_t *ret_balance)
{
	struct tpcc_customer customer;
	struct tpcc_row row;
	char field[16];
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:c:%u:%u:%u", p->customer_w, p->customer_d, p->customer);
	rc = tpcc_must_open(c, &row, true) ?:
	     tpcc_get(c, &row, "a", &customer, sizeof(customer));
	if (rc)
		return rc;
	customer.balance -= p->amount;
	customer.ytd_payment += p->amount;
	customer.payments++;
	*ret_balance = customer.balance;
	snprintf(field, sizeof(field), "h%u", customer.payments);
	rc = tpcc_put(c, &row, "a", &customer, sizeof(customer)) ?:
	     tpcc_put(c, &row, field, history, sizeof(*history));
	if (!rc && customer.credit[0] == 'B')
		rc = note_in_data(c, &row, p);
	return rc ?: hash_close(c, &row.hash);
}

static enum oltp_rc take_in_district(struct call *c, const struct payment *p)
{
	struct tpcc_district district;
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:d:%u:%u", p->w, p->d);
	rc = tpcc_must_open(c, &row, true) ?:
	     tpcc_get(c, &row, "a", &district, sizeof(district));
	if (rc)
		return rc;
	district.ytd += p->amount;
	return tpcc_put(c, &row, "a", &district, sizeof(district)) ?: hash_close(c, &row.hash);
}

static enum oltp_rc take_in_warehouse(struct call *c, const struct payment *p)
{
	struct tpcc_warehouse warehouse;
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:w:%u", p->w);
	rc = tpcc_must_open(c, &row, true) ?:
	     tpcc_get(c, &row, "a", &warehouse, sizeof(warehouse));
	if (rc)
		return rc;
	warehouse.ytd += p->amount;
	return tpcc_put(c, &row, "a", &warehouse, sizeof(warehouse)) ?: hash_close(c, &row.hash);
}

/* All but the customer, if that has to be found by its name. */
static enum oltp_rc need_rows(struct call *c, const struct payment *p)
{
	enum oltp_rc rc;

	if (p->customer)
		rc = tpcc_need(c, "tpcc:c:%u:%u:%u", p->customer_w, p->customer_d, p->customer);
	else
		rc = tpcc_need(c, "tpcc:n:%u:%u", p->customer_w, p->customer_d);
	rc = tpcc_need(c, "tpcc:d:%u:%u", p->w, p->d) ?: rc;
	return tpcc_need(c, "tpcc:w:%u", p->w) ?: rc;
}

enum oltp_rc tpcc_payment(struct call *c, uint32_t n_keys)
{
	struct tpcc_history history = { .date = tpcc_now() };
	uint32_t numbers[7], n;
	struct payment p;
	int64_t balance = 0;
	enum oltp_rc rc = tpcc_numbers(c, n_keys, 7, 7, numbers, &n);

	if (rc)
		return rc;
	p = (struct payment){ numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
			      numbers[5], numbers[6] };
	rc = tpcc_check_district(c, p.w, p.d) ?:
	     tpcc_check_district(c, p.customer_w, p.customer_d) ?: need_rows(c, &p) ?:
	     tpcc_find_customer(c, p.customer_w, p.customer_d, p.customer, p.last_name,
				&p.customer);
	if (rc)
		return rc;
	history.amount = p.amount;
	history.w = (uint16_t)p.w;
	history.d = (uint8_t)p.d;
	memset(history.data, '.', sizeof(history.data));
	rc = book(c, &p, &history, &balance) ?: take_in_district(c, &p) ?:
	     take_in_warehouse(c, &p);
	if (rc)
		return rc;
	resp_out_array(c->out, 2);
	resp_out_integer(c->out, p.customer);
	resp_out_integer(c->out, balance);
	return OLTP_OK;
}
