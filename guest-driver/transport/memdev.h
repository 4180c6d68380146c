/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to a virtio-mem device: plugging and unplugging blocks.  One caller
 * at a time (ebb_pool.io_lock); process context.
 *
 * A device may be slow: its host may be out of memory, or stopped.  A caller
 * waits EBB_MEMDEV_WAIT_MS, and the request stays with the device.  Until all such
 * requests were answered and their answers were taken (ebb_memdev_late()), nothing
 * else is sent.
 */
#ifndef EBB_MEMDEV_H
#define EBB_MEMDEV_H

#include <linux/virtio.h>
#include <linux/virtio_mem.h>
#include <linux/wait.h>

#include "pure/region.h"

/* Requests that are sent with one notification of the device. */
#define EBB_MEMDEV_BATCH	16

/* Most blocks in one request: their number is of 16 bits. */
#define EBB_MEMDEV_MAX_BLOCKS	U16_MAX

/* Longest that a caller waits for its requests. */
#define EBB_MEMDEV_WAIT_MS	10000

struct ebb_memdev_slot {
	int rc;				/* -EINPROGRESS until answered */
	bool is_late;			/* nobody waits for the answer */
	u16 type;			/* VIRTIO_MEM_REQ_* */
	struct ebb_run run;		/* of PLUG and UNPLUG */
	struct virtio_mem_req req ____cacheline_aligned;
	struct virtio_mem_resp resp ____cacheline_aligned;
};

struct ebb_memdev {
	struct virtio_device *vdev;
	struct virtqueue *vq;
	wait_queue_head_t wait;		/* an answer came */
	u64 addr;			/* of block 0 */
	u32 block_bytes;
	bool is_dead;			/* broken or removed: nothing is sent any more */
	unsigned int num_unanswered;	/* slots that the device has */
	unsigned int num_late;		/* slots with is_late; readable without lock */
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
 * -ETIMEDOUT (no answer yet: ebb_memdev_late() will tell), -ENODEV (the device is
 * used no more; what became of them is unknown).
 */
void ebb_memdev_request(struct ebb_memdev *md, u16 type, const struct ebb_run *runs,
			unsigned int num_runs, int *ret_rc);

/* Errors as above. */
int ebb_memdev_unplug_all(struct ebb_memdev *md);

/*
 * A request of which -ETIMEDOUT was told has been answered since: what it was,
 * and its rc as above.  False: there is none (more).
 */
bool ebb_memdev_late(struct ebb_memdev *md, u16 *ret_type, struct ebb_run *ret_run, int *ret_rc);

#endif /* EBB_MEMDEV_H */
