// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists, rows and their versions: see versions.h. */
#include "versions.h"

/* Deletes have no value: they are found by their operation, apart from values. */
#define DELETES	(1ull << 32)

uint32_t object_find(const struct checker *c, uint64_t key, bool is_list)
{
	const uint32_t *object = map_get(&c->objects_by_key, key, is_list);

	return object ? *object : NO_VERSION;
}

uint32_t version_find(const struct checker *c, uint32_t object, uint64_t value)
{
	const uint32_t *version = map_get(&c->versions_by_value, object, value);

	return version ? *version : NO_VERSION;
}

uint32_t version_find_delete(const struct checker *c, uint32_t object, size_t op)
{
	const uint32_t *version = map_get(&c->versions_by_value, DELETES | object, op);

	return version ? *version : NO_VERSION;
}

static int version_add(struct checker *c, uint32_t object, const struct version *version)
{
	struct object *o = &c->objects.at[object];
	struct version added = *version;

	if (c->versions.n >= ABSENT_VERSION)
		return -E2BIG;
	added.object = object;
	added.of_object = o->last;
	added.prev = added.first_next = added.sibling = added.position = NO_VERSION;
	added.is_final = true;
	if (o->last != NO_VERSION && added.txn != NO_TXN &&
	    c->versions.at[o->last].txn == added.txn)
		c->versions.at[o->last].is_final = false;
	o->last = (uint32_t)c->versions.n;
	return vec_push(&c->versions, added);
}

static int object_get(struct checker *c, uint64_t key, bool is_list, uint32_t *ret_object)
{
	const struct version nothing = { .value = HISTORY_ABSENT, .txn = NO_TXN };
	int rc;

	*ret_object = object_find(c, key, is_list);
	if (*ret_object != NO_VERSION)
		return 0;
	if (c->objects.n >= NO_VERSION)
		return -E2BIG;
	*ret_object = (uint32_t)c->objects.n;
	rc = vec_push(&c->objects, (struct object){ .key = key, .is_list = is_list,
						    .initial = (uint32_t)c->versions.n,
						    .last = NO_VERSION, .longest_txn = NO_TXN });
	rc = rc ?: map_put(&c->objects_by_key, key, is_list, *ret_object, NULL);
	return rc ?: version_add(c, *ret_object, &nothing);
}

static int index_write(struct checker *c, uint32_t txn, size_t op)
{
	const struct history_op *o = &c->history->ops.at[op];
	struct version version = { .value = o->value, .txn = txn, .op = (uint32_t)op };
	uint64_t a, b = o->value;
	uint32_t object;
	int rc = object_get(c, o->key, o->kind == HISTORY_APPEND, &object);

	a = object;
	if (o->kind == HISTORY_DELETE) {
		version.value = HISTORY_ABSENT;
		a |= DELETES;
		b = op;
	}
	if (!rc && map_get(&c->versions_by_value, a, b)) {
		c->result->twice_is_list = o->kind == HISTORY_APPEND;
		c->result->twice_key = o->key;
		c->result->twice_value = o->value;
		return -EBADMSG;
	}
	rc = rc ?: map_put(&c->versions_by_value, a, b, (uint32_t)c->versions.n, NULL);
	return rc ?: version_add(c, object, &version);
}

static int index_op(struct checker *c, uint32_t txn, size_t op)
{
	const struct history *h = c->history;
	const struct history_op *o = &h->ops.at[op];
	uint32_t object;
	int rc = 0;

	switch (o->kind) {
	case HISTORY_LIST:
	case HISTORY_READ:
		return object_get(c, o->key, o->kind == HISTORY_LIST, &object);
	case HISTORY_SCAN:
		for (uint32_t i = 0; !rc && i < o->n; i++)
			rc = object_get(c, h->values.at[o->at + 2 * i], false, &object);
		return rc;
	case HISTORY_DELETE:
		/* One that was taken back left nothing that could be mistaken for it. */
		if (h->txns.at[txn].outcome == HISTORY_FAIL)
			return 0;
		break;
	case HISTORY_APPEND:
	case HISTORY_WRITE:
	case HISTORY_INSERT:
		break;
	}
	return index_write(c, txn, op);
}

static int by_key(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int sort_rows(struct checker *c)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->objects.n; i++) {
		if (!c->objects.at[i].is_list)
			rc = vec_push(&c->rows,
				      (struct sorted_row){ c->objects.at[i].key, i });
	}
	if (!rc && c->rows.n)
		qsort(c->rows.at, c->rows.n, sizeof(*c->rows.at), by_key);
	return rc;
}

int versions_index(struct checker *c)
{
	const struct history *h = c->history;
	int rc = 0;

	for (uint32_t txn = 0; !rc && txn < h->txns.n; txn++) {
		const struct history_txn *t = &h->txns.at[txn];

		checker_progress(c, "writes", txn, h->txns.n);
		c->is_committed[txn] = t->outcome == HISTORY_OK;
		for (uint32_t i = 0; !rc && i < t->n_ops; i++)
			rc = index_op(c, txn, t->first_op + i);
	}
	return rc ?: sort_rows(c);
}

static void observe(struct checker *c, uint32_t version)
{
	if (version != NO_VERSION &&
	    c->history->txns.at[c->versions.at[version].txn].outcome == HISTORY_INFO)
		c->is_committed[c->versions.at[version].txn] = true;
}

static void observe_row(struct checker *c, uint64_t key, uint64_t value)
{
	if (value != HISTORY_ABSENT)
		observe(c, version_find(c, object_find(c, key, false), value));
}

static void observe_op(struct checker *c, const struct history_op *op)
{
	const uint64_t *values = VEC_PLACE(c->history->values, op->at);

	switch (op->kind) {
	case HISTORY_READ:
	case HISTORY_DELETE:
		if (op->is_known)
			observe_row(c, op->key, op->value);
		break;
	case HISTORY_SCAN:
		for (uint32_t i = 0; i < op->n; i++)
			observe_row(c, values[2 * i], values[2 * i + 1]);
		break;
	case HISTORY_LIST:	/* The longest has what all others have. */
	case HISTORY_APPEND:
	case HISTORY_WRITE:
	case HISTORY_INSERT:
		break;
	}
}

/*
 * A delete of unknown outcome leaves nothing that a read could show: its row may be gone from any
 * moment on, so nothing follows from an absence of it.
 */
static void count_delete(struct checker *c, uint32_t version)
{
	const struct version *v = &c->versions.at[version];
	struct object *o = &c->objects.at[v->object];

	if (v->value != HISTORY_ABSENT || v->txn == NO_TXN)
		return;
	if (c->history->txns.at[v->txn].outcome == HISTORY_INFO)
		o->is_undecided = true;
	else if (!version_is_committed(c, version))
		return;
	o->n_deletes++;
}

int versions_observe(struct checker *c)
{
	const struct history *h = c->history;
	bool has_unknown = false;

	for (uint32_t txn = 0; txn < h->txns.n; txn++)
		has_unknown |= h->txns.at[txn].outcome == HISTORY_INFO;
	for (size_t i = 0; has_unknown && i < c->orders.n; i++)
		observe(c, c->orders.at[i].version);
	for (uint32_t txn = 0; has_unknown && txn < h->txns.n; txn++) {
		const struct history_txn *t = &h->txns.at[txn];

		for (uint32_t i = 0; t->outcome == HISTORY_OK && i < t->n_ops; i++)
			observe_op(c, &h->ops.at[t->first_op + i]);
	}
	for (uint32_t txn = 0; txn < h->txns.n; txn++) {
		c->result->n_txns[h->txns.at[txn].outcome]++;
		c->result->unknown.outcomes += h->txns.at[txn].outcome == HISTORY_INFO &&
					       !c->is_committed[txn];
	}
	for (uint32_t i = 0; i < c->versions.n; i++)
		count_delete(c, i);
	return 0;
}
