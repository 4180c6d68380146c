/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How blocks leave: to the host once nobody uses them, or because the host took
 * them or wants them, or because their memory failed.
 *
 * A block gets out of use like this: its place in the lease's map is cleared with
 * ebb_lease.lock held for writing, so that no fault maps it any more; then it is
 * unmapped; then no new reference to it can be taken, and once only the pool's own reference to its
 * pages is left, nothing uses it.  Only then the host is told.
 */
#ifndef EBB_BLOCKS_H
#define EBB_BLOCKS_H

#include "objects/claim.h"
#include "objects/pool.h"

/*
 * Blocks in [from, end) that are DRAINING and unused are unplugged; returns how many
 * were, also of others.  ebb_pool.io_lock is held.
 */
u32 ebb_drain_unplug(struct ebb_pool *pool, u32 from, u32 end);

/*
 * Takes the answers that came when nobody waited any more; returns how many blocks
 * they unplugged.  ebb_pool.io_lock is held.
 */
u32 ebb_drain_late(struct ebb_pool *pool);

/* Nobody but the pool has a reference to the pages of this block. */
bool ebb_drain_is_unused(struct ebb_pool *pool, u32 block);

/* Has drain_work look, after this delay, and then more and more seldom.  ebb_pool.lock is held. */
#define EBB_DRAIN_SOON_MS	2
void ebb_drain_kick(struct ebb_pool *pool, unsigned int delay_ms);

void ebb_drain_work(struct work_struct *work);

/* An event MEM_REVOKED or MEM_LEAVING: a new level.  Any context. */
void ebb_revoke_received(struct ebb_control *control, const struct ebb_wire_event *event);

void ebb_revoke_work(struct work_struct *work);

/*
 * The memory of these blocks has failed: out of their leases, for good.  The caller
 * may sleep; ebb_pool.lock is not held.
 */
void ebb_revoke_failed(struct ebb_pool *pool, u32 first, u32 count);

#endif /* EBB_BLOCKS_H */
