// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows: what a write overwrote is what its transaction had read before it; an insert overwrote
 * nothing being there.
 */
#include "versions.h"

/* What a transaction knows of a row: nothing yet, or a version (ABSENT_VERSION included). */
#define NOT_SEEN	NO_VERSION

struct walk {
	struct checker *c;
	uint32_t txn, object;
	uint32_t seen;		/* of what others wrote */
	uint32_t own;		/* last one of its own; NO_VERSION: none */
};

/* *ret_version: NO_VERSION if nobody wrote that. */
static int find_seen(struct walk *w, uint64_t value, uint32_t *ret_version)
{
	struct checker *c = w->c;
	uint32_t writer;

	*ret_version = ABSENT_VERSION;
	if (value == HISTORY_ABSENT)
		return 0;
	*ret_version = version_find(c, w->object, value);
	if (*ret_version == NO_VERSION)
		return checker_report_read(c, CHECK_UNWRITTEN, w->txn, NO_TXN, w->object, value);
	writer = c->versions.at[*ret_version].txn;
	if (c->history->txns.at[writer].outcome == HISTORY_FAIL)
		return checker_report_read(c, CHECK_G1A, w->txn, writer, w->object, value);
	if (!c->versions.at[*ret_version].is_final && writer != w->txn)
		return checker_report_read(c, CHECK_G1B, w->txn, writer, w->object, value);
	return 0;
}

static int see(struct walk *w, uint64_t value)
{
	uint32_t version, expected = w->own;
	int rc = find_seen(w, value, &version);

	if (rc || version == NO_VERSION)
		return rc;
	if (expected == NO_VERSION)
		expected = w->seen;
	else if (w->c->versions.at[expected].value == HISTORY_ABSENT)
		expected = ABSENT_VERSION;
	if (expected == NOT_SEEN) {
		w->seen = version;
		return 0;
	}
	if (version == expected)
		return 0;
	return checker_report_read(w->c, CHECK_INTERNAL, w->txn, w->txn, w->object, value);
}

static void overwrite(struct walk *w, uint32_t version)
{
	w->c->versions.at[version].prev = w->own != NO_VERSION ? w->own : w->seen;
	w->own = version;
}

static int walk_touch(struct walk *w, const struct touch *touch)
{
	int rc = 0;

	switch (touch->kind) {
	case TOUCH_READ:
	case TOUCH_MISS:
		return see(w, touch->value);
	case TOUCH_INSERT:
		rc = see(w, HISTORY_ABSENT);
		break;
	case TOUCH_DELETE:
		if (w->c->history->ops.at[touch->op].is_known)
			rc = see(w, touch->value);
		break;
	case TOUCH_WRITE:
		break;
	case TOUCH_LIST:
	case TOUCH_APPEND:
		return 0;
	}
	overwrite(w, touch->version);
	return rc;
}

static int walk_txn(struct checker *c, uint32_t txn, struct touches *touches)
{
	int rc = touches_of(c, txn, touches);
	struct walk w = { .object = NO_VERSION };

	for (size_t i = 0; !rc && i < touches->touches.n; i++) {
		const struct touch *touch = &touches->touches.at[i];

		if (touch->object != w.object)
			w = (struct walk){ c, txn, touch->object, NOT_SEEN, NO_VERSION };
		rc = walk_touch(&w, touch);
	}
	return rc;
}

int rows_order(struct checker *c)
{
	const struct history *h = c->history;
	struct touches touches = { 0 };
	int rc = 0;

	for (uint32_t txn = 0; !rc && txn < h->txns.n; txn++) {
		checker_progress(c, "rows", txn, h->txns.n);
		if (h->txns.at[txn].outcome == HISTORY_OK)
			rc = walk_txn(c, txn, &touches);
	}
	vec_free(&touches.touches);
	return rc;
}
