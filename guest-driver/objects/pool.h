/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pools inside of ebb.ko: virtio-mem devices that the control device lists.
 * claim.c gets them from other drivers, pool.c drives them, blocks.c lets their
 * blocks go.  Users of a pool's blocks (leases) are told when blocks leave.
 *
 * Locks, in the order in which they are taken:
 *   mmap_lock (by the kernel, around faults)
 *   the kernel's own, while it handles memory that has failed
 *   ebb_pagemap's    which pool has the struct pages (pool.c)
 *   ebb_pool.io_lock memdev; held while its device is asked, which may take long
 *   ebb_pool.lock    region, users; nobody waits for a device with it
 *   ebb_lease.lock   the lease's map; faults take it for reading
 *   ebb_control.lock the levels of blocks that leave or were revoked
 *   the lists' own   of the pools (pool.c), of the control device
 *                    (claim.c): nothing is taken under them
 * Nothing that takes ebb_pool.io_lock or ebb_pool.lock is called with mmap_lock held.
 *
 * Memory that the host takes, or is about to, is unmapped by each pool's revoke_work, which needs
 * ebb_pool.lock only: it waits for no device, and for no other pool.  Whatever has
 * to ask a device is done by drain_work, or by the program that wants it.
 */
#ifndef EBB_POOL_H
#define EBB_POOL_H

#include <linux/device.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "pure/region.h"
#include "transport/memdev.h"

struct ebb_pagemap;
struct ebb_pool_user;

/* Both with ebb_pool.lock held. */
struct ebb_pool_user_ops {
	/*
	 * The host took blocks, or will, or they failed: out of use.  count
	 * neighbours both in the pool and at the user, there from index on.
	 */
	void (*revoke)(struct ebb_pool_user *user, u32 index, u32 block, u32 count);

	/* The device goes away, and all blocks with it. */
	void (*lose)(struct ebb_pool_user *user);
};

/* The owner of blocks of a pool, in ebb_block.owner. */
struct ebb_pool_user {
	struct list_head link;		/* in ebb_pool.users */
	const struct ebb_pool_user_ops *ops;
};

struct ebb_pool {
	struct kref ref;		/* of the device's driver, every lease, short uses */
	struct list_head link;		/* in the list of pools, under its lock */
	struct ebb_pagemap *pagemap;	/* may outlive the pool: see pool.c */
	u64 addr;			/* of block 0, guest physical */
	u64 size_bytes;
	u32 block_bytes;
	u16 pxm;

	struct mutex io_lock;
	struct ebb_memdev memdev;

	struct mutex lock;
	struct ebb_region region;	/* counts are also read without the lock */
	struct list_head users;		/* of struct ebb_pool_user */
	bool is_gone;			/* set once: the device was removed */
	u64 requested_bytes;		/* of the device, as last read; readable without lock */
	u64 usable_bytes;		/* likewise */
	bool is_stale;			/* the device has changed them since; no lock */

	struct work_struct revoke_work;	/* on ebb_mem_wq: unmaps what the host took */
	struct delayed_work drain_work;	/* likewise: returns and confirms what nobody uses */
	unsigned int drain_delay_ms;	/* until the next try; of drain_work */
};

/* Unbound; of the module: work of all pools. */
extern struct workqueue_struct *ebb_mem_wq;

/* mem_wq outlives all use of pools and of the control device. */
int ebb_pool_init(struct workqueue_struct *mem_wq);
void ebb_pool_exit(void);

/* Has the driver core offer it all virtio-mem devices that nobody drives. */
void ebb_pool_attach_all(void);

bool ebb_pool_is_driver(const struct device_driver *driver);

/* With a reference; NULL: no such pool is driven. */
struct ebb_pool *ebb_pool_get_of_node(u16 pxm);
void ebb_pool_put(struct ebb_pool *pool);

/* Most blocks that the pool can have plugged: what the host lets it, as last read, of good ones. */
u32 ebb_pool_max_plugged(const struct ebb_pool *pool);

/*
 * Reads it from the device, if that said that it changed or is_forced.
 * ebb_pool.io_lock is held, and the device is there.
 */
void ebb_pool_refresh(struct ebb_pool *pool, bool is_forced);

/* Has all pools look at the levels of blocks that leave or were revoked.  Any context. */
void ebb_pool_kick_revoke(void);

#endif /* EBB_POOL_H */
