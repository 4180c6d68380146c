// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Edges of rows: which transaction overwrote which version, read which, and would have changed a
 * read.
 */
#include "versions.h"

/* The next one from here on that overwrote the version. */
static uint32_t overwriter(const struct checker *c, uint32_t version, uint32_t from)
{
	while (from != NO_VERSION && c->versions.at[from].prev != version)
		from = c->versions.at[from].sibling;
	return from;
}

/*
 * Two transactions that both changed the same version. lives.c links the newest of the history
 * first, so the oldest is at the head.
 */
static int check_fork(struct checker *c, uint32_t version)
{
	const struct version *v = &c->versions.at[version];
	uint32_t first = overwriter(c, version, v->first_next), second;

	if (first == NO_VERSION)
		return 0;
	second = overwriter(c, version, c->versions.at[first].sibling);
	if (second == NO_VERSION)
		return 0;
	return checker_report(c, &(struct check_anomaly){
		.kind = CHECK_LOST_UPDATE,
		.txn = c->versions.at[second].txn,
		.other = c->versions.at[first].txn,
		.key = c->objects.at[v->object].key,
		.value = v->value,
	});
}

static int write_edges(struct checker *c)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->versions.n; i++) {
		const struct version *v = &c->versions.at[i];

		if (c->objects.at[v->object].is_list)
			continue;
		rc = check_fork(c, i);
		if (!rc && v->prev < ABSENT_VERSION && version_is_committed(c, i) &&
		    version_is_committed(c, v->prev))
			rc = edge_add(c, c->versions.at[v->prev].txn, v->txn, v->prev, i,
				      CHECK_WW);
	}
	return rc;
}

/*
 * A transaction that overwrote the version has an edge ww from its write. If others overwrote the
 * version, too, check_fork reports a lost update, and no edge rw is needed to find it.
 */
static int read_edges(struct checker *c, uint32_t txn, uint32_t version, enum check_edge rw,
		      bool is_overwriter)
{
	uint32_t next = c->versions.at[version].first_next;
	int rc = 0;

	if (version_is_committed(c, version))
		rc = edge_add(c, c->versions.at[version].txn, txn, version, NO_VERSION, CHECK_WR);
	for (uint32_t n = 0; !rc && next != NO_VERSION && n < FAN_MAX; n++) {
		const struct version *v = &c->versions.at[next];

		if (!is_overwriter || v->prev != version)
			rc = edge_add(c, txn, v->txn, version, next, rw);
		next = v->sibling;
	}
	return rc;
}

static int absent_edges(struct checker *c, uint32_t txn, uint32_t object, enum check_edge rw,
			bool is_overwriter)
{
	bool is_unknown;
	uint32_t version = lives_absent(c, object, txn, &is_unknown);

	c->result->unknown.absent_reads += is_unknown;
	return version == NO_VERSION ? 0 : read_edges(c, txn, version, rw, is_overwriter);
}

struct reader {
	struct checker *c;
	struct touches touches;
	uint32_t txn;
};

/* A row that the transaction also touches otherwise has its edges from there. */
static int on_miss(void *ctx, uint32_t object)
{
	struct reader *r = ctx;

	return touches_have(&r->touches, object) ?
		       0 : absent_edges(r->c, r->txn, object, CHECK_RW_PREDICATE, false);
}

static bool is_write(const struct touch *touch)
{
	return touch->kind == TOUCH_WRITE || touch->kind == TOUCH_INSERT ||
	       touch->kind == TOUCH_DELETE;
}

/* The first of n of one object. */
static int first_touch_edges(struct reader *r, const struct touch *touch, size_t n)
{
	struct checker *c = r->c;
	bool is_overwriter = false;
	uint32_t version;

	switch (touch->kind) {
	case TOUCH_DELETE:
		if (!c->history->ops.at[touch->op].is_known)
			return 0;
		break;
	case TOUCH_READ:
	case TOUCH_MISS:
		break;
	case TOUCH_WRITE:
	case TOUCH_INSERT:	/* That it follows an absence is a matter of writes. */
	case TOUCH_LIST:
	case TOUCH_APPEND:
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		is_overwriter |= is_write(&touch[i]);
	if (touch->value == HISTORY_ABSENT)
		return absent_edges(c, r->txn, touch->object,
				    touch->is_scan ? CHECK_RW_PREDICATE : CHECK_RW,
				    is_overwriter);
	version = version_find(c, touch->object, touch->value);
	return version == NO_VERSION ?
		       0 : read_edges(c, r->txn, version, CHECK_RW, is_overwriter);
}

static int txn_edges(struct reader *r)
{
	struct checker *c = r->c;
	const struct history_txn *t = &c->history->txns.at[r->txn];
	int rc = touches_of(c, r->txn, &r->touches);
	const struct touch *at = r->touches.touches.at;
	const size_t n_touches = r->touches.touches.n;

	/* Of an object, the first touch alone can see what others wrote, or anything new of it. */
	for (size_t i = 0, n; !rc && i < n_touches; i += n) {
		for (n = 1; i + n < n_touches && at[i + n].object == at[i].object; n++)
			;
		rc = first_touch_edges(r, at + i, n);
	}
	for (uint32_t i = 0; !rc && i < t->n_ops; i++) {
		const struct history_op *op = &c->history->ops.at[t->first_op + i];

		if (op->kind == HISTORY_SCAN)
			rc = touches_missed(c, op, on_miss, r);
	}
	return rc;
}

int row_edges(struct checker *c)
{
	const struct history *h = c->history;
	struct reader r = { .c = c };
	int rc = write_edges(c);

	for (r.txn = 0; !rc && r.txn < h->txns.n; r.txn++) {
		checker_progress(c, "edges of rows", r.txn, h->txns.n);
		if (h->txns.at[r.txn].outcome == HISTORY_OK)
			rc = txn_edges(&r);
	}
	vec_free(&r.touches.touches);
	return rc;
}
