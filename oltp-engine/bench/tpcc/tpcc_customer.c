// SPDX-License-Identifier: GPL-2.0-or-later
/* Picking customers: 60% by last name, the others by number (2.5.1.2, 2.6.1.2). */
#include <string.h>

#include "tpcc_private.h"

void tpcc_who_draw(struct tpcc_worker *tw, uint16_t w, uint8_t d, struct tpcc_who *ret_who)
{
	const struct tpcc *tpcc = tw->tpcc;
	uint32_t n = tpcc->config.customers;
	uint32_t names = n < TPCC_LAST_NAMES ? n : TPCC_LAST_NAMES;

	*ret_who = (struct tpcc_who){ .w = w, .d = d };
	if (tpcc_uniform(&tw->random, 1, 100) <= TPCC_BY_NAME_PERCENT)
		ret_who->name = (uint16_t)tpcc_nurand_draw(&tw->random, TPCC_NURAND_LAST_NAME,
							   tpcc->run_c.c_last, 0, names - 1);
	else
		ret_who->c = (uint16_t)tpcc_nurand_draw(&tw->random, TPCC_NURAND_CUSTOMER,
							tpcc->run_c.c_id, 1, n);
}

struct search {
	struct tpcc_worker *tw;
	const char *last;
};

/* In order of first names, those with the same one by key. */
static bool is_before(const struct tpcc_namesake *a, const struct tpcc_namesake *b)
{
	int order = memcmp(a->row->first, b->row->first, sizeof(a->row->first));

	return order ? order < 0 : a->key < b->key;
}

/* They come almost in order: by the first letters of their names. */
static int collect(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	struct tpcc_namesake sake = { key, record };
	struct search *search = ctx;
	struct tpcc_worker *tw = search->tw;
	uint32_t at;

	(void)sort_key;
	if (memcmp(sake.row->last, search->last, sizeof(sake.row->last)))
		return 0;
	if (tw->n_namesakes == TPCC_NAMESAKES_MAX)
		return 1;
	for (at = tw->n_namesakes++; at && is_before(&sake, &tw->namesakes[at - 1]); at--)
		tw->namesakes[at] = tw->namesakes[at - 1];
	tw->namesakes[at] = sake;
	return 0;
}

/* The one in the middle, rounded up (2.5.2.2). */
enum oltp_rc tpcc_who_find(struct tpcc_worker *tw, const struct tpcc_who *who,
			   uint64_t *ret_customer_key)
{
	static const char no_first[16];
	char last[16];
	struct search search = { tw, last };
	struct oltp_range range = { 0 };
	enum oltp_rc rc;

	if (who->c) {
		*ret_customer_key = tpcc_customer_key(who->w, who->d, who->c);
		return OLTP_OK;
	}
	tpcc_last_name(who->name, last);
	range.from = tpcc_name_key(tpcc_district_key(who->w, who->d), last, no_first);
	range.to = range.from | TPCC_NAME_KEY_FIRST;
	tw->n_namesakes = 0;
	rc = oltp_txn_scan(tw->worker, tw->tpcc->customers_by_name, &range, collect, &search);
	if (rc)
		return rc;
	if (!tw->n_namesakes)
		return OLTP_NOT_FOUND;
	/* More than there is room for: nobody would know which is in the middle. */
	if (tw->n_namesakes == TPCC_NAMESAKES_MAX)
		return OLTP_FULL;
	*ret_customer_key = tw->namesakes[(tw->n_namesakes - 1) / 2].key;
	return OLTP_OK;
}
