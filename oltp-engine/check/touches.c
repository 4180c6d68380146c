// SPDX-License-Identifier: GPL-2.0-or-later
/* What one transaction did to each object: see versions.h. */
#include "versions.h"

/* Up to so many are sorted faster by going through them. */
#define INSERTION_MAX	24u

static int compare(const void *a, const void *b)
{
	const struct touch *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static void sort(struct touches *touches)
{
	struct touch *at = touches->touches.at;

	if (touches->touches.n > INSERTION_MAX) {
		qsort(at, touches->touches.n, sizeof(*at), compare);
		return;
	}
	for (size_t i = 1; i < touches->touches.n; i++) {
		struct touch touch = at[i];
		size_t to = i;

		for (; to && compare(&at[to - 1], &touch) > 0; to--)
			at[to] = at[to - 1];
		at[to] = touch;
	}
}

static int add_op(const struct checker *c, size_t index, struct touches *touches)
{
	static const enum touch_kind kinds[] = {
		[HISTORY_APPEND] = TOUCH_APPEND, [HISTORY_LIST] = TOUCH_LIST,
		[HISTORY_WRITE] = TOUCH_WRITE, [HISTORY_READ] = TOUCH_READ,
		[HISTORY_INSERT] = TOUCH_INSERT, [HISTORY_DELETE] = TOUCH_DELETE,
	};
	const struct history_op *op = &c->history->ops.at[index];
	const uint64_t *values = VEC_PLACE(c->history->values, op->at);
	bool is_list = op->kind == HISTORY_APPEND || op->kind == HISTORY_LIST;
	struct touch touch = { .op = (uint32_t)index, .version = NO_VERSION, .value = op->value };
	int rc = 0;

	if (op->kind == HISTORY_SCAN) {
		touch.kind = TOUCH_READ;
		touch.is_scan = true;
		for (uint32_t i = 0; !rc && i < op->n; i++) {
			touch.object = object_find(c, values[2 * i], false);
			touch.value = values[2 * i + 1];
			rc = vec_push(&touches->touches, touch);
		}
		return rc;
	}
	if (!op->is_known && op->kind != HISTORY_DELETE)
		return 0;
	touch.kind = kinds[op->kind];
	touch.object = object_find(c, op->key, is_list);
	if (op->kind == HISTORY_DELETE)
		touch.version = version_find_delete(c, touch.object, index);
	else if (op->kind != HISTORY_READ && op->kind != HISTORY_LIST)
		touch.version = version_find(c, touch.object, op->value);
	return vec_push(&touches->touches, touch);
}

bool touches_have(const struct touches *touches, uint32_t object)
{
	size_t low = 0, high = touches->touches.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (touches->touches.at[middle].object < object)
			low = middle + 1;
		else
			high = middle;
	}
	return low < touches->touches.n && touches->touches.at[low].object == object;
}

int touches_missed(const struct checker *c, const struct history_op *scan,
		   int (*fn)(void *ctx, uint32_t object), void *ctx)
{
	const uint64_t *found = VEC_PLACE(c->history->values, scan->at);
	size_t low = 0, high = c->rows.n;
	uint32_t next = 0;
	int rc = 0;

	if (!scan->is_known)
		return 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->rows.at[middle].key < scan->key)
			low = middle + 1;
		else
			high = middle;
	}
	for (; !rc && low < c->rows.n && c->rows.at[low].key <= scan->value; low++) {
		/* Both are in the order of keys, and what was found is a part of the rows. */
		if (next < scan->n && found[2 * next] == c->rows.at[low].key)
			next++;
		else
			rc = fn(ctx, c->rows.at[low].object);
	}
	return rc;
}

struct misses {
	struct touches *touches;
	size_t n;		/* touches that are in order */
	uint32_t op;
};

static int add_miss(void *ctx, uint32_t object)
{
	struct misses *misses = ctx;
	struct touches sorted = *misses->touches;

	sorted.touches.n = misses->n;
	if (!touches_have(&sorted, object))
		return 0;
	return vec_push(&misses->touches->touches,
			(struct touch){ .object = object, .op = misses->op, .kind = TOUCH_MISS,
					.version = NO_VERSION, .is_scan = true,
					.value = HISTORY_ABSENT });
}

int touches_of(const struct checker *c, uint32_t txn, struct touches *touches)
{
	const struct history_txn *t = &c->history->txns.at[txn];
	struct misses misses = { .touches = touches };
	int rc = 0;

	touches->touches.n = 0;
	for (uint32_t i = 0; !rc && i < t->n_ops; i++)
		rc = add_op(c, t->first_op + i, touches);
	if (rc)
		return rc;
	sort(touches);
	misses.n = touches->touches.n;
	for (uint32_t i = 0; !rc && misses.n && i < t->n_ops; i++) {
		const struct history_op *op = &c->history->ops.at[t->first_op + i];

		misses.op = (uint32_t)(t->first_op + i);
		if (op->kind == HISTORY_SCAN)
			rc = touches_missed(c, op, add_miss, &misses);
	}
	if (!rc && touches->touches.n > misses.n)
		sort(touches);
	return rc;
}
