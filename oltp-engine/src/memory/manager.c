// SPDX-License-Identifier: GPL-2.0-or-later
/* See manager.h. */
#include <errno.h>
#include <stdlib.h>

#include "make_room.h"
#include "manager.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/admit.h"
#include "oltp-engine/src/cold/fetch.h"
#include "oltp-engine/src/txn/revoked.h"

/* How finely the time of a record's last use is known. */
#define TICK_NS			20000000ull
/* The cost of reading a record is computed once in so many ticks. */
#define REREAD_TICKS		16u
/* After an error of the disk. */
#define DISK_RETRY_NS		500000000ull
#define FILL_PAUSE_NS		1000000000ull
/* After a read that a transaction wanted, before records are read ahead again. */
#define FILL_QUIET_NS		200000000ull
/* Before a demand that could not be met is tried again, until its deadline. */
#define DEMAND_RETRY_NS		20000000ull
/* The most that it takes to empty a block for a table that has none. */
#define ROOM_BLOCK_NS		1000000000ull

/* How much is demanded of a node; 0: nothing, or it is not time to do something about it. */
static uint64_t demand_due(struct manager *m, uint32_t node, uint64_t *ret_deadline_ns)
{
	struct storage *storage = &m->engine->storage;
	struct demand *demand = &m->demand[node];
	uint64_t bytes, n_limits, now_ns = clock_now_ns();

	pthread_mutex_lock(&storage->lock);
	bytes = storage_demanded(storage, node);
	n_limits = storage->nodes[node].n_limits;
	*ret_deadline_ns = storage->nodes[node].deadline_ns ?: UINT64_MAX;
	pthread_mutex_unlock(&storage->lock);
	if (n_limits != demand->n_limits) {
		demand->n_limits = n_limits;
		demand->is_given_up = false;
		demand->retry_ns = 0;
	}
	if (!bytes)
		demand->start_ns = 0;
	if (!bytes || demand->is_given_up || now_ns < demand->retry_ns)
		return 0;
	if (!demand->start_ns)
		demand->start_ns = now_ns;
	return bytes;
}

static bool answer_demand(struct manager *m, uint32_t node)
{
	struct storage *storage = &m->engine->storage;
	const struct node_memory *memory = &storage->nodes[node];
	struct demand *demand = &m->demand[node];
	uint64_t deadline_ns, bytes = demand_due(m, node, &deadline_ns);
	uint64_t given, left, now_ns, took_ns;
	bool is_given_up;

	if (!bytes)
		return false;
	/* Whole blocks only. */
	given = shrink_node(&m->shrink, node, mem_round(bytes), deadline_ns);

	now_ns = clock_now_ns();
	pthread_mutex_lock(&storage->lock);
	left = storage_demanded(storage, node);
	/* If the limit has changed meanwhile, that is a demand of its own. */
	is_given_up = left && (memory->deadline_ns ?: UINT64_MAX) == deadline_ns &&
		      (!memory->deadline_ns || now_ns >= deadline_ns);
	demand->n_limits = memory->n_limits;
	pthread_mutex_unlock(&storage->lock);
	demand->is_given_up = is_given_up;
	demand->retry_ns = left ? now_ns + DEMAND_RETRY_NS : 0;
	took_ns = now_ns - demand->start_ns;
	if (!left || is_given_up)
		demand->start_ns = 0;
	pthread_mutex_lock(&m->lock);
	m->answered_bytes += given;
	m->demands += !left || is_given_up;
	if (is_given_up) {
		m->unanswered_bytes += left;
		m->unanswered_demands++;
	} else if (!left) {
		m->last_demand_ns = took_ns;
	}
	pthread_mutex_unlock(&m->lock);
	return given > 0;
}

static bool is_demanded(struct manager *m)
{
	struct storage *storage = &m->engine->storage;
	bool is = false;

	pthread_mutex_lock(&storage->lock);
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		is |= storage_demanded(storage, node) > 0;
	pthread_mutex_unlock(&storage->lock);
	return is;
}

static void make_room(struct manager *m)
{
	struct oltp_engine *engine = m->engine;
	uint32_t n_tables = tables_count(engine);

	if (!engine->cold || clock_now_ns() < m->disk_retry_ns)
		return;
	for (uint32_t i = 0; i < n_tables; i++) {
		struct oltp_table *table = engine->tables[i];
		uint64_t low = room_low(table), there = storage_free_slots(table);
		bool is_wanted = room_take_wanted_by(table);

		if (!is_wanted || there >= low ||
		    storage_spare_bytes(&engine->storage) >= OLTP_MEM_BLOCK_BYTES)
			continue;
		/* Blocks that are demanded are not divided anew. */
		make_room_in(&m->shrink, table, 2 * low - there, !is_demanded(m),
			     clock_now_ns() + ROOM_BLOCK_NS);
		room_made(table);
		/*
		 * All rows of the table may be on disk, so that it has no block of which rows could
		 * go, and no table may have one to give. One is emptied all the same.
		 */
		if (!m->evict.error && !storage_free_slots(table))
			shrink_block(&m->shrink, clock_now_ns() + ROOM_BLOCK_NS);
		if (m->evict.error)
			m->disk_retry_ns = clock_now_ns() + DISK_RETRY_NS;
	}
}

/*
 * Reads the records of the block back that are still cold. False: they could not be read, there is
 * no room, or all of them are buffered records in use.
 */
static bool fill_block(struct manager *m, struct cold_block *block)
{
	const struct admit_by by = admit_by_manager(m->engine);
	struct cold_counters *c = &m->engine->cold->counters;
	struct io_request request = {
		.class = IO_FILL,
		.bytes = COLD_EXTENT_BYTES,
		.offset = block->base,
		.buffer = m->fill_buffer,
	};
	struct admit_read read = {
		.block = block,
		.bytes = COLD_EXTENT_BYTES,
		.skip = COLD_SLOTS_MAX,
		.is_ahead = true,
	};
	uint64_t before = counter_read(&c->merged_records);
	uint32_t n_bad;
	int rc;

	read.buffer = io_queue_run(&m->evict.io, &request) ? NULL : m->fill_buffer;
	rc = admit_all(m->engine->cold, &by, &read, &n_bad);
	if (n_bad) {
		cold_read_failed(m->engine->cold);
		m->disk_retry_ns = clock_now_ns() + DISK_RETRY_NS;
	}
	return !n_bad && !rc && counter_read(&c->merged_records) != before;
}

/* Reads some cold records back while there is room for them. False: there is nothing to do. */
static bool fill(struct manager *m)
{
	struct cold *cold = m->engine->cold;
	uint64_t n = cold ? cold->n_numbers : 0;

	if (!cold || !atomic_load_explicit(&cold->counters.records, memory_order_relaxed))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		struct cold_block *block = cold_block_get(cold, m->fill_next++ % n);

		/* Only this thread writes and frees extents: no pin is needed. */
		if (!atomic_load_explicit(&block->live, memory_order_acquire))
			continue;
		return cold_has_room(cold, block->table) && fill_block(m, block);
	}
	return false;
}

/*
 * Learns the cost of reading a record back, from the reads of workers; for a table that no worker
 * reads from disk, this function reads some records itself.
 */
static void rereads_turn(struct manager *m)
{
	struct cold *cold = m->engine->cold;
	uint32_t n_tables = tables_count(m->engine);

	for (uint32_t i = 0; i < n_tables; i++) {
		struct reread *reread = &cold->rereads[i];

		reread_turn(reread);
		if (!counter_read(&reread->mean_ns) &&
		    atomic_load_explicit(&cold->counters.records, memory_order_relaxed) &&
		    clock_now_ns() >= m->disk_retry_ns) {
			reread_calibrate(cold, m->engine->tables[i], m->fill_buffer);
			reread_turn(reread);
		}
	}
	if (n_tables && clock_now_ns() >= m->disk_retry_ns)
		reread_probe(cold, m->engine->tables[0], m->fill_buffer);
}

/* A number that changes whenever a transaction ends. */
static uint64_t activity(struct oltp_engine *engine, uint32_t *ret_workers, bool *ret_is_running)
{
	uint64_t n = 0;

	*ret_workers = 0;
	*ret_is_running = false;
	pthread_mutex_lock(&engine->lock);
	for (uint32_t i = 1; i <= engine->workers_end; i++) {
		struct oltp_worker *w = engine->workers[i];

		if (!w)
			continue;
		++*ret_workers;
		n += counter_read(&w->commits) + counter_read(&w->aborts) +
		     counter_read(&w->conflicts);
		*ret_is_running |= counter_read(&w->announced) != EPOCH_NONE;
	}
	pthread_mutex_unlock(&engine->lock);
	return n;
}

uint64_t manager_busy_ns(struct manager *m)
{
	uint64_t ns;

	pthread_mutex_lock(&m->lock);
	ns = idle_now(&m->idle, clock_now_ns());
	pthread_mutex_unlock(&m->lock);
	return ns;
}

double manager_expected(struct manager *m)
{
	double expected;

	pthread_mutex_lock(&m->lock);
	expected = idle_expected(&m->idle, clock_now_ns());
	pthread_mutex_unlock(&m->lock);
	return expected;
}

static uint64_t idle_turn(struct manager *m)
{
	bool is_running;
	uint64_t ns, n = activity(m->engine, &m->n_workers, &is_running);

	pthread_mutex_lock(&m->lock);
	ns = idle_look(&m->idle, n, is_running, clock_now_ns());
	pthread_mutex_unlock(&m->lock);
	return ns;
}

/* While no transactions run, memory may be worth more to others. */
static bool is_working(struct manager *m)
{
	bool is_pause;

	pthread_mutex_lock(&m->lock);
	is_pause = idle_is_pause(&m->idle, clock_now_ns(), FILL_PAUSE_NS);
	pthread_mutex_unlock(&m->lock);
	return !is_pause;
}

uint64_t manager_records(struct oltp_engine *engine)
{
	uint64_t n = engine->cold ? counter_read(&engine->cold->counters.records) : 0;

	for (uint32_t i = 0; i < tables_count(engine); i++)
		n += storage_used_slots(engine->tables[i]);
	return n;
}

static void reads_look(struct manager *m)
{
	uint64_t n = m->engine->cold ? counter_read(&m->engine->cold->counters.reads) : 0;

	if (n != m->n_reads)
		m->read_ns = clock_now_ns();
	m->n_reads = n;
}

/*
 * May cold records be read before a transaction asks for them? Not while no transactions run:
 * memory would be taken only to be demanded again. And not while transactions ask for other cold
 * records: these fill the room, too, and are worth more than what lies next in the file.
 */
static bool may_fill(struct manager *m)
{
	return is_working(m) && clock_now_ns() >= m->read_ns + FILL_QUIET_NS;
}

bool manager_fills(struct manager *m)
{
	struct cold *cold = m ? m->engine->cold : NULL;

	return cold && atomic_load_explicit(&cold->counters.records, memory_order_relaxed) &&
	       is_working(m);
}

static bool compact(struct manager *m)
{
	bool has_failed;

	if (!m->is_compacting || clock_now_ns() < m->compact_retry_ns)
		return false;
	m->is_compacting = compact_turn(&m->compact, &has_failed);
	/* Evictions may have found no room in the file; there is some now. */
	if (m->is_compacting)
		m->disk_retry_ns = 0;
	/*
	 * One damaged extent may fail each time.  So this holds up compaction alone, not reading
	 * back and evictions, which find out for themselves what the disk does.
	 */
	if (has_failed)
		m->compact_retry_ns = clock_now_ns() + DISK_RETRY_NS;
	return m->is_compacting;
}

static void tick(struct manager *m)
{
	m->is_compacting = m->engine->cold;
	reads_look(m);
	epoch_advance(&m->engine->epoch);
	recency_turn(m->recency, tables_count(m->engine), idle_turn(m));
	promise_turn(&m->engine->promise, &(struct promise_facts){
		.bytes = memory_promise_bytes(m->engine, promise_mib(&m->engine->promise)),
		.n_records = manager_records(m->engine),
		.n_workers = m->n_workers,
		.now = epoch_now(&m->engine->epoch),
		.now_ns = clock_now_ns(),
	});
	if (m->ticks++ % REREAD_TICKS == 0 && m->engine->cold)
		rereads_turn(m);
}

static void *manager_main(void *arg)
{
	struct manager *m = arg;
	uint64_t tick_ns = clock_now_ns() + TICK_NS;

	while (!atomic_load_explicit(&m->quit, memory_order_relaxed)) {
		bool is_busy = false;

		if (clock_now_ns() >= tick_ns) {
			tick(m);
			tick_ns = clock_now_ns() + TICK_NS;
		}
		revoked_sweep(m->engine);
		for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
			is_busy |= answer_demand(m, node);
		/* While slots of records that have gone are to be freed, no more records go. */
		if (evict_settle(&m->evict, 0) && room_take_wanted(&m->engine->room)) {
			make_room(m);
			room_tried(&m->engine->room);
		}
		if (m->engine->cold) {
			fetchers_left_settle(m->engine->cold);
			cold_reclaim(m->engine->cold);
		}
		is_busy |= compact(m);
		if (!is_busy && !is_demanded(m) && clock_now_ns() >= m->disk_retry_ns) {
			evict_begin(&m->evict);
			is_busy = may_fill(m) && fill(m);
		}
		if (!is_busy)
			room_wait(&m->engine->room, tick_ns);
	}
	return NULL;
}

int manager_create(struct oltp_engine *engine, struct manager **ret_manager)
{
	struct manager *m = calloc(1, sizeof(*m));
	uint64_t now_ns = clock_now_ns();
	int rc;

	if (!m)
		return -ENOMEM;
	m->engine = engine;
	idle_init(&m->idle, engine->idle_half_ms, 0, now_ns);
	m->fill_buffer = aligned_alloc(4096, COLD_EXTENT_BYTES);
	if (!m->fill_buffer) {
		rc = -ENOMEM;
		goto out_free;
	}
	rc = recency_create(engine, now_ns, &m->recency);
	if (rc)
		goto out_free;
	rc = evict_init(&m->evict, engine);
	if (rc)
		goto out_free;
	if (engine->cold)
		rc = compact_init(&m->compact, engine->cold, &m->evict.io, m->fill_buffer);
	if (rc)
		goto out_evict;
	m->shrink = (struct shrink){ .engine = engine, .evict = &m->evict, .quit = &m->quit };
	pthread_mutex_init(&m->lock, NULL);
	room_manage(&engine->room);
	rc = -pthread_create(&m->thread, NULL, manager_main, m);
	if (rc)
		goto out_finish;
	*ret_manager = m;
	return 0;

out_finish:
	pthread_mutex_destroy(&m->lock);
out_evict:
	compact_finish(&m->compact);
	evict_finish(&m->evict);
out_free:
	recency_destroy(m->recency);
	free(m->fill_buffer);
	free(m);
	return rc;
}

void manager_destroy(struct manager *m)
{
	if (!m)
		return;
	atomic_store_explicit(&m->quit, true, memory_order_relaxed);
	room_wake(&m->engine->room);
	pthread_join(m->thread, NULL);
	pthread_mutex_destroy(&m->lock);
	compact_finish(&m->compact);
	evict_finish(&m->evict);
	recency_destroy(m->recency);
	free(m->fill_buffer);
	free(m);
}
