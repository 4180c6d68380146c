// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host took blocks on its own.  It says so as a level: all that it took and
 * was not told of yet that nobody uses it.  The blocks leave their leases, and
 * when the kernel uses them no more the host is told; then they are free.
 * Or it is about to take blocks and says so, as another level: then they leave
 * their leases in the same way and drain (drain.c), with what is in them.
 * Each pool takes its own part of the levels, once.
 * Blocks whose memory has failed, as the kernel says, leave in that way, too.
 *
 * A level may be old: sent before the host heard what we told it, and read
 * after.  A block that it lists may be free by then, and soon in use again; it
 * must not be taken for revoked once more.  Whatever was sent before the host's
 * answer is in the event queue when the answer is read.  So the queue is read
 * once more then, while the blocks are still CONFIRMING and ignore it; and before
 * a block that was unplugged is free, while it is DRAINING and leaves anyway.  A
 * pool's part is taken out of the level and acted on in one go, under
 * ebb_pool.lock, so that nobody is left with a part that has become old.
 */
#include "dev.h"
#include "objects/pool.h"

#include <linux/ktime.h>

/* The device answers by itself. */
#define EBB_CONFIRM_WAIT_NS	(5 * NSEC_PER_SEC)

void ebb_revoke_received(struct ebb_dev *ebb, const struct ebb_wire_event *event,
			 struct ebb_range_level *level)
{
	unsigned long irqflags;

	spin_lock_irqsave(&ebb->lock, irqflags);
	level->count = event->num_ranges;
	memcpy(level->ranges, event->ranges, sizeof(level->ranges));
	spin_unlock_irqrestore(&ebb->lock, irqflags);
	ebb_pool_kick_revoke();
}

/* Takes these blocks out of the leases that have them, runs at a time. */
static void take_blocks(struct ebb_pool *pool, u32 first, u32 count,
			bool (*take)(struct ebb_region *r, u32 block, struct ebb_block *ret))
{
	struct ebb_lease *lease = NULL;
	u32 start = 0, index = 0, length = 0;
	u32 i;

	for (i = first; i < first + count; i++) {
		struct ebb_block old = {};

		take(&pool->region, i, &old);
		if (length && (old.owner != lease || old.index != index + length)) {
			ebb_lease_revoke(lease, index, start, length);
			length = 0;
		}
		if (!old.owner)
			continue;
		if (!length) {
			lease = old.owner;
			start = i;
			index = old.index;
		}
		length++;
	}
	if (length)
		ebb_lease_revoke(lease, index, start, length);
}

/* Moves the ranges of this pool from the level to ret; ranges of other pools stay in the level. */
static u32 take_ranges(struct ebb_dev *ebb, struct ebb_range_level *level,
		       const struct ebb_pool *pool,
		       struct ebb_wire_range ret[VIRTIO_EBB_MAX_RANGES])
{
	u32 i, taken = 0, kept = 0;

	spin_lock_irq(&ebb->lock);
	for (i = 0; i < level->count; i++) {
		const struct ebb_wire_range *range = &level->ranges[i];

		if (range->addr >= pool->addr && range->addr - pool->addr < pool->size_bytes)
			ret[taken++] = *range;
		else
			level->ranges[kept++] = *range;
	}
	level->count = kept;
	spin_unlock_irq(&ebb->lock);
	return taken;
}

/* True if the level had something of the pool. */
static bool apply_level(struct ebb_dev *ebb, struct ebb_range_level *level, struct ebb_pool *pool,
			bool (*take)(struct ebb_region *r, u32 block, struct ebb_block *ret))
{
	struct ebb_wire_range ranges[VIRTIO_EBB_MAX_RANGES];
	u32 i, num = take_ranges(ebb, level, pool, ranges);

	for (i = 0; i < num; i++)
		take_blocks(pool, (ranges[i].addr - pool->addr) / pool->block_bytes,
			    ranges[i].size_bytes / pool->block_bytes, take);
	return num;
}

/* True if there was something to do. */
static bool apply(struct ebb_dev *ebb, struct ebb_pool *pool)
{
	bool is_any = false;

	mutex_lock(&pool->lock);
	if (!pool->is_gone) {
		is_any = apply_level(ebb, &ebb->leaving, pool, ebb_region_expel);
		is_any |= apply_level(ebb, &ebb->revoked, pool, ebb_region_revoke);
	}
	if (is_any)
		ebb_drain_kick(pool, 0);
	mutex_unlock(&pool->lock);
	return is_any;
}

void ebb_revoke_catch_up(struct ebb_pool *pool)
{
	struct ebb_dev *ebb = ebb_claim_get_control();

	if (!ebb)
		return;
	ebb_event_poll(ebb);
	apply(ebb, pool);
	ebb_dev_put(ebb);
}

void ebb_revoke_failed(struct ebb_pool *pool, u32 first, u32 count)
{
	mutex_lock(&pool->lock);
	take_blocks(pool, first, count, ebb_region_fail);
	/* None drains before the device is in use. */
	if (pool->region.num[EBB_BLOCK_DRAINING])
		ebb_drain_kick(pool, 0);
	mutex_unlock(&pool->lock);
	ebb_claim_wake();
}

void ebb_revoke_work(struct work_struct *work)
{
	struct ebb_pool *pool = container_of(work, struct ebb_pool, revoke_work);
	struct ebb_dev *ebb = ebb_claim_get_control();

	if (!ebb)
		return;
	if (apply(ebb, pool))
		ebb_claim_wake();
	ebb_dev_put(ebb);
}

static void drop_confirm(struct ebb_dev *ebb, struct ebb_call *call)
{
	ebb_call_free(call);
}

/* 0; -ENOENT: the host says that not all of them are revoked; other errors: try again later. */
static int send_confirm(struct ebb_dev *ebb, u64 addr, u64 size_bytes)
{
	struct ebb_call *call = ebb_call_create(VIRTIO_EBB_REQ_MEM_CONFIRM, drop_confirm);
	int rc;

	if (!call)
		return -ENOMEM;
	call->req.u.mem_confirm.range.addr = cpu_to_le64(addr);
	call->req.u.mem_confirm.range.size_bytes = cpu_to_le64(size_bytes);
	rc = ebb_call_run(ebb, call, ktime_get_ns() + EBB_CONFIRM_WAIT_NS);
	if (rc)
		return rc;
	rc = ebb_wire_confirm_errno(&call->answer);
	if (rc == -EIO)
		dev_err_ratelimited(&ebb->vdev->dev,
				    "confirming a revocation: (%u, %u), will retry\n",
				    call->answer.status, call->answer.reason);
	ebb_call_free(call);
	return rc;
}

static bool is_unused(void *data, u32 block)
{
	return ebb_drain_is_unused(data, block);
}

static bool claim_next(struct ebb_pool *pool, u32 from, u32 max_count, struct ebb_run *ret)
{
	bool is_found;

	mutex_lock(&pool->lock);
	smp_mb(); /* as in ebb_drain_unplug() */
	is_found = !pool->is_gone &&
		   ebb_region_next(&pool->region, EBB_BLOCK_REVOKED, from, U32_MAX, max_count,
				   is_unused, pool, ret) &&
		   !ebb_region_claim(&pool->region, ret);
	mutex_unlock(&pool->lock);
	return is_found;
}

bool ebb_revoke_confirm(struct ebb_pool *pool)
{
	struct ebb_dev *ebb = ebb_claim_get_control();
	u32 from = 0, max_count = U32_MAX;
	bool is_any_free = false;
	struct ebb_run run;
	int rc = 0;

	if (!ebb)
		return false;
	while ((!rc || rc == -ENOENT) && claim_next(pool, from, max_count, &run)) {
		bool is_free;

		rc = send_confirm(ebb, pool->addr + (u64)run.first * pool->block_bytes,
				  (u64)run.count * pool->block_bytes);
		ebb_event_poll(ebb);
		apply(ebb, pool);

		/* One that the host knows nothing of is not revoked, whatever we thought. */
		is_free = !rc || (rc == -ENOENT && run.count == 1);
		is_any_free |= is_free;
		mutex_lock(&pool->lock);
		ebb_region_confirmed(&pool->region, &run, is_free);
		mutex_unlock(&pool->lock);
		from = run.first;
		if (rc == -ENOENT)
			max_count = 1;
	}
	ebb_dev_put(ebb);
	return is_any_free;
}
