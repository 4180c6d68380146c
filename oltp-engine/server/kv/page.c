// SPDX-License-Identifier: GPL-2.0-or-later
/* See page.h. */
#include "oltp-engine/server/kv/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/server/kv/private.h"

#define REAPS_MAX	128u
#define MARKS		KEYSPACE_MARK_BITS
#define WORDS(kv)	((uint64_t)KV_PAGES / MARKS << (kv)->unit_bits)

/* Of a hash, among those of all units. */
static uint64_t page_of(const struct kv *kv, uint64_t hash)
{
	return hash >> (64 - KV_PAGE_BITS - kv->unit_bits);
}

static uint64_t number_of(uint32_t unit, uint32_t page)
{
	return (uint64_t)unit << KV_PAGE_BITS | page;
}

static void mark(struct kv *kv, uint64_t number)
{
	atomic_fetch_or_explicit(&kv->page_marks[number / MARKS], 1ull << number % MARKS,
				 memory_order_relaxed);
}

struct uses {
	struct kv *kv;
	uint64_t *list;
};

static void note_use(void *ctx, uint64_t slot, uint64_t use)
{
	struct uses *uses = ctx;
	uint64_t number = page_of(uses->kv, slot);

	/* Fields of hashes are rows, too: at worst a page without keys is sent for one. */
	mark(uses->kv, number);
	if (use > uses->list[number])
		uses->list[number] = use;
}

int kv_pages_watch(struct kv *kv)
{
	/* It stays until the end, so that no command can meet it while it goes. */
	if (!kv->page_marks) {
		kv->page_marks = calloc(WORDS(kv), sizeof(*kv->page_marks));
		kv->ks.mark_shift = 64 - KV_PAGE_BITS - kv->unit_bits;
	}
	if (!kv->page_marks)
		return -ENOMEM;
	atomic_store_explicit(&kv->ks.marks, kv->page_marks, memory_order_release);
	return 0;
}

int kv_pages_rank(struct kv *kv, struct oltp_worker *worker, uint64_t *ret_uses)
{
	struct uses uses = { kv, ret_uses };
	int rc = kv_pages_watch(kv);

	if (rc)
		return rc;
	memset(ret_uses, 0, (sizeof(*ret_uses) << KV_PAGE_BITS) << kv->unit_bits);
	/*
	 * oltp_table_uses() waits for transactions that may have changed rows without a look at the
	 * marks.
	 */
	return oltp_table_uses(kv->ks.rows, worker, note_use, &uses);
}

void kv_pages_unwatch(struct kv *kv)
{
	atomic_store_explicit(&kv->ks.marks, NULL, memory_order_relaxed);
	for (uint64_t i = 0; kv->page_marks && i < WORDS(kv); i++)
		atomic_store_explicit(&kv->page_marks[i], 0, memory_order_relaxed);
}

void kv_pages_unmark(struct kv *kv, uint32_t unit)
{
	uint64_t first = number_of(unit, 0) / MARKS;

	for (uint64_t i = 0; kv->page_marks && i < KV_PAGES / MARKS; i++)
		atomic_store_explicit(&kv->page_marks[first + i], 0, memory_order_relaxed);
}

bool kv_page_is_marked(const struct kv *kv, uint32_t unit, uint32_t page)
{
	uint64_t number = number_of(unit, page);

	return atomic_load_explicit(&kv->page_marks[number / MARKS], memory_order_relaxed) >>
	       number % MARKS & 1;
}

void kv_page_mark(struct kv *kv, uint32_t unit, uint32_t page)
{
	mark(kv, number_of(unit, page));
}

bool kv_page_take_mark(struct kv *kv, uint32_t unit, uint32_t page)
{
	uint64_t number = number_of(unit, page), bit = 1ull << number % MARKS;

	return atomic_fetch_and_explicit(&kv->page_marks[number / MARKS], ~bit,
					 memory_order_acq_rel) & bit;
}

uint32_t kv_page_next_marked(const struct kv *kv, uint32_t unit, uint32_t from)
{
	while (from < KV_PAGES) {
		uint64_t number = number_of(unit, from);
		uint64_t word = atomic_load_explicit(&kv->page_marks[number / MARKS],
						     memory_order_relaxed) >> number % MARKS;

		if (word)
			return from + (uint32_t)__builtin_ctzll(word);
		from += MARKS - (uint32_t)(number % MARKS);
	}
	return KV_PAGES;
}

uint64_t kv_pages_marked(const struct kv *kv)
{
	uint64_t n = 0;

	for (uint64_t i = 0; kv->page_marks && i < WORDS(kv); i++)
		n += (uint64_t)__builtin_popcountll(
			atomic_load_explicit(&kv->page_marks[i], memory_order_relaxed));
	return n;
}

static struct oltp_range page_range(const struct kv *kv, uint32_t unit, uint32_t page)
{
	uint64_t rows = 1ull << (63 - KV_PAGE_BITS - kv->unit_bits);
	uint64_t from = KEYSPACE_KEYS_FIRST + number_of(unit, page) * rows;

	return (struct oltp_range){ .from = from, .to = from + (rows - 1) };
}

int kv_page_read(struct kv *kv, struct oltp_worker *worker, uint32_t unit, uint32_t page,
		 int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx)
{
	return keys_read(kv, worker, page_range(kv, unit, page), fn, ctx);
}

int kv_pages_read_begin(struct kv *kv, struct kv_cold_reads *reads, uint32_t unit, uint32_t first,
			uint32_t n, struct kv_unit_reader **ret_reader)
{
	struct oltp_range range = page_range(kv, unit, first);

	range.to = page_range(kv, unit, first + n - 1).to;
	return keys_read_begin(kv, reads, range, ret_reader);
}

int kv_page_remove(struct kv *kv, struct oltp_worker *worker, uint32_t unit, uint32_t page)
{
	int rc = keys_remove(kv, worker, page_range(kv, unit, page));

	/* There may be no command for long that would do it. */
	for (uint32_t i = 0; !rc && i < REAPS_MAX && atomic_load(&kv->meta.n_dead); i++) {
		if (hash_reap(kv, worker) == OLTP_COLD && oltp_cold_wait(worker))
			rc = -EIO;
	}
	return rc;
}
