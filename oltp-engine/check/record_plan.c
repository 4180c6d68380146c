// SPDX-License-Identifier: GPL-2.0-or-later
/* What recorded transactions do: making them up, and doing it. See record.h. */
#include <sched.h>
#include <string.h>

#include "record_private.h"

#define OPS_MAX		6u
/* One in so many of the operations and transactions. */
#define YIELD_EVERY	48u
#define GIVE_UP_EVERY	16u
#define OLD_EVERY	8u

static uint32_t random_below(struct recorder *r, uint32_t below)
{
	return (uint32_t)random64_below(&r->random, below);
}

void plan_add(struct plan *plan, enum plan_kind kind, uint64_t key, uint64_t to)
{
	plan->ops[plan->n++] = (struct plan_op){ .kind = kind, .key = key, .to = to };
}

/* Some look back at what is no longer in use, and may be on disk. */
static uint32_t generation(struct recorder *r, const _Atomic uint32_t *in_use, bool may_be_old)
{
	uint32_t newest = atomic_load_explicit(in_use, memory_order_relaxed);

	if (!may_be_old || !newest || random_below(r, OLD_EVERY))
		return newest;
	return random_below(r, newest);
}

static void add_list(struct recorder *r, struct plan *plan)
{
	struct record_shared *s = r->recording->shared;
	uint32_t slot = random_below(r, r->recording->config->lists);
	bool is_append = random_below(r, 2);

	plan_add(plan, is_append ? PLAN_APPEND : PLAN_LIST_READ,
		 LIST_KEY(slot, generation(r, &s->lists[slot], !is_append)), 0);
}

static void add_register(struct recorder *r, struct plan *plan)
{
	static const enum plan_kind kinds[] = { PLAN_READ, PLAN_READ, PLAN_READ, PLAN_READ,
						PLAN_WRITE, PLAN_WRITE, PLAN_WRITE,
						PLAN_WRITE_BLIND };

	plan_add(plan, kinds[random_below(r, 8)],
		 random_below(r, r->recording->config->registers), 0);
}

static void add_row(struct recorder *r, struct plan *plan)
{
	static const enum plan_kind kinds[] = { PLAN_ROW_READ, PLAN_ROW_PUT, PLAN_ROW_PUT,
						PLAN_ROW_PUT, PLAN_ROW_DELETE, PLAN_SCAN,
						PLAN_SCAN, PLAN_SCAN };
	struct record_shared *s = r->recording->shared;
	uint32_t window = random_below(r, r->recording->config->windows);
	enum plan_kind kind = kinds[random_below(r, 8)];
	uint64_t first = ROW_KEY(window, generation(r, &s->windows[window], kind == PLAN_SCAN), 0);
	uint64_t key = first + random_below(r, WINDOW_KEYS);

	if (kind != PLAN_SCAN || random_below(r, 2))
		plan_add(plan, kind, key, key + random_below(r, WINDOW_KEYS));
	else
		plan_add(plan, kind, first, first + WINDOW_KEYS - 1);
	if (kind == PLAN_SCAN && plan->ops[plan->n - 1].to > first + WINDOW_KEYS - 1)
		plan->ops[plan->n - 1].to = first + WINDOW_KEYS - 1;
}

void plan_make(struct recorder *r, struct plan *plan)
{
	static void (*const adders[])(struct recorder *, struct plan *) = {
		add_list, add_register, add_row,
	};
	const struct record_config *config = r->recording->config;
	uint32_t n = 2 + random_below(r, OPS_MAX - 1);

	plan->n = 0;
	while (plan->n < n) {
		uint32_t what = random_below(r, 3);

		if (config->what & 1u << what)
			adders[what](r, plan);
	}
	plan->gives_up = !random_below(r, GIVE_UP_EVERY);
	if (config->is_for_crash)
		plan_add(plan, PLAN_APPEND,
			 JOURNAL_KEY(r->number, atomic_load_explicit(
							&r->recording->shared->journals[r->number],
							memory_order_relaxed)), 0);
}

static int see(struct recorder *r, enum history_op_kind kind, uint64_t key, uint64_t value)
{
	return vec_push(&r->seen.ops, (struct history_op){ .kind = kind, .is_known = true,
							   .key = key, .value = value });
}

/* The list is full: later transactions use another key. */
static void roll(_Atomic uint32_t *in_use, uint32_t full)
{
	atomic_compare_exchange_strong_explicit(in_use, &full, full + 1, memory_order_relaxed,
						memory_order_relaxed);
}

static void roll_list(struct recorder *r, uint64_t key)
{
	struct record_shared *s = r->recording->shared;

	if (key >> 62)
		roll(&s->journals[key >> 32 & 0xffff], (uint32_t)key);
	else
		roll(&s->lists[key >> 32], (uint32_t)key);
}

static enum oltp_rc see_list(struct recorder *r, uint64_t key, const struct list_record *list)
{
	/* Of a broken engine it may be anything. */
	uint64_t n = !list ? 0 : list->n > LIST_VALUES ? LIST_VALUES : list->n;
	struct history_op op = { .kind = HISTORY_LIST, .is_known = true, .key = key,
				 .n = (uint32_t)n, .at = r->seen.values.n };

	for (uint64_t i = 0; i < n; i++) {
		if (vec_push(&r->seen.values, list->values[i]))
			return OLTP_NO_MEMORY;
	}
	return vec_push(&r->seen.ops, op) ? OLTP_NO_MEMORY : OLTP_OK;
}

static enum oltp_rc read_list(struct recorder *r, const struct plan_op *op)
{
	const void *record = NULL;
	enum oltp_rc rc = oltp_txn_read(r->worker, r->recording->lists, op->key, &record);

	if (rc && rc != OLTP_NOT_FOUND)
		return rc;
	return see_list(r, op->key, rc ? NULL : record);
}

/* Another transaction may insert first, but then what this one found missing will not hold. */
static enum oltp_rc insert(struct recorder *r, struct oltp_table *table, uint64_t key)
{
	enum oltp_rc rc = oltp_txn_insert(r->worker, table, key, r->bytes);

	return rc == OLTP_EXISTS ? OLTP_CONFLICT : rc;
}

static enum oltp_rc append(struct recorder *r, struct plan_op *op)
{
	const struct oltp_span span = { 0, sizeof(struct list_record) };
	struct list_record *list;
	void *record;
	enum oltp_rc rc = oltp_txn_update(r->worker, r->recording->lists, op->key, &span, 1,
					  &record);

	if (rc == OLTP_NOT_FOUND) {
		const struct list_record fresh = { 1, { op->value } };

		memcpy(r->bytes, &fresh, sizeof(fresh));
		rc = insert(r, r->recording->lists, op->key);
	} else if (!rc) {
		list = record;
		if (list->n >= LIST_VALUES) {
			/* As invoked it cannot be done: once more, with another list. */
			roll_list(r, op->key);
			op->key++;
			return OLTP_CONFLICT;
		}
		list->values[list->n] = op->value;
		if (!random_below(r, YIELD_EVERY))
			sched_yield();
		list->n++;
	}
	if (!rc && see(r, HISTORY_APPEND, op->key, op->value))
		return OLTP_NO_MEMORY;
	return rc;
}

static enum oltp_rc read_row(struct recorder *r, struct oltp_table *table, uint64_t key,
			     uint64_t name)
{
	const struct row_record *row = NULL;
	const void *record;
	enum oltp_rc rc = oltp_txn_read(r->worker, table, key, &record);

	if (rc && rc != OLTP_NOT_FOUND)
		return rc;
	if (!rc)
		row = record;
	return see(r, HISTORY_READ, name, row ? row->value : HISTORY_ABSENT) ? OLTP_NO_MEMORY :
									       OLTP_OK;
}

/* Updates a row, or inserts it if there is none. */
static enum oltp_rc put_row(struct recorder *r, struct oltp_table *table, uint64_t key,
			    uint64_t name, uint64_t value, bool is_blind)
{
	const struct oltp_span span = { 0, sizeof(struct row_record) };
	struct row_record *row;
	void *record;
	enum oltp_rc rc = oltp_txn_update(r->worker, table, key, &span, 1, &record);
	int no_room = 0;

	if (rc == OLTP_NOT_FOUND) {
		memcpy(r->bytes, &value, sizeof(value));
		rc = insert(r, table, key);
		if (!rc)
			no_room = see(r, HISTORY_INSERT, name, value);
	} else if (!rc) {
		row = record;
		if (!is_blind)
			no_room = see(r, HISTORY_READ, name, row->value);
		row->value = value;
		no_room = no_room ?: see(r, HISTORY_WRITE, name, value);
	}
	return no_room ? OLTP_NO_MEMORY : rc;
}

static void count_put(struct recorder *r, uint64_t key)
{
	struct record_shared *s = r->recording->shared;
	uint32_t window = (uint32_t)(key >> 32), of = (uint32_t)key / WINDOW_KEYS;

	if (atomic_fetch_add_explicit(&s->puts[window], 1, memory_order_relaxed) %
		    WINDOW_PUTS == WINDOW_PUTS - 1)
		roll(&s->windows[window], of);
}

static enum oltp_rc delete_row(struct recorder *r, const struct plan_op *op)
{
	const struct row_record *row;
	const void *record;
	enum oltp_rc rc = read_row(r, r->recording->rows, op->key, op->key);
	uint64_t was;

	if (rc || r->seen.ops.at[r->seen.ops.n - 1].value == HISTORY_ABSENT)
		return rc;
	/* Under the exclusive lock, what is deleted; the read before may have been wrong. */
	rc = oltp_txn_update(r->worker, r->recording->rows, op->key, NULL, 0, (void **)&record);
	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_CONFLICT : rc;
	row = record;
	was = row->value;
	rc = oltp_txn_delete(r->worker, r->recording->rows, op->key);
	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_CONFLICT : rc;
	return see(r, HISTORY_DELETE, op->key, was) ? OLTP_NO_MEMORY : OLTP_OK;
}

struct scan {
	struct recorder *r;
	uint32_t n;
	bool has_no_room;
};

static int on_row(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct scan *scan = ctx;
	const struct row_record *row = record;

	(void)sort_key;
	scan->n++;
	scan->has_no_room = vec_push(&scan->r->seen.values, primary_key) ||
			    vec_push(&scan->r->seen.values, row->value);
	return scan->has_no_room;
}

static enum oltp_rc scan_rows(struct recorder *r, const struct plan_op *op)
{
	const struct oltp_range range = { .from = op->key, .to = op->to };
	struct history_op seen = { .kind = HISTORY_SCAN, .is_known = true, .key = op->key,
				   .value = op->to, .at = r->seen.values.n };
	struct scan scan = { .r = r };
	enum oltp_rc rc = oltp_txn_scan(r->worker, r->recording->by_key, &range, on_row, &scan);

	seen.n = scan.n;
	if (scan.has_no_room || (!rc && vec_push(&r->seen.ops, seen)))
		return OLTP_NO_MEMORY;
	return rc;
}

static enum oltp_rc execute_op(struct recorder *r, struct plan_op *op)
{
	struct oltp_table *registers = r->recording->registers;

	switch (op->kind) {
	case PLAN_LIST_READ:
		return read_list(r, op);
	case PLAN_APPEND:
		return append(r, op);
	case PLAN_READ:
		return read_row(r, registers, op->key, REGISTER_KEY(op->key));
	case PLAN_WRITE:
	case PLAN_WRITE_BLIND:
		return put_row(r, registers, op->key, REGISTER_KEY(op->key), op->value,
			       op->kind == PLAN_WRITE_BLIND);
	case PLAN_ROW_READ:
		return read_row(r, r->recording->rows, op->key, op->key);
	case PLAN_ROW_PUT:
		count_put(r, op->key);
		return put_row(r, r->recording->rows, op->key, op->key, op->value, false);
	case PLAN_ROW_DELETE:
		return delete_row(r, op);
	case PLAN_SCAN:
		return scan_rows(r, op);
	case PLAN_KINDS:
		break;
	}
	return OLTP_INVALID;
}

enum oltp_rc plan_execute(struct recorder *r, struct plan *plan)
{
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t i = 0; !rc && i < plan->n; i++) {
		rc = execute_op(r, &plan->ops[i]);
		if (!random_below(r, YIELD_EVERY))
			sched_yield();
	}
	return rc;
}
