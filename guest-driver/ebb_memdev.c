// SPDX-License-Identifier: GPL-2.0-only
/* The request queue of a virtio-mem device. */
#include "ebb_memdev.h"

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/scatterlist.h>
#include <linux/virtio_config.h>

#include "ebb_compat.h"

/* The device works at its own pace (discarding memory); longer than this it is stuck. */
#define EBB_MEMDEV_WAIT_NS	(10 * NSEC_PER_SEC)

/* A queue that broke while we wait does not always wake us. */
#define EBB_MEMDEV_LOOK_MS	250

static void requests_answered(struct virtqueue *vq)
{
	struct ebb_memdev *md = vq->vdev->priv;

	wake_up(&md->wait);
}

int ebb_memdev_init(struct ebb_memdev *md, struct virtio_device *vdev, u64 addr, u32 block_bytes)
{
	static const struct ebb_vq_desc desc = { "guest-request", requests_answered };

	md->vdev = vdev;
	md->addr = addr;
	md->block_bytes = block_bytes;
	init_waitqueue_head(&md->wait);
	vdev->priv = md;
	return ebb_find_vqs(vdev, 1, &md->vq, &desc);
}

void ebb_memdev_finish(struct ebb_memdev *md)
{
	md->is_dead = true;
	virtio_reset_device(md->vdev);
	while (virtqueue_detach_unused_buf(md->vq))
		;
	md->vdev->config->del_vqs(md->vdev);
}

static int errno_of_answer(const struct ebb_memdev_slot *slot, u32 len)
{
	if (len < sizeof(slot->resp.type))
		return -EPROTO;
	switch (le16_to_cpu((__force __le16)slot->resp.type)) {
	case VIRTIO_MEM_RESP_ACK:
		return 0;
	case VIRTIO_MEM_RESP_NACK:
		return -EDQUOT;
	case VIRTIO_MEM_RESP_BUSY:
		return -EAGAIN;
	case VIRTIO_MEM_RESP_ERROR:
		return -EINVAL;
	default:
		return -EPROTO;
	}
}

static void fail(struct ebb_memdev *md, const char *why)
{
	if (!md->is_dead)
		dev_err(&md->vdev->dev, "%s: pool not used any more\n", why);
	md->is_dead = true;
}

/* True if nothing is to be waited for any more. */
static bool collect(struct ebb_memdev *md, unsigned int *left)
{
	struct ebb_memdev_slot *slot;
	u32 len;

	while ((slot = virtqueue_get_buf(md->vq, &len))) {
		slot->rc = errno_of_answer(slot, len);
		if (slot->rc == -EPROTO)
			fail(md, "nonsense from the virtio-mem device");
		(*left)--;
	}
	return !*left || virtqueue_is_broken(md->vq);
}

static int send(struct ebb_memdev *md, struct ebb_memdev_slot *slot)
{
	struct scatterlist req, resp, *sgs[] = { &req, &resp };

	slot->rc = -EINPROGRESS;
	sg_init_one(&req, &slot->req, sizeof(slot->req));
	sg_init_one(&resp, &slot->resp, sizeof(slot->resp));
	return virtqueue_add_sgs(md->vq, sgs, 1, 1, slot, GFP_KERNEL);
}

/* The first num_slots slots are filled in. */
static void send_and_wait(struct ebb_memdev *md, unsigned int num_slots)
{
	u64 deadline_ns = ktime_get_ns() + EBB_MEMDEV_WAIT_NS;
	unsigned int i, left = 0;

	for (i = 0; i < num_slots && !md->is_dead; i++) {
		if (send(md, &md->slots[i]))
			fail(md, "broken queue");
		else
			left++;
	}
	if (left)
		virtqueue_kick(md->vq);
	while (left && !wait_event_timeout(md->wait, collect(md, &left),
					   msecs_to_jiffies(EBB_MEMDEV_LOOK_MS)))
		if (ktime_get_ns() > deadline_ns)
			break;
	if (left)
		fail(md, "no answer from the virtio-mem device");
}

void ebb_memdev_request(struct ebb_memdev *md, u16 type, const struct ebb_run *runs,
			unsigned int num_runs, int *ret_rc)
{
	unsigned int i;

	for (i = 0; i < num_runs; i++) {
		struct ebb_memdev_slot *slot = &md->slots[i];
		u64 addr = md->addr + (u64)runs[i].first * md->block_bytes;

		slot->rc = -ENODEV;
		if (md->is_dead)
			continue;
		memset(&slot->req, 0, sizeof(slot->req));
		slot->req.type = cpu_to_virtio16(md->vdev, type);
		/* PLUG and UNPLUG have the same form. */
		slot->req.u.plug.addr = cpu_to_virtio64(md->vdev, addr);
		slot->req.u.plug.nb_blocks = cpu_to_virtio16(md->vdev, runs[i].count);
	}
	if (!md->is_dead)
		send_and_wait(md, num_runs);
	for (i = 0; i < num_runs; i++) {
		int rc = md->slots[i].rc;

		ret_rc[i] = rc == -EINPROGRESS || rc == -EPROTO ? -ENODEV : rc;
	}
}

int ebb_memdev_unplug_all(struct ebb_memdev *md)
{
	struct ebb_memdev_slot *slot = &md->slots[0];

	if (md->is_dead)
		return -ENODEV;
	memset(&slot->req, 0, sizeof(slot->req));
	slot->req.type = cpu_to_virtio16(md->vdev, VIRTIO_MEM_REQ_UNPLUG_ALL);
	send_and_wait(md, 1);
	return slot->rc == -EINPROGRESS || slot->rc == -EPROTO ? -ENODEV : slot->rc;
}
