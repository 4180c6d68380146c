// SPDX-License-Identifier: GPL-2.0-or-later
/* See revoked.h. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "revoked.h"

static struct oltp_engine *_Atomic caught_engine;
static struct sigaction action_before;

/*
 * Notes when the first missing record was taken. Calls the kernel itself: the sanitizers' version
 * of clock_gettime() must not run in a signal handler.
 */
IN_SIGBUS_HANDLER static void note_time(struct oltp_engine *engine)
{
	struct timespec now;
	uint64_t none = 0;

	if (!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now))
		atomic_compare_exchange_strong_explicit(
			&engine->revoked.since_ns, &none,
			(uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec,
			memory_order_relaxed, memory_order_relaxed);
}

/* Async-signal-safe. True: the address is in a block of the engine, and can be touched now. */
IN_SIGBUS_HANDLER static bool replace_block(struct oltp_engine *engine, const void *addr)
{
	struct block *block = block_map_get(&engine->storage.map, addr);

	if (!block)
		return false;
	if (storage_block_revoke(block)) {
		note_time(engine);
		atomic_fetch_add_explicit(&engine->revoked.times, 1, memory_order_seq_cst);
	}
	/* As above. */
	return syscall(SYS_mmap, block->addr, OLTP_MEM_BLOCK_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != -1;
}

IN_SIGBUS_HANDLER static void on_sigbus(int number, siginfo_t *info, void *context)
{
	struct oltp_engine *engine = atomic_load_explicit(&caught_engine, memory_order_acquire);
	int error = errno;

	if (engine && replace_block(engine, info->si_addr)) {
		errno = error;
		return;
	}
	if (action_before.sa_flags & SA_SIGINFO) {
		action_before.sa_sigaction(number, info, context);
	} else if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
		action_before.sa_handler(number);
	} else {
		/* Happens again as soon as this returns, and then takes its usual course. */
		signal(number, SIG_DFL);
	}
}

int oltp_memory_catch_revokes(struct oltp_engine *engine)
{
	struct sigaction action = { .sa_sigaction = on_sigbus,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct oltp_engine *none = NULL;

	if (!atomic_compare_exchange_strong(&caught_engine, &none, engine))
		return -EEXIST;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, &action, &action_before)) {
		atomic_store(&caught_engine, NULL);
		return -errno;
	}
	return 0;
}

void revoked_finish(struct oltp_engine *engine)
{
	struct oltp_engine *ours = engine;

	if (atomic_compare_exchange_strong(&caught_engine, &ours, NULL))
		sigaction(SIGBUS, &action_before, NULL);
}

uint64_t oltp_memory_revoked(struct oltp_engine *engine, void *addr, uint64_t bytes)
{
	uint64_t held = 0;

	for (uint64_t at = 0; at < bytes; at += OLTP_MEM_BLOCK_BYTES)
		held += replace_block(engine, (uint8_t *)addr + at) ? OLTP_MEM_BLOCK_BYTES : 0;
	room_wake(&engine->room);
	return held;
}

static bool is_revoked(const struct storage *storage, uint64_t entry)
{
	const struct block *block;

	if (entry & INDEX_STUB)
		return false;
	block = storage_block_of(storage, index_record(entry));
	return block && block->state == BLOCK_REVOKED;
}

bool revoked_is_record(const struct oltp_engine *engine, const struct record *record)
{
	return is_revoked(&engine->storage, (uint64_t)(uintptr_t)record);
}

bool revoked_is_accessed(const struct oltp_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		if (revoked_is_record(worker->engine, worker->accesses[i].record))
			return true;
	}
	return false;
}

struct look {
	const struct oltp_engine *engine;
	uint64_t tag;
};

/* Not swept yet. */
static int match_taken(void *ctx, const struct index_ref *ref)
{
	const struct look *look = ctx;

	return ref->entry >> 48 == look->tag && is_revoked(&look->engine->storage, ref->entry);
}

static int match_revoked(void *ctx, const struct index_ref *ref)
{
	const struct look *look = ctx;

	/* The manager may have been here since the caller looked. */
	return (ref->entry >> 48 == look->tag && (ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED) ||
	       match_taken(ctx, ref);
}

/* Does one in the bucket of the hash match, which has its tag? */
static bool has_match(const struct oltp_table *table, uint64_t hash,
		      int (*match)(void *ctx, const struct index_ref *ref))
{
	const struct index *index = &table->index;
	struct look look = { table->engine, hash & 0xffff };

	return index_walk_bucket(index, (uint64_t)(index_bucket_of(index, hash) - index->buckets),
				 match, &look);
}

bool revoked_may_hide(struct oltp_engine *engine, struct oltp_table *table, uint64_t hash)
{
	if (likely(!atomic_load_explicit(&engine->revoked.times, memory_order_acquire)))
		return false;
	return has_match(table, hash, match_revoked);
}

void revoked_check_move(struct oltp_engine *engine, const struct record *record)
{
	if (likely(!revoked_is_record(engine, record)))
		return;
	note_time(engine);
	atomic_fetch_add_explicit(&engine->revoked.times, 1, memory_order_seq_cst);
	room_wake(&engine->room);
}

uint64_t revoked_restored(struct oltp_engine *engine, uint64_t times)
{
	uint64_t since_ns = atomic_exchange_explicit(&engine->revoked.since_ns, 0,
						     memory_order_relaxed);

	atomic_store_explicit(&engine->revoked.restored, times, memory_order_release);
	return since_ns;
}

static int count_revoked(void *ctx, const struct index_ref *ref)
{
	uint64_t *n = ctx;

	*n += (ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED;
	return 0;
}

uint64_t revoked_count(const struct oltp_table *table)
{
	const struct index *index = &table->index;
	uint64_t n = 0;

	for (uint64_t b = 0; b < index->n_buckets; b++)
		index_walk_bucket(index, b, count_revoked, &n);
	return n;
}

enum revoked_look revoked_look(const struct oltp_table *table, uint64_t key, uint64_t hash)
{
	struct index_ref ref;

	/* Most keys: without touching a record. */
	if (!has_match(table, hash, match_revoked))
		return REVOKED_NO;
	if (index_find(&table->index, key, hash, &ref) ||
	    (ref.entry && (ref.entry & INDEX_ADDR_MASK) != INDEX_REVOKED))
		return REVOKED_NO;
	/* A record that is not swept yet may have been read as zeroes: it may have this key. */
	return has_match(table, hash, match_taken) ? REVOKED_NOT_KNOWN : REVOKED_YES;
}

bool revoked_replace(struct oltp_table *table, struct record *record, uint64_t key)
{
	struct index_ref ref;

	do {
		if (index_find(&table->index, key, index_hash(key), &ref) ||
		    (ref.entry & INDEX_ADDR_MASK) != INDEX_REVOKED)
			return false;
	} while (!index_stub_replace(&ref, (uint64_t)(uintptr_t)record));
	revoked_check_move(table->engine, record);
	return true;
}

static int sweep_slot(void *ctx, const struct index_ref *ref)
{
	struct oltp_engine *engine = ctx;

	if (is_revoked(&engine->storage, ref->entry) && index_stub_replace(ref, INDEX_REVOKED))
		counter_add(&engine->revoked.records, 1);
	return 0;
}

void revoked_sweep(struct oltp_engine *engine)
{
	uint64_t times = atomic_load_explicit(&engine->revoked.times, memory_order_acquire);

	if (times == atomic_load_explicit(&engine->revoked.swept, memory_order_relaxed))
		return;
	counter_add(&engine->revoked.bytes, storage_forget_revoked(&engine->storage));
	for (uint32_t i = 0; i < tables_count(engine); i++) {
		const struct index *index = &engine->tables[i]->index;

		for (uint64_t b = 0; b < index->n_buckets; b++)
			index_walk_bucket(index, b, sweep_slot, engine);
	}
	atomic_store_explicit(&engine->revoked.swept, times, memory_order_release);
}
