// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions that all procedures use: see tpcc.h. */
#include "oltp-engine/server/kv/tpcc/tpcc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/procedure.h"

const struct procedure tpcc_procedures[TPCC_PROCEDURES] = {
	{ "TPCC_NEW_ORDER", false, tpcc_new_order },
	{ "TPCC_PAYMENT", false, tpcc_payment },
	{ "TPCC_ORDER_STATUS", true, tpcc_order_status },
	{ "TPCC_DELIVERY", false, tpcc_delivery },
	{ "TPCC_STOCK_LEVEL", true, tpcc_stock_level },
	{ "TPCC_LOAD", false, tpcc_load_part },
	{ "TPCC_CHECK", true, tpcc_check },
};

static void __attribute__((format(printf, 2, 0)))
name_row(struct tpcc_row *row, const char *format, va_list ap)
{
	int n = vsnprintf(row->key, sizeof(row->key), format, ap);

	row->name = (struct resp_arg){ row->key, (uint32_t)n };
}

void tpcc_name(struct tpcc_row *row, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	name_row(row, format, ap);
	va_end(ap);
}

enum oltp_rc tpcc_need(struct call *c, const char *format, ...)
{
	struct tpcc_row row;
	va_list ap;

	va_start(ap, format);
	name_row(&row, format, ap);
	va_end(ap);
	return call_need(c, &row.name);
}

enum oltp_rc tpcc_open(struct call *c, struct tpcc_row *row, bool exclusive)
{
	enum oltp_rc rc = call_need(c, &row->name);

	return rc ?: hash_open(c, &row->name, exclusive, &row->hash);
}

enum oltp_rc tpcc_bad_row(struct call *c, const struct tpcc_row *row)
{
	resp_out_errorf(c->out, "ERR tpcc: %s is not there, or not as it must be", row->key);
	return KV_ANSWERED;
}

enum oltp_rc tpcc_must_open(struct call *c, struct tpcc_row *row, bool exclusive)
{
	enum oltp_rc rc = tpcc_open(c, row, exclusive);

	if (!rc && !row->hash.head.id)
		return tpcc_bad_row(c, row);
	return rc;
}

static struct resp_arg field_name(const char *field)
{
	return (struct resp_arg){ field, (uint32_t)strlen(field) };
}

enum oltp_rc tpcc_get(struct call *c, struct tpcc_row *row, const char *field, void *ret,
		      uint32_t bytes)
{
	const struct resp_arg name = field_name(field);
	struct resp_arg value;
	struct found found;
	enum oltp_rc rc = hash_find(c, &row->hash, &name, false, &found);

	if (rc)
		return rc;
	if (!found.row || found.row->value_bytes != bytes)
		return tpcc_bad_row(c, row);
	rc = keyspace_value(&c->kv->ks, c->worker, found.slot, found.row, &value);
	if (!rc)
		memcpy(ret, value.bytes, bytes);
	return rc;
}

enum oltp_rc tpcc_put(struct call *c, struct tpcc_row *row, const char *field, const void *from,
		      uint32_t bytes)
{
	const struct resp_arg name = field_name(field), value = { from, bytes };

	c->has_written = true;
	return hash_set(c, &row->hash, &name, &value);
}

enum oltp_rc tpcc_drop(struct call *c, struct tpcc_row *row, const char *field)
{
	const struct resp_arg name = field_name(field);
	struct found found;
	enum oltp_rc rc = hash_find(c, &row->hash, &name, true, &found);

	if (rc)
		return rc;
	if (!found.row)
		return tpcc_bad_row(c, row);
	c->has_written = true;
	return hash_remove_field(c, &row->hash, &found);
}

enum oltp_rc tpcc_numbers(struct call *c, uint32_t n_keys, uint32_t min, uint32_t max,
			  uint32_t *ret, uint32_t *ret_n)
{
	uint32_t n = c->n - 3 - n_keys;

	if (n < min || n > max)
		return answer_error(c, "ERR tpcc: wrong number of arguments");
	for (uint32_t i = 0; i < n; i++) {
		const struct resp_arg *arg = &c->args[3 + n_keys + i];
		uint64_t number;

		if (!number_parse_unsigned(arg->bytes, arg->n, &number) || number > UINT32_MAX)
			return answer_not_integer(c);
		ret[i] = (uint32_t)number;
	}
	*ret_n = n;
	return OLTP_OK;
}

enum oltp_rc tpcc_check_district(struct call *c, uint32_t w, uint32_t d)
{
	if (w < 1 || w > TPCC_WAREHOUSES_MAX || d < 1 || d > TPCC_DISTRICTS)
		return answer_error(c, "ERR tpcc: no such warehouse or district");
	return OLTP_OK;
}

enum oltp_rc tpcc_find_customer(struct call *c, uint32_t w, uint32_t d, uint32_t number,
				uint32_t last_name, uint32_t *ret_number)
{
	struct resp_arg name, numbers;
	struct tpcc_row row;
	struct found found;
	uint16_t middle;
	char field[16];
	enum oltp_rc rc;

	*ret_number = number;
	if (number)
		return OLTP_OK;
	tpcc_name(&row, "tpcc:n:%u:%u", w, d);
	rc = tpcc_must_open(c, &row, false);
	snprintf(field, sizeof(field), "%u", last_name);
	name = field_name(field);
	if (!rc)
		rc = hash_find(c, &row.hash, &name, false, &found);
	if (rc)
		return rc;
	if (!found.row || found.row->value_bytes < sizeof(middle))
		return tpcc_bad_row(c, &row);
	rc = keyspace_value(&c->kv->ks, c->worker, found.slot, found.row, &numbers);
	if (rc)
		return rc;
	memcpy(&middle, numbers.bytes + (numbers.n / sizeof(middle) - 1) / 2 * sizeof(middle),
	       sizeof(middle));
	*ret_number = middle;
	return OLTP_OK;
}

int64_t tpcc_now(void)
{
	return (int64_t)time(NULL);
}
