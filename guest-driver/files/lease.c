// SPDX-License-Identifier: GPL-2.0-only
/* Leases come and go: blocks of a pool for one file.  The file itself is in leasefile.c. */
#include "files/lease.h"

#include <linux/anon_inodes.h>
#include <linux/build_bug.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "objects/blocks.h"

/*
 * How long a release waits for pages that the kernel still uses: long enough
 * for a fault or system call that is just letting go of them, too short for a
 * disk.
 */
#define EBB_RELEASE_TRIES	4
#define EBB_RELEASE_WAIT_US	100

/*
 * The inode is an anonymous one of the lease's own: unmapping goes by inode.
 * S_DAX makes 6.1 map huge pages, and keeps 6.12 from dropping references that
 * were never taken when they are unmapped.  On all kernels it keeps pages from
 * being migrated; and as the inode is no character device, pins for ever are
 * refused.
 */
static struct inode *create_inode(struct super_block *sb, u64 bytes)
{
	struct inode *inode = alloc_anon_inode(sb);

	static_assert(S_DAX, "leases need a kernel with CONFIG_FS_DAX");
	if (IS_ERR(inode))
		return inode;
	inode->i_flags |= S_DAX;
	i_size_write(inode, bytes);
	return inode;
}

static u32 *alloc_entries(u32 num_blocks)
{
	return kvmalloc_array(num_blocks, sizeof(u32), GFP_KERNEL_ACCOUNT);
}

static struct ebb_lease *lease_of_user(struct ebb_pool_user *user)
{
	return container_of(user, struct ebb_lease, user);
}

static void revoke_blocks(struct ebb_pool_user *user, u32 index, u32 block, u32 count)
{
	struct ebb_lease *lease = lease_of_user(user);
	u64 offset = (u64)index * lease->map.block_bytes;
	u64 bytes = (u64)count * lease->map.block_bytes;
	u32 i;

	down_write(&lease->lock);
	for (i = 0; i < count; i++)
		ebb_leasemap_revoke(&lease->map, index + i, block + i);
	lease->revoked_seq++;
	up_write(&lease->lock);
	unmap_mapping_range(lease->inode->i_mapping, offset, bytes, 1);
	wake_up_interruptible_all(&lease->wait);
}

static void lose_all(struct ebb_pool_user *user)
{
	struct ebb_lease *lease = lease_of_user(user);

	down_write(&lease->lock);
	ebb_leasemap_revoke_all(&lease->map);
	lease->is_gone = true;
	lease->revoked_seq++;
	up_write(&lease->lock);
	unmap_mapping_range(lease->inode->i_mapping, 0, 0, 1);
	wake_up_interruptible_all(&lease->wait);
}

static const struct ebb_pool_user_ops lease_user_ops = {
	.revoke = revoke_blocks,
	.lose = lose_all,
};

static struct ebb_lease *create_lease(struct ebb_pool *pool, u32 max_blocks)
{
	struct ebb_lease *lease = kzalloc(sizeof(*lease), GFP_KERNEL_ACCOUNT);
	u32 *entries;

	if (!lease)
		return NULL;
	entries = alloc_entries(max_blocks);
	if (!entries) {
		kfree(lease);
		return NULL;
	}
	ebb_leasemap_init(&lease->map, entries, pool->block_bytes);
	INIT_LIST_HEAD(&lease->user.link);
	lease->user.ops = &lease_user_ops;
	init_rwsem(&lease->lock);
	init_waitqueue_head(&lease->wait);
	kref_get(&pool->ref);
	lease->pool = pool;
	return lease;
}

static void free_lease(struct ebb_lease *lease)
{
	iput(lease->inode);
	ebb_pool_put(lease->pool);
	kvfree(lease->map.entries);
	kfree(lease);
}

/* A file for a lease that has no blocks yet; fput() destroys the lease. */
static struct file *create_file(struct ebb_lease *lease, u64 bytes)
{
	struct file *filp = anon_inode_getfile("[ebb-lease]", &ebb_lease_fops, lease,
					       O_RDWR | O_CLOEXEC);
	struct inode *inode;

	if (IS_ERR(filp)) {
		free_lease(lease);
		return filp;
	}
	inode = create_inode(file_inode(filp)->i_sb, bytes);
	if (IS_ERR(inode)) {
		fput(filp);
		return ERR_CAST(inode);
	}
	lease->inode = inode;
	filp->f_mapping = inode->i_mapping;
	return filp;
}

/* The next runs of free blocks, at most left in all; they are PLUGGING then. */
static unsigned int next_free(struct ebb_pool *pool, u32 *from, u32 left,
			      struct ebb_run runs[EBB_MEMDEV_BATCH])
{
	u32 end = READ_ONCE(pool->usable_bytes) / pool->block_bytes;
	unsigned int n;

	mutex_lock(&pool->lock);
	for (n = 0; n < EBB_MEMDEV_BATCH && left; n++) {
		if (!ebb_region_next(&pool->region, EBB_BLOCK_FREE, *from, end,
				     min_t(u32, left, EBB_MEMDEV_MAX_BLOCKS), NULL, NULL,
				     &runs[n]))
			break;
		ebb_region_plug(&pool->region, &runs[n]);
		*from = runs[n].first + runs[n].count;
		left -= runs[n].count;
	}
	mutex_unlock(&pool->lock);
	return n;
}

/* The device has answered, or (-ETIMEDOUT) will do so when nobody waits any more. */
static void take_answer(struct ebb_pool *pool, struct ebb_lease *lease, const struct ebb_run *run,
			int rc)
{
	u32 i;

	if (rc == -ETIMEDOUT) {
		ebb_drain_kick(pool, EBB_DRAIN_SOON_MS);
		return;
	}
	for (i = run->first; !rc && !pool->is_gone && i < run->first + run->count; i++) {
		const struct ebb_run one = { i, 1 };

		if (!ebb_region_grant(&pool->region, i, &lease->user, lease->map.num_blocks))
			ebb_leasemap_append(&lease->map, &one);
	}
	ebb_region_end_plug(&pool->region, run, !rc);
}

/* Plugs up to count blocks for the lease.  0 if all requests went well, else the first error. */
static int plug_blocks(struct ebb_pool *pool, struct ebb_lease *lease, u32 count)
{
	struct ebb_run runs[EBB_MEMDEV_BATCH];
	int rcs[EBB_MEMDEV_BATCH];
	unsigned int n, i;
	u32 from = 0;
	int rc = 0;

	while (!rc && lease->map.num_blocks < count) {
		n = next_free(pool, &from, count - lease->map.num_blocks, runs);
		if (!n)
			break;
		ebb_memdev_request(&pool->memdev, VIRTIO_MEM_REQ_PLUG, runs, n, rcs);
		mutex_lock(&pool->lock);
		for (i = 0; i < n; i++) {
			take_answer(pool, lease, &runs[i], rcs[i]);
			rc = rc ?: rcs[i];
		}
		mutex_unlock(&pool->lock);
	}
	return rc;
}

/* Blocks that can be had now, of want, as far as is known. */
static u32 known_room(struct ebb_pool *pool, u32 want)
{
	u32 room = 0;

	mutex_lock(&pool->lock);
	if (!pool->is_gone)
		room = ebb_region_room(&pool->region, want, ebb_pool_max_plugged(pool));
	mutex_unlock(&pool->lock);
	return room;
}

/* The same; ebb_pool.io_lock is held, and the device is there. */
static u32 find_room(struct ebb_pool *pool, u32 want)
{
	u32 room;

	ebb_pool_refresh(pool, false);
	room = known_room(pool, want);
	if (room == want)
		return room;
	/* The interrupt that says that there is more may still be on its way. */
	ebb_pool_refresh(pool, true);
	return known_room(pool, want);
}

/* Why there is nothing: blocks below the limit that are not back yet, or the limit. */
static int errno_of_no_room(struct ebb_pool *pool)
{
	ebb_pool_refresh(pool, true);
	return pool->region.num[EBB_BLOCK_GRANTED] < ebb_pool_max_plugged(pool) ? -EAGAIN : -EDQUOT;
}

/* False: the pool is lost, and does not know the lease. */
static bool enter_pool(struct ebb_pool *pool, struct ebb_lease *lease)
{
	bool is_gone;

	mutex_lock(&pool->lock);
	is_gone = pool->is_gone;
	if (!is_gone)
		list_add(&lease->user.link, &pool->users);
	mutex_unlock(&pool->lock);
	return !is_gone;
}

/* ebb_pool.io_lock is held. */
static int fill(struct ebb_pool *pool, struct ebb_lease *lease, u32 want, struct ebb_mem_add *arg)
{
	u64 start_ns;
	u32 room;
	int rc;

	if (pool->memdev.is_dead || !enter_pool(pool, lease))
		return -ENXIO;
	ebb_drain_late(pool);
	room = find_room(pool, want);
	if (!room)
		return errno_of_no_room(pool);

	start_ns = ktime_get_ns();
	rc = plug_blocks(pool, lease, room);
	arg->host_ns = ktime_get_ns() - start_ns;
	if (lease->map.num_blocks)
		return 0;
	switch (rc) {
	case -EDQUOT:
	case 0:
		/* Lowered since it was read, or blocks that the host does not want to be used. */
		return errno_of_no_room(pool);
	case -EAGAIN:
	case -ETIMEDOUT:
		return -EAGAIN;
	default:
		dev_err_ratelimited(&pool->memdev.vdev->dev, "plugging %u blocks: %d\n", room, rc);
		return -EIO;
	}
}

/*
 * The lease's table was allocated for max_blocks.  Shrinks it to the blocks that the host granted,
 * which may be fewer.
 */
static int trim_lease(struct ebb_lease *lease, u32 max_blocks)
{
	u32 *entries, *old;

	if (lease->map.num_blocks == max_blocks)
		return 0;
	entries = alloc_entries(lease->map.num_blocks);
	if (!entries)
		return -ENOMEM;
	down_write(&lease->lock);
	old = ebb_leasemap_move(&lease->map, entries);
	up_write(&lease->lock);
	kvfree(old);
	return 0;
}

static struct file *create_in(const struct ebb_wire_config *cfg, struct ebb_pool *pool,
			      struct ebb_mem_add *arg)
{
	u32 want = arg->bytes / pool->block_bytes;
	struct ebb_lease *lease = create_lease(pool, want);
	struct file *filp;
	int rc;

	if (!lease)
		return ERR_PTR(-ENOMEM);
	lease->linux_node = cfg->linux_node[pool->pxm];
	filp = create_file(lease, arg->bytes);
	if (IS_ERR(filp))
		return filp;

	mutex_lock(&pool->io_lock);
	rc = fill(pool, lease, want, arg);
	mutex_unlock(&pool->io_lock);
	if (!rc)
		rc = trim_lease(lease, want);
	if (rc) {
		fput(filp);
		return ERR_PTR(rc);
	}
	arg->granted_bytes = (u64)lease->map.num_blocks * pool->block_bytes;
	arg->granted_node = lease->linux_node;
	arg->block_bytes = pool->block_bytes;
	i_size_write(lease->inode, arg->granted_bytes);
	return filp;
}

static int check_bytes(const struct ebb_wire_pool *pool, u64 bytes)
{
	if (bytes & (pool->block_bytes - 1))
		return -EINVAL;
	return bytes <= pool->size_bytes ? 0 : -ERANGE;
}

/* Does not wait for a device that somebody is just asking. */
static u64 room_bytes_of(struct ebb_pool *pool, u64 bytes)
{
	u32 want = bytes / pool->block_bytes;
	bool is_ours = mutex_trylock(&pool->io_lock);
	u32 room = is_ours && !pool->memdev.is_dead ? find_room(pool, want) :
		   known_room(pool, want);

	if (is_ours)
		mutex_unlock(&pool->io_lock);
	return (u64)room * pool->block_bytes;
}

/*
 * The pool that can give most, of those that the request fits and that were not
 * tried.  When its turn comes it may be able to give less: this decides only which pool is asked
 * first.
 */
static struct ebb_pool *best_pool(const struct ebb_wire_config *cfg, const struct ebb_mem_add *arg,
				  u32 *tried, int *rc)
{
	struct ebb_pool *best = NULL;
	u64 best_bytes = 0;
	int best_index = 0;
	u32 i;

	for (i = 0; i < cfg->num_pools; i++) {
		const struct ebb_wire_pool *desc = &cfg->pools[i];
		struct ebb_pool *pool;
		u64 room_bytes;
		int bad;

		if (*tried & (1u << i) ||
		    (arg->node != EBB_NODE_ANY && arg->node != cfg->linux_node[desc->pxm]))
			continue;
		pool = ebb_pool_get_of_node(desc->pxm);
		if (!pool)
			continue;
		bad = check_bytes(desc, arg->bytes);
		if (bad) {
			*rc = *rc == -ENXIO ? bad : *rc;
			ebb_pool_put(pool);
			continue;
		}
		room_bytes = room_bytes_of(pool, arg->bytes);
		if (!best || room_bytes > best_bytes) {
			swap(best, pool);
			best_bytes = room_bytes;
			best_index = i;
		}
		if (pool)
			ebb_pool_put(pool);
	}
	if (best)
		*tried |= 1u << best_index;
	return best;
}

struct file *ebb_lease_create(const struct ebb_wire_config *cfg, struct ebb_mem_add *arg)
{
	struct ebb_pool *pool;
	struct file *filp;
	u32 tried = 0;
	int rc = -ENXIO;

	while ((pool = best_pool(cfg, arg, &tried, &rc))) {
		filp = create_in(cfg, pool, arg);
		ebb_pool_put(pool);
		if (!IS_ERR(filp))
			return filp;
		/* EAGAIN says more than that another pool is full. */
		if (rc != -EAGAIN)
			rc = PTR_ERR(filp);
	}
	return ERR_PTR(rc);
}

static void leave_all(struct ebb_lease *lease, const struct ebb_run *run)
{
	struct ebb_region *region = &lease->pool->region;
	u32 i;

	for (i = 0; i < run->count; i++)
		ebb_region_leave(region, ebb_leasemap_block(&lease->map, run->first + i),
				 &lease->user);
}

static u32 count_draining(const struct ebb_lease *lease, const struct ebb_run *run)
{
	const struct ebb_region *region = &lease->pool->region;
	u32 i, count = 0;

	for (i = 0; i < run->count; i++)
		if (region->blocks[ebb_leasemap_block(&lease->map, run->first + i)].state ==
		    EBB_BLOCK_DRAINING)
			count++;
	return count;
}

/* Where in the pool the blocks of a run of the lease lie; ret->count may be more. */
static void span_of_run(const struct ebb_lease *lease, const struct ebb_run *run,
			struct ebb_run *ret)
{
	u32 first = ebb_leasemap_block(&lease->map, run->first);
	u32 last = ebb_leasemap_block(&lease->map, run->first + run->count - 1);

	/* Blocks are granted by rising number. */
	*ret = (struct ebb_run) { first, last - first + 1 };
}

/* Unplugs what can be of a run that has left the lease; returns how many blocks are left. */
static u32 unplug_run(struct ebb_lease *lease, const struct ebb_run *run)
{
	struct ebb_pool *pool = lease->pool;
	struct ebb_run span;
	u32 draining;

	span_of_run(lease, run, &span);
	mutex_lock(&pool->io_lock);
	ebb_drain_unplug(pool, span.first, span.first + span.count);
	mutex_unlock(&pool->io_lock);

	mutex_lock(&pool->lock);
	draining = count_draining(lease, run);
	if (draining)
		ebb_drain_kick(pool, EBB_DRAIN_SOON_MS);
	mutex_unlock(&pool->lock);
	return draining;
}

int ebb_lease_release(struct ebb_lease *lease, struct ebb_lease_release *arg)
{
	struct ebb_pool *pool = lease->pool;
	struct ebb_run run;
	u64 start_ns, unmapped_ns;
	unsigned int tries = 0;
	u32 draining;
	int rc;

	rc = ebb_leasemap_range(&lease->map, arg->offset, arg->bytes, &run);
	if (rc)
		return rc;
	down_write(&lease->lock);
	rc = lease->is_gone ? -ENODEV : ebb_leasemap_release(&lease->map, &run);
	up_write(&lease->lock);
	if (rc)
		return rc;

	start_ns = ktime_get_ns();
	unmap_mapping_range(lease->inode->i_mapping, arg->offset, arg->bytes, 1);
	unmapped_ns = ktime_get_ns();

	mutex_lock(&pool->lock);
	leave_all(lease, &run);
	mutex_unlock(&pool->lock);
	while ((draining = unplug_run(lease, &run)) && tries++ < EBB_RELEASE_TRIES)
		usleep_range(EBB_RELEASE_WAIT_US, 2 * EBB_RELEASE_WAIT_US);

	arg->draining_bytes = (u64)draining * pool->block_bytes;
	arg->unmap_ns = unmapped_ns - start_ns;
	arg->host_ns = ktime_get_ns() - unmapped_ns;
	ebb_claim_wake();
	return 0;
}

void ebb_lease_destroy(struct ebb_lease *lease)
{
	struct ebb_pool *pool = lease->pool;
	struct ebb_run all = { 0, lease->map.num_blocks };

	mutex_lock(&pool->lock);
	list_del_init(&lease->user.link);
	leave_all(lease, &all);
	mutex_unlock(&pool->lock);
	if (all.count)
		unplug_run(lease, &all);
	free_lease(lease);
	if (all.count)
		ebb_claim_wake();
}
