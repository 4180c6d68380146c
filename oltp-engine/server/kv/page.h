/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page.h - pages: equal parts of a unit, by the hash of keys, for copying a unit while commands run
 * on it ("Flexible Resource Allocation", section 7). While pages are watched, a transaction marks
 * the pages of keys that it changes. A copier takes the mark first and reads the page then:
 *
 *   - a transaction marks while it holds the lock of the key's row. So if the mark was taken before
 *     it ends, the reader waits for that; if it marks later, there is a mark again.
 *   - a command's transaction ends before it leaves the unit's gate. So a thread that finds the
 *     gate idle finds all marks.
 *
 * All by one thread, whose worker runs no transaction.
 */
#ifndef OLTP_KV_PAGE_H
#define OLTP_KV_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/unit.h"

#define KV_PAGE_BITS	6u
#define KV_PAGES	(1u << KV_PAGE_BITS)	/* of a unit */

/*
 * Begins to watch, if it has not begun: changes by transactions that pin their units after that are
 * marked. Errors: -ENOMEM.
 */
int kv_pages_watch(struct kv *kv);

/*
 * Begins to watch, and marks all pages that have keys as well. ret_uses: of each page of
 * each unit, unit << KV_PAGE_BITS | page; 0: none of its keys is in memory; else the larger the
 * later one of them was used. Errors: -ENOMEM, those of oltp_table_uses.
 */
int kv_pages_rank(struct kv *kv, struct oltp_worker *worker, uint64_t *ret_uses);

/* No page is marked any more. */
void kv_pages_unwatch(struct kv *kv);

/* None of the unit's pages is marked any more. With the unit's gate. */
void kv_pages_unmark(struct kv *kv, uint32_t unit);

/* Whether the page is marked; take: it is not any more. */
bool kv_page_is_marked(const struct kv *kv, uint32_t unit, uint32_t page);
void kv_page_mark(struct kv *kv, uint32_t unit, uint32_t page);
bool kv_page_take_mark(struct kv *kv, uint32_t unit, uint32_t page);

/* The first page of the unit, from `from` (at most KV_PAGES) on, that is marked; KV_PAGES: none. */
uint32_t kv_page_next_marked(const struct kv *kv, uint32_t unit, uint32_t from);

/* Marked pages of all units. */
uint64_t kv_pages_marked(const struct kv *kv);

/*
 * As kv_unit_read. Without the unit's gate keys are shown as they were at some moment, but a hash
 * that changes meanwhile may be shown with more or fewer fields than it says.
 */
int kv_page_read(struct kv *kv, struct oltp_worker *worker, uint32_t unit, uint32_t page,
		 int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx);

/*
 * As kv_unit_read_begin, of n pages from first on, which kv_unit_read_part reads. With the unit's
 * gate.
 */
int kv_pages_read_begin(struct kv *kv, struct kv_cold_reads *reads, uint32_t unit, uint32_t first,
			uint32_t n, struct kv_unit_reader **ret_reader);

/*
 * Removes all keys of the page, with the unit's gate; after a crash another call removes the rest.
 * Of a hash some 2000 fields go at once. Errors: -ENOMEM, -EIO.
 */
int kv_page_remove(struct kv *kv, struct oltp_worker *worker, uint32_t unit, uint32_t page);

#endif
