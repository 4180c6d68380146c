/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints, so that the log need not be kept for ever, nor read from its begin. A thread walks
 * over all tables while transactions run:
 *
 *   1. start_group = log_group_now(): changes in groups before it were made before the walk begins.
 *      The walk sees them, or waits for them, since their rows are still locked.
 *   2. Every row is written as it is when the walk comes to it; how fast: checkpoint_pace.h.
 *   3. The walk may have seen changes whose groups are not on disk yet, and only a part of a
 *      transaction's changes. So the log up to here must be on disk before the checkpoint counts:
 *      log_wait(), then end_group is the last group on disk.
 *   4. Its name, on disk; only then the older one is no checkpoint any more, but a file to write
 *      the next one over, and the log before start_group goes.
 *
 * Records that are on disk are read from there, and stay there. A walk that missed any (they could
 * not be read, or were in memory that the host took) makes no checkpoint: the one before it and the
 * log have them. Revoked records are brought back from there by the same thread (restore.h), which
 * then makes the checkpoint. So is, between checkpoints, what a lazy recovery left in one
 * (lazy_load.h), whose file stays for as long as a record is in it.
 */
#ifndef OLTP_CHECKPOINT_H
#define OLTP_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct checkpointer;

/* The thread; it does nothing before the log runs. Errors: -ENOMEM, -EAGAIN. */
int checkpointer_create(struct oltp_engine *engine, const struct oltp_config *config,
			struct checkpointer **ret_checkpointer);

/* Ends a checkpoint that is going on. Accepts NULL. */
void checkpointer_destroy(struct checkpointer *checkpointer);

/* oltp_recover is called: there is one attempt. False: there was. */
bool checkpointer_recover(struct checkpointer *checkpointer);

/*
 * Recovery has read so many bytes of log: they count as grown since the last checkpoint. is_lazy:
 * rows are to be loaded from the checkpoint, at lazy_bytes_per_s (see lazy_load_begin).
 */
void checkpointer_recovered(struct checkpointer *checkpointer, uint64_t log_bytes, bool is_lazy,
			    uint64_t lazy_bytes_per_s);

#endif
