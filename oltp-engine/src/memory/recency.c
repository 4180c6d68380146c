// SPDX-License-Identifier: GPL-2.0-or-later
/* See recency.h. */
#include <errno.h>
#include <stdlib.h>

#include "manager.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/reread.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/revoked.h"
#include "recency.h"

/*
 * Once in so many turns the number of buckets is set anew, and in as many turns all of them are
 * searched for new records.
 */
#define SCAN_TURNS	16u

_Static_assert(RECENCY_SLACK * (RECENCY_SAMPLES + OLTP_TABLES_MAX * RECENCY_TABLE_MIN) <=
		       OLTP_MEMORY_SAMPLES_MAX &&
	       OLTP_MEMORY_SAMPLES_MAX < RECENCY_NONE, "there is room for all tables' members");

_Static_assert(sizeof(struct recency_sampler) + OLTP_TABLES_MAX * (sizeof(struct reread) +
		       RECENCY_BUCKETS_MAX * sizeof(struct recency_bucket)) <= 3 << 19,
	       "no more memory than oltp_memory.h says");

int recency_create(struct oltp_engine *engine, uint64_t now_ns,
		   struct recency_sampler **ret_sampler)
{
	struct recency_sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->engine = engine;
	pthread_mutex_init(&s->lock, NULL);
	for (uint32_t i = 0; i < OLTP_MEMORY_SAMPLES_MAX; i++)
		s->members[i].next = (uint16_t)(i + 1);
	s->members[OLTP_MEMORY_SAMPLES_MAX - 1].next = RECENCY_NONE;
	/* Nothing was used before. */
	recency_clock_tick(&s->clock, epoch_now(&engine->epoch), now_ns);
	*ret_sampler = s;
	return 0;
}

void recency_destroy(struct recency_sampler *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++)
		free(s->tables[i].buckets);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void member_free(struct recency_sampler *s, struct recency_table *t, uint16_t *at)
{
	uint16_t i = *at;

	*at = s->members[i].next;
	s->members[i].next = s->free;
	s->free = i;
	t->n_members--;
}

static void bucket_drop_last(struct recency_sampler *s, struct recency_table *t)
{
	struct recency_bucket *bucket = &t->buckets[--t->n];

	while (bucket->first != RECENCY_NONE)
		member_free(s, t, &bucket->first);
}

/* Is the entry still the record with that key, on disk or in memory that was not revoked? */
static bool entry_is(const struct oltp_table *table, uint64_t entry, uint64_t key)
{
	if (!entry)
		return false;
	if (entry & INDEX_STUB)
		return (entry & INDEX_ADDR_MASK) != INDEX_REVOKED && table->index.stub_has_key &&
		       table->index.stub_has_key(table->index.stub_ctx, entry, key);
	/* In this order: see revoked_is_record. */
	return atomic_load_explicit(&index_record(entry)->key, memory_order_relaxed) == key &&
	       !revoked_is_record(table->engine, index_record(entry));
}

static bool is_resident(uint64_t entry)
{
	return !(entry & (INDEX_STUB | INDEX_BUFFERED));
}

/* The node of a resident record. */
static uint16_t node_of(const struct oltp_engine *engine, uint64_t entry)
{
	const struct block *block = storage_block_of(&engine->storage, index_record(entry));

	return block ? (uint16_t)block->node : 0;
}

/* The stamp of the last use; 0: it cannot be seen. */
static uint64_t stamp_of(const struct oltp_engine *engine, uint64_t entry)
{
	uint64_t now = epoch_now(&engine->epoch), word;

	if (entry & INDEX_STUB)
		return cold_last_use(cold_stub_block(engine->cold, entry), cold_stub_slot(entry),
				     now);
	word = atomic_load_explicit(&index_record(entry)->lock, memory_order_relaxed);
	return word & LOCK_HELD ? now : lock_stamp(word);
}

struct newcomers {
	struct recency_sampler *sampler;
	struct recency_table *t;
	struct oltp_table *table;
	struct recency_bucket *bucket;
	uint64_t now_ns;
};

static bool is_member(const struct recency_sampler *s, const struct recency_bucket *bucket,
		      const _Atomic uint64_t *slot)
{
	for (uint16_t i = bucket->first; i != RECENCY_NONE; i = s->members[i].next) {
		if (s->members[i].ref.slot == slot)
			return true;
	}
	return false;
}

static uint64_t key_of(const struct oltp_engine *engine, uint64_t entry)
{
	if (entry & INDEX_STUB)
		return atomic_load_explicit(
			&cold_stub_block(engine->cold, entry)->keys[cold_stub_slot(entry)],
			memory_order_relaxed);
	return atomic_load_explicit(&index_record(entry)->key, memory_order_relaxed);
}

/* Non-zero: there is no room. */
static int member_add(void *ctx, const struct index_ref *ref)
{
	struct newcomers *new = ctx;
	struct recency_sampler *s = new->sampler;
	struct oltp_engine *engine = s->engine;
	struct recency_member *member;
	uint64_t key, stamp;
	uint16_t i = s->free;

	if (is_member(s, new->bucket, ref->slot) || (ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
		return 0;
	key = key_of(engine, ref->entry);
	if (!entry_is(new->table, ref->entry, key))
		return 0;
	if (new->t->n_members == new->t->members_max || i == RECENCY_NONE)
		return -ENOSPC;
	member = &s->members[i];
	s->free = member->next;
	stamp = stamp_of(engine, ref->entry);
	*member = (struct recency_member){ .ref = *ref, .key = key, .next = new->bucket->first };
	if (is_resident(ref->entry))
		member->node = node_of(engine, ref->entry);
	recency_begin(&member->recency, stamp, recency_clock_ns(&s->clock, stamp), new->now_ns);
	new->bucket->first = i;
	new->t->n_members++;
	return 0;
}

/*
 * Whole buckets only: the first slots of a bucket have the records that came first, so a part of it
 * would be no fair sample.
 */
static void newcomers_find(struct recency_sampler *s, struct recency_table *t,
			   struct oltp_table *table, uint64_t now_ns)
{
	for (uint32_t i = t->n / SCAN_TURNS + 1; t->n && i; i--) {
		uint32_t at = t->hand++ % t->n;
		struct newcomers new = { s, t, table, &t->buckets[at], now_ns };

		while (at < t->n &&
		       index_walk_bucket(&table->index, t->buckets[at].number, member_add, &new))
			bucket_drop_last(s, t);
	}
}

/* Slots and lock words are scattered over the memory: prefetched, their cache misses overlap. */
static void members_prefetch(struct recency_sampler *s, const struct recency_table *t)
{
	for (uint32_t b = 0; b < t->n; b++) {
		for (uint16_t i = t->buckets[b].first; i != RECENCY_NONE; i = s->members[i].next) {
			uint64_t entry = atomic_load_explicit(s->members[i].ref.slot,
							      memory_order_relaxed);

			if (entry && !(entry & INDEX_STUB))
				__builtin_prefetch(index_record(entry));
		}
	}
}

static void members_look(struct recency_sampler *s, struct recency_table *t,
			 struct oltp_table *table)
{
	t->n_resident = 0;
	for (uint32_t b = 0; b < t->n; b++) {
		for (uint16_t *at = &t->buckets[b].first; *at != RECENCY_NONE;) {
			struct recency_member *member = &s->members[*at];
			/*
			 * Pairs with the release of the thread that put the record there: its key
			 * is set.
			 */
			uint64_t entry = atomic_load_explicit(member->ref.slot,
							      memory_order_acquire);
			uint64_t stamp;

			if (!entry_is(table, entry, member->key)) {
				member_free(s, t, at);
				continue;
			}
			stamp = stamp_of(s->engine, entry);
			if (stamp > member->recency.stamp)
				recency_look(&member->recency, stamp,
					     recency_clock_ns(&s->clock, stamp));
			member->ref.entry = entry;
			if (is_resident(entry)) {
				member->node = node_of(s->engine, entry);
				t->n_resident++;
			}
			at = &member->next;
		}
	}
}

static struct recency_facts facts_of(const struct recency_table *t, const struct oltp_table *table)
{
	uint64_t n = storage_used_slots(table);

	return (struct recency_facts){
		.n_buckets = table->index.n_buckets,
		.resident_records = n,
		.resident_bytes = n * table->stride,
		.n_watched = t->n,
		.n_members = t->n_members,
	};
}

/* If there is no memory for more buckets, the old ones stay. */
static void buckets_set(struct recency_sampler *s, struct recency_table *t, uint64_t n_buckets,
			uint32_t n)
{
	if (n > t->room) {
		struct recency_bucket *buckets = realloc(t->buckets, n * sizeof(*buckets));

		if (!buckets)
			return;
		t->buckets = buckets;
		t->room = n;
	}
	while (t->n > n)
		bucket_drop_last(s, t);
	for (; t->n < n; t->n++)
		t->buckets[t->n] = (struct recency_bucket){
			.number = (t->first + t->n * t->step) % n_buckets,
			.first = RECENCY_NONE,
		};
}

static void plan(struct recency_sampler *s)
{
	uint64_t all_bytes = 0;

	for (uint32_t i = 0; i < s->n_tables; i++)
		all_bytes += facts_of(&s->tables[i], s->engine->tables[i]).resident_bytes;
	for (uint32_t i = 0; i < s->n_tables; i++) {
		struct recency_table *t = &s->tables[i];
		struct recency_facts facts = facts_of(t, s->engine->tables[i]);

		if (!t->step) {
			t->step = recency_step(facts.n_buckets);
			t->first = random64_below(&s->random, facts.n_buckets);
		}
		t->members_max = RECENCY_SLACK * recency_members_wanted(&facts, all_bytes);
		buckets_set(s, t, facts.n_buckets, recency_buckets_wanted(&facts, all_bytes));
		while (t->n_members > t->members_max)
			bucket_drop_last(s, t);
	}
}

void recency_turn(struct recency_sampler *s, uint32_t n_tables, uint64_t now_ns)
{
	struct oltp_engine *engine = s->engine;
	uint64_t start_ns = clock_now_ns();

	pthread_mutex_lock(&s->lock);
	/*
	 * While the clock stands still nothing is used; more ticks would only push older ones out.
	 */
	if (now_ns > s->now_ns)
		recency_clock_tick(&s->clock, epoch_now(&engine->epoch), now_ns);
	s->n_tables = n_tables;
	s->now_ns = now_ns;
	if (s->is_off) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	if (s->looks++ % SCAN_TURNS == 0)
		plan(s);
	engine_enter(engine);
	for (uint32_t i = 0; i < n_tables; i++) {
		newcomers_find(s, &s->tables[i], engine->tables[i], now_ns);
		members_prefetch(s, &s->tables[i]);
		members_look(s, &s->tables[i], engine->tables[i]);
	}
	engine_leave(engine);
	s->look_ns += clock_now_ns() - start_ns;
	pthread_mutex_unlock(&s->lock);
}

void recency_watch(struct recency_sampler *s, bool is_on)
{
	pthread_mutex_lock(&s->lock);
	s->is_off = !is_on;
	for (uint32_t i = 0; s->is_off && i < s->n_tables; i++) {
		while (s->tables[i].n)
			bucket_drop_last(s, &s->tables[i]);
		s->tables[i].n_resident = 0;
	}
	/* The first look is one at which the numbers are planned. */
	s->looks = (s->looks + SCAN_TURNS - 1) / SCAN_TURNS * SCAN_TURNS;
	pthread_mutex_unlock(&s->lock);
}

uint64_t recency_epoch(struct recency_sampler *s, uint64_t now_ns, uint64_t age_ns)
{
	uint64_t epoch;

	pthread_mutex_lock(&s->lock);
	epoch = recency_clock_epoch(&s->clock, now_ns > age_ns ? now_ns - age_ns : 0);
	pthread_mutex_unlock(&s->lock);
	return epoch;
}

static uint64_t ago(uint64_t now_ns, uint64_t then_ns)
{
	return then_ns ? now_ns - then_ns : OLTP_NOT_KNOWN;
}

static uint32_t table_read(const struct recency_sampler *s, uint32_t number, uint64_t now_ns,
			   double expected, struct oltp_memory_sample *ret_samples, uint32_t max)
{
	const struct recency_table *t = &s->tables[number];
	const struct oltp_table *table = s->engine->tables[number];
	const struct cold *cold = s->engine->cold;
	struct recency_facts facts = facts_of(t, table);
	uint32_t n = 0;

	for (uint32_t b = 0; b < t->n; b++) {
		for (uint16_t i = t->buckets[b].first; i != RECENCY_NONE; i = s->members[i].next) {
			const struct recency_member *member = &s->members[i];
			const struct recency *r = &member->recency;
			bool is_there = is_resident(member->ref.entry);

			if (n++ >= max)
				continue;
			ret_samples[n - 1] = (struct oltp_memory_sample){
				.table = table,
				.bytes = table->stride,
				.node = member->node,
				.is_resident = is_there,
				.last_ns = ago(now_ns, r->used_ns[0]),
				.before_ns = ago(now_ns, r->used_ns[1]),
				.watched_ns = now_ns - r->since_ns,
				.expected = expected,
				.reread_ns = cold ? reread_cost_ns(cold, number) : 0,
				.stands_for_bytes = is_there ?
					facts.resident_bytes / t->n_resident :
					table->stride * facts.n_buckets / t->n,
			};
		}
	}
	return n;
}

uint32_t recency_read(struct recency_sampler *s, uint64_t now_ns, double expected,
		      struct oltp_memory_sample *ret_samples, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&s->lock);
	/* A turn may have come between, with a later time. */
	if (now_ns < s->now_ns)
		now_ns = s->now_ns;
	for (uint32_t i = 0; i < s->n_tables; i++)
		n += table_read(s, i, now_ns, expected, ret_samples + (n < max ? n : max),
				n < max ? max - n : 0);
	pthread_mutex_unlock(&s->lock);
	return n;
}
