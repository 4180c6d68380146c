// SPDX-License-Identifier: GPL-2.0-or-later
/* Stock-Level (section 2.8 of the specification), serializable as all others. */
#include <stddef.h>
#include <string.h>

#include "tpcc_private.h"

#define SEEN_SLOTS	2048u	/* a power of two, well above what 20 orders can have */

static void stock_level_draw(struct tpcc_worker *tw, struct tpcc_txn *txn)
{
	txn->threshold = (int32_t)tpcc_uniform(&tw->random, 10, 20);
}

struct seen {
	struct tpcc_worker *tw;
	uint32_t slots[SEEN_SLOTS];	/* items, by a hash of them; 0: none */
};

_Static_assert(TPCC_RECENT_ORDERS * TPCC_LINES_MAX * 2 < SEEN_SLOTS, "there are always free slots");
_Static_assert(TPCC_RECENT_ORDERS * TPCC_LINES_MAX * 2 + 1 <= TPCC_RECORDS_MAX,
	       "lines, stock and a district");

static int take_item(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	uint32_t item = ((const struct tpcc_line *)record)->item;
	uint32_t at = item * 0x9e3779b1u >> 16;
	struct seen *seen = ctx;

	(void)sort_key;
	(void)key;
	for (;; at++) {
		uint32_t *slot = &seen->slots[at % SEEN_SLOTS];

		if (*slot == item)
			return 0;
		if (!*slot) {
			*slot = item;
			seen->tw->items[seen->tw->n_items++] = item;
			return 0;
		}
	}
}

static enum oltp_rc stock_level_run(struct tpcc_worker *tw, const struct tpcc_txn *txn)
{
	struct tpcc *tpcc = tw->tpcc;
	struct seen seen = { .tw = tw };
	struct oltp_range range;
	const void *found;
	uint64_t first;
	uint32_t next_o;
	enum oltp_rc rc;

	rc = oltp_txn_read(tw->worker, tpcc->tables[TPCC_DISTRICT],
			   tpcc_district_key(txn->w, txn->d), &found);
	if (rc)
		return rc;
	next_o = ((const struct tpcc_district *)found)->next_o_id;
	first = tpcc_order_key(txn->w, txn->d, next_o - TPCC_RECENT_ORDERS);
	range = (struct oltp_range){
		.from = tpcc_line_key(first, 0),
		.to = tpcc_line_key(tpcc_order_key(txn->w, txn->d, next_o - 1), TPCC_LINES_MAX),
	};
	tw->n_items = 0;
	rc = oltp_txn_scan(tw->worker, tpcc->lines, &range, take_item, &seen);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < tw->n_items; i++)
		tw->hints[i] = tpcc_hint(tw, TPCC_STOCK, tpcc_stock_key(txn->w, tw->items[i]), 0,
					 16);
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, tw->n_items);
	for (uint32_t i = 0; i < tw->n_items; i++) {
		rc = oltp_txn_read(tw->worker, tpcc->tables[TPCC_STOCK],
				   tpcc_stock_key(txn->w, tw->items[i]), &found);
		if (rc)
			return rc;
		tw->shown += ((const struct tpcc_stock *)found)->quantity < txn->threshold;
	}
	return OLTP_OK;
}

const struct tpcc_kind_ops tpcc_stock_level_ops = {
	.name = "stock_level",
	.draw = stock_level_draw,
	.run = stock_level_run,
};
