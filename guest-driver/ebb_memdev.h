/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to a virtio-mem device: plugging and unplugging blocks.  One caller
 * at a time (ebb_pool.lock); process context.
 */
#ifndef EBB_MEMDEV_H
#define EBB_MEMDEV_H

#include <linux/virtio.h>
#include <linux/virtio_mem.h>
#include <linux/wait.h>

#include "ebb_region.h"

/* Requests that are sent with one notification of the device. */
#define EBB_MEMDEV_BATCH	16

/* Most blocks in one request: their number is of 16 bits. */
#define EBB_MEMDEV_MAX_BLOCKS	U16_MAX

struct ebb_memdev_slot {
	int rc;				/* -EINPROGRESS until answered */
	struct virtio_mem_req req ____cacheline_aligned;
	struct virtio_mem_resp resp ____cacheline_aligned;
};

struct ebb_memdev {
	struct virtio_device *vdev;
	struct virtqueue *vq;
	wait_queue_head_t wait;		/* an answer came */
	u64 addr;			/* of block 0 */
	u32 block_bytes;
	bool is_dead;			/* broken, silent or removed: nothing is sent any more */
	struct ebb_memdev_slot slots[EBB_MEMDEV_BATCH];
};

/* Before the device is used; md is zeroed. */
int ebb_memdev_init(struct ebb_memdev *md, struct virtio_device *vdev, u64 addr, u32 block_bytes);

/* Resets the device; what it has plugged stays plugged. */
void ebb_memdev_finish(struct ebb_memdev *md);

/*
 * Plugs or unplugs (VIRTIO_MEM_REQ_*) up to EBB_MEMDEV_BATCH runs of blocks.
 * ret_rc[i] tells of each: 0, -EDQUOT (above the requested size), -EAGAIN (the
 * device is busy), -EINVAL (not all are there, or not in the right state),
 * -ENODEV (the device does not answer; what became of them is unknown).
 */
void ebb_memdev_request(struct ebb_memdev *md, u16 type, const struct ebb_run *runs,
			unsigned int num_runs, int *ret_rc);

/* Errors as above. */
int ebb_memdev_unplug_all(struct ebb_memdev *md);

#endif /* EBB_MEMDEV_H */
