// SPDX-License-Identifier: GPL-2.0-only
/* The request queue of a virtio-mem device. */
#include "transport/memdev.h"

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/scatterlist.h>
#include <linux/virtio_config.h>

#include "compat.h"

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
static bool collect(struct ebb_memdev *md)
{
	struct ebb_memdev_slot *slot;
	u32 len;

	while ((slot = virtqueue_get_buf(md->vq, &len))) {
		slot->rc = errno_of_answer(slot, len);
		if (slot->rc == -EPROTO)
			fail(md, "nonsense from the virtio-mem device");
		md->num_unanswered--;
	}
	return !md->num_unanswered || virtqueue_is_broken(md->vq);
}

static int send(struct ebb_memdev *md, struct ebb_memdev_slot *slot)
{
	struct scatterlist req, resp, *sgs[] = { &req, &resp };

	sg_init_one(&req, &slot->req, sizeof(slot->req));
	sg_init_one(&resp, &slot->resp, sizeof(slot->resp));
	return virtqueue_add_sgs(md->vq, sgs, 1, 1, slot, GFP_KERNEL);
}

/* 0: the slots are free to be filled in; or why nothing can be sent. */
static int errno_of_state(const struct ebb_memdev *md)
{
	if (md->is_dead)
		return -ENODEV;
	return md->num_late ? -EAGAIN : 0;
}

static void fill_in(struct ebb_memdev *md, struct ebb_memdev_slot *slot, u16 type,
		    const struct ebb_run *run)
{
	u64 addr = md->addr + (u64)run->first * md->block_bytes;

	slot->rc = -EINPROGRESS;
	slot->type = type;
	slot->run = *run;
	memset(&slot->req, 0, sizeof(slot->req));
	slot->req.type = cpu_to_virtio16(md->vdev, type);
	if (!run->count)
		return;
	/* PLUG and UNPLUG have the same form. */
	slot->req.u.plug.addr = cpu_to_virtio64(md->vdev, addr);
	slot->req.u.plug.nb_blocks = cpu_to_virtio16(md->vdev, run->count);
}

static void send_and_wait(struct ebb_memdev *md, unsigned int num_slots)
{
	u64 deadline_ns = ktime_get_ns() + EBB_MEMDEV_WAIT_MS * NSEC_PER_MSEC;
	unsigned int i;

	for (i = 0; i < num_slots && !md->is_dead; i++) {
		if (send(md, &md->slots[i]))
			fail(md, "broken queue");
		else
			md->num_unanswered++;
	}
	if (md->num_unanswered)
		virtqueue_kick(md->vq);
	while (!wait_event_timeout(md->wait, collect(md), msecs_to_jiffies(EBB_MEMDEV_LOOK_MS)))
		if (ktime_get_ns() > deadline_ns)
			break;
	if (virtqueue_is_broken(md->vq))
		fail(md, "broken queue");
}

/*
 * The result that the caller who waited for the slot gets.  A slot that the device has not answered
 * is marked as late: its answer is taken when it comes.
 */
static int end_of_wait(struct ebb_memdev *md, struct ebb_memdev_slot *slot)
{
	if (slot->rc == -EPROTO || (slot->rc == -EINPROGRESS && md->is_dead))
		return -ENODEV;
	if (slot->rc != -EINPROGRESS)
		return slot->rc;
	slot->is_late = true;
	WRITE_ONCE(md->num_late, md->num_late + 1);
	return -ETIMEDOUT;
}

void ebb_memdev_request(struct ebb_memdev *md, u16 type, const struct ebb_run *runs,
			unsigned int num_runs, int *ret_rc)
{
	int rc = errno_of_state(md);
	unsigned int i;

	for (i = 0; i < num_runs; i++) {
		ret_rc[i] = rc;
		if (!rc)
			fill_in(md, &md->slots[i], type, &runs[i]);
	}
	if (rc)
		return;
	send_and_wait(md, num_runs);
	for (i = 0; i < num_runs; i++)
		ret_rc[i] = end_of_wait(md, &md->slots[i]);
	if (md->num_late)
		dev_warn(&md->vdev->dev, "%u requests not answered after %u ms, waiting on\n",
			 md->num_late, EBB_MEMDEV_WAIT_MS);
}

int ebb_memdev_unplug_all(struct ebb_memdev *md)
{
	const struct ebb_run none = {};
	int rc = errno_of_state(md);

	if (rc)
		return rc;
	fill_in(md, &md->slots[0], VIRTIO_MEM_REQ_UNPLUG_ALL, &none);
	send_and_wait(md, 1);
	return end_of_wait(md, &md->slots[0]);
}

bool ebb_memdev_late(struct ebb_memdev *md, u16 *ret_type, struct ebb_run *ret_run, int *ret_rc)
{
	unsigned int i;

	if (!md->num_late || md->is_dead)
		return false;
	/* A device that was stopped for a while may have missed the notification. */
	if (!collect(md))
		virtqueue_notify(md->vq);
	else if (virtqueue_is_broken(md->vq))
		fail(md, "broken queue");
	for (i = 0; i < EBB_MEMDEV_BATCH; i++) {
		struct ebb_memdev_slot *slot = &md->slots[i];

		if (!slot->is_late || slot->rc == -EINPROGRESS)
			continue;
		slot->is_late = false;
		WRITE_ONCE(md->num_late, md->num_late - 1);
		*ret_type = slot->type;
		*ret_run = slot->run;
		*ret_rc = slot->rc == -EPROTO ? -ENODEV : slot->rc;
		return true;
	}
	return false;
}
