// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks that left their lease go back to the host as soon as the kernel uses
 * them no more: a direct I/O in flight, or a pipe with pages of vmsplice(),
 * keeps a reference, and a block that is referenced is never unplugged.
 *
 * The host took blocks on its own.  It says so as a level: all that it took and
 * was not told of yet that nobody uses it.  The blocks leave their leases, and
 * when the kernel uses them no more the host is told; then they are free.
 * Or it is about to take blocks and says so, as another level: then they leave
 * their leases in the same way and drain, with what is in them.
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
#include "objects/blocks.h"

#include <linux/ktime.h>
#include <linux/mm.h>

#define EBB_DRAIN_LONGEST_MS	250

/* The device answers by itself. */
#define EBB_CONFIRM_WAIT_NS	(5 * NSEC_PER_SEC)

bool ebb_drain_is_unused(struct ebb_pool *pool, u32 block)
{
	u64 at = pool->addr + (u64)block * pool->block_bytes;
	u64 end = at + pool->block_bytes;

	/* One reference, on the first page of each 2 MiB, is the pool's own. */
	for (; at < end; at += PMD_SIZE)
		if (page_ref_count(pfn_to_page(PHYS_PFN(at))) != 1)
			return false;
	return true;
}

static bool is_unused(void *data, u32 block)
{
	return ebb_drain_is_unused(data, block);
}

void ebb_drain_kick(struct ebb_pool *pool, unsigned int delay_ms)
{
	if (pool->is_gone)
		return;
	WRITE_ONCE(pool->drain_delay_ms, EBB_DRAIN_SOON_MS);
	mod_delayed_work(ebb_mem_wq, &pool->drain_work, msecs_to_jiffies(delay_ms));
}

void ebb_revoke_received(struct ebb_control *control, const struct ebb_wire_event *event)
{
	struct ebb_range_level *level = event->type == VIRTIO_EBB_EVENT_MEM_LEAVING ?
		&control->leaving : &control->revoked;
	unsigned long irqflags;

	spin_lock_irqsave(&control->lock, irqflags);
	level->count = event->num_ranges;
	memcpy(level->ranges, event->ranges, sizeof(level->ranges));
	spin_unlock_irqrestore(&control->lock, irqflags);
	ebb_pool_kick_revoke();
}

/* Takes these blocks out of the leases that have them, runs at a time. */
static void take_blocks(struct ebb_pool *pool, u32 first, u32 count,
			bool (*take)(struct ebb_region *r, u32 block, struct ebb_block *ret))
{
	struct ebb_pool_user *user = NULL;
	u32 start = 0, index = 0, length = 0;
	u32 i;

	for (i = first; i < first + count; i++) {
		struct ebb_block old = {};

		take(&pool->region, i, &old);
		if (length && (old.owner != user || old.index != index + length)) {
			user->ops->revoke(user, index, start, length);
			length = 0;
		}
		if (!old.owner)
			continue;
		if (!length) {
			user = old.owner;
			start = i;
			index = old.index;
		}
		length++;
	}
	if (length)
		user->ops->revoke(user, index, start, length);
}

/* Moves the ranges of this pool from the level to ret; ranges of other pools stay in the level. */
static u32 take_ranges(struct ebb_control *control, struct ebb_range_level *level,
		       const struct ebb_pool *pool,
		       struct ebb_wire_range ret[VIRTIO_EBB_MAX_RANGES])
{
	u32 i, taken = 0, kept = 0;

	spin_lock_irq(&control->lock);
	for (i = 0; i < level->count; i++) {
		const struct ebb_wire_range *range = &level->ranges[i];

		if (range->addr >= pool->addr && range->addr - pool->addr < pool->size_bytes)
			ret[taken++] = *range;
		else
			level->ranges[kept++] = *range;
	}
	level->count = kept;
	spin_unlock_irq(&control->lock);
	return taken;
}

/* True if the level had something of the pool. */
static bool apply_level(struct ebb_control *control, struct ebb_range_level *level,
			struct ebb_pool *pool,
			bool (*take)(struct ebb_region *r, u32 block, struct ebb_block *ret))
{
	struct ebb_wire_range ranges[VIRTIO_EBB_MAX_RANGES];
	u32 i, num = take_ranges(control, level, pool, ranges);

	for (i = 0; i < num; i++)
		take_blocks(pool, (ranges[i].addr - pool->addr) / pool->block_bytes,
			    ranges[i].size_bytes / pool->block_bytes, take);
	return num;
}

/* True if there was something to do. */
static bool apply(struct ebb_control *control, struct ebb_pool *pool)
{
	bool is_any = false;

	mutex_lock(&pool->lock);
	if (!pool->is_gone) {
		is_any = apply_level(control, &control->leaving, pool, ebb_region_expel);
		is_any |= apply_level(control, &control->revoked, pool, ebb_region_revoke);
	}
	if (is_any)
		ebb_drain_kick(pool, 0);
	mutex_unlock(&pool->lock);
	return is_any;
}

/*
 * Acts on all that the control device has told of the pool's blocks until now.
 * ebb_pool.lock is not held.
 */
static void catch_up(struct ebb_pool *pool)
{
	struct ebb_control *control = ebb_control_get();

	if (!control)
		return;
	ebb_queues_poll_events(control->queues);
	apply(control, pool);
	ebb_control_put(control);
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
	struct ebb_control *control = ebb_control_get();

	if (!control)
		return;
	if (apply(control, pool))
		ebb_claim_wake();
	ebb_control_put(control);
}

/* The next runs that can be unplugged, from *from on; moves that on. */
static unsigned int next_runs(struct ebb_pool *pool, u32 *from, u32 end, u32 max_count,
			      struct ebb_run runs[EBB_MEMDEV_BATCH])
{
	unsigned int n;

	for (n = 0; n < EBB_MEMDEV_BATCH; n++) {
		if (!ebb_region_next(&pool->region, EBB_BLOCK_DRAINING, *from, end, max_count,
				     is_unused, pool, &runs[n]))
			break;
		*from = runs[n].first + runs[n].count;
	}
	return n;
}

/* A refusal leaves blocks as they are: DRAINING, to be tried again.  So does a late answer. */
static u32 unplug(struct ebb_pool *pool, u32 from, u32 end, u32 max_count, bool *ret_is_refused)
{
	struct ebb_run runs[EBB_MEMDEV_BATCH];
	int rcs[EBB_MEMDEV_BATCH];
	unsigned int n, i;
	u32 unplugged = 0;

	mutex_lock(&pool->lock);
	while ((n = next_runs(pool, &from, end, max_count, runs))) {
		mutex_unlock(&pool->lock);
		ebb_memdev_request(&pool->memdev, VIRTIO_MEM_REQ_UNPLUG, runs, n, rcs);
		/* No old level may find them when they are in use again: see above. */
		catch_up(pool);
		mutex_lock(&pool->lock);
		for (i = 0; i < n; i++) {
			if (!rcs[i] && !ebb_region_unplugged(&pool->region, &runs[i]))
				unplugged += runs[i].count;
			if (rcs[i] == -EINVAL)
				*ret_is_refused = true;
		}
	}
	mutex_unlock(&pool->lock);
	return unplugged;
}

u32 ebb_drain_late(struct ebb_pool *pool)
{
	struct ebb_run run;
	u32 unplugged = 0;
	u16 type;
	int rc;

	while (ebb_memdev_late(&pool->memdev, &type, &run, &rc)) {
		catch_up(pool);
		mutex_lock(&pool->lock);
		if (type == VIRTIO_MEM_REQ_PLUG)
			ebb_region_end_plug(&pool->region, &run, !rc);
		else if (!rc && !ebb_region_unplugged(&pool->region, &run))
			unplugged += run.count;
		mutex_unlock(&pool->lock);
	}
	return unplugged;
}

u32 ebb_drain_unplug(struct ebb_pool *pool, u32 from, u32 end)
{
	bool is_refused = false;
	u32 unplugged;

	/* No device to ask; and when it was lost, the struct pages may have gone with it. */
	if (pool->memdev.is_dead)
		return 0;
	unplugged = ebb_drain_late(pool);
	/* References are looked at after what took them is out of the page tables. */
	smp_mb();
	unplugged += unplug(pool, from, end, EBB_MEMDEV_MAX_BLOCKS, &is_refused);
	/* Some were revoked meanwhile, of which we shall hear; the others go one by one. */
	if (is_refused)
		unplugged += unplug(pool, from, end, 1, &is_refused);
	return unplugged;
}

static const struct ebb_call_ops confirm_ops = { .late = ebb_call_free };

/* 0; -ENOENT: the host says that not all of them are revoked; other errors: try again later. */
static int send_confirm(struct ebb_control *control, u64 addr, u64 size_bytes)
{
	struct ebb_call *call = ebb_call_create(VIRTIO_EBB_REQ_MEM_CONFIRM, &confirm_ops, control);
	int rc;

	if (!call)
		return -ENOMEM;
	call->req.u.mem_confirm.range.addr = cpu_to_le64(addr);
	call->req.u.mem_confirm.range.size_bytes = cpu_to_le64(size_bytes);
	rc = ebb_call_run(control->queues, call, ktime_get_ns() + EBB_CONFIRM_WAIT_NS);
	if (rc)
		return rc;
	rc = ebb_wire_confirm_errno(&call->answer);
	if (rc == -EIO)
		dev_err_ratelimited(&control->queues->vdev->dev,
				    "confirming a revocation: (%u, %u), will retry\n",
				    call->answer.status, call->answer.reason);
	ebb_call_free(call);
	return rc;
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

/*
 * Tells the host of revoked blocks that nobody uses any more; true: some are free.
 * No lock is held.
 */
static bool confirm_all(struct ebb_pool *pool)
{
	struct ebb_control *control = ebb_control_get();
	u32 from = 0, max_count = U32_MAX;
	bool is_any_free = false;
	struct ebb_run run;
	int rc = 0;

	if (!control)
		return false;
	while ((!rc || rc == -ENOENT) && claim_next(pool, from, max_count, &run)) {
		bool is_free;

		rc = send_confirm(control, pool->addr + (u64)run.first * pool->block_bytes,
				  (u64)run.count * pool->block_bytes);
		ebb_queues_poll_events(control->queues);
		apply(control, pool);

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
	ebb_control_put(control);
	return is_any_free;
}

static bool is_something_left(const struct ebb_pool *pool)
{
	return pool->region.num[EBB_BLOCK_DRAINING] || pool->region.num[EBB_BLOCK_REVOKED] ||
	       READ_ONCE(pool->memdev.num_late);
}

void ebb_drain_work(struct work_struct *work)
{
	struct ebb_pool *pool = container_of(to_delayed_work(work), struct ebb_pool, drain_work);
	unsigned int delay_ms = READ_ONCE(pool->drain_delay_ms);
	bool is_news;

	mutex_lock(&pool->io_lock);
	is_news = ebb_drain_unplug(pool, 0, pool->region.num_blocks);
	mutex_unlock(&pool->io_lock);
	is_news |= confirm_all(pool);

	mutex_lock(&pool->lock);
	if (is_something_left(pool) && !pool->is_gone && !pool->memdev.is_dead) {
		WRITE_ONCE(pool->drain_delay_ms, min_t(u32, 2 * delay_ms, EBB_DRAIN_LONGEST_MS));
		queue_delayed_work(ebb_mem_wq, &pool->drain_work, msecs_to_jiffies(delay_ms));
	}
	mutex_unlock(&pool->lock);
	if (is_news)
		ebb_claim_wake();
}
