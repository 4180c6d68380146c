// SPDX-License-Identifier: GPL-2.0-or-later
/* See promise.h. */
#include <stdlib.h>

#include "engine.h"
#include "promise.h"

/*
 * Uses to be simulated per second and worker, looked at every LOOK_NS.  One takes 30 to 40 ns, so
 * this is 1% of the worker's time.  Engines that read from disk stay far below it.
 */
#define USES_PS		250000u
#define LOOK_NS		100000000ull

void promise_init(struct promise *p)
{
	pthread_mutex_init(&p->lock, NULL);
	baseline_init(&p->baseline);
	atomic_init(&p->mask, PROMISE_NONE);
}

void promise_finish(struct promise *p)
{
	pthread_mutex_destroy(&p->lock);
}

/* The rule may have changed. */
static void publish(struct promise *p)
{
	struct baseline_rule rule = baseline_rule(&p->baseline);

	atomic_store_explicit(&p->held, rule.held, memory_order_relaxed);
	atomic_store_explicit(&p->recent, rule.recent, memory_order_relaxed);
}

static int compare_ages(const void *a, const void *b)
{
	const struct promise_age *x = a, *y = b;

	return compare_u64(&x->epoch, &y->epoch);
}

void promise_set(struct promise *p, const struct promise_size *size)
{
	uint32_t shift = baseline_shift(size->n_records);

	if (size->n_ages)
		qsort(size->ages, size->n_ages, sizeof(*size->ages), compare_ages);
	pthread_mutex_lock(&p->lock);
	if (p->mib)
		p->ios += size->ios - p->ios_from;
	p->ios_from = size->ios;
	p->mib = size->mib;
	baseline_set(&p->baseline, size->bytes, shift);
	for (uint32_t i = 0; i < size->n_ages; i++)
		baseline_hold(&p->baseline, size->ages[i].bytes >> shift, size->ages[i].epoch);
	publish(p);
	atomic_store_explicit(&p->since, size->now, memory_order_relaxed);
	atomic_store_explicit(&p->mask, size->mib ? baseline_mask(shift) : PROMISE_NONE,
			      memory_order_relaxed);
	pthread_mutex_unlock(&p->lock);
}

uint32_t promise_mib(struct promise *p)
{
	uint32_t mib;

	pthread_mutex_lock(&p->lock);
	mib = p->mib;
	pthread_mutex_unlock(&p->lock);
	return mib;
}

/* The shift that suits the load of the time since the last look. */
static uint32_t shift_for(struct promise *p, const struct promise_facts *facts)
{
	double s = (double)(facts->now_ns - p->look_ns) / 1e9, uses = (double)p->uses;
	double uses_max = s * USES_PS * (facts->n_workers ? facts->n_workers : 1);
	uint32_t least = baseline_shift(facts->n_records), shift = p->baseline.shift;

	if (facts->now_ns - p->look_ns >= LOOK_NS) {
		p->look_ns = facts->now_ns;
		p->uses = 0;
		if (uses > uses_max && facts->n_records >> shift >= 2 * BASELINE_SAMPLE_MIN)
			shift++;
		/* Twice as many are half of what is allowed. */
		else if (uses < uses_max / 4 && shift)
			shift--;
	}
	shift = shift < least ? least : shift;
	return shift < BASELINE_SHIFT_MAX ? shift : BASELINE_SHIFT_MAX;
}

void promise_turn(struct promise *p, const struct promise_facts *facts)
{
	uint32_t before, shift;

	if (atomic_load_explicit(&p->mask, memory_order_relaxed) == PROMISE_NONE)
		return;
	pthread_mutex_lock(&p->lock);
	before = p->baseline.shift;
	shift = shift_for(p, facts);
	if (p->mib)
		baseline_resize(&p->baseline, facts->bytes);
	if (p->mib && shift != before) {
		baseline_resample(&p->baseline, shift);
		if (shift < before)
			atomic_store_explicit(&p->since, facts->now, memory_order_relaxed);
		atomic_store_explicit(&p->mask, baseline_mask(shift), memory_order_relaxed);
	}
	pthread_mutex_unlock(&p->lock);
}

void promise_read(struct promise *p, uint64_t ios, uint64_t *ret_baseline_ios,
		  uint64_t *ret_actual_ios)
{
	pthread_mutex_lock(&p->lock);
	*ret_baseline_ios = p->baseline.ios;
	*ret_actual_ios = p->ios + (p->mib ? ios - p->ios_from : 0);
	pthread_mutex_unlock(&p->lock);
}

static void hand_in(struct oltp_engine *engine, struct promise_batch *batch)
{
	struct promise *p = &engine->promise;
	bool wants_epoch;

	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < batch->n; i++)
		baseline_apply(&p->baseline, &batch->uses[i], batch->epoch);
	p->uses += batch->n;
	publish(p);
	wants_epoch = baseline_wants_epoch(&p->baseline, epoch_now(&engine->epoch));
	pthread_mutex_unlock(&p->lock);
	batch->n = 0;
	/* A few hundred times while the whole promised memory is used once. */
	if (wants_epoch)
		epoch_advance(&engine->epoch);
}

static void note(struct oltp_worker *worker, uint64_t now, const struct baseline_use *use)
{
	struct promise_batch *batch = &worker->promised;

	if (batch->n == PROMISE_BATCH || (batch->n && batch->epoch != now))
		hand_in(worker->engine, batch);
	batch->epoch = now;
	batch->uses[batch->n++] = *use;
}

static bool is_on(const struct promise *p)
{
	return atomic_load_explicit(&p->mask, memory_order_relaxed) != PROMISE_NONE;
}

static bool was_taken_before(const struct promise *p, uint64_t before, bool is_flagged)
{
	return is_flagged || before < atomic_load_explicit(&p->since, memory_order_relaxed);
}

/* True: the cache holds it from now on. */
static bool decide(struct oltp_worker *worker, const struct oltp_table *table, uint64_t now,
		   uint64_t before, bool was_taken, bool is_written)
{
	const struct promise *p = &worker->engine->promise;
	const struct baseline_rule rule = {
		.held = atomic_load_explicit(&p->held, memory_order_relaxed),
		.recent = atomic_load_explicit(&p->recent, memory_order_relaxed),
	};
	struct baseline_use use = baseline_decide(&rule, before, table->stride, was_taken,
						  is_written);

	/* Used again while it is in the read buffer, a record moves into a block without a read. */
	if (before >= now)
		use.is_io = false;
	/* Used before in the same epoch: nothing changes. So hot records cost next to nothing. */
	if (!use.leaves || before < now)
		note(worker, now, &use);
	return use.enters;
}

bool promise_use(struct oltp_worker *worker, const struct oltp_table *table, uint64_t seen,
		 bool exclusive)
{
	const struct promise *p = &worker->engine->promise;
	uint64_t before = lock_stamp(seen);
	bool was_taken;

	if (!is_on(p))
		return false;
	if (seen & (LOCK_HELD | LOCK_MARK))
		return true;
	was_taken = was_taken_before(p, before, seen & LOCK_TAKEN);
	if (!(seen & LOCK_COUNTED))
		return decide(worker, table, worker->stamp, before, was_taken, exclusive);
	/* It was counted as a use that does not write. */
	return was_taken || (exclusive && promise_insert(worker, table));
}

uint64_t promise_fetch(struct oltp_worker *worker, const struct oltp_table *table, uint64_t now,
		       uint64_t before, bool was_taken)
{
	const struct promise *p = &worker->engine->promise;

	if (!is_on(p))
		return 0;
	was_taken = was_taken_before(p, before, was_taken);
	return decide(worker, table, now, before, was_taken, false) ? LOCK_COUNTED | LOCK_TAKEN :
								      LOCK_COUNTED;
}

bool promise_insert(struct oltp_worker *worker, const struct oltp_table *table)
{
	const struct baseline_use use = { .bytes = table->stride, .enters = true };

	if (is_on(&worker->engine->promise))
		note(worker, worker->stamp, &use);
	return true;
}

void promise_delete(struct oltp_worker *worker, const struct oltp_table *table)
{
	const struct baseline_use use = { .before = worker->stamp, .bytes = table->stride,
					  .leaves = true };

	if (is_on(&worker->engine->promise))
		note(worker, worker->stamp, &use);
}
