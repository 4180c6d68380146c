/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: whatever the peer of a relocation sends, frames keep the rules of wire.h or are
 * refused, in whatever pieces they arrive; and the node that is told never gets into a state in
 * which it does more than it has room to say.
 */
#include <stdlib.h>
#include <string.h>
#include "oltp-engine/relocate/wire.h"

#define REQUIRE(cond)	do { if (!(cond)) abort(); } while (0)

#define N	3u
#define FRAME_MAX	(WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct wire_terms terms = { .relocation = 0, .n_units = N };
static const struct units_config config = {
	.n_units = N, .push_max = 1, .repeat_ns = 1, .fence_ns = 1,
};

struct node {
	struct units units;
	struct unit list[N];
	struct units_action actions[UNITS_ACTIONS_MAX(N)];
	uint64_t now_ns;
};

/* The executor: everything is on disk at once, and nothing runs. */
static void carry_out(struct node *node, struct units_actions *did, uint32_t depth)
{
	struct units_action list[UNITS_ACTIONS_MAX(N)];
	uint32_t n = did->n;

	REQUIRE(n <= did->room && depth < 20);
	memcpy(list, did->list, n * sizeof(list[0]));
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].what == UNITS_DRAIN)
			units_drained(&node->units, list[i].unit, node->now_ns, did);
		else if (list[i].what >= UNITS_LOG_TAKEN && list[i].what <= UNITS_LOG_CLOSED &&
			 list[i].what != UNITS_LOG_GAVE)
			units_logged(&node->units, list[i].what, list[i].unit, list[i].gen, true,
				     node->now_ns, did);
		else
			continue;
		carry_out(node, did, depth + 1);
	}
}

static void check_message(const struct wire_message *m)
{
	struct wire_record record;
	const uint8_t *bytes;
	uint32_t at = 0, n = 0, sum = 0;

	REQUIRE(m->header.bytes <= FRAME_MAX && m->header.bytes % 8 == 0);
	if (m->header.type != WIRE_RECORDS)
		return;
	for (; wire_record_next(m, &at, &record, &bytes); n++) {
		REQUIRE(at <= m->header.bytes - WIRE_HEADER_BYTES);
		for (uint32_t i = 0; i < record.bytes; i++)
			sum += bytes[i];
	}
	REQUIRE(n == m->header.n && at == m->header.bytes - WIRE_HEADER_BYTES && sum < 1u << 31);
}

static void tell(struct node *node, const struct wire_message *m)
{
	struct units_actions did = { 0, UNITS_ACTIONS_MAX(N), node->actions };
	struct units_entry table[N];
	struct units_message message;

	if (m->header.type > UNITS_BYE_GOT)
		return;
	message = wire_units_message(m, table);
	units_receive(&node->units, &message, table, node->now_ns, &did);
	carry_out(node, &did, 0);
	node->now_ns = units_next_ns(&node->units) == UINT64_MAX ? node->now_ns + 1 :
		       units_next_ns(&node->units);
	units_tick(&node->units, node->now_ns, &did);
	carry_out(node, &did, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct node node;
	struct units_actions did = { 0, UNITS_ACTIONS_MAX(N), node.actions };
	struct wire_message message, again;

	memset(&node, 0, sizeof(node));
	node.list[0] = node.list[1] = (struct unit){ .gen = 1, .is_mine = true };
	units_start(&node.units, &config, node.list, UNITS_WAS_SHARED, 1, 0, &did);
	while (size) {
		int n = wire_parse(&terms, data, size, &message);

		REQUIRE(n < 0 || (uint32_t)n <= size);
		if (n <= 0)
			break;
		/* The same with less behind it, and nothing with less of it. */
		REQUIRE(wire_parse(&terms, data, (uint32_t)n, &again) == n);
		REQUIRE(wire_parse(&terms, data, (uint32_t)n - 1, &again) == 0);
		check_message(&message);
		tell(&node, &message);
		data += n;
		size -= (uint32_t)n;
	}
	return 0;
}
