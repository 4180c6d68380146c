// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of pools: virtio-mem devices that the control device lists.  All of
 * a device's region gets struct pages once, when it is found, and keeps them
 * until it is lost: memunmap_pages() waits for no reference, and crashes if
 * there is one.  So it is called only when nobody uses a page.  If somebody
 * still does when the device goes, the struct pages stay for ever.
 */
#include "objects/pool.h"

#include <linux/acpi.h>
#include <linux/delay.h>
#include <linux/ioport.h>
#include <linux/jiffies.h>
#include <linux/memremap.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_mem.h>

#include "objects/blocks.h"
#include "objects/claim.h"
#include "pure/leasemap.h"
#include "pure/wire.h"

/* Longest that losing the device waits for the kernel to let go of its pages. */
#define EBB_POOL_LOSE_WAIT_MS	3000

/* A device that migrates is busy; how long its driver tries to empty it. */
#define EBB_POOL_EMPTY_WAIT_MS	5000

struct workqueue_struct *ebb_mem_wq;

static DEFINE_SPINLOCK(pools_lock);	/* also taken in interrupts */
static LIST_HEAD(pools);

/* All that lives as long as the struct pages, be it longer than this module. */
struct ebb_pagemap {
	struct dev_pagemap pgmap;
	struct ebb_pool *pool;		/* NULL: it left them behind */
	char name[16];			/* in /proc/iomem */
};

static DEFINE_MUTEX(pagemap_lock);	/* ebb_pagemap.pool of all */

static void release_pool(struct kref *ref)
{
	struct ebb_pool *pool = container_of(ref, struct ebb_pool, ref);

	kvfree(pool->region.blocks);
	kfree(pool);
}

void ebb_pool_put(struct ebb_pool *pool)
{
	kref_put(&pool->ref, release_pool);
}

struct ebb_pool *ebb_pool_get_of_node(u16 pxm)
{
	struct ebb_pool *pool, *found = NULL;

	spin_lock_irq(&pools_lock);
	list_for_each_entry(pool, &pools, link)
		if (pool->pxm == pxm)
			found = pool;
	if (found)
		kref_get(&found->ref);
	spin_unlock_irq(&pools_lock);
	return found;
}

void ebb_pool_kick_revoke(void)
{
	struct ebb_pool *pool;
	unsigned long irqflags;

	spin_lock_irqsave(&pools_lock, irqflags);
	list_for_each_entry(pool, &pools, link)
		queue_work(ebb_mem_wq, &pool->revoke_work);
	spin_unlock_irqrestore(&pools_lock, irqflags);
}

static void read_sizes(struct ebb_pool *pool)
{
	u64 requested_bytes, usable_bytes;

	virtio_cread_le(pool->memdev.vdev, struct virtio_mem_config, requested_size,
			&requested_bytes);
	virtio_cread_le(pool->memdev.vdev, struct virtio_mem_config, usable_region_size,
			&usable_bytes);
	WRITE_ONCE(pool->requested_bytes, requested_bytes);
	WRITE_ONCE(pool->usable_bytes, min(usable_bytes, pool->size_bytes));
}

u32 ebb_pool_max_plugged(const struct ebb_pool *pool)
{
	u32 good = pool->region.num_blocks - READ_ONCE(pool->region.num[EBB_BLOCK_BAD]);

	return min_t(u64, READ_ONCE(pool->requested_bytes) / pool->block_bytes, good);
}

void ebb_pool_refresh(struct ebb_pool *pool, bool is_forced)
{
	if (xchg(&pool->is_stale, false) || is_forced)
		read_sizes(pool);
}

/* An interrupt, where reading may not be possible. */
static void pool_config_changed(struct virtio_device *vdev)
{
	struct ebb_pool *pool = container_of(vdev->priv, struct ebb_pool, memdev);

	xchg(&pool->is_stale, true);
}

/* wire.c has checked what the control device lists, and this is the same. */
static struct ebb_pool *create_pool(struct virtio_device *vdev)
{
	struct ebb_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	struct ebb_block *blocks;
	u64 block_bytes;

	if (!pool)
		return NULL;
	virtio_cread_le(vdev, struct virtio_mem_config, addr, &pool->addr);
	virtio_cread_le(vdev, struct virtio_mem_config, region_size, &pool->size_bytes);
	virtio_cread_le(vdev, struct virtio_mem_config, block_size, &block_bytes);
	virtio_cread_le(vdev, struct virtio_mem_config, node_id, &pool->pxm);
	pool->block_bytes = block_bytes;

	if (pool->size_bytes / block_bytes > EBB_LEASEMAP_MAX_BLOCKS)
		goto fail;
	blocks = kvcalloc(pool->size_bytes / block_bytes, sizeof(*blocks), GFP_KERNEL);
	if (!blocks)
		goto fail;
	ebb_region_init(&pool->region, blocks, pool->size_bytes / block_bytes);
	kref_init(&pool->ref);
	mutex_init(&pool->io_lock);
	mutex_init(&pool->lock);
	INIT_LIST_HEAD(&pool->link);
	INIT_LIST_HEAD(&pool->users);
	INIT_WORK(&pool->revoke_work, ebb_revoke_work);
	INIT_DELAYED_WORK(&pool->drain_work, ebb_drain_work);
	return pool;

fail:
	kfree(pool);
	return NULL;
}

/*
 * The kernel says that memory has failed, and leaves it to us to tell who uses it: the
 * next touch raises SIGBUS.  mmap_lock is not held, and a reference to pgmap is.
 */
static int memory_failed(struct dev_pagemap *pgmap, unsigned long pfn, unsigned long num_pages,
			 int flags)
{
	struct ebb_pagemap *pagemap = container_of(pgmap, struct ebb_pagemap, pgmap);
	struct ebb_pool *pool;
	u64 offset = PFN_PHYS(pfn) - pgmap->range.start;

	mutex_lock(&pagemap_lock);
	pool = pagemap->pool;
	if (pool) {
		u32 first = offset / pool->block_bytes;
		u32 last = (offset + PFN_PHYS(num_pages) - 1) / pool->block_bytes;

		pr_err("ebb: memory at %#llx has failed: not used any more\n", PFN_PHYS(pfn));
		ebb_revoke_failed(pool, first, last - first + 1);
	}
	mutex_unlock(&pagemap_lock);
	return pool ? 0 : -EOPNOTSUPP;
}

static const struct dev_pagemap_ops pagemap_ops = { .memory_failure = memory_failed };

/* Gives the region its struct pages: one for each 2 MiB, the rest is of it. */
static int map_pages(struct ebb_pool *pool)
{
	struct ebb_pagemap *pagemap = kzalloc(sizeof(*pagemap), GFP_KERNEL);
	struct dev_pagemap *pgmap;
	void *mapped;
	int rc;

	if (!pagemap)
		return -ENOMEM;
	pagemap->pool = pool;
	strscpy(pagemap->name, "ebb pool", sizeof(pagemap->name));
	if (!request_mem_region(pool->addr, pool->size_bytes, pagemap->name)) {
		rc = -EBUSY;
		goto out_free;
	}
	pgmap = &pagemap->pgmap;
	pgmap->type = MEMORY_DEVICE_GENERIC;
	pgmap->vmemmap_shift = PMD_SHIFT - PAGE_SHIFT;
	pgmap->range = (struct range) { pool->addr, pool->addr + pool->size_bytes - 1 };
	pgmap->nr_range = 1;
	pgmap->ops = &pagemap_ops;
	/* Not phys_to_target_node(): that gives the node of whatever lies before. */
	mapped = memremap_pages(pgmap, pxm_to_node(pool->pxm));
	if (IS_ERR(mapped)) {
		rc = PTR_ERR(mapped);
		goto out_region;
	}
	pool->pagemap = pagemap;
	return 0;

out_region:
	release_mem_region(pool->addr, pool->size_bytes);
out_free:
	kfree(pagemap);
	return rc;
}

static void unmap_pages(struct ebb_pool *pool)
{
	memunmap_pages(&pool->pagemap->pgmap);
	release_mem_region(pool->addr, pool->size_bytes);
	kfree(pool->pagemap);
}

/* They outlive the pool, and this module: nothing of them may lead here any more. */
static void leave_pages(struct ebb_pool *pool)
{
	mutex_lock(&pagemap_lock);
	pool->pagemap->pool = NULL;
	WRITE_ONCE(pool->pagemap->pgmap.ops, NULL);
	mutex_unlock(&pagemap_lock);
}

/* What an earlier driver, or an earlier life of this one, left plugged. */
static int empty_device(struct ebb_pool *pool)
{
	unsigned long end = jiffies + msecs_to_jiffies(EBB_POOL_EMPTY_WAIT_MS);
	u64 plugged_bytes;
	int rc;

	virtio_cread_le(pool->memdev.vdev, struct virtio_mem_config, plugged_size, &plugged_bytes);
	if (!plugged_bytes)
		return 0;
	do {
		rc = ebb_memdev_unplug_all(&pool->memdev);
		if (rc != -EAGAIN)
			break;
		msleep(100);
	} while (time_before(jiffies, end));
	return rc;
}

static int pool_probe(struct virtio_device *vdev)
{
	struct ebb_pool *pool = create_pool(vdev);
	int rc;

	if (!pool)
		return -ENOMEM;
	if (pool->block_bytes < EBB_WIRE_MIN_BLOCK_BYTES) {
		dev_err(&vdev->dev, "pool not used: its blocks of %u KiB are smaller than %u KiB\n",
			pool->block_bytes >> 10, EBB_WIRE_MIN_BLOCK_BYTES >> 10);
		rc = -EINVAL;
		goto out_put;
	}
	rc = map_pages(pool);
	if (rc) {
		dev_err(&vdev->dev, "no struct pages for the pool: %d\n", rc);
		goto out_put;
	}
	rc = ebb_memdev_init(&pool->memdev, vdev, pool->addr, pool->block_bytes);
	if (rc)
		goto out_unmap;
	virtio_device_ready(vdev);
	rc = empty_device(pool);
	if (rc) {
		dev_err(&vdev->dev, "can not unplug what is plugged: %d\n", rc);
		goto out_memdev;
	}
	read_sizes(pool);

	spin_lock_irq(&pools_lock);
	list_add_tail(&pool->link, &pools);
	spin_unlock_irq(&pools_lock);
	dev_info(&vdev->dev, "pool of %llu MiB on proximity domain %u\n", pool->size_bytes >> 20,
		 pool->pxm);
	/* The host may have revoked blocks of this pool before the pool was in the list. */
	ebb_pool_kick_revoke();
	ebb_claim_wake();
	return 0;

out_memdev:
	ebb_memdev_finish(&pool->memdev);
out_unmap:
	vdev->priv = NULL;
	unmap_pages(pool);
out_put:
	ebb_pool_put(pool);
	return rc;
}

static bool is_unused(struct ebb_pool *pool)
{
	u32 i;

	for (i = 0; i < pool->region.num_blocks; i++)
		if (!ebb_drain_is_unused(pool, i))
			return false;
	return true;
}

/* True if the kernel uses no page any more; all blocks that it does not use are unplugged. */
static bool lose_blocks(struct ebb_pool *pool)
{
	unsigned long end = jiffies + msecs_to_jiffies(EBB_POOL_LOSE_WAIT_MS);
	struct ebb_pool_user *user;
	bool is_done;
	u32 i;

	mutex_lock(&pool->lock);
	pool->is_gone = true;
	list_for_each_entry(user, &pool->users, link)
		user->ops->lose(user);
	for (i = 0; i < pool->region.num_blocks; i++)
		if (pool->region.blocks[i].owner)
			ebb_region_leave(&pool->region, i, pool->region.blocks[i].owner);
	mutex_unlock(&pool->lock);
	for (;;) {
		mutex_lock(&pool->io_lock);
		ebb_drain_unplug(pool, 0, pool->region.num_blocks);
		mutex_unlock(&pool->io_lock);
		is_done = is_unused(pool);
		if (is_done || time_after(jiffies, end))
			break;
		msleep(20);
	}
	return is_done;
}

static void pool_remove(struct virtio_device *vdev)
{
	struct ebb_pool *pool = container_of(vdev->priv, struct ebb_pool, memdev);
	bool is_unused;

	spin_lock_irq(&pools_lock);
	list_del_init(&pool->link);
	spin_unlock_irq(&pools_lock);
	is_unused = lose_blocks(pool);
	cancel_work_sync(&pool->revoke_work);
	cancel_delayed_work_sync(&pool->drain_work);

	mutex_lock(&pool->io_lock);
	ebb_memdev_finish(&pool->memdev);
	vdev->priv = NULL;
	mutex_unlock(&pool->io_lock);
	if (is_unused) {
		unmap_pages(pool);
	} else {
		leave_pages(pool);
		dev_err(&vdev->dev,
			"the kernel still uses pages of the pool: lost until the next boot\n");
	}
	ebb_pool_put(pool);
	ebb_claim_wake();
}

#ifdef CONFIG_PM_SLEEP
static int pool_freeze(struct virtio_device *vdev)
{
	dev_err(&vdev->dev, "suspend is not supported\n");
	return -EPERM;
}

static int pool_restore(struct virtio_device *vdev)
{
	return -EPERM;
}
#endif

static const unsigned int pool_features[] = {
	VIRTIO_MEM_F_ACPI_PXM,
	VIRTIO_MEM_F_UNPLUGGED_INACCESSIBLE,
};

/*
 * Not for the module loader: without a control device there are no pools.  Empty
 * until claim.c is there to look after devices that turn out to be none.
 */
static struct virtio_device_id pool_ids[2];

static struct virtio_driver pool_driver = {
	.driver.name = "ebb_pool",
	.driver.owner = THIS_MODULE,
	.feature_table = pool_features,
	.feature_table_size = ARRAY_SIZE(pool_features),
	.id_table = pool_ids,
	/*
	 * Only now features and form of the device are known and it may still be
	 * another driver's.
	 */
	.validate = ebb_claim_check,
	.probe = pool_probe,
	.remove = pool_remove,
	.config_changed = pool_config_changed,
#ifdef CONFIG_PM_SLEEP
	.freeze = pool_freeze,
	.restore = pool_restore,
#endif
};

bool ebb_pool_is_driver(const struct device_driver *driver)
{
	return driver == &pool_driver.driver;
}

void ebb_pool_attach_all(void)
{
	int rc = driver_attach(&pool_driver.driver);

	if (rc)
		pr_err("ebb: can not look for pools: %d\n", rc);
}

int ebb_pool_init(struct workqueue_struct *mem_wq)
{
	int rc;

	ebb_mem_wq = mem_wq;
	rc = register_virtio_driver(&pool_driver);
	if (rc)
		return rc;
	rc = ebb_claim_start(&pool_driver.driver);
	if (rc) {
		unregister_virtio_driver(&pool_driver);
		return rc;
	}
	pool_ids[0] = (struct virtio_device_id) { VIRTIO_ID_MEM, VIRTIO_DEV_ANY_ID };
	return 0;
}

void ebb_pool_exit(void)
{
	/* A control device that is plugged before its own driver goes finds no driver of pools. */
	pool_ids[0] = (struct virtio_device_id) {};
	ebb_claim_stop(&pool_driver.driver);
	unregister_virtio_driver(&pool_driver);
}
