// SPDX-License-Identifier: GPL-2.0-or-later
/* See lock_book.h. */
#include "lock_book.h"

void lock_book_enter(struct lock_book *book, uint32_t number)
{
	if (number > atomic_load_explicit(&book->end, memory_order_relaxed))
		atomic_store_explicit(&book->end, number, memory_order_relaxed);
}

/* Release, paired in lock_book_is_wanted: who sees the word sees this timestamp, or a later one. */
void lock_book_want(struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word)
{
	struct lock_slot *slot = lock_book_slot(book, ts);

	if (atomic_load_explicit(&slot->wanted, memory_order_relaxed) == (uintptr_t)word)
		return;
	atomic_store_explicit(&slot->wanted_ts, ts, memory_order_relaxed);
	atomic_store_explicit(&slot->wanted, (uintptr_t)word, memory_order_release);
}

void lock_book_unwant(struct lock_book *book, uint64_t ts)
{
	struct lock_slot *slot = lock_book_slot(book, ts);

	if (atomic_load_explicit(&slot->wanted, memory_order_relaxed))
		atomic_store_explicit(&slot->wanted, 0, memory_order_relaxed);
}

bool lock_book_is_wanted(const struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word)
{
	uint32_t end = atomic_load_explicit(&book->end, memory_order_relaxed);

	for (uint32_t i = 1; i <= end; i++) {
		const struct lock_slot *slot = &book->slots[i];

		if (atomic_load_explicit(&slot->wanted, memory_order_acquire) == (uintptr_t)word &&
		    atomic_load_explicit(&slot->wanted_ts, memory_order_relaxed) < ts)
			return true;
	}
	return false;
}
