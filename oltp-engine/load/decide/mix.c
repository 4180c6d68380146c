// SPDX-License-Identifier: GPL-2.0-or-later
/* See mix.h. */
#include <errno.h>
#include <string.h>

#include "mix.h"

#define WEIGHT_MAX	1000u

static const char *const names[LOAD_MIX_KINDS] = {
	[LOAD_SELECT] = "select", [LOAD_UPDATE] = "update", [LOAD_INSERT] = "insert",
	[LOAD_DELETE] = "delete", [LOAD_GET] = "get", [LOAD_SET] = "set", [LOAD_COUNT] = "count",
	[LOAD_YCSB_READ] = "ycsb_read", [LOAD_YCSB_UPDATE] = "ycsb_update",
	[LOAD_NEW_ORDER] = "new_order", [LOAD_PAYMENT] = "payment",
	[LOAD_ORDER_STATUS] = "order_status", [LOAD_DELIVERY] = "delivery",
	[LOAD_STOCK_LEVEL] = "stock_level",
};

const char *load_kind_name(enum load_kind kind)
{
	return names[kind];
}

/*
 * "80" up to a comma, a slash or the end; *at is moved behind it. -1: it is none, or beyond the
 * bound.
 */
static int parse_weight(const char **at)
{
	uint32_t weight = 0;

	if (**at < '0' || **at > '9')
		return -1;
	for (; **at >= '0' && **at <= '9'; ++*at) {
		weight = weight * 10 + (uint32_t)(**at - '0');
		if (weight > WEIGHT_MAX)
			return -1;
	}
	return **at == ',' || **at == '/' || !**at ? (int)weight : -1;
}

/* Up to and with the "=". -1: there is none of that name. */
static int parse_kind(const char **at)
{
	const char *equals = strchr(*at, '=');
	size_t length = equals ? (size_t)(equals - *at) : 0;

	for (uint32_t kind = 0; kind < LOAD_MIX_KINDS; kind++) {
		if (strlen(names[kind]) == length && !memcmp(*at, names[kind], length)) {
			*at += length + 1;
			return (int)kind;
		}
	}
	return -1;
}

static int parse_named(const char *text, uint32_t weights[LOAD_MIX_KINDS])
{
	uint32_t named = 0;

	for (;;) {
		int kind = parse_kind(&text);
		int weight = kind < 0 ? -1 : parse_weight(&text);

		if (weight < 0 || *text == '/' || (named & 1u << kind))
			return -EINVAL;
		named |= 1u << kind;
		weights[kind] = (uint32_t)weight;
		if (!*text)
			return 0;
		text++;
	}
}

static int parse_shares(const char *text, uint32_t weights[LOAD_MIX_KINDS])
{
	for (uint32_t kind = LOAD_SELECT; kind <= LOAD_DELETE; kind++) {
		int weight = parse_weight(&text);

		if (weight < 0 || *text != (kind == LOAD_DELETE ? '\0' : '/'))
			return -EINVAL;
		weights[kind] = (uint32_t)weight;
		text++;
	}
	return 0;
}

int load_mix_parse(const char *text, uint32_t ret_weights[LOAD_MIX_KINDS])
{
	uint32_t weights[LOAD_MIX_KINDS] = { 0 }, sum = 0;
	bool is_shares = *text >= '0' && *text <= '9';

	if (is_shares ? parse_shares(text, weights) : parse_named(text, weights))
		return -EINVAL;
	for (uint32_t i = 0; i < LOAD_MIX_KINDS; i++)
		sum += weights[i];
	if (!sum)
		return -EINVAL;
	memcpy(ret_weights, weights, sizeof(weights));
	return 0;
}

void load_draw_init(struct load_draw *draw, const struct load_mix *mix, uint64_t seed)
{
	*draw = (struct load_draw){
		.mix = mix,
		.random = { seed },
		.next_insert = mix->rows,
		.next_delete = mix->rows,
	};
	zipf_init(&draw->records, mix->rows, LOAD_YCSB_THETA, true);
}

static enum load_kind draw_kind(struct load_draw *draw)
{
	const uint32_t *weights = draw->mix->weights;
	uint32_t sum = 0, kind = 0;
	uint64_t at;

	for (uint32_t i = 0; i < LOAD_MIX_KINDS; i++)
		sum += weights[i];
	at = random64_below(&draw->random, sum);
	while (at >= weights[kind])
		at -= weights[kind++];
	return (enum load_kind)kind;
}

void load_draw_next(struct load_draw *draw, uint64_t arrived_ns, struct load_request *ret_request)
{
	struct load_request r = { .arrived_ns = arrived_ns, .kind = draw_kind(draw), .n = 1 };

	switch (r.kind) {
	case LOAD_SELECT:
	case LOAD_UPDATE:
		r.n = LOAD_CRUD_ROWS;
		r.first = random64_below(&draw->random, draw->mix->rows - LOAD_CRUD_ROWS + 1);
		break;
	case LOAD_INSERT:
		r.n = LOAD_CRUD_ROWS;
		r.first = draw->next_insert;
		draw->next_insert += LOAD_CRUD_ROWS;
		break;
	case LOAD_DELETE:
		r.n = LOAD_CRUD_ROWS;
		r.first = draw->next_delete;
		if (draw->next_delete < draw->next_insert)
			draw->next_delete += LOAD_CRUD_ROWS;
		break;
	case LOAD_COUNT:
		r.first = random64_below(&draw->random, draw->mix->counters);
		break;
	case LOAD_YCSB_UPDATE:
		r.field = (uint32_t)random64_below(&draw->random, LOAD_YCSB_FIELDS);
		r.first = zipf_next(&draw->records, &draw->random);
		break;
	case LOAD_YCSB_READ:
		r.first = zipf_next(&draw->records, &draw->random);
		break;
	case LOAD_NEW_ORDER:
	case LOAD_PAYMENT:
	case LOAD_ORDER_STATUS:
	case LOAD_DELIVERY:
	case LOAD_STOCK_LEVEL:
		r.first = random64_next(&draw->random);
		break;
	default:
		r.first = random64_below(&draw->random, draw->mix->rows);
		break;
	}
	*ret_request = r;
}
