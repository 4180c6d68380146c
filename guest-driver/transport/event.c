// SPDX-License-Identifier: GPL-2.0-only
/*
 * The event queue: new limits, CPUs whose core the host took, new CPUs that are
 * lent, memory that it took or wants at once.  Everything is done in the queue's
 * interrupt, or hastens ahead of it (ebb_event_poll()).  A message that makes no
 * sense is dropped with a line in the log: limits are a level, so the next good
 * one puts everything right.
 */
#include "dev.h"
#include "objects/pool.h"

#include <linux/ktime.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#define EBB_NUM_EVENTS	8

void ebb_limits_wake(struct ebb_dev *ebb)
{
	wake_up_interruptible_all(&ebb->limits_wait);
}

static u64 deadline_of(u64 now_ns, u32 deadline_ms)
{
	return deadline_ms ? now_ns + (u64)deadline_ms * NSEC_PER_MSEC : 0;
}

static void take_limits(struct ebb_dev *ebb, const struct ebb_wire_event *event)
{
	struct ebb_limit_state *limits = &ebb->limits;
	u64 now_ns = ktime_get_ns();
	unsigned long irqflags;
	bool is_new;
	u32 i;

	spin_lock_irqsave(&ebb->lock, irqflags);
	is_new = event->generation > limits->generation;
	if (is_new) {
		limits->generation = event->generation;
		limits->vom_seq = event->vom_seq;
		for (i = 0; i < ebb->cfg.num_nodes; i++) {
			const struct ebb_wire_limit *node = &event->limits[i];
			bool is_demand = node->cpus_held > node->cpus_limit;

			limits->nodes[i] = *node;
			limits->deadline_ns[i] = is_demand ?
				deadline_of(now_ns, node->deadline_ms) : 0;
			/* How much is held, this side knows best: see chardev.c. */
			limits->mem_deadline_ns[i] = deadline_of(now_ns, node->mem_deadline_ms);
		}
		ebb->limits_seq++;
	}
	spin_unlock_irqrestore(&ebb->lock, irqflags);
	if (is_new)
		ebb_limits_wake(ebb);
}

static int take_cpu(struct ebb_dev *ebb, const struct ebb_wire_event *event)
{
	bool is_new = false;
	unsigned long irqflags;
	int rc;

	spin_lock_irqsave(&ebb->lock, irqflags);
	rc = ebb_cpuset_set_flags(&ebb->cpuset, &event->cpu);
	if (rc == -ENOENT && event->cpu.flags & VIRTIO_EBB_CPU_F_LENT) {
		rc = ebb_cpuset_insert(&ebb->cpuset, &event->cpu, EBB_CPU_STATE_LENT, 0,
				       EBB_CPUSET_NO_CPU);
		is_new = !rc;
	}
	/* Whoever compares limits with CPUs that count must look at both again. */
	if (!rc)
		ebb->limits_seq++;
	spin_unlock_irqrestore(&ebb->lock, irqflags);
	if (!rc)
		ebb_limits_wake(ebb);
	if (is_new)
		ebb_kick_returns(ebb, 0);
	/* It may have left while the event was on its way. */
	return rc == -ENOENT ? 0 : rc;
}

static void take_event(struct ebb_dev *ebb, const struct virtio_ebb_event *wire, u32 len)
{
	struct ebb_wire_event event;
	int rc = ebb_wire_read_event(wire, len, &ebb->cfg, &event);

	if (!rc && event.type == VIRTIO_EBB_EVENT_LIMITS)
		take_limits(ebb, &event);
	else if (!rc && event.type == VIRTIO_EBB_EVENT_MEM_REVOKED)
		ebb_revoke_received(ebb, &event, &ebb->revoked);
	else if (!rc && event.type == VIRTIO_EBB_EVENT_MEM_LEAVING)
		ebb_revoke_received(ebb, &event, &ebb->leaving);
	else if (!rc)
		rc = take_cpu(ebb, &event);
	if (rc)
		dev_err_ratelimited(&ebb->vdev->dev,
				    "nonsense event of type %u with %u bytes, ignoring: %d\n",
				    le16_to_cpu(wire->type), len, rc);
}

static int post(struct ebb_dev *ebb, struct virtio_ebb_event *buffer)
{
	struct scatterlist sg;

	sg_init_one(&sg, buffer, sizeof(*buffer));
	return virtqueue_add_inbuf(ebb->vqs[VIRTIO_EBB_VQ_EVENT], &sg, 1, buffer, GFP_ATOMIC);
}

static void receive(struct ebb_dev *ebb)
{
	struct virtqueue *vq = ebb->vqs[VIRTIO_EBB_VQ_EVENT];
	struct virtio_ebb_event *buffer;
	unsigned long irqflags;
	bool is_broken;
	int rc = 0;
	u32 len;

	spin_lock_irqsave(&ebb->event_lock, irqflags);
	if (READ_ONCE(ebb->is_dead)) {
		spin_unlock_irqrestore(&ebb->event_lock, irqflags);
		return;
	}
	do {
		virtqueue_disable_cb(vq);
		while (!rc && (buffer = virtqueue_get_buf(vq, &len))) {
			take_event(ebb, buffer, len);
			/* The device may leave parts of it as they are. */
			memset(buffer, 0, sizeof(*buffer));
			rc = post(ebb, buffer);
		}
	} while (!rc && !virtqueue_enable_cb(vq));
	is_broken = rc || virtqueue_is_broken(vq);
	if (!is_broken)
		virtqueue_kick(vq);
	spin_unlock_irqrestore(&ebb->event_lock, irqflags);
	if (is_broken)
		ebb_dev_fail(ebb, "broken event queue");
}

void ebb_event_received(struct virtqueue *vq)
{
	receive(vq->vdev->priv);
}

void ebb_event_poll(struct ebb_dev *ebb)
{
	/* That of a device that is going away may be freed already: see ebb_event_stop(). */
	if (!READ_ONCE(ebb->is_dead))
		receive(ebb);
}

void ebb_event_stop(struct ebb_dev *ebb)
{
	/* Whoever takes event_lock after this sees is_dead and leaves the queue alone. */
	spin_lock_irq(&ebb->event_lock);
	spin_unlock_irq(&ebb->event_lock);
}

int ebb_event_fill(struct ebb_dev *ebb)
{
	u32 i, n = min_t(u32, EBB_NUM_EVENTS,
			 virtqueue_get_vring_size(ebb->vqs[VIRTIO_EBB_VQ_EVENT]));
	int rc = 0;

	ebb->events = kcalloc(n, sizeof(*ebb->events), GFP_KERNEL);
	if (!ebb->events)
		return -ENOMEM;
	for (i = 0; i < n && !rc; i++)
		rc = post(ebb, &ebb->events[i]);
	if (!rc)
		virtqueue_kick(ebb->vqs[VIRTIO_EBB_VQ_EVENT]);
	return rc;
}
