// SPDX-License-Identifier: GPL-2.0-or-later
/* See procedures.h. */
#include <stdio.h>
#include <string.h>

#include "procedures.h"

#define KEYS_MAX	(3 + TPCC_LINES_MAX)
#define KEY_BYTES	48u

/* Those that are known before the procedure runs. */
struct keys {
	uint32_t n;
	char names[KEYS_MAX][KEY_BYTES];
};

static const char *const names[LOAD_MIX_KINDS] = {
	[LOAD_NEW_ORDER] = "tpcc_new_order", [LOAD_PAYMENT] = "tpcc_payment",
	[LOAD_ORDER_STATUS] = "tpcc_order_status", [LOAD_DELIVERY] = "tpcc_delivery",
	[LOAD_STOCK_LEVEL] = "tpcc_stock_level",
};

static void add_key(struct keys *keys, const char *table, uint32_t a, uint32_t b)
{
	snprintf(keys->names[keys->n++], KEY_BYTES, "tpcc:%s:%u:%u", table, a, b);
}

/* The customer, or where it is found by its name. */
static void add_customer(struct keys *keys, uint32_t w, uint32_t d, uint32_t c)
{
	if (c)
		snprintf(keys->names[keys->n++], KEY_BYTES, "tpcc:c:%u:%u:%u", w, d, c);
	else
		add_key(keys, "n", w, d);
}

static void add_warehouse(struct keys *keys, uint32_t w)
{
	snprintf(keys->names[keys->n++], KEY_BYTES, "tpcc:w:%u", w);
}

static void keys_of(enum load_kind kind, const struct load_tpcc_call *call, struct keys *keys)
{
	const uint32_t *v = call->numbers;

	keys->n = 0;
	switch (kind) {
	case LOAD_NEW_ORDER:
		add_warehouse(keys, v[0]);
		add_key(keys, "d", v[0], v[1]);
		add_customer(keys, v[0], v[1], v[2]);
		for (uint32_t i = 3; i < call->n; i += 3)
			add_key(keys, "s", v[i + 1], v[i]);
		break;
	case LOAD_PAYMENT:
		add_warehouse(keys, v[0]);
		add_key(keys, "d", v[0], v[1]);
		add_customer(keys, v[2], v[3], v[4]);
		break;
	case LOAD_ORDER_STATUS:
		add_customer(keys, v[0], v[1], v[2]);
		break;
	case LOAD_DELIVERY:
		for (uint32_t d = 1; d <= TPCC_DISTRICTS; d++)
			add_key(keys, "d", v[0], d);
		break;
	default:
		add_key(keys, "d", v[0], v[1]);
		break;
	}
}

static int write_number(struct wire_bytes *out, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return wire_text(out, text);
}

static int write_head(struct wire_bytes *out, size_t n_arguments, bool is_read, const char *name,
		      uint32_t n_keys)
{
	int rc = wire_command(out, 3 + n_arguments);

	rc = rc ? rc : wire_text(out, is_read ? "FCALL_RO" : "FCALL");
	rc = rc ? rc : wire_text(out, name);
	return rc ? rc : write_number(out, n_keys);
}

static int write_transaction(struct wire_bytes *out, const struct load_request *request,
			     const struct load_shape *shape)
{
	struct load_tpcc_call call;
	struct keys keys;
	int rc;

	load_tpcc_draw(shape->tpcc, request->kind, request->first, &call);
	keys_of(request->kind, &call, &keys);
	rc = write_head(out, keys.n + call.n, load_may_repeat(request, true), names[request->kind],
			keys.n);
	for (uint32_t i = 0; !rc && i < keys.n; i++)
		rc = wire_text(out, keys.names[i]);
	for (uint32_t i = 0; !rc && i < call.n; i++)
		rc = write_number(out, call.numbers[i]);
	return rc;
}

/* Nothing more: of tpcc_check, which reads. */
static int write_part(struct wire_bytes *out, const char *name, const struct load_tpcc_part *part,
		      const uint64_t *more, uint32_t n_more)
{
	const uint32_t numbers[] = { part->w, part->d, part->from, part->n };
	int rc = write_head(out, 5 + n_more, !n_more, name, 0);

	rc = rc ? rc : wire_text(out, part->name);
	for (uint32_t i = 0; !rc && i < 4; i++)
		rc = write_number(out, numbers[i]);
	for (uint32_t i = 0; !rc && i < n_more; i++)
		rc = write_number(out, more[i]);
	return rc;
}

int procedures_write(struct wire_bytes *out, const struct load_request *request,
		     const struct load_shape *shape)
{
	const struct load_tpcc *tpcc = shape->tpcc;
	struct load_tpcc_part part;

	if (request->kind == LOAD_TPCC_FILL) {
		const uint64_t more[] = { tpcc->customers, tpcc->items, tpcc->seed };

		part = load_tpcc_part(tpcc, request->first);
		return write_part(out, "tpcc_load", &part, more, 3);
	}
	if (request->kind == LOAD_TPCC_CHECK) {
		part = load_tpcc_check_part(tpcc, request->field, shape->next_o,
					    request->first);
		return write_part(out, "tpcc_check", &part, NULL, 0);
	}
	return write_transaction(out, request, shape);
}

/* Elements of an array of integers, the first max of them. */
static bool read_numbers(const struct reply_item *head, const char *bytes, size_t n, size_t at,
			 uint32_t max, int64_t *ret)
{
	for (int64_t i = 0; i < head->integer; i++) {
		struct reply_item item;

		if (reply_item(bytes, n, &at, &item) <= 0 || item.type != ':')
			return false;
		if (i < max)
			ret[i] = item.integer;
	}
	return true;
}

static bool is_array(const struct reply_item *item, int64_t least)
{
	return item->type == '*' && !item->is_null && item->integer >= least;
}

enum load_verdict procedures_judge(const struct load_request *request,
				   const struct load_shape *shape, const struct reply_item *item,
				   const char *bytes, size_t n, size_t at,
				   struct load_answer *ret_answer)
{
	int64_t *numbers = ret_answer->numbers;
	struct load_tpcc_call call;
	bool is_good;

	switch (request->kind) {
	case LOAD_NEW_ORDER:
		/* It is rolled back if, and only if, an item does not exist. */
		load_tpcc_draw(shape->tpcc, request->kind, request->first, &call);
		is_good = call.has_unused_item ? item->is_null :
			  is_array(item, 2) && read_numbers(item, bytes, n, at, 2, numbers);
		ret_answer->value = is_good && !call.has_unused_item;
		break;
	case LOAD_PAYMENT:
		is_good = is_array(item, 2) && read_numbers(item, bytes, n, at, 2, numbers);
		ret_answer->value = is_good;
		break;
	case LOAD_ORDER_STATUS:
		is_good = is_array(item, 10) && read_numbers(item, bytes, n, at, 5, numbers);
		break;
	case LOAD_TPCC_FILL:
		is_good = item->type == '+';
		break;
	case LOAD_TPCC_CHECK:
		is_good = is_array(item, LOAD_TPCC_ANSWER) &&
			  read_numbers(item, bytes, n, at, LOAD_TPCC_ANSWER, numbers);
		break;
	default:
		is_good = item->type == ':' && item->integer >= 0;
		ret_answer->value = item->integer;
		break;
	}
	return is_good ? LOAD_GOOD : LOAD_WRONG;
}
