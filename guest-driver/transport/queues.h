/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of the control device.  Requests are sent and their answers given
 * back to who sent them; events are checked and handed up; reports are sent.
 * This file does not know what requests and events mean.
 *
 * Locks, in the order in which they may be taken: event_lock, lock, then any one
 * lock of an object (ebb_limit_state, ebb_vcpus, ebb_control).  All are taken in
 * interrupts, so none is held while CPUs go online or offline.  That takes
 * acpi_scan_lock (see hotplug.c), which ACPI holds while it plugs and ejects
 * anything, this virtio device included.
 */
#ifndef EBB_QUEUES_H
#define EBB_QUEUES_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/virtio_ebb.h>

#include "compat.h"
#include "pure/wire.h"
#include "transport/ref.h"

struct ebb_call;
struct ebb_queues;

/* The layer above handles events and the end of the queues. */
struct ebb_queues_ops {
	/* A well-formed event; in the interrupt, under event_lock.  An error: it makes no sense. */
	int (*event)(struct ebb_queues *q, const struct ebb_wire_event *event);

	/* The device is used no more: waiters must look again.  Any context. */
	void (*stopped)(struct ebb_queues *q);
};

struct ebb_call_ops {
	/* An answer came, if wanted: in the interrupt, under lock, before any later answer. */
	void (*answered)(struct ebb_call *call);

	/* An answer came when nobody waited any more; must free the call.  Process context. */
	void (*late)(struct ebb_call *call);
};

enum ebb_call_state {
	EBB_CALL_SENT,			/* in ebb_queues.calls */
	EBB_CALL_ANSWERED,		/* answer is valid; in late_calls if nobody waits */
	EBB_CALL_DROPPED,		/* the device was reset: it will never be answered */
};

/*
 * One request.  It belongs to its sender until ebb_call_submit(), then to the
 * queues until ebb_call_wait() gives it back answered.  If the sender stops
 * waiting, late() gets it when the answer comes.
 */
struct ebb_call {
	struct list_head link;
	const struct ebb_call_ops *ops;
	void *sender;			/* for the ops */
	u32 arch_id;			/* CPU_REMOVE, CPU_LEND: of the CPU, for the sender */
	u32 cpu;			/* likewise; Linux number or EBB_CPUSET_NO_CPU */
	enum ebb_call_state state;	/* under lock */
	bool is_waited_for;		/* under lock */
	u64 sent_ns;
	u64 answered_ns;
	struct ebb_wire_answer answer;
	struct virtio_ebb_req req ____cacheline_aligned;
	struct virtio_ebb_resp resp ____cacheline_aligned;
};

struct ebb_queues {
	struct virtio_device *vdev;	/* its priv is this */
	const struct ebb_wire_config *cfg;
	const struct ebb_queues_ops *ops;
	struct ebb_ref *ref;		/* of what this is part of; work holds one */
	struct workqueue_struct *wq;	/* ordered; of the module: see ebb_queues_stop() */
	bool is_dead;			/* set once, under lock: the device is used no more */

	spinlock_t lock;		/* the queues except the event queue, calls, late_calls */
	struct virtqueue *vqs[EBB_NUM_VQS];
	struct list_head calls;		/* sent, not answered */
	unsigned int num_calls;
	struct list_head late_calls;	/* answered, and nobody waits */
	u64 last_tag;
	wait_queue_head_t calls_wait;	/* a call was answered, or is_dead */
	struct work_struct late_work;	/* runs late() of late_calls */
	struct virtio_ebb_telemetry *telemetry;	/* buffers of the telemetry queue */
	unsigned long telemetry_free;	/* bit per buffer */
	struct virtio_ebb_vom *vom;	/* in the telemetry queue, or NULL */
	u64 vom_sent_ns;		/* when the last one was sent, 0: never */

	spinlock_t event_lock;		/* the event queue */
	struct virtio_ebb_event *events;	/* its buffers */
};

/* Call this before all other functions of this file; q is zeroed. */
void ebb_queues_setup(struct ebb_queues *q, struct virtio_device *vdev,
		      const struct ebb_wire_config *cfg, const struct ebb_queues_ops *ops,
		      struct ebb_ref *ref, struct workqueue_struct *wq);

/* cfg is valid now.  Before the device is used. */
int ebb_queues_init(struct ebb_queues *q);

/* Gives the device its buffers for events, of which the first may come at once. */
int ebb_queues_fill_events(struct ebb_queues *q);

/*
 * No new call and no new work starts; calls that wait end with -ENODEV.  Work that runs already is
 * not waited for: it may need acpi_scan_lock, which our caller holds if ACPI is ejecting the
 * device.  That work has its own reference.
 */
void ebb_queues_stop(struct ebb_queues *q);

/* The device broke the protocol or stopped: never use it again.  Any context. */
void ebb_queues_fail(struct ebb_queues *q, const char *why);

/* Stopped: nobody uses the event queue any more when this returns. */
void ebb_queues_stop_events(struct ebb_queues *q);

/* After the device was reset: frees what it had not answered, and the queues. */
void ebb_queues_finish(struct ebb_queues *q);

/* With the last reference. */
void ebb_queues_free(struct ebb_queues *q);

/* Returns is_dead, after waiting for a thread that is just stopping the queues. */
bool ebb_queues_is_dead(struct ebb_queues *q);

/*
 * Queues work that belongs to what this is part of: now, or after a delay if
 * nobody wants it earlier; not if stopped.  It has a reference, which it puts
 * when it has run.
 */
void ebb_queues_schedule(struct ebb_queues *q, struct delayed_work *work,
			 unsigned long delay_jiffies);

/* Such work that does not run yet will not run. */
void ebb_queues_cancel(struct ebb_queues *q, struct delayed_work *work);

/* Process context; NULL if there is no memory. */
struct ebb_call *ebb_call_create(u16 type, const struct ebb_call_ops *ops, void *sender);

void ebb_call_free(struct ebb_call *call);

/*
 * Sends the call, after waiting until deadline_ns for a free place.  On an
 * error (-EAGAIN no place in time, -EINTR, -ENODEV) nothing was sent and the
 * call is freed.  With wants_wait, ebb_call_wait() must follow.
 */
int ebb_call_submit(struct ebb_queues *q, struct ebb_call *call, u64 deadline_ns, bool wants_wait);

/*
 * 0: answered, the caller frees the call.  -EINTR, -ETIMEDOUT, -ENODEV: the
 * call is not the caller's any more; late() handles the answer when it comes (after -ENODEV none
 * comes).
 */
int ebb_call_wait(struct ebb_queues *q, struct ebb_call *call, u64 deadline_ns);

/* Both: after an error the call is not the caller's any more, sent or not. */
int ebb_call_run(struct ebb_queues *q, struct ebb_call *call, u64 deadline_ns);

/* -EAGAIN no buffer is free, -ENODEV. */
int ebb_telemetry_send(struct ebb_queues *q, const struct virtio_ebb_telemetry *report);

/*
 * Sends a histogram, which is not the caller's any more if that succeeds.
 * -EBUSY the queue is full, or the last one is too recent; -ENODEV.
 */
int ebb_vom_send(struct ebb_queues *q, struct virtio_ebb_vom *vom, u32 len);

/* Takes the events that have come, without waiting for the interrupt. */
void ebb_queues_poll_events(struct ebb_queues *q);

#endif /* EBB_QUEUES_H */
