/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pools and leases inside of ebb.ko.  A pool is a virtio-mem device that the
 * control device lists.  Who calls whom: ebb_chardev -> ebb_lease (files,
 * mappings) and ebb_pool (finds pools) -> ebb_drain (blocks go) -> ebb_memdev
 * (asks the virtio-mem device); ebb_claim gets the devices for ebb_pool;
 * ebb_revoke (told by ebb_event) takes blocks out of leases.  ebb_region and
 * ebb_leasemap are pure.
 *
 * Locks, in the order in which they are taken:
 *   mmap_lock (by the kernel, around faults)
 *   the kernel's own, while it handles memory that has failed
 *   ebb_pagemap's    which pool has the struct pages (pool.c)
 *   ebb_pool.io_lock memdev; held while its device is asked, which may take long
 *   ebb_pool.lock    region, leases; nobody waits for a device with it
 *   ebb_lease.lock   the lease's map; faults take it for reading
 *   ebb_dev.lock     the levels of blocks that leave or were revoked
 *   the lists' own   of the pools (pool.c), of the control device
 *                    (claim.c): nothing is taken under them
 * Nothing that takes ebb_pool.io_lock or ebb_pool.lock is called with mmap_lock held.
 *
 * Memory that the host takes, or is about to, is unmapped by each pool's revoke_work, which needs
 * ebb_pool.lock only: it waits for no device, and for no other pool.  Whatever has
 * to ask a device is done by drain_work, or by the program that wants it.
 *
 * How a block gets out of use: its place in the lease's map is cleared with
 * ebb_lease.lock held for writing, so that no fault maps it any more; then it is
 * unmapped; then nobody new can get a reference to it, and once the reference
 * count of its pages is the one of the pool, nobody has one.  Only then the host
 * is told.
 */
#ifndef EBB_POOL_H
#define EBB_POOL_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "pure/leasemap.h"
#include "transport/memdev.h"
#include "pure/region.h"
#include "pure/wire.h"

struct ebb_dev;
struct ebb_pagemap;
struct ebb_lease_release;
struct ebb_mem_add;

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
	struct list_head leases;
	bool is_gone;			/* set once: the device was removed */
	u64 requested_bytes;		/* of the device, as last read; readable without lock */
	u64 usable_bytes;		/* likewise */
	bool is_stale;			/* the device has changed them since; no lock */

	struct work_struct revoke_work;	/* on ebb_mem_wq: unmaps what the host took */
	struct delayed_work drain_work;	/* likewise: returns and confirms what nobody uses */
	unsigned int drain_delay_ms;	/* until the next try; of drain_work */
};

struct ebb_lease {
	struct list_head link;		/* in ebb_pool.leases */
	struct ebb_pool *pool;		/* has a reference */
	struct inode *inode;		/* its mapping; of no other lease */
	u32 linux_node;

	struct rw_semaphore lock;
	struct ebb_leasemap map;
	bool is_gone;			/* the pool was removed */
	u32 revoked_seq;		/* grows with every revocation */
	u32 told_seq;			/* revoked_seq when the program last asked */
	wait_queue_head_t wait;		/* revoked_seq or is_gone changed */
};

extern struct workqueue_struct *ebb_mem_wq;

/* ---- claim.c: which virtio-mem devices are pools ---- */

/*
 * The control device is there: pools are claimed when this returns.  Or (NULL) it
 * is about to go: nothing uses it when this returns.
 */
void ebb_claim_set_control(struct ebb_dev *ebb);

/*
 * From when the driver of pools is registered, before it is offered a device, until
 * just before it goes: looks for pools that other drivers get, and after devices
 * that are not pools.
 */
int ebb_claim_start(const struct device_driver *driver);
void ebb_claim_stop(const struct device_driver *driver);

/* The control device with a reference, or NULL. */
struct ebb_dev *ebb_claim_get_control(void);

/* The control device lists a pool with this region: -ENODEV if not. */
int ebb_claim_check(u64 addr, u64 size_bytes, u64 block_bytes, u16 pxm);

/* Programs that wait for limits must look again: memory came back. */
void ebb_claim_wake(void);

/* ---- pool.c: the driver of pools ---- */

int ebb_pool_init(void);
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

/* ---- drain.c: blocks go back to the host ---- */

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

/* ---- revoke.c: the host took blocks, or their memory failed ---- */

/* A new level of ebb->revoked or ebb->leaving.  Any context. */
void ebb_revoke_received(struct ebb_dev *ebb, const struct ebb_wire_event *event,
			 struct ebb_range_level *level);

/*
 * Acts on all that the control device has told of the pool's blocks until now.
 * ebb_pool.lock is not held.
 */
void ebb_revoke_catch_up(struct ebb_pool *pool);

void ebb_revoke_work(struct work_struct *work);

/*
 * The memory of these blocks has failed: out of their leases, for good.  The caller
 * may sleep; ebb_pool.lock is not held.
 */
void ebb_revoke_failed(struct ebb_pool *pool, u32 first, u32 count);

/*
 * Tells the host of revoked blocks that nobody uses any more; true: some are free.
 * No lock is held.
 */
bool ebb_revoke_confirm(struct ebb_pool *pool);

/* ---- lease.c and leasefile.c ---- */

/*
 * EBB_IOC_MEM_ADD: fills in the [out] fields but for lease_fd.  Errors as
 * there.  fput() gives everything back.
 */
struct file *ebb_lease_create(struct ebb_dev *ebb, struct ebb_mem_add *arg);

/* EBB_IOC_LEASE_RELEASE; checked arguments. */
int ebb_lease_release(struct ebb_lease *lease, struct ebb_lease_release *arg);

/*
 * The host took blocks, or will, or they failed: ebb_pool.lock is held.  count neighbours both in
 * pool and lease.
 */
void ebb_lease_revoke(struct ebb_lease *lease, u32 index, u32 block, u32 count);

/* The device goes away: ebb_pool.lock is held. */
void ebb_lease_lose(struct ebb_lease *lease);

/* Everything goes back; frees it. */
void ebb_lease_destroy(struct ebb_lease *lease);

extern const struct file_operations ebb_lease_fops;

#endif /* EBB_POOL_H */
