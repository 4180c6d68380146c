// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request and the telemetry queue.  Requests may be answered in any order
 * and long after their sender gave up: a call is freed only when it was
 * answered or the device was reset, since the device may write to it till then.
 */
#include "dev.h"

#include <linux/bits.h>
#include <linux/ktime.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

#define EBB_NUM_TELEMETRY	4

/* The device counts from when it saw the last one, which may have taken it a while. */
#define EBB_VOM_INTERVAL_NS	(VIRTIO_EBB_VOM_INTERVAL_MS * NSEC_PER_MSEC * 5 / 4)

static void ebb_requests_answered(struct virtqueue *vq);

static int find_vqs(struct ebb_dev *ebb)
{
	static const struct ebb_vq_desc desc[EBB_NUM_VQS] = {
		[VIRTIO_EBB_VQ_REQUEST] = { "request", ebb_requests_answered },
		[VIRTIO_EBB_VQ_EVENT] = { "event", ebb_event_received },
		[VIRTIO_EBB_VQ_TELEMETRY] = { "telemetry", NULL },
	};

	return ebb_find_vqs(ebb->vdev, EBB_NUM_VQS, ebb->vqs, desc);
}

static void run_late_calls(struct work_struct *work)
{
	struct ebb_dev *ebb = container_of(work, struct ebb_dev, late_work);
	struct ebb_call *call;

	for (;;) {
		spin_lock_irq(&ebb->vq_lock);
		call = list_first_entry_or_null(&ebb->late_calls, struct ebb_call, link);
		if (call)
			list_del(&call->link);
		spin_unlock_irq(&ebb->vq_lock);
		if (!call)
			break;
		call->late(ebb, call);
	}
	ebb_dev_put(ebb);
}

int ebb_vq_init(struct ebb_dev *ebb)
{
	spin_lock_init(&ebb->vq_lock);
	INIT_LIST_HEAD(&ebb->calls);
	INIT_LIST_HEAD(&ebb->late_calls);
	init_waitqueue_head(&ebb->calls_wait);
	INIT_WORK(&ebb->late_work, run_late_calls);
	INIT_DELAYED_WORK(&ebb->return_work, ebb_return_work);

	ebb->telemetry = kcalloc(EBB_NUM_TELEMETRY, sizeof(*ebb->telemetry), GFP_KERNEL);
	if (!ebb->telemetry)
		return -ENOMEM;
	ebb->telemetry_free = GENMASK(EBB_NUM_TELEMETRY - 1, 0);
	return find_vqs(ebb);
}

void ebb_vq_stop(struct ebb_dev *ebb)
{
	unsigned long irqflags;

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	WRITE_ONCE(ebb->is_dead, true);
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	wake_up_all(&ebb->calls_wait);
	wake_up_all(&ebb->returned_wait);
	/* Nothing is queued from now on.  Our caller has a reference, too. */
	if (cancel_delayed_work(&ebb->return_work))
		ebb_dev_put(ebb);
	if (cancel_work(&ebb->late_work))
		ebb_dev_put(ebb);
}

void ebb_vq_finish(struct ebb_dev *ebb)
{
	struct ebb_call *call, *next;
	unsigned long irqflags;
	unsigned int i;

	for (i = 0; i < EBB_NUM_VQS; i++)
		while (virtqueue_detach_unused_buf(ebb->vqs[i]))
			;
	ebb->vdev->config->del_vqs(ebb->vdev);

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	list_splice_init(&ebb->late_calls, &ebb->calls);
	list_for_each_entry_safe(call, next, &ebb->calls, link) {
		list_del_init(&call->link);
		call->state = EBB_CALL_DROPPED;
		if (!call->is_waited_for)
			ebb_call_free(call);
	}
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	wake_up_all(&ebb->calls_wait);
}

struct ebb_call *ebb_call_create(u16 type, void (*late)(struct ebb_dev *, struct ebb_call *))
{
	struct ebb_call *call = kzalloc(sizeof(*call), GFP_KERNEL);

	if (!call)
		return NULL;
	INIT_LIST_HEAD(&call->link);
	call->late = late;
	call->req.type = cpu_to_le16(type);
	return call;
}

void ebb_call_free(struct ebb_call *call)
{
	kfree(call);
}

static int try_submit(struct ebb_dev *ebb, struct ebb_call *call, bool wants_wait)
{
	struct virtqueue *vq = ebb->vqs[VIRTIO_EBB_VQ_REQUEST];
	struct scatterlist req, resp, *sgs[] = { &req, &resp };
	unsigned long irqflags;
	int rc;

	sg_init_one(&req, &call->req, sizeof(call->req));
	sg_init_one(&resp, &call->resp, sizeof(call->resp));

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	if (ebb->is_dead) {
		rc = -ENODEV;
	} else if (ebb->num_calls >= VIRTIO_EBB_MAX_INFLIGHT) {
		/* What the device does not work on yet, it does not time out either. */
		rc = -ENOSPC;
	} else {
		call->req.tag = cpu_to_le64(++ebb->last_tag);
		call->is_waited_for = wants_wait;
		call->sent_ns = ktime_get_ns();
		rc = virtqueue_add_sgs(vq, sgs, 1, 1, call, GFP_ATOMIC);
	}
	if (!rc) {
		list_add_tail(&call->link, &ebb->calls);
		ebb->num_calls++;
		virtqueue_kick(vq);
	}
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	/* A queue that the transport marked as broken gives EIO. */
	return rc == -EIO ? -ENODEV : rc;
}

static unsigned long jiffies_until(u64 deadline_ns)
{
	u64 now_ns = ktime_get_ns();

	return now_ns < deadline_ns ? nsecs_to_jiffies(deadline_ns - now_ns) + 1 : 0;
}

int ebb_call_submit(struct ebb_dev *ebb, struct ebb_call *call, u64 deadline_ns, bool wants_wait)
{
	int rc = try_submit(ebb, call, wants_wait);

	if (rc == -ENOSPC && deadline_ns) {
		long left = wait_event_interruptible_timeout(ebb->calls_wait,
				(rc = try_submit(ebb, call, wants_wait)) != -ENOSPC,
				jiffies_until(deadline_ns));
		if (left < 0 && rc == -ENOSPC)
			rc = -EINTR;
	}
	if (rc)
		ebb_call_free(call);
	return rc == -ENOSPC || rc == -ENOMEM ? -EAGAIN : rc;
}

int ebb_call_wait(struct ebb_dev *ebb, struct ebb_call *call, u64 deadline_ns)
{
	unsigned long irqflags;
	long left;
	int rc;

	left = wait_event_interruptible_timeout(ebb->calls_wait,
						READ_ONCE(call->state) != EBB_CALL_SENT ||
						READ_ONCE(ebb->is_dead),
						jiffies_until(deadline_ns));

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	call->is_waited_for = false;
	if (call->state == EBB_CALL_ANSWERED)
		rc = 0;
	else if (ebb->is_dead)
		rc = -ENODEV;
	else
		rc = left < 0 ? -EINTR : -ETIMEDOUT;
	if (call->state == EBB_CALL_DROPPED)
		ebb_call_free(call);
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	return rc;
}

int ebb_call_run(struct ebb_dev *ebb, struct ebb_call *call, u64 deadline_ns)
{
	return ebb_call_submit(ebb, call, deadline_ns, true) ?:
		ebb_call_wait(ebb, call, deadline_ns);
}

static void ebb_requests_answered(struct virtqueue *vq)
{
	struct ebb_dev *ebb = vq->vdev->priv;
	const char *failure = NULL;
	struct ebb_call *call;
	unsigned long irqflags;
	bool has_late = false;
	u32 len;

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	do {
		virtqueue_disable_cb(vq);
		while (!ebb->is_dead && (call = virtqueue_get_buf(vq, &len))) {
			ebb->num_calls--;
			if (ebb_wire_read_answer(&call->req, &call->resp, len, &ebb->cfg,
						 &call->answer)) {
				failure = "malformed answer";
				break;
			}
			call->answered_ns = ktime_get_ns();
			call->state = EBB_CALL_ANSWERED;
			ebb_return_answered(ebb, call);
			if (call->is_waited_for) {
				list_del_init(&call->link);
			} else {
				list_move_tail(&call->link, &ebb->late_calls);
				has_late = true;
			}
		}
	} while (!failure && !ebb->is_dead && !virtqueue_enable_cb(vq));
	if (virtqueue_is_broken(vq))
		failure = "broken request queue";
	if (has_late && !ebb->is_dead) {
		/* The work's own, before it can run and drop it; not the last one here. */
		kref_get(&ebb->ref);
		if (!queue_work(ebb_wq, &ebb->late_work))
			ebb_dev_put(ebb);
	}
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);

	if (failure)
		ebb_dev_fail(ebb, failure);
	wake_up_all(&ebb->calls_wait);
}

void ebb_kick_returns(struct ebb_dev *ebb, unsigned long delay_jiffies)
{
	unsigned long irqflags;
	bool is_new = false;

	/* The work's own, before it can run and drop it. */
	kref_get(&ebb->ref);
	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	if (!ebb->is_dead && delay_jiffies)
		is_new = queue_delayed_work(ebb_wq, &ebb->return_work, delay_jiffies);
	else if (!ebb->is_dead)
		is_new = !mod_delayed_work(ebb_wq, &ebb->return_work, 0);
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	if (!is_new)
		ebb_dev_put(ebb);
}

/* Under vq_lock. */
static void take_back_telemetry(struct ebb_dev *ebb)
{
	void *buffer;
	u32 len;

	while ((buffer = virtqueue_get_buf(ebb->vqs[VIRTIO_EBB_VQ_TELEMETRY], &len))) {
		if (buffer == ebb->vom) {
			kfree(ebb->vom);
			ebb->vom = NULL;
		} else {
			__set_bit((struct virtio_ebb_telemetry *)buffer - ebb->telemetry,
				  &ebb->telemetry_free);
		}
	}
}

int ebb_telemetry_send(struct ebb_dev *ebb, const struct virtio_ebb_telemetry *report)
{
	struct virtqueue *vq = ebb->vqs[VIRTIO_EBB_VQ_TELEMETRY];
	struct virtio_ebb_telemetry *buffer;
	struct scatterlist sg;
	unsigned long irqflags;
	int rc = -EAGAIN;

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	if (ebb->is_dead) {
		rc = -ENODEV;
		goto out;
	}
	take_back_telemetry(ebb);
	if (!ebb->telemetry_free)
		goto out;

	buffer = &ebb->telemetry[__ffs(ebb->telemetry_free)];
	*buffer = *report;
	sg_init_one(&sg, buffer, sizeof(*buffer));
	rc = virtqueue_add_outbuf(vq, &sg, 1, buffer, GFP_ATOMIC);
	if (!rc) {
		__clear_bit(buffer - ebb->telemetry, &ebb->telemetry_free);
		virtqueue_kick(vq);
	} else {
		rc = rc == -EIO ? -ENODEV : -EAGAIN;
	}
out:
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	return rc;
}

int ebb_vom_send(struct ebb_dev *ebb, struct virtio_ebb_vom *vom, u32 len)
{
	struct virtqueue *vq = ebb->vqs[VIRTIO_EBB_VQ_TELEMETRY];
	u64 now_ns = ktime_get_ns();
	struct scatterlist sg;
	unsigned long irqflags;
	int rc = -EBUSY;

	spin_lock_irqsave(&ebb->vq_lock, irqflags);
	if (ebb->is_dead) {
		rc = -ENODEV;
		goto out;
	}
	take_back_telemetry(ebb);
	if (ebb->vom || (ebb->vom_sent_ns && now_ns - ebb->vom_sent_ns < EBB_VOM_INTERVAL_NS))
		goto out;

	sg_init_one(&sg, vom, len);
	rc = virtqueue_add_outbuf(vq, &sg, 1, vom, GFP_ATOMIC);
	if (!rc) {
		ebb->vom = vom;
		ebb->vom_sent_ns = now_ns;
		virtqueue_kick(vq);
	} else {
		rc = rc == -EIO ? -ENODEV : -EBUSY;
	}
out:
	spin_unlock_irqrestore(&ebb->vq_lock, irqflags);
	return rc;
}
