// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of the control device.  Requests may be answered in any order
 * and long after their sender gave up: a call is freed only when it was
 * answered or the device was reset, since the device may write to it till then.
 * Events are handed up in the interrupt, or ahead of it (ebb_queues_poll_events()).
 */
#include "transport/queues.h"

#include <linux/bits.h>
#include <linux/ktime.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

#define EBB_NUM_TELEMETRY	4
#define EBB_NUM_EVENTS		8

/* The device counts from when it saw the last one, which may have taken it a while. */
#define EBB_VOM_INTERVAL_NS	(VIRTIO_EBB_VOM_INTERVAL_MS * NSEC_PER_MSEC * 5 / 4)

static void requests_answered(struct virtqueue *vq);
static void events_received(struct virtqueue *vq);

static int find_vqs(struct ebb_queues *q)
{
	static const struct ebb_vq_desc desc[EBB_NUM_VQS] = {
		[VIRTIO_EBB_VQ_REQUEST] = { "request", requests_answered },
		[VIRTIO_EBB_VQ_EVENT] = { "event", events_received },
		[VIRTIO_EBB_VQ_TELEMETRY] = { "telemetry", NULL },
	};

	return ebb_find_vqs(q->vdev, EBB_NUM_VQS, q->vqs, desc);
}

static void run_late_calls(struct work_struct *work)
{
	struct ebb_queues *q = container_of(work, struct ebb_queues, late_work);
	struct ebb_call *call;

	for (;;) {
		spin_lock_irq(&q->lock);
		call = list_first_entry_or_null(&q->late_calls, struct ebb_call, link);
		if (call)
			list_del(&call->link);
		spin_unlock_irq(&q->lock);
		if (!call)
			break;
		call->ops->late(call);
	}
	ebb_ref_put(q->ref);
}

void ebb_queues_setup(struct ebb_queues *q, struct virtio_device *vdev,
		      const struct ebb_wire_config *cfg, const struct ebb_queues_ops *ops,
		      struct ebb_ref *ref, struct workqueue_struct *wq)
{
	q->vdev = vdev;
	q->cfg = cfg;
	q->ops = ops;
	q->ref = ref;
	q->wq = wq;
	spin_lock_init(&q->lock);
	spin_lock_init(&q->event_lock);
	INIT_LIST_HEAD(&q->calls);
	INIT_LIST_HEAD(&q->late_calls);
	init_waitqueue_head(&q->calls_wait);
	INIT_WORK(&q->late_work, run_late_calls);
	vdev->priv = q;
}

int ebb_queues_init(struct ebb_queues *q)
{
	q->telemetry = kcalloc(EBB_NUM_TELEMETRY, sizeof(*q->telemetry), GFP_KERNEL);
	if (!q->telemetry)
		return -ENOMEM;
	q->telemetry_free = GENMASK(EBB_NUM_TELEMETRY - 1, 0);
	return find_vqs(q);
}

void ebb_queues_stop(struct ebb_queues *q)
{
	unsigned long irqflags;

	spin_lock_irqsave(&q->lock, irqflags);
	WRITE_ONCE(q->is_dead, true);
	spin_unlock_irqrestore(&q->lock, irqflags);
	wake_up_all(&q->calls_wait);
	/* Nothing is queued from now on.  Our caller has a reference, too. */
	if (cancel_work(&q->late_work))
		ebb_ref_put(q->ref);
	q->ops->stopped(q);
}

void ebb_queues_fail(struct ebb_queues *q, const char *why)
{
	if (READ_ONCE(q->is_dead))
		return;
	dev_err(&q->vdev->dev, "%s: device not used any more, reload the driver to reset it\n",
		why);
	ebb_queues_stop(q);
}

bool ebb_queues_is_dead(struct ebb_queues *q)
{
	unsigned long irqflags;
	bool is_dead;

	spin_lock_irqsave(&q->lock, irqflags);
	is_dead = q->is_dead;
	spin_unlock_irqrestore(&q->lock, irqflags);
	return is_dead;
}

void ebb_queues_finish(struct ebb_queues *q)
{
	struct ebb_call *call, *next;
	unsigned long irqflags;
	unsigned int i;

	for (i = 0; i < EBB_NUM_VQS; i++)
		while (virtqueue_detach_unused_buf(q->vqs[i]))
			;
	q->vdev->config->del_vqs(q->vdev);

	spin_lock_irqsave(&q->lock, irqflags);
	list_splice_init(&q->late_calls, &q->calls);
	list_for_each_entry_safe(call, next, &q->calls, link) {
		list_del_init(&call->link);
		call->state = EBB_CALL_DROPPED;
		if (!call->is_waited_for)
			ebb_call_free(call);
	}
	spin_unlock_irqrestore(&q->lock, irqflags);
	wake_up_all(&q->calls_wait);
}

struct ebb_call *ebb_call_create(u16 type, const struct ebb_call_ops *ops, void *sender)
{
	struct ebb_call *call = kzalloc(sizeof(*call), GFP_KERNEL);

	if (!call)
		return NULL;
	INIT_LIST_HEAD(&call->link);
	call->ops = ops;
	call->sender = sender;
	call->req.type = cpu_to_le16(type);
	return call;
}

void ebb_call_free(struct ebb_call *call)
{
	kfree(call);
}

static int try_submit(struct ebb_queues *q, struct ebb_call *call, bool wants_wait)
{
	struct virtqueue *vq = q->vqs[VIRTIO_EBB_VQ_REQUEST];
	struct scatterlist req, resp, *sgs[] = { &req, &resp };
	unsigned long irqflags;
	int rc;

	sg_init_one(&req, &call->req, sizeof(call->req));
	sg_init_one(&resp, &call->resp, sizeof(call->resp));

	spin_lock_irqsave(&q->lock, irqflags);
	if (q->is_dead) {
		rc = -ENODEV;
	} else if (q->num_calls >= VIRTIO_EBB_MAX_INFLIGHT) {
		/* A request that the device has not begun does not time out. */
		rc = -ENOSPC;
	} else {
		call->req.tag = cpu_to_le64(++q->last_tag);
		call->is_waited_for = wants_wait;
		call->sent_ns = ktime_get_ns();
		rc = virtqueue_add_sgs(vq, sgs, 1, 1, call, GFP_ATOMIC);
	}
	if (!rc) {
		list_add_tail(&call->link, &q->calls);
		q->num_calls++;
		virtqueue_kick(vq);
	}
	spin_unlock_irqrestore(&q->lock, irqflags);
	/* A queue that the transport marked as broken gives EIO. */
	return rc == -EIO ? -ENODEV : rc;
}

static unsigned long jiffies_until(u64 deadline_ns)
{
	u64 now_ns = ktime_get_ns();

	return now_ns < deadline_ns ? nsecs_to_jiffies(deadline_ns - now_ns) + 1 : 0;
}

int ebb_call_submit(struct ebb_queues *q, struct ebb_call *call, u64 deadline_ns, bool wants_wait)
{
	int rc = try_submit(q, call, wants_wait);

	if (rc == -ENOSPC && deadline_ns) {
		long left = wait_event_interruptible_timeout(q->calls_wait,
				(rc = try_submit(q, call, wants_wait)) != -ENOSPC,
				jiffies_until(deadline_ns));
		if (left < 0 && rc == -ENOSPC)
			rc = -EINTR;
	}
	if (rc)
		ebb_call_free(call);
	return rc == -ENOSPC || rc == -ENOMEM ? -EAGAIN : rc;
}

int ebb_call_wait(struct ebb_queues *q, struct ebb_call *call, u64 deadline_ns)
{
	unsigned long irqflags;
	long left;
	int rc;

	left = wait_event_interruptible_timeout(q->calls_wait,
						READ_ONCE(call->state) != EBB_CALL_SENT ||
						READ_ONCE(q->is_dead),
						jiffies_until(deadline_ns));

	spin_lock_irqsave(&q->lock, irqflags);
	call->is_waited_for = false;
	if (call->state == EBB_CALL_ANSWERED)
		rc = 0;
	else if (q->is_dead)
		rc = -ENODEV;
	else
		rc = left < 0 ? -EINTR : -ETIMEDOUT;
	if (call->state == EBB_CALL_DROPPED)
		ebb_call_free(call);
	spin_unlock_irqrestore(&q->lock, irqflags);
	return rc;
}

int ebb_call_run(struct ebb_queues *q, struct ebb_call *call, u64 deadline_ns)
{
	return ebb_call_submit(q, call, deadline_ns, true) ?:
		ebb_call_wait(q, call, deadline_ns);
}

static void requests_answered(struct virtqueue *vq)
{
	struct ebb_queues *q = vq->vdev->priv;
	const char *failure = NULL;
	struct ebb_call *call;
	unsigned long irqflags;
	bool has_late = false;
	u32 len;

	spin_lock_irqsave(&q->lock, irqflags);
	do {
		virtqueue_disable_cb(vq);
		while (!q->is_dead && (call = virtqueue_get_buf(vq, &len))) {
			q->num_calls--;
			if (ebb_wire_read_answer(&call->req, &call->resp, len, q->cfg,
						 &call->answer)) {
				failure = "malformed answer";
				break;
			}
			call->answered_ns = ktime_get_ns();
			call->state = EBB_CALL_ANSWERED;
			if (call->ops->answered)
				call->ops->answered(call);
			if (call->is_waited_for) {
				list_del_init(&call->link);
			} else {
				list_move_tail(&call->link, &q->late_calls);
				has_late = true;
			}
		}
	} while (!failure && !q->is_dead && !virtqueue_enable_cb(vq));
	if (virtqueue_is_broken(vq))
		failure = "broken request queue";
	if (has_late && !q->is_dead) {
		/* The work's own, before it can run and drop it; not the last one here. */
		ebb_ref_get(q->ref);
		if (!queue_work(q->wq, &q->late_work))
			ebb_ref_put(q->ref);
	}
	spin_unlock_irqrestore(&q->lock, irqflags);

	if (failure)
		ebb_queues_fail(q, failure);
	wake_up_all(&q->calls_wait);
}

void ebb_queues_schedule(struct ebb_queues *q, struct delayed_work *work,
			 unsigned long delay_jiffies)
{
	unsigned long irqflags;
	bool is_new = false;

	/*
	 * The work's own, before it can run and drop it.  No test shows this, since another CPU
	 * would have to run all of the work while this one executes a few instructions with
	 * interrupts off: that would take a debugger that stops this CPU of the guest alone.
	 */
	ebb_ref_get(q->ref);
	spin_lock_irqsave(&q->lock, irqflags);
	if (!q->is_dead && delay_jiffies)
		is_new = queue_delayed_work(q->wq, work, delay_jiffies);
	else if (!q->is_dead)
		is_new = !mod_delayed_work(q->wq, work, 0);
	spin_unlock_irqrestore(&q->lock, irqflags);
	if (!is_new)
		ebb_ref_put(q->ref);
}

void ebb_queues_cancel(struct ebb_queues *q, struct delayed_work *work)
{
	if (cancel_delayed_work(work))
		ebb_ref_put(q->ref);
}

/* Under lock. */
static void take_back_telemetry(struct ebb_queues *q)
{
	void *buffer;
	u32 len;

	while ((buffer = virtqueue_get_buf(q->vqs[VIRTIO_EBB_VQ_TELEMETRY], &len))) {
		if (buffer == q->vom) {
			kfree(q->vom);
			q->vom = NULL;
		} else {
			__set_bit((struct virtio_ebb_telemetry *)buffer - q->telemetry,
				  &q->telemetry_free);
		}
	}
}

int ebb_telemetry_send(struct ebb_queues *q, const struct virtio_ebb_telemetry *report)
{
	struct virtqueue *vq = q->vqs[VIRTIO_EBB_VQ_TELEMETRY];
	struct virtio_ebb_telemetry *buffer;
	struct scatterlist sg;
	unsigned long irqflags;
	int rc = -EAGAIN;

	spin_lock_irqsave(&q->lock, irqflags);
	if (q->is_dead) {
		rc = -ENODEV;
		goto out;
	}
	take_back_telemetry(q);
	if (!q->telemetry_free)
		goto out;

	buffer = &q->telemetry[__ffs(q->telemetry_free)];
	*buffer = *report;
	sg_init_one(&sg, buffer, sizeof(*buffer));
	rc = virtqueue_add_outbuf(vq, &sg, 1, buffer, GFP_ATOMIC);
	if (!rc) {
		__clear_bit(buffer - q->telemetry, &q->telemetry_free);
		virtqueue_kick(vq);
	} else {
		rc = rc == -EIO ? -ENODEV : -EAGAIN;
	}
out:
	spin_unlock_irqrestore(&q->lock, irqflags);
	return rc;
}

int ebb_vom_send(struct ebb_queues *q, struct virtio_ebb_vom *vom, u32 len)
{
	struct virtqueue *vq = q->vqs[VIRTIO_EBB_VQ_TELEMETRY];
	u64 now_ns = ktime_get_ns();
	struct scatterlist sg;
	unsigned long irqflags;
	int rc = -EBUSY;

	spin_lock_irqsave(&q->lock, irqflags);
	if (q->is_dead) {
		rc = -ENODEV;
		goto out;
	}
	take_back_telemetry(q);
	if (q->vom || (q->vom_sent_ns && now_ns - q->vom_sent_ns < EBB_VOM_INTERVAL_NS))
		goto out;

	sg_init_one(&sg, vom, len);
	rc = virtqueue_add_outbuf(vq, &sg, 1, vom, GFP_ATOMIC);
	if (!rc) {
		q->vom = vom;
		q->vom_sent_ns = now_ns;
		virtqueue_kick(vq);
	} else {
		rc = rc == -EIO ? -ENODEV : -EBUSY;
	}
out:
	spin_unlock_irqrestore(&q->lock, irqflags);
	return rc;
}

static void take_event(struct ebb_queues *q, const struct virtio_ebb_event *wire, u32 len)
{
	struct ebb_wire_event event;
	int rc = ebb_wire_read_event(wire, len, q->cfg, &event);

	if (!rc)
		rc = q->ops->event(q, &event);
	if (rc)
		dev_err_ratelimited(&q->vdev->dev,
				    "nonsense event of type %u with %u bytes, ignoring: %d\n",
				    le16_to_cpu(wire->type), len, rc);
}

static int post(struct ebb_queues *q, struct virtio_ebb_event *buffer)
{
	struct scatterlist sg;

	sg_init_one(&sg, buffer, sizeof(*buffer));
	return virtqueue_add_inbuf(q->vqs[VIRTIO_EBB_VQ_EVENT], &sg, 1, buffer, GFP_ATOMIC);
}

static void receive(struct ebb_queues *q)
{
	struct virtqueue *vq = q->vqs[VIRTIO_EBB_VQ_EVENT];
	struct virtio_ebb_event *buffer;
	unsigned long irqflags;
	bool is_broken;
	int rc = 0;
	u32 len;

	spin_lock_irqsave(&q->event_lock, irqflags);
	if (READ_ONCE(q->is_dead)) {
		spin_unlock_irqrestore(&q->event_lock, irqflags);
		return;
	}
	do {
		virtqueue_disable_cb(vq);
		while (!rc && (buffer = virtqueue_get_buf(vq, &len))) {
			take_event(q, buffer, len);
			/* The device may leave parts of it as they are. */
			memset(buffer, 0, sizeof(*buffer));
			rc = post(q, buffer);
		}
	} while (!rc && !virtqueue_enable_cb(vq));
	is_broken = rc || virtqueue_is_broken(vq);
	if (!is_broken)
		virtqueue_kick(vq);
	spin_unlock_irqrestore(&q->event_lock, irqflags);
	if (is_broken)
		ebb_queues_fail(q, "broken event queue");
}

static void events_received(struct virtqueue *vq)
{
	receive(vq->vdev->priv);
}

void ebb_queues_poll_events(struct ebb_queues *q)
{
	/* That of a device that is going away may be freed: see ebb_queues_stop_events(). */
	if (!READ_ONCE(q->is_dead))
		receive(q);
}

void ebb_queues_stop_events(struct ebb_queues *q)
{
	/* A thread that takes event_lock later sees is_dead and leaves the queue alone. */
	spin_lock_irq(&q->event_lock);
	spin_unlock_irq(&q->event_lock);
}

int ebb_queues_fill_events(struct ebb_queues *q)
{
	u32 i, n = min_t(u32, EBB_NUM_EVENTS,
			 virtqueue_get_vring_size(q->vqs[VIRTIO_EBB_VQ_EVENT]));
	int rc = 0;

	q->events = kcalloc(n, sizeof(*q->events), GFP_KERNEL);
	if (!q->events)
		return -ENOMEM;
	for (i = 0; i < n && !rc; i++)
		rc = post(q, &q->events[i]);
	if (!rc)
		virtqueue_kick(q->vqs[VIRTIO_EBB_VQ_EVENT]);
	return rc;
}

void ebb_queues_free(struct ebb_queues *q)
{
	kfree(q->events);
	kfree(q->telemetry);
	kfree(q->vom);
}
