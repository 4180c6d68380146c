/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory taken by force. What happens to a block:
 *
 *  1. It is marked LOST, engine.revokes is counted up, and zeroed memory is put in its place,
 *     by the SIGBUS handler of the first thread that touches it or by oltp_memory_revoked,
 *     whichever is first. Only stores and mmap(2), so it can be done in the handler. Threads go
 *     on; what they read there are zeroes, what they write there is for nobody.
 *  2. Until step 3 is done, transactions that accessed such a block fail at their commit, which
 *     compares revokes with the number of those that were dealt with when it began. Others, which
 *     look for a key and find zeroes, are told OLTP_LOST instead of NOT_FOUND (lost_may_hide).
 *  3. The manager replaces what the index had there by INDEX_LOST and counts the records.
 *
 * Which sort keys a lost record had nobody knows. Ordered indexes keep them, and scans that meet
 * them look in the hash index, as for any: OLTP_LOST; or, if the row was to be taken out, nothing,
 * then they take out what was left behind (txn_scan.c).
 */
#ifndef OLTP_LOST_H
#define OLTP_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct record;

/* Did the running transaction access a record in a lost block? */
bool lost_was_accessed(const struct oltp_worker *worker);

/*
 * Is the record in a lost block? If not, what was read of it before the question was asked is what
 * was written there.
 */
bool lost_is_record(const struct oltp_engine *engine, const struct record *record);

/* Could a key with that hash have been in a lost block? */
bool lost_may_hide(struct oltp_engine *engine, struct oltp_table *table, uint64_t hash);

/* Step 3, if there is anything new. */
void lost_sweep(struct oltp_engine *engine);

/* At the end of an engine: the SIGBUS handler forgets it. */
void lost_finish(struct oltp_engine *engine);

#endif
