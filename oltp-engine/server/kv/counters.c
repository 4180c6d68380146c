// SPDX-License-Identifier: GPL-2.0-or-later
/* Strings that are numbers. */
#include <math.h>

#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/private.h"

static enum oltp_rc add(struct call *c, int64_t by)
{
	char text[NUMBER_MAX];
	struct resp_arg value = { text, 0 }, old;
	struct found found;
	int64_t number = 0;
	enum oltp_rc rc = find_key(c, &c->args[1], ROW_STRING, true, &found);

	if (!rc && found.row) {
		rc = keyspace_value(&c->kv->ks, c->worker, found.slot, found.row, &old);
		if (!rc && !number_parse(old.bytes, old.n, &number))
			return answer_not_integer(c);
	}
	if (rc)
		return rc;
	if (__builtin_add_overflow(number, by, &number))
		return answer_error(c, "ERR increment or decrement would overflow");
	value.n = number_print(text, number);
	rc = set_found(c, &found, &value);
	if (!rc)
		resp_out_integer(c->out, number);
	return rc;
}

enum oltp_rc cmd_incr(struct call *c)
{
	return add(c, 1);
}

enum oltp_rc cmd_decr(struct call *c)
{
	return add(c, -1);
}

enum oltp_rc cmd_incrby(struct call *c)
{
	int64_t by;

	if (!number_parse(c->args[2].bytes, c->args[2].n, &by))
		return answer_not_integer(c);
	return add(c, by);
}

enum oltp_rc cmd_decrby(struct call *c)
{
	int64_t by;

	if (!number_parse(c->args[2].bytes, c->args[2].n, &by))
		return answer_not_integer(c);
	if (by == INT64_MIN)
		return answer_error(c, "ERR decrement would overflow");
	return add(c, -by);
}

enum oltp_rc cmd_incrbyfloat(struct call *c)
{
	char text[NUMBER_FLOAT_MAX];
	struct resp_arg value = { text, 0 }, old;
	long double number = 0, by;
	struct found found;
	enum oltp_rc rc = find_key(c, &c->args[1], ROW_STRING, true, &found);

	if (!rc && found.row) {
		rc = keyspace_value(&c->kv->ks, c->worker, found.slot, found.row, &old);
		if (!rc && !number_parse_float(old.bytes, old.n, &number))
			return answer_error(c, "ERR value is not a valid float");
	}
	if (rc)
		return rc;
	if (!number_parse_float(c->args[2].bytes, c->args[2].n, &by))
		return answer_error(c, "ERR value is not a valid float");
	number += by;
	if (isnan(number) || isinf(number))
		return answer_error(c, "ERR increment would produce NaN or Infinity");
	value.n = number_print_float(text, number);
	rc = set_found(c, &found, &value);
	if (!rc)
		resp_out_bulk(c->out, value.bytes, value.n);
	return rc;
}
