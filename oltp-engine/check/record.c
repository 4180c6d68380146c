// SPDX-License-Identifier: GPL-2.0-or-later
/* A recording from beginning to end: see record.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record_private.h"
#include "oltp-engine/src/base/clock.h"

#define WORKERS_DEFAULT		4u
#define LISTS_DEFAULT		8u
#define REGISTERS_DEFAULT	32u
#define WINDOWS_DEFAULT		4u
#define RECORD_BYTES_MIN	256u
/* Between two changes, of workers and of memory. */
#define PAUSE_MS_MAX		8u
#define CONFLICT_PAUSE_NS	20000l
#define TELL_EVERY		16u
#define TABLE_CAPACITY		(1u << 18)
/* Lists and rows that one transaction reads in the end. */
#define LAST_READS		30u

static void sleep_ms(uint32_t ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

static double now_s(void)
{
	return (double)clock_now_ns() / 1e9;
}

/* ---- the pool's hooks ---- */

static int attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	return recorder_create(ctx, worker, (struct recorder **)ret_local);
}

static enum oltp_rc run(void *local, uint32_t slot, bool retry)
{
	struct recorder *r = local;
	struct recording *recording = r->recording;
	enum oltp_rc rc;

	if (atomic_load_explicit(&recording->is_done, memory_order_relaxed) && !retry) {
		sleep_ms(1);
		return OLTP_OK;
	}
	if (!retry)
		plan_make(r, &r->plans[slot]);
	rc = recorder_attempt(r, slot);
	/* The holder of the lock may need this CPU. Without a pause thousands of attempts fail. */
	if (rc == OLTP_CONFLICT)
		nanosleep(&(struct timespec){ .tv_nsec = CONFLICT_PAUSE_NS }, NULL);
	return rc;
}

static void detach(void *local)
{
	recorder_destroy(local);
}

/* ---- what there is ---- */

static int open_tables(struct recording *recording)
{
	uint32_t bytes = recording->config->record_bytes;
	struct oltp_engine *engine = recording->engine;
	int rc = oltp_table_create(engine, bytes, TABLE_CAPACITY, &recording->lists);

	rc = rc ?: oltp_table_create(engine, bytes, RECORD_REGISTERS, &recording->registers);
	rc = rc ?: oltp_table_create(engine, bytes, TABLE_CAPACITY, &recording->rows);
	return rc ?: oltp_index_create(recording->rows, NULL, &recording->by_key);
}

/* Runs a transaction until it goes through. */
static int run_through(struct recorder *r, const struct plan *plan)
{
	enum oltp_rc rc;

	r->plans[0] = *plan;
	for (;;) {
		rc = recorder_attempt(r, 0);
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(r->worker) ?: OLTP_CONFLICT;
		if (rc != OLTP_CONFLICT)
			return rc ? -EIO : 0;
	}
}

/* Adds a read; with enough of them they are run. */
static int last_read(struct recorder *r, struct plan *plan, enum plan_kind kind, uint64_t key,
		     uint64_t to)
{
	int rc = 0;

	plan_add(plan, kind, key, to);
	if (plan->n == LAST_READS) {
		rc = run_through(r, plan);
		plan->n = 0;
	}
	return rc;
}

/* Reads all lists, registers and rows in the end: what no read saw tells the checker nothing. */
static int read_all(struct recorder *r)
{
	const struct record_config *config = r->recording->config;
	struct record_shared *s = r->recording->shared;
	struct plan plan = { .n = 0 };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < config->lists; i++) {
		for (uint32_t g = 0; !rc && g <= s->lists[i]; g++)
			rc = last_read(r, &plan, PLAN_LIST_READ, LIST_KEY(i, g), 0);
	}
	for (uint64_t i = 0; !rc && config->is_for_crash && i < r->number; i++) {
		for (uint32_t g = 0; !rc && g <= s->journals[i]; g++)
			rc = last_read(r, &plan, PLAN_LIST_READ, JOURNAL_KEY(i, g), 0);
	}
	for (uint32_t i = 0; !rc && i < config->registers; i++)
		rc = last_read(r, &plan, PLAN_READ, i, 0);
	for (uint32_t i = 0; !rc && i < config->windows; i++) {
		for (uint32_t g = 0; !rc && g <= s->windows[i]; g++)
			rc = last_read(r, &plan, PLAN_SCAN, ROW_KEY(i, g, 0),
				       ROW_KEY(i, g, WINDOW_KEYS - 1));
	}
	return rc ?: plan.n ? run_through(r, &plan) : 0;
}

static int run_last(struct recording *recording)
{
	struct oltp_worker *worker;
	struct recorder *r;
	int rc = oltp_worker_create(recording->engine, &worker);

	if (rc)
		return rc;
	rc = recorder_create(recording, worker, &r);
	if (!rc) {
		rc = read_all(r);
		recorder_destroy(r);
	}
	oltp_worker_destroy(worker);
	return rc;
}

/* ---- coming and going ---- */

struct churn {
	struct recording *recording;
	struct oltp_pool *pool;
	struct record_stats *stats;
	struct random64 random;
	bool is_there[RECORD_WORKERS];
};

/* Adds the worker if it is not there, takes it away if it is and not the last one. */
static int move_worker(struct churn *c, uint32_t cpu)
{
	int rc;

	if (!c->is_there[cpu]) {
		rc = oltp_pool_add(c->pool, cpu);
		c->stats->workers += !rc;
	} else if (oltp_pool_count(c->pool) > 1) {
		rc = oltp_pool_remove(c->pool, cpu, NULL);
	} else {
		return 0;
	}
	c->is_there[cpu] ^= !rc;
	return rc;
}

/* ---- memory ---- */

/* On a thread of its own: a worker that is told to go may have to wait for room. */
struct memory {
	const struct record_config *config;
	struct oltp_blocks_native *blocks;
	_Atomic bool is_done;
	uint64_t shrinks;
	pthread_t thread;
};

static void *memory_main(void *arg)
{
	struct memory *m = arg;
	struct random64 random = { m->config->seed };

	while (!atomic_load(&m->is_done)) {
		oltp_blocks_native_set_limit(m->blocks, m->config->memory_low_bytes, 0);
		m->shrinks++;
		sleep_ms(1 + (uint32_t)random64_below(&random, PAUSE_MS_MAX));
		oltp_blocks_native_set_limit(m->blocks, m->config->memory_bytes, 0);
		sleep_ms(1 + (uint32_t)random64_below(&random, PAUSE_MS_MAX));
	}
	return NULL;
}

static bool has_enough(const struct recording *recording, double start_s)
{
	const struct record_config *config = recording->config;

	if (atomic_load(&recording->shared->committed) >= config->transactions ||
	    atomic_load(&recording->sink_rc))
		return true;
	return config->seconds > 0 && now_s() - start_s >= config->seconds;
}

static int run_pool(struct churn *c, void (*tell)(void *ctx, uint64_t committed), void *ctx)
{
	const struct record_config *config = c->recording->config;
	double start_s = now_s();
	int rc = 0;

	for (uint32_t cpu = 0; !rc && cpu < config->workers; cpu++)
		rc = move_worker(c, cpu);
	for (uint32_t turn = 0; !rc && !has_enough(c->recording, start_s); turn++) {
		sleep_ms(1 + (uint32_t)random64_below(&c->random, PAUSE_MS_MAX));
		if (!config->is_steady)
			rc = move_worker(c, (uint32_t)random64_below(&c->random,
								     config->workers));
		if (tell && turn % TELL_EVERY == 0)
			tell(ctx, atomic_load(&c->recording->shared->committed));
	}
	atomic_store(&c->recording->is_done, true);
	return rc;
}

static int run_workers(struct recording *recording, void (*tell)(void *ctx, uint64_t committed),
		       void *ctx, struct record_stats *stats)
{
	const struct oltp_workload workload = {
		.attach = attach,
		.run = run,
		.detach = detach,
		.ctx = recording,
	};
	const struct oltp_pool_config config = {
		.engine = recording->engine,
		.workload = &workload,
		.no_pin = true,
	};
	struct churn churn = {
		.recording = recording,
		.stats = stats,
		.random = { recording->config->seed },
	};
	int rc = oltp_pool_create(&config, &churn.pool);

	if (rc)
		return rc;
	rc = run_pool(&churn, tell, ctx);
	oltp_pool_destroy(churn.pool);
	return rc;
}

static int run_with_memory(struct recording *recording, struct oltp_blocks_native *blocks,
			   void (*tell)(void *ctx, uint64_t committed), void *ctx,
			   struct record_stats *stats)
{
	struct memory memory = { .config = recording->config, .blocks = blocks };
	int rc = blocks ? -pthread_create(&memory.thread, NULL, memory_main, &memory) : 0;

	if (rc)
		return rc;
	rc = run_workers(recording, tell, ctx, stats);
	atomic_store(&memory.is_done, true);
	if (blocks)
		pthread_join(memory.thread, NULL);
	stats->shrinks = memory.shrinks;
	return rc;
}

static int recover(struct recording *recording)
{
	const bool is_lazy = recording->config->is_lazy;
	const struct oltp_recover_config how = {
		.lazy = is_lazy,
		.lazy_mib_s = is_lazy ? OLTP_LAZY_NO_LOAD : 0,
	};
	struct oltp_recovery recovery;
	int rc = oltp_recover(recording->engine, &how, &recovery);

	if (!rc && is_lazy)
		rc = oltp_checkpoint(recording->engine);
	if (rc)
		return rc;
	/* Values that this history never wrote would be read. */
	if (!atomic_load(&recording->shared->attached))
		return recovery.rows || recovery.transactions ? -ENOTEMPTY : 0;
	if (recording->config->engine.durability != OLTP_DURABILITY_ASYNC)
		return 0;
	return recorder_put_recovered(recording, recovery.epoch);
}

static void fill_in(struct record_config *config)
{
	config->what = config->what ?: RECORD_DO_ALL;
	config->workers = config->workers ?: WORKERS_DEFAULT;
	config->lists = config->lists ?: LISTS_DEFAULT;
	config->registers = config->registers ?: REGISTERS_DEFAULT;
	config->windows = config->windows ?: WINDOWS_DEFAULT;
	if (config->record_bytes < RECORD_BYTES_MIN)
		config->record_bytes = RECORD_BYTES_MIN;
	/* A scan of a whole window, all that a transaction reads in the end. */
	config->engine.txn_records_max = 2 * LAST_READS * WINDOW_KEYS;
}

int record_run(const struct record_config *given, struct record_shared *shared,
	       const struct record_sink *sink, void (*tell)(void *ctx, uint64_t committed),
	       void *ctx, struct record_stats *ret_stats)
{
	struct record_config config = *given;
	struct recording recording = { .config = &config, .shared = shared, .sink = sink };
	struct oltp_blocks_native *blocks = NULL;
	int rc = 0;

	fill_in(&config);
	if (config.workers > RECORD_WORKERS || config.lists > RECORD_LISTS ||
	    config.registers > RECORD_REGISTERS || config.windows > RECORD_WINDOWS)
		return -EINVAL;
	*ret_stats = (struct record_stats){ 0 };
	if (config.memory_bytes) {
		rc = oltp_blocks_native_create(config.memory_bytes, 0, &blocks);
		config.engine.blocks = &oltp_blocks_native_ops;
		config.engine.blocks_ctx = blocks;
	}
	rc = rc ?: oltp_engine_open(&config.engine, &recording.engine);
	if (!rc && blocks)
		oltp_blocks_native_attach(blocks, recording.engine);
	rc = rc ?: open_tables(&recording);
	if (!rc && config.engine.durability != OLTP_DURABILITY_OFF)
		rc = recover(&recording);
	rc = rc ?: run_with_memory(&recording, blocks, tell, ctx, ret_stats);
	rc = rc ?: run_last(&recording);
	oltp_engine_close(recording.engine);
	oltp_blocks_native_destroy(blocks);
	ret_stats->committed = atomic_load(&shared->committed);
	ret_stats->aborted = recording.aborted;
	ret_stats->conflicts = recording.conflicts;
	ret_stats->colds = recording.colds;
	ret_stats->sink_rc = recording.sink_rc;
	return rc ?: ret_stats->sink_rc;
}
