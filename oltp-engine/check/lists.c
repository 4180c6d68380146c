// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists. The longest read of a list tells the order of its versions: the one after n appends is
 * that of the n-th value. Every other read has to be a beginning of it.
 */
#include <string.h>

#include "versions.h"

static const uint64_t *values_of(const struct checker *c, const struct history_op *op)
{
	return VEC_PLACE(c->history->values, op->at);
}

static void find_longest(struct checker *c)
{
	const struct history *h = c->history;

	for (uint32_t txn = 0; txn < h->txns.n; txn++) {
		const struct history_txn *t = &h->txns.at[txn];

		checker_progress(c, "reads of lists", txn, h->txns.n);
		for (uint32_t i = 0; t->outcome == HISTORY_OK && i < t->n_ops; i++) {
			const struct history_op *op = &h->ops.at[t->first_op + i];
			struct object *o;

			if (op->kind != HISTORY_LIST || !op->is_known)
				continue;
			o = &c->objects.at[object_find(c, op->key, true)];
			if (o->longest_txn != NO_TXN && op->n <= o->longest_n)
				continue;
			o->longest_txn = txn;
			o->longest_n = op->n;
			o->longest_at = op->at;
		}
	}
}

/* Reports a value of a list that no read may return. */
static int check_value(struct checker *c, uint32_t txn, uint32_t object, uint64_t value)
{
	uint32_t version = version_find(c, object, value), writer;

	if (version == NO_VERSION)
		return checker_report_read(c, CHECK_UNWRITTEN, txn, NO_TXN, object, value);
	writer = c->versions.at[version].txn;
	if (c->history->txns.at[writer].outcome == HISTORY_FAIL)
		return checker_report_read(c, CHECK_G1A, txn, writer, object, value);
	return 0;
}

/* The appends of one transaction must be in the list in the order in which it made them. */
static int check_own_order(struct checker *c, uint32_t object)
{
	const struct object *o = &c->objects.at[object];
	int rc = 0;

	for (uint32_t i = o->last; !rc && i != NO_VERSION; i = c->versions.at[i].of_object) {
		const struct version *v = &c->versions.at[i], *before;

		if (v->of_object == NO_VERSION || v->position == NO_VERSION)
			continue;
		before = &c->versions.at[v->of_object];
		if (before->txn == v->txn && before->position != NO_VERSION &&
		    before->position > v->position)
			rc = checker_report_read(c, CHECK_INTERNAL, o->longest_txn, v->txn, object,
						 v->value);
	}
	return rc;
}

static int order_list(struct checker *c, uint32_t object)
{
	struct object *o = &c->objects.at[object];
	const uint64_t *values = VEC_PLACE(c->history->values, o->longest_at);
	int rc = 0;

	o->order = c->orders.n;
	for (uint32_t i = 0; !rc && i < o->longest_n; i++) {
		uint32_t version = version_find(c, object, values[i]);

		rc = check_value(c, o->longest_txn, object, values[i]);
		if (!rc && version != NO_VERSION) {
			struct version *v = &c->versions.at[version];

			if (v->position != NO_VERSION) {
				rc = checker_report_read(c, CHECK_DUPLICATE, o->longest_txn, v->txn,
							 object, values[i]);
				version = NO_VERSION;
			} else {
				v->position = i;
			}
		}
		rc = rc ?: vec_push(&c->orders, (struct order){ version, 0 });
	}
	return rc ?: check_own_order(c, object);
}

int lists_order(struct checker *c)
{
	int rc = 0;

	find_longest(c);
	for (uint32_t object = 0; !rc && object < c->objects.n; object++) {
		if (c->objects.at[object].is_list)
			rc = order_list(c, object);
	}
	return rc;
}

static bool counts(const struct checker *c, const struct order *order)
{
	return order->version != NO_VERSION && version_is_committed(c, order->version);
}

/* Appends that no read saw come after all that were seen, each other's order unknown. */
static int unseen_edges(struct checker *c, const struct object *o, uint32_t from, uint32_t version,
			enum check_edge kind)
{
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = o->last; !rc && i != NO_VERSION; i = c->versions.at[i].of_object) {
		const struct version *v = &c->versions.at[i];

		if (i == o->initial || v->position != NO_VERSION || !version_is_committed(c, i))
			continue;
		if (++n > FAN_MAX)
			break;
		rc = edge_add(c, from, v->txn, version, i, kind);
	}
	return rc;
}

static int order_edges_of(struct checker *c, uint32_t object)
{
	const struct object *o = &c->objects.at[object];
	struct order *order = VEC_PLACE(c->orders, o->order);
	uint32_t next = o->longest_n, before = NO_VERSION;
	uint64_t n_unseen = 0;
	int rc = 0;

	for (uint32_t i = o->longest_n; i--;) {
		order[i].next = next;
		if (counts(c, &order[i]))
			next = i;
	}
	for (uint32_t i = 0; !rc && i < o->longest_n; i++) {
		if (!counts(c, &order[i]))
			continue;
		if (before != NO_VERSION)
			rc = edge_add(c, c->versions.at[before].txn,
				      c->versions.at[order[i].version].txn, before,
				      order[i].version, CHECK_WW);
		before = order[i].version;
	}
	for (uint32_t i = o->last; i != NO_VERSION; i = c->versions.at[i].of_object)
		n_unseen += i != o->initial && c->versions.at[i].position == NO_VERSION &&
			    version_is_committed(c, i);
	if (n_unseen > FAN_MAX)
		c->result->unknown.appends += n_unseen - FAN_MAX;
	if (!rc && before != NO_VERSION)
		rc = unseen_edges(c, o, c->versions.at[before].txn, before, CHECK_WW);
	return rc;
}

/* Of the beginning that others wrote: what this transaction appended is at the end. */
static uint32_t without_own(const struct checker *c, const struct order *order, uint32_t n,
			    uint32_t txn)
{
	while (n && order[n - 1].version != NO_VERSION &&
	       c->versions.at[order[n - 1].version].txn == txn)
		n--;
	return n;
}

static int read_edges(struct checker *c, uint32_t txn, uint32_t object, uint32_t n)
{
	const struct object *o = &c->objects.at[object];
	const struct order *order = VEC_PLACE(c->orders, o->order);
	uint32_t others = without_own(c, order, n, txn), seen = o->initial, next;
	int rc = 0;

	if (others && order[others - 1].version != NO_VERSION) {
		const struct version *v = &c->versions.at[order[others - 1].version];

		if (!v->is_final && version_is_committed(c, order[others - 1].version))
			rc = checker_report_read(c, CHECK_G1B, txn, v->txn, object, v->value);
	}
	for (uint32_t i = others; i--;) {
		if (!counts(c, &order[i]))
			continue;
		seen = order[i].version;
		rc = rc ?: edge_add(c, c->versions.at[seen].txn, txn, seen, NO_VERSION, CHECK_WR);
		break;
	}
	if (rc)
		return rc;
	if (n == o->longest_n)
		return unseen_edges(c, o, txn, n && order[n - 1].version != NO_VERSION ?
						       order[n - 1].version : seen, CHECK_RW);
	next = n;
	if (!counts(c, &order[next]))
		next = order[next].next;
	if (next == o->longest_n)
		return unseen_edges(c, o, txn, seen, CHECK_RW);
	return edge_add(c, txn, c->versions.at[order[next].version].txn, seen,
			order[next].version, CHECK_RW);
}

static int check_read(struct checker *c, uint32_t txn, const struct touch *touch)
{
	const struct object *o = &c->objects.at[touch->object];
	const struct history_op *op = &c->history->ops.at[touch->op];
	const uint64_t *values = values_of(c, op);
	const uint64_t *longest = VEC_PLACE(c->history->values, o->longest_at);
	int rc = 0;

	if (!op->n || !memcmp(values, longest, op->n * sizeof(*values)))
		return read_edges(c, txn, touch->object, op->n);
	for (uint32_t i = 0; !rc && i < op->n; i++) {
		uint32_t version = version_find(c, touch->object, values[i]);

		/* Values of the longest read have been checked with it. */
		if (version == NO_VERSION || c->versions.at[version].position == NO_VERSION)
			rc = check_value(c, txn, touch->object, values[i]);
	}
	return rc ?: checker_report_read(c, CHECK_ORDER, txn, o->longest_txn, touch->object,
					 values[op->n - 1]);
}

/*
 * One list, as one transaction saw it: each read is the one before it and what the transaction
 * appended since, the first one ends in what it appended before.
 */
static int check_internal(struct checker *c, uint32_t txn, const struct touch *touches, size_t n)
{
	const struct history *h = c->history;
	const struct history_op *before = NULL;
	size_t first_own = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		const struct history_op *op = &h->ops.at[touches[i].op];
		size_t own = i - first_own;
		bool fits;

		if (touches[i].kind != TOUCH_LIST)
			continue;
		fits = op->n >= own && (!before || op->n == before->n + own);
		if (fits && before && before->n)
			fits = !memcmp(values_of(c, op), values_of(c, before),
				       before->n * sizeof(uint64_t));
		for (size_t j = 0; fits && j < own; j++)
			fits = values_of(c, op)[op->n - own + j] ==
			       h->ops.at[touches[first_own + j].op].value;
		if (!fits)
			rc = checker_report_read(c, CHECK_INTERNAL, txn, txn, touches[i].object,
						 op->n ? values_of(c, op)[op->n - 1] :
							 HISTORY_ABSENT);
		before = op;
		first_own = i + 1;
	}
	return rc;
}

static int check_txn(struct checker *c, uint32_t txn, struct touches *touches)
{
	const struct touch *at;
	int rc = touches_of(c, txn, touches);

	at = touches->touches.at;
	for (size_t i = 0, n; !rc && i < touches->touches.n; i += n) {
		bool is_list = c->objects.at[at[i].object].is_list;

		for (n = 1; i + n < touches->touches.n && at[i + n].object == at[i].object; n++)
			;
		if (!is_list)
			continue;
		rc = check_internal(c, txn, at + i, n);
		for (size_t j = i; !rc && j < i + n; j++) {
			if (at[j].kind == TOUCH_LIST)
				rc = check_read(c, txn, &at[j]);
		}
	}
	return rc;
}

int lists_edges(struct checker *c)
{
	const struct history *h = c->history;
	struct touches touches = { 0 };
	int rc = 0;

	for (uint32_t object = 0; !rc && object < c->objects.n; object++) {
		if (c->objects.at[object].is_list)
			rc = order_edges_of(c, object);
	}
	for (uint32_t txn = 0; !rc && txn < h->txns.n; txn++) {
		checker_progress(c, "edges of lists", txn, h->txns.n);
		if (h->txns.at[txn].outcome == HISTORY_OK)
			rc = check_txn(c, txn, &touches);
	}
	vec_free(&touches.touches);
	return rc;
}
