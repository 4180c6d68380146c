// SPDX-License-Identifier: GPL-2.0-or-later
/* See ordered_stress.h. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ordered_stress.h"
#include "tests/lib/chance.h"

#define THREADS_MAX	8u
#define FREE_GROUPS	(STRESS_GROUPS - 2)
#define NUMBERS		4096u
#define ATTEMPTS_MAX	200u
/* Keys in the table of counters of which, of each two, there is at most one. */
#define EITHER_FIRST	1000u
#define EITHERS		8u
#define TXNS_PER_WORKER	300u

struct counter {
	uint64_t n;
};

struct thread {
	struct ordered_stress *stress;
	struct oltp_worker *w;
	uint64_t random;
	uint32_t n_txns;
	uint8_t *bytes;		/* of a record */
};

/* What the attempt at hand saw. */
struct view {
	uint64_t n[STRESS_GROUPS];
	uint64_t last_sort, last_key;
	bool has_last, is_down, is_unique;
	bool is_wrong;
};

static uint64_t draw(struct thread *t, uint64_t n)
{
	return (chance_step(&t->random) >> 33) % n;
}

static int view_row(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	const struct ordered_row *row = record;
	struct view *view = ctx;

	if (view->has_last && view->is_unique && sort_key == view->last_sort)
		view->is_wrong = true;
	if (view->has_last &&
	    (view->is_down ? sort_key > view->last_sort : sort_key < view->last_sort))
		view->is_wrong = true;
	if (row->group >= STRESS_GROUPS || row->value != (primary_key ^ row->group)) {
		view->is_wrong = true;
		return 1;
	}
	view->n[row->group]++;
	view->last_sort = sort_key;
	view->last_key = primary_key;
	view->has_last = true;
	return 0;
}

static enum oltp_rc count_group(struct thread *t, uint64_t group, struct view *view)
{
	const struct oltp_range range = { .from = group, .to = group, .descending = draw(t, 2) };

	view->has_last = false;
	return oltp_txn_scan(t->w, t->stress->rig->by_group, &range, view_row, view);
}

static enum oltp_rc count_all(struct thread *t, struct view *view)
{
	struct oltp_index *index = draw(t, 2) ? t->stress->rig->by_key :
						t->stress->rig->by_number;
	const struct oltp_range range = { .to = UINT64_MAX, .descending = draw(t, 2) };

	view->is_down = range.descending;
	view->is_unique = true;
	return oltp_txn_scan(t->w, index, &range, view_row, view);
}

static enum oltp_rc counter_read_one(struct thread *t, uint64_t group, uint64_t *ret_n)
{
	const void *record;
	enum oltp_rc rc = oltp_txn_read(t->w, t->stress->counters, group, &record);

	if (!rc)
		*ret_n = ((const struct counter *)record)->n;
	return rc;
}

static enum oltp_rc counter_change(struct thread *t, uint64_t group, int64_t by)
{
	const struct oltp_span span = { 0, sizeof(struct counter) };
	void *record;
	enum oltp_rc rc = oltp_txn_update(t->w, t->stress->counters, group, &span, 1, &record);

	if (!rc)
		((struct counter *)record)->n += (uint64_t)by;
	return rc;
}

static enum oltp_rc add(struct thread *t, uint64_t key, uint64_t group)
{
	const struct ordered_row row = { group, draw(t, NUMBERS), key ^ group };
	enum oltp_rc rc;

	memcpy(t->bytes, &row, sizeof(row));
	rc = oltp_txn_insert(t->w, t->stress->rig->table, key, t->bytes);
	if (rc == OLTP_EXISTS)
		return OLTP_OK;
	return rc ?: counter_change(t, group, 1);
}

/* Deletes a row; *ret_group: which it was in, or STRESS_GROUPS. */
static enum oltp_rc take(struct thread *t, uint64_t key, uint64_t *ret_group)
{
	struct oltp_table *table = t->stress->rig->table;
	const void *record;
	enum oltp_rc rc = oltp_txn_read(t->w, table, key, &record);

	*ret_group = STRESS_GROUPS;
	if (rc == OLTP_NOT_FOUND)
		return OLTP_OK;
	if (!rc)
		*ret_group = ((const struct ordered_row *)record)->group;
	if (!rc)
		rc = oltp_txn_delete(t->w, table, key);
	return rc ?: counter_change(t, *ret_group, -1);
}

/* To another group, or from a pair: away. */
static enum oltp_rc move(struct thread *t, uint64_t key)
{
	uint64_t group;
	enum oltp_rc rc = take(t, key, &group);

	return rc || group >= FREE_GROUPS ? rc : add(t, key, draw(t, FREE_GROUPS));
}

/* Gives others the time to come in between. */
static void pause_some(struct thread *t)
{
	if (!draw(t, 8))
		sched_yield();
}

/*
 * Everybody looks first whether there is room, so the sum never exceeds the limit; and makes some
 * if there is none, so that it is always close to it.
 */
static enum oltp_rc add_to_pair(struct thread *t, uint64_t key)
{
	struct view view = { 0 };
	enum oltp_rc rc = count_group(t, FREE_GROUPS, &view);
	uint64_t group;

	if (!rc)
		rc = count_group(t, FREE_GROUPS + 1, &view);
	if (rc)
		return rc;
	pause_some(t);
	if (view.n[FREE_GROUPS] + view.n[FREE_GROUPS + 1] >= STRESS_PAIR_MAX)
		return take(t, view.last_key, &group);
	return add(t, key, FREE_GROUPS + draw(t, 2));
}

/* One of the two, if the other one is missing: no scan, only look-ups in vain. */
static enum oltp_rc add_either(struct thread *t)
{
	const struct counter zero = { 0 };
	struct oltp_table *table = t->stress->counters;
	uint64_t key = EITHER_FIRST + draw(t, 2 * EITHERS);
	const void *record;
	enum oltp_rc rc = oltp_txn_read(t->w, table, key ^ 1, &record);

	if (!rc)
		return oltp_txn_delete(t->w, table, key ^ 1);
	if (rc != OLTP_NOT_FOUND)
		return rc;
	pause_some(t);
	rc = oltp_txn_insert(t->w, table, key, &zero);
	return rc == OLTP_EXISTS ? OLTP_OK : rc;
}

static enum oltp_rc check_eithers(struct thread *t, struct view *view)
{
	uint32_t n[EITHERS] = { 0 };

	for (uint64_t i = 0; i < 2 * EITHERS; i++) {
		const void *record;
		enum oltp_rc rc = oltp_txn_read(t->w, t->stress->counters, EITHER_FIRST + i,
						&record);

		if (rc && rc != OLTP_NOT_FOUND)
			return rc;
		n[i / 2] += !rc;
		view->is_wrong |= n[i / 2] == 2;
	}
	return OLTP_OK;
}

static enum oltp_rc check_group(struct thread *t, uint64_t group, struct view *view)
{
	bool counter_first = draw(t, 2);
	uint64_t n = 0;
	enum oltp_rc rc = counter_first ? counter_read_one(t, group, &n) : OLTP_OK;

	if (!rc)
		rc = count_group(t, group, view);
	pause_some(t);
	if (!rc && !counter_first)
		rc = counter_read_one(t, group, &n);
	view->is_wrong |= n != view->n[group];
	return rc;
}

static enum oltp_rc check_all(struct thread *t, struct view *view)
{
	enum oltp_rc rc = count_all(t, view);

	for (uint64_t group = 0; !rc && group < STRESS_GROUPS; group++) {
		uint64_t n = 0;

		rc = counter_read_one(t, group, &n);
		view->is_wrong |= n != view->n[group];
	}
	view->is_wrong |= view->n[FREE_GROUPS] + view->n[FREE_GROUPS + 1] > STRESS_PAIR_MAX;
	return rc ?: check_eithers(t, view);
}

/* One attempt. What was seen counts only if the transaction commits. */
static enum oltp_rc attempt(struct thread *t, uint64_t what, uint64_t key)
{
	struct view view = { 0 };
	bool is_check = what >= 6 && what < 10;
	enum oltp_rc rc;
	uint64_t group;

	oltp_txn_begin(t->w);
	if (what < 2)
		rc = add(t, key, draw(t, FREE_GROUPS));
	else if (what < 3)
		rc = take(t, key, &group);
	else if (what < 4)
		rc = move(t, key);
	else if (what < 6)
		rc = add_to_pair(t, key);
	else if (what < 9)
		rc = check_group(t, draw(t, STRESS_GROUPS), &view);
	else if (what < 10)
		rc = check_all(t, &view);
	else
		rc = add_either(t);
	/* Some give up, whatever they did. */
	if (!rc && key % 16 == 3 && draw(t, 2)) {
		oltp_txn_abort(t->w);
		return OLTP_OK;
	}
	if (!rc)
		rc = oltp_txn_commit(t->w);
	if (rc) {
		oltp_txn_abort(t->w);
		return rc;
	}
	if (view.is_wrong)
		atomic_store(&t->stress->has_failed, true);
	atomic_fetch_add(is_check ? &t->stress->n_checks : &t->stress->n_changes, 1);
	return OLTP_OK;
}

static void run_one(struct thread *t)
{
	uint64_t what = draw(t, 12), key = draw(t, STRESS_KEYS);
	enum oltp_rc rc = OLTP_CONFLICT;

	for (uint32_t i = 0; rc == OLTP_CONFLICT && i < ATTEMPTS_MAX; i++) {
		rc = attempt(t, what, key);
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(t->w) ?: OLTP_CONFLICT;
	}
	/* No room for a record that came back: that is for the test of memory to judge. */
	if (rc && rc != OLTP_CONFLICT && rc != OLTP_NO_MEMORY)
		atomic_store(&t->stress->has_failed, true);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	for (uint32_t i = 0; i < t->n_txns; i++) {
		if (i % TXNS_PER_WORKER == 0) {
			oltp_worker_destroy(t->w);
			t->w = NULL;
			if (oltp_worker_create(t->stress->rig->engine, &t->w))
				abort();
		}
		run_one(t);
	}
	oltp_worker_destroy(t->w);
	return NULL;
}

static void thread_init(struct thread *t, struct ordered_stress *stress, uint64_t seed)
{
	*t = (struct thread){ .stress = stress, .random = seed };
	t->bytes = calloc(1, stress->rig->table->record_bytes);
	assert_non_null(t->bytes);
}

void ordered_stress_open(struct ordered_stress *stress, struct ordered_rig *rig)
{
	const struct counter zero = { 0 };
	struct oltp_worker *w;

	*stress = (struct ordered_stress){ .rig = rig };
	assert_int_equal(oltp_table_create(rig->engine, sizeof(zero), STRESS_GROUPS,
					   &stress->counters), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &w), 0);
	assert_int_equal(oltp_txn_begin(w), OLTP_OK);
	for (uint64_t group = 0; group < STRESS_GROUPS; group++)
		assert_int_equal(oltp_txn_insert(w, stress->counters, group, &zero), OLTP_OK);
	assert_int_equal(oltp_txn_commit(w), OLTP_OK);
	oltp_worker_destroy(w);
}

void ordered_stress_run(struct ordered_stress *stress, uint32_t n_threads, uint32_t n_txns)
{
	struct thread threads[THREADS_MAX];
	pthread_t ids[THREADS_MAX];

	assert_true(n_threads <= THREADS_MAX);
	for (uint32_t i = 0; i < n_threads; i++) {
		thread_init(&threads[i], stress, i + 1);
		threads[i].n_txns = n_txns;
		assert_int_equal(pthread_create(&ids[i], NULL, thread_main, &threads[i]), 0);
	}
	for (uint32_t i = 0; i < n_threads; i++) {
		pthread_join(ids[i], NULL);
		free(threads[i].bytes);
	}
	assert_false(stress->has_failed);
	assert_true(stress->n_checks > 0);
	assert_true(stress->n_changes > 0);
}

void ordered_stress_check(struct ordered_stress *stress)
{
	struct thread t;

	thread_init(&t, stress, 99);
	assert_int_equal(oltp_worker_create(stress->rig->engine, &t.w), 0);
	for (uint32_t i = 0; i < 16; i++) {
		struct view view = { 0 };
		enum oltp_rc rc;

		/* The thread that moves memory may be in the way for a moment. */
		do {
			view = (struct view){ 0 };
			assert_int_equal(oltp_txn_begin(t.w), OLTP_OK);
			rc = check_all(&t, &view);
			if (!rc)
				rc = oltp_txn_commit(t.w);
			if (rc)
				oltp_txn_abort(t.w);
			if (rc == OLTP_COLD)
				rc = oltp_cold_wait(t.w) ?: OLTP_CONFLICT;
		} while (rc == OLTP_CONFLICT);
		assert_int_equal(rc, OLTP_OK);
		assert_false(view.is_wrong);
	}
	oltp_worker_destroy(t.w);
	free(t.bytes);
}
