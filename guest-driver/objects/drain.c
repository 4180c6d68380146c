// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks that left their lease go back to the host as soon as the kernel uses
 * them no more: a direct I/O in flight, or a pipe with pages of vmsplice(),
 * keeps a reference, and a block that is referenced is never unplugged.
 */
#include "dev.h"
#include "objects/pool.h"

#include <linux/mm.h>

#define EBB_DRAIN_LONGEST_MS	250

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
		/* No old level may find them when they are in use again: see revoke.c. */
		ebb_revoke_catch_up(pool);
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
		ebb_revoke_catch_up(pool);
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

void ebb_drain_kick(struct ebb_pool *pool, unsigned int delay_ms)
{
	if (pool->is_gone)
		return;
	WRITE_ONCE(pool->drain_delay_ms, EBB_DRAIN_SOON_MS);
	mod_delayed_work(ebb_mem_wq, &pool->drain_work, msecs_to_jiffies(delay_ms));
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
	is_news |= ebb_revoke_confirm(pool);

	mutex_lock(&pool->lock);
	if (is_something_left(pool) && !pool->is_gone && !pool->memdev.is_dead) {
		WRITE_ONCE(pool->drain_delay_ms, min_t(u32, 2 * delay_ms, EBB_DRAIN_LONGEST_MS));
		queue_delayed_work(ebb_mem_wq, &pool->drain_work, msecs_to_jiffies(delay_ms));
	}
	mutex_unlock(&pool->lock);
	if (is_news)
		ebb_claim_wake();
}
