// SPDX-License-Identifier: GPL-2.0-or-later
/* Hash index: see index.h. */
#include <errno.h>

#include "index.h"
#include "oltp-engine/src/base/util.h"
#include "record.h"

/* Four records to a bucket of seven slots on average: about one chain in twenty overflows. */
#define RECORDS_PER_BUCKET	4u

static struct index_bucket *link_next(uint64_t link)
{
	return (struct index_bucket *)(uintptr_t)((link & ~INDEX_VERSION_MASK & ~INDEX_LINK_LOCKED)
						  << INDEX_LINK_ADDR_SHIFT);
}

static uint64_t link_to(const struct index_bucket *bucket)
{
	return (uint64_t)(uintptr_t)bucket >> INDEX_LINK_ADDR_SHIFT;
}

static size_t buckets_bytes(const struct index *index)
{
	return mem_round(index->n_buckets * sizeof(struct index_bucket));
}

int index_init(struct index *index, struct mem *mem, uint64_t capacity)
{
	*index = (struct index){ .mem = mem };
	index->n_buckets = capacity / RECORDS_PER_BUCKET + 1;
	index->buckets = mem_alloc(mem, buckets_bytes(index));
	if (!index->buckets)
		return -ENOMEM;
	pthread_mutex_init(&index->overflow_lock, NULL);
	return 0;
}

void index_stubs_init(struct index *index, void *ctx,
		      bool (*stub_has_key)(void *ctx, uint64_t entry, uint64_t key))
{
	index->stub_has_key = stub_has_key;
	index->stub_ctx = ctx;
}

void index_finish(struct index *index)
{
	struct index_bucket *chunk = index->overflow_chunks;

	while (chunk) {
		struct index_bucket *next = link_next(atomic_load(&chunk->link));

		mem_free(index->mem, chunk, OLTP_MEM_BLOCK_BYTES);
		chunk = next;
	}
	if (index->buckets)
		pthread_mutex_destroy(&index->overflow_lock);
	mem_free(index->mem, index->buckets, buckets_bytes(index));
	index->buckets = NULL;
}

/* The first bucket of a chunk is not handed out: its link chains the chunks. */
static struct index_bucket *overflow_alloc(struct index *index)
{
	struct index_bucket *bucket = NULL;

	pthread_mutex_lock(&index->overflow_lock);
	if (index->overflow_next == index->overflow_end) {
		struct index_bucket *chunk = mem_alloc(index->mem, OLTP_MEM_BLOCK_BYTES);

		if (!chunk)
			goto out_unlock;
		atomic_init(&chunk->link, link_to(index->overflow_chunks));
		index->overflow_chunks = chunk;
		index->overflow_next = chunk + 1;
		index->overflow_end = chunk + OLTP_MEM_BLOCK_BYTES / sizeof(*chunk);
	}
	bucket = index->overflow_next++;
out_unlock:
	pthread_mutex_unlock(&index->overflow_lock);
	return bucket;
}

static bool stub_fits(const struct index *index, uint64_t entry, uint64_t key)
{
	return index->stub_has_key && index->stub_has_key(index->stub_ctx, entry, key);
}

struct record *index_find(const struct index *index, uint64_t key, uint64_t hash,
			  struct index_ref *ret_ref)
{
	struct index_bucket *bucket = index_bucket_of(index, hash);
	struct index_ref revoked = { NULL, 0 };

	while (bucket) {
		for (uint32_t match = index_bucket_match(bucket, hash); match; match &= match - 1) {
			_Atomic uint64_t *slot = &bucket->slots[index_match_slot(match)];
			/* Pairs with the release in index_insert: the record's key is set. */
			uint64_t entry = atomic_load_explicit(slot, memory_order_acquire);
			struct record *record;

			if (entry >> 48 != (hash & 0xffff) || !entry)
				continue;
			ret_ref->slot = slot;
			ret_ref->entry = entry;
			if (unlikely(entry & INDEX_STUB)) {
				if ((entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
					revoked = *ret_ref;
				else if (stub_fits(index, entry, key))
					return NULL;
				continue;
			}
			record = index_record(entry);
			if (atomic_load_explicit(&record->key, memory_order_relaxed) == key)
				return record;
		}
		/* Pairs with the release in index_insert that hung the bucket in. */
		bucket = link_next(atomic_load_explicit(&bucket->link, memory_order_acquire));
	}
	*ret_ref = revoked;
	return NULL;
}

/* Acquire pairs with the release in chain_unlock: the slots the last one wrote are visible. */
static void chain_lock(struct index_bucket *head)
{
	while (atomic_fetch_or_explicit(&head->link, INDEX_LINK_LOCKED, memory_order_acquire) &
	       INDEX_LINK_LOCKED)
		cpu_relax();
}

static void chain_unlock(struct index_bucket *head)
{
	atomic_fetch_and_explicit(&head->link, ~INDEX_LINK_LOCKED, memory_order_release);
}

/*
 * Sequentially consistent, as the load by a transaction that checks its node set: of two
 * transactions that each insert where the other one looked in vain, one at least sees it
 * (node_set.h).
 */
static uint64_t chain_unlock_newer(struct index_bucket *head)
{
	return atomic_fetch_add_explicit(&head->link, INDEX_VERSION_ONE - INDEX_LINK_LOCKED,
					 memory_order_seq_cst) & INDEX_VERSION_MASK;
}

int index_insert(struct index *index, struct record *record, uint64_t key, uint64_t hash,
		 struct index_ref *ret_ref, struct record **ret_existing, uint64_t *ret_version)
{
	struct index_bucket *head = index_bucket_of(index, hash);
	struct index_bucket *bucket = head, *last = head;
	uint64_t entry = (hash & 0xffff) << 48 | (uint64_t)(uintptr_t)record;
	_Atomic uint64_t *empty = NULL;
	struct record *existing;
	int rc;

	chain_lock(head);
	existing = index_find(index, key, hash, ret_ref);
	if (existing || ret_ref->entry) {
		*ret_existing = existing;
		rc = -EEXIST;
		goto out_unlock;
	}
	for (; bucket && !empty; bucket = link_next(atomic_load(&bucket->link))) {
		last = bucket;
		for (unsigned int i = 0; i < INDEX_SLOTS && !empty; i++) {
			if (!atomic_load_explicit(&bucket->slots[i], memory_order_relaxed))
				empty = &bucket->slots[i];
		}
	}
	if (!empty) {
		bucket = overflow_alloc(index);
		if (!bucket) {
			rc = -ENOMEM;
			goto out_unlock;
		}
		empty = &bucket->slots[0];
		/* Zeroed by the memory source; pairs with the acquire of link in index_find. */
		atomic_fetch_or_explicit(&last->link, link_to(bucket), memory_order_release);
	}
	/* Pairs with the acquire of slots in index_find. */
	atomic_store_explicit(empty, entry, memory_order_release);
	ret_ref->slot = empty;
	ret_ref->entry = entry;
	*ret_version = chain_unlock_newer(head);
	return 0;

out_unlock:
	chain_unlock(head);
	return rc;
}

void index_remove(struct index *index, uint64_t hash, const struct index_ref *ref)
{
	struct index_bucket *head = index_bucket_of(index, hash);

	chain_lock(head);
	atomic_store_explicit(ref->slot, 0, memory_order_relaxed);
	chain_unlock(head);
}

int index_walk_bucket(const struct index *index, uint64_t b,
		      int (*fn)(void *ctx, const struct index_ref *ref), void *ctx)
{
	struct index_bucket *bucket = &index->buckets[b];

	while (bucket) {
		for (unsigned int i = 0; i < INDEX_SLOTS; i++) {
			struct index_ref ref = {
				&bucket->slots[i],
				atomic_load_explicit(&bucket->slots[i], memory_order_acquire),
			};
			int rc = ref.entry ? fn(ctx, &ref) : 0;

			if (rc)
				return rc;
		}
		bucket = link_next(atomic_load_explicit(&bucket->link, memory_order_acquire));
	}
	return 0;
}
