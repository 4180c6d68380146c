/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hash index from 64-bit keys to records: buckets of one cache line, so that a look-up costs one
 * miss, which index_prefetch can start early. Look-ups take no lock; inserting and removing lock
 * one bucket. The index knows nothing of transactions: whether a reference found still holds is
 * for the caller to check once the record is locked (index_ref_is_live).
 *
 * Invariants:
 *   I1  A slot is 0 (empty) or tag << 48 | what it stands for: the address of a record whose key
 *       was set before (with the next to lowest bit set: of a buffered record, see
 *       cold/admit.h), or a stub (lowest bit set), which says where else the record is.
 *   I2  A key is in at most one slot of its chain: inserters of a chain are serialised by the
 *       lock bit of its first bucket.
 *   I3  Slots never move and buckets are never freed before the index is. A key keeps its slot for
 *       as long as it is in the index, wherever its record goes: a walk over the slots meets every
 *       key once.
 *   I4  When the record of a key moves, its old place is not used for another key before everybody
 *       who could have read the slot has ended (epoch.h). So a reader that finds another key there
 *       knows that the slot is another key's. The place of a record that is taken out for good may
 *       be used again at once: a reader that finds another key there takes its own key for
 *       missing, and missing it is.
 *   I5  A chain's version (in the link of its first bucket) is counted up by each insert into it,
 *       after the new slot can be seen. If a reader reads the version, looks for a key in vain, and
 *       later finds the same version, the key was absent all the time in between. The version wraps
 *       after 2^21 inserts.
 */
#ifndef OLTP_INDEX_H
#define OLTP_INDEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/mem.h"
#include "oltp-engine/src/base/util.h"
#include "record.h"

/*
 * Whether tags are compared several at a time, which loads two slots at once. ThreadSanitizer would
 * take that for a race.
 */
#if defined(__has_feature)
#define INDEX_HAS_TSAN		__has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define INDEX_HAS_TSAN		1
#else
#define INDEX_HAS_TSAN		0
#endif
#if defined(__SSE2__) && !INDEX_HAS_TSAN
#include <emmintrin.h>
#define INDEX_HAS_SSE2		1
#else
#define INDEX_HAS_SSE2		0
#endif

#define INDEX_SLOTS	7u

struct index_bucket {
	_Alignas(64) _Atomic uint64_t slots[INDEX_SLOTS];
	/* Of the first one: version << 43 | overflow bucket's address / 64 << 1 | lock bit. */
	_Atomic uint64_t link;
};

_Static_assert(sizeof(struct index_bucket) == 64, "a bucket is a cache line");

#define INDEX_LINK_LOCKED	1ull
/* From the link to the address, which is a multiple of 64. */
#define INDEX_LINK_ADDR_SHIFT	5u
#define INDEX_VERSION_SHIFT	43u
#define INDEX_VERSION_ONE	(1ull << INDEX_VERSION_SHIFT)
#define INDEX_VERSION_MASK	(~0ull << INDEX_VERSION_SHIFT)
#define INDEX_ADDR_MASK		((1ull << 48) - 1)
#define INDEX_STUB		1ull
/* Of an address, not of a stub. */
#define INDEX_BUFFERED		2ull
/* The record was in memory that is gone; its key is not known any more. */
#define INDEX_REVOKED		INDEX_ADDR_MASK

struct index {
	struct index_bucket *buckets;
	uint64_t n_buckets;	/* at most 2^32 */
	struct mem *mem;
	/* Does the stub stand for the key? NULL: there are no stubs but INDEX_REVOKED. */
	bool (*stub_has_key)(void *ctx, uint64_t entry, uint64_t key);
	void *stub_ctx;
	pthread_mutex_t overflow_lock;	/* the three below */
	struct index_bucket *overflow_next, *overflow_end;
	struct index_bucket *overflow_chunks;	/* chained through the first bucket of each */
};

/* Where a record was found: the slot and what stood there. */
struct index_ref {
	_Atomic uint64_t *slot;
	uint64_t entry;
};

/* Of an entry that is no stub. */
static inline struct record *index_record(uint64_t entry)
{
	return (struct record *)(uintptr_t)(entry & INDEX_ADDR_MASK & ~INDEX_BUFFERED);
}

/* Errors: -ENOMEM. */
int index_init(struct index *index, struct mem *mem, uint64_t capacity);
void index_finish(struct index *index);

/* How to compare the keys of stubs; before the first of them is there. */
void index_stubs_init(struct index *index, void *ctx,
		      bool (*stub_has_key)(void *ctx, uint64_t entry, uint64_t key));

/* Murmur's finalizer: a bijection, so different keys have different hashes. */
static inline uint64_t index_hash(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdull;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ull;
	return key ^ key >> 33;
}

/* The upper half of the hash picks the bucket, the lowest 16 bits are the tag. */
static inline struct index_bucket *index_bucket_of(const struct index *index, uint64_t hash)
{
	return &index->buckets[((hash >> 32) * index->n_buckets) >> 32];
}

static inline void index_prefetch(const struct index *index, uint64_t hash)
{
	__builtin_prefetch(index_bucket_of(index, hash));
}

/*
 * Which slots have a tag that fits: the higher of 2 bits for each slot. The tag of an empty slot
 * is 0. All slots are looked at: which one fits cannot be predicted, and a jump that was predicted
 * wrong costs more. A slot that fits is to be read again, by one atomic load.
 */
#define INDEX_MATCH_BITS	2u

#if INDEX_HAS_SSE2
static inline uint32_t index_bucket_match(const struct index_bucket *bucket, uint64_t hash)
{
	/* A slot is 4 words of 16 bits. Its tag is the last one; the others may fit by chance. */
	const __m128i *pairs = (const __m128i *)bucket->slots, tag = _mm_set1_epi16((short)hash);
	/* Packing halves numbers and keeps their signs: that of a slot is the tag's. */
	__m128i low = _mm_packs_epi32(_mm_cmpeq_epi16(pairs[0], tag),
				      _mm_cmpeq_epi16(pairs[1], tag));
	__m128i high = _mm_packs_epi32(_mm_cmpeq_epi16(pairs[2], tag),
				       _mm_cmpeq_epi16(pairs[3], tag));

	/* The link, which comes after the slots, is left out. */
	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) & 0x2aaau;
}
#else
static inline uint32_t index_bucket_match(const struct index_bucket *bucket, uint64_t hash)
{
	uint32_t match = 0;

	for (unsigned int i = INDEX_SLOTS; i--;) {
		uint64_t entry = atomic_load_explicit(&bucket->slots[i], memory_order_relaxed);

		match = match << INDEX_MATCH_BITS |
			((entry ^ hash << 48) >> 48 == 0) << (INDEX_MATCH_BITS - 1);
	}
	return match;
}
#endif

/* The first slot that fits; match is not 0. */
static inline unsigned int index_match_slot(uint32_t match)
{
	return (unsigned int)__builtin_ctz(match) / INDEX_MATCH_BITS;
}

/* The first slot in the bucket whose tag fits, most likely the one meant. NULL: there is none. */
static inline _Atomic uint64_t *index_guess_slot(const struct index *index, uint64_t hash)
{
	struct index_bucket *bucket = index_bucket_of(index, hash);
	uint32_t match = index_bucket_match(bucket, hash);

	return likely(match) ? &bucket->slots[index_match_slot(match)] : NULL;
}

/* The record there, for prefetching only. NULL: none. */
static inline void *index_guess_record(const _Atomic uint64_t *slot)
{
	uint64_t entry = slot ? atomic_load_explicit(slot, memory_order_relaxed) : 0;

	return entry & INDEX_STUB ? NULL : index_record(entry);
}

static inline void *index_guess(const struct index *index, uint64_t hash)
{
	return index_guess_record(index_guess_slot(index, hash));
}

/*
 * NULL: there is no record in memory, and *ret_ref says what there is: a stub, or nothing (entry
 * 0). A revoked record's stub is returned only if nothing else fits; it may have been another
 * key's. Call in an announced epoch.
 */
struct record *index_find(const struct index *index, uint64_t key, uint64_t hash,
			  struct index_ref *ret_ref);

/*
 * The usual case of index_find: the slot that index_guess_slot found, maybe some time ago, has the
 * record, which is no buffered one. NULL: index_find is to be asked. The tag is not compared again:
 * another key's slot leads to another key, or is not live any more once the record is locked.
 */
static inline struct record *index_find_at(_Atomic uint64_t *slot, uint64_t key,
					   struct index_ref *ret_ref)
{
	struct record *record;

	if (unlikely(!slot))
		return NULL;
	ret_ref->slot = slot;
	/* Pairs with the release in index_insert: the record's key is set. */
	ret_ref->entry = atomic_load_explicit(slot, memory_order_acquire);
	if (unlikely(!ret_ref->entry || (ret_ref->entry & (INDEX_STUB | INDEX_BUFFERED))))
		return NULL;
	record = (struct record *)(uintptr_t)(ret_ref->entry & INDEX_ADDR_MASK);
	return likely(atomic_load_explicit(&record->key, memory_order_relaxed) == key) ? record :
											  NULL;
}

/*
 * With the record's lock held: is it still the one that was found? Removers empty the slot before
 * they release the record's lock, which the caller's taking of the lock pairs with.
 */
static inline bool index_ref_is_live(const struct index_ref *ref)
{
	return atomic_load_explicit(ref->slot, memory_order_relaxed) == ref->entry;
}

/* The record under a slot goes elsewhere; the caller holds its lock. */
static inline void index_ref_move(const struct index_ref *ref, uint64_t to)
{
	/* Pairs with the acquire of slots in index_find: what is there is complete. */
	atomic_store_explicit(ref->slot, (ref->entry & ~INDEX_ADDR_MASK) | to,
			      memory_order_release);
}

/* As above, from a stub, which has no lock: of several who try, one gets true. */
static inline bool index_stub_replace(const struct index_ref *ref, uint64_t to)
{
	uint64_t entry = ref->entry;

	return atomic_compare_exchange_strong_explicit(ref->slot, &entry,
						       (entry & ~INDEX_ADDR_MASK) | to,
						       memory_order_release, memory_order_relaxed);
}

/* Where the version of the hash's chain is: the bits INDEX_VERSION_MASK of it. */
static inline const _Atomic uint64_t *index_version_of(const struct index *index, uint64_t hash)
{
	return &index_bucket_of(index, hash)->link;
}

/*
 * Errors: -EEXIST (*ret_ref is the one that is there, *ret_existing the record or NULL), -ENOMEM.
 * The record's key must be set. *ret_version: the chain's before, of which the new one is
 * INDEX_VERSION_ONE more.
 */
int index_insert(struct index *index, struct record *record, uint64_t key, uint64_t hash,
		 struct index_ref *ret_ref, struct record **ret_existing, uint64_t *ret_version);

/*
 * ref: where the record is now; it is locked. Versions stay: no reader depends on the entry that
 * goes.
 */
void index_remove(struct index *index, uint64_t hash, const struct index_ref *ref);

/*
 * Calls fn with every slot of bucket b and of those hung to it that is in use; a non-zero return
 * ends the walk and is returned. Needs no epoch (I3); fn does, to follow the reference.
 */
int index_walk_bucket(const struct index *index, uint64_t b,
		      int (*fn)(void *ctx, const struct index_ref *ref), void *ctx);

#endif
