/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of ebb.ko.  Who calls whom: ebb_chardev (programs) and ebb_main
 * (device found, lost, changed) -> ebb_cpu (CPUs come), ebb_give and ebb_return
 * (they go, at once or in the background) -> ebb_vq (asks the device) and
 * ebb_hotplug (asks Linux); ebb_event (device tells) changes the table and the
 * limits.  ebb_cpuset and ebb_wire are pure.
 *
 * Memory is told of in pool.h.
 *
 * Locks, in the order in which they may be taken: ebb_dev.event_lock,
 * ebb_dev.vq_lock, ebb_dev.lock.  All are taken in interrupts, so none is held
 * while CPUs go online or offline.  That takes acpi_scan_lock (see hotplug.c), which ACPI holds
 * while it plugs and ejects anything, this virtio device included.
 */
#ifndef EBB_DEV_H
#define EBB_DEV_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/ebb_ioctl.h>
#include <linux/virtio_ebb.h>

#include "compat.h"
#include "pure/cpuset.h"
#include "pure/wire.h"

/* Exported for modules, but declared in a header of the RCU code itself. */
void rcu_expedite_gp(void);
void rcu_unexpedite_gp(void);

struct ebb_dev;

/* Blocks that the host names: a level, and what of it has not been acted on yet. */
struct ebb_range_level {
	u32 count;		/* of ranges */
	struct ebb_wire_range ranges[VIRTIO_EBB_MAX_RANGES];
};

/* The newest limits, by proximity domain. */
struct ebb_limit_state {
	u64 generation;		/* 0: none published yet */
	u32 vom_seq;		/* histogram that the host wants; 0: none */
	u64 deadline_ns[EBB_MAX_NODES];	/* for CPUs; CLOCK_MONOTONIC; 0: no demand */
	u64 mem_deadline_ns[EBB_MAX_NODES]; /* likewise, for memory */
	struct ebb_wire_limit nodes[EBB_MAX_NODES];
};

enum ebb_call_state {
	EBB_CALL_SENT,			/* in ebb_dev.calls */
	EBB_CALL_ANSWERED,		/* answer is valid; in ebb_dev.late_calls if nobody waits */
	EBB_CALL_DROPPED,		/* the device was reset: it will never be answered */
};

/*
 * One request.  It belongs to its sender until ebb_call_submit(), then to
 * ebb_vq until ebb_call_wait() gives it back answered.  If the sender stops
 * waiting, late() gets it when the answer comes, in process context.
 */
struct ebb_call {
	struct list_head link;
	void (*late)(struct ebb_dev *ebb, struct ebb_call *call); /* must free the call */
	u32 arch_id;			/* CPU_REMOVE, CPU_LEND: of the CPU */
	u32 cpu;			/* likewise; Linux number or EBB_CPUSET_NO_CPU */
	enum ebb_call_state state;	/* under vq_lock */
	bool is_waited_for;		/* under vq_lock */
	u64 sent_ns;
	u64 answered_ns;
	struct ebb_wire_answer answer;
	struct virtio_ebb_req req ____cacheline_aligned;
	struct virtio_ebb_resp resp ____cacheline_aligned;
};

struct ebb_dev {
	struct kref ref;		/* of the virtio device, every open file and queued work */
	struct virtio_device *vdev;	/* its memory is kept until ref is 0 */
	struct miscdevice misc;
	struct ebb_wire_config cfg;	/* constant after probe */
	int linux_node[EBB_MAX_NODES];	/* of each proximity domain; constant after probe */

	bool is_closing;		/* set once, at remove: programs get ENODEV */
	bool is_dead;			/* set once, under vq_lock: the device is used no more */
	bool is_agent_up;		/* under lock */

	spinlock_t lock;		/* what follows, up to last_owner; is_agent_up */
	struct ebb_cpuset cpuset;
	struct ebb_limit_state limits;
	struct ebb_range_level revoked;	/* the host took them */
	struct ebb_range_level leaving;	/* it wants them unplugged at once */
	u32 limits_seq;			/* grows with limits, CPUs' flags, memory given back */
	u64 last_owner;			/* number given to the newest open */
	wait_queue_head_t limits_wait;	/* limits_seq, is_closing or is_dead changed */
	wait_queue_head_t returned_wait; /* a CPU left the table, or was lent */

	spinlock_t vq_lock;		/* the queues except the event queue, calls, late_calls */
	struct virtqueue *vqs[EBB_NUM_VQS];
	struct list_head calls;		/* sent, not answered */
	unsigned int num_calls;
	struct list_head late_calls;	/* answered, and nobody waits */
	u64 last_tag;
	wait_queue_head_t calls_wait;	/* a call was answered, or is_dead */
	struct work_struct late_work;	/* runs late() of late_calls */
	struct delayed_work return_work; /* works on what the table has for it */

	spinlock_t event_lock;		/* the event queue */
	struct virtio_ebb_event *events;	/* its buffers */
	struct virtio_ebb_telemetry *telemetry;	/* buffers of the telemetry queue */
	unsigned long telemetry_free;	/* bit per buffer, under vq_lock */
	struct virtio_ebb_vom *vom;	/* in the telemetry queue, or NULL; under vq_lock */
	u64 vom_sent_ns;		/* when the last one was sent, 0: never; under vq_lock */
};

static inline bool ebb_dev_is_gone(const struct ebb_dev *ebb)
{
	return READ_ONCE(ebb->is_closing) || READ_ONCE(ebb->is_dead);
}

/* ---- main.c ---- */

/*
 * Ordered: late_work and return_work never meet.  Of the module, not of the
 * device: see ebb_vq_stop().
 */
extern struct workqueue_struct *ebb_wq;

void ebb_dev_put(struct ebb_dev *ebb);

/* The device broke the protocol or stopped: never use it again.  Any context. */
void ebb_dev_fail(struct ebb_dev *ebb, const char *why);

/* ---- vq.c: asking the device ---- */

int ebb_vq_init(struct ebb_dev *ebb);

/*
 * No more new calls and no more work; those who wait get -ENODEV.  Work that
 * runs already is not waited for: it may want acpi_scan_lock, which our
 * caller holds if ACPI is ejecting the device.  It has its own reference.
 */
void ebb_vq_stop(struct ebb_dev *ebb);

/* After the device was reset: frees what it had not answered, and the queues. */
void ebb_vq_finish(struct ebb_dev *ebb);

/* Process context; NULL if there is no memory. */
struct ebb_call *ebb_call_create(u16 type, void (*late)(struct ebb_dev *, struct ebb_call *));
void ebb_call_free(struct ebb_call *call);

/*
 * Sends the call, after waiting until deadline_ns for a free place.  On an
 * error (-EAGAIN no place in time, -EINTR, -ENODEV) nothing was sent and the
 * call is freed.  With wants_wait, ebb_call_wait() must follow.
 */
int ebb_call_submit(struct ebb_dev *ebb, struct ebb_call *call, u64 deadline_ns, bool wants_wait);

/*
 * 0: answered, the caller frees the call.  -EINTR, -ETIMEDOUT, -ENODEV: the
 * call is not the caller's any more; late() sees to what comes (but for
 * -ENODEV, when nothing comes).
 */
int ebb_call_wait(struct ebb_dev *ebb, struct ebb_call *call, u64 deadline_ns);

/* Both: after an error the call is not the caller's any more, sent or not. */
int ebb_call_run(struct ebb_dev *ebb, struct ebb_call *call, u64 deadline_ns);

/* Has return_work look at the table again: now, or after delay if nobody wants it earlier. */
void ebb_kick_returns(struct ebb_dev *ebb, unsigned long delay_jiffies);

/* -EAGAIN no buffer is free, -ENODEV. */
int ebb_telemetry_send(struct ebb_dev *ebb, const struct virtio_ebb_telemetry *report);

/*
 * Sends a histogram, which is not the caller's any more if that succeeds.
 * -EBUSY the queue is full, or the last one is too recent; -ENODEV.
 */
int ebb_vom_send(struct ebb_dev *ebb, struct virtio_ebb_vom *vom, u32 len);

/* ---- event.c: what the device tells ---- */

int ebb_event_fill(struct ebb_dev *ebb);
void ebb_event_received(struct virtqueue *vq);

/* Takes what has come, without waiting for the interrupt. */
void ebb_event_poll(struct ebb_dev *ebb);

/* The device is dead: nobody uses the event queue any more when this returns. */
void ebb_event_stop(struct ebb_dev *ebb);

/* Programs must hear about a change in limits, or of the device. */
void ebb_limits_wake(struct ebb_dev *ebb);

/* ---- hotplug.c: what Linux and ACPI have of CPUs.  All of it may sleep. ---- */

int ebb_hotplug_init(void);
void ebb_hotplug_exit(void);

/*
 * Number of the CPU with this id of the architecture, or EBB_CPUSET_NO_CPU if
 * none is plugged in.
 */
u32 ebb_hotplug_lookup(u32 arch_id);

/* Counts CPUs plugged in and ejected, and what else makes those who wait look again. */
int ebb_hotplug_count(void);
void ebb_hotplug_wake(void);

/*
 * Sleeps until ebb_hotplug_count() is not count any more, or for a short
 * while: look again.  -EINTR, -ENODEV, -ETIMEDOUT.
 */
int ebb_hotplug_wait(struct ebb_dev *ebb, int count, u64 deadline_ns, bool is_interruptible);

/* 0 if it is online, by whomever; -EAGAIN it is not plugged in; other errors of Linux. */
int ebb_hotplug_online(u32 arch_id, u32 *ret_cpu);

/* 0 if it is offline or not even plugged in; -EBUSY and other errors of Linux. */
int ebb_hotplug_offline(u32 arch_id);

/*
 * The same, and Linux refuses from then on to bring it online, until
 * ebb_hotplug_online() or one of these.  A CPU that the host holds back would
 * keep Linux waiting for ten seconds, with all hot-plugging locked.
 */
int ebb_hotplug_park(u32 arch_id);
void ebb_hotplug_hold(u32 cpu, bool is_held);	/* any context; EBB_CPUSET_NO_CPU does nothing */
void ebb_hotplug_hold_none(void);

/* Can programs run on it?  Any context, and without a lock: to find out that nothing is to do. */
bool ebb_hotplug_is_usable(u32 cpu, u32 arch_id);

/* ---- vcpu.c, give.c and vcpu_return.c: CPUs come and go ---- */

/* When a program's timeout ends that starts now. */
u64 ebb_cpu_deadline_ns(u32 timeout_ms);

/*
 * Reads the table of CPUs from the device; hotplugged ones that are not lent are
 * to be lent or returned.
 */
int ebb_cpu_read_state(struct ebb_dev *ebb);

/* The ioctls of these names; checked arguments, results as there. */
int ebb_cpu_add(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_add *arg);
int ebb_cpu_remove(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_remove *arg);
int ebb_cpu_lend(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_lend *arg);

/*
 * The caller could not be told what ebb_cpu_add() added: those of these CPUs
 * that are still owner's are let go.  Another thread of the program may have
 * given one back meanwhile, and it may be another owner's by now.
 */
void ebb_cpu_undo_add(struct ebb_dev *ebb, u64 owner, const struct ebb_cpu_add *arg);

/* A request for an entry that is given back like this; NULL if there is no memory. */
struct ebb_call *ebb_return_call(const struct ebb_cpu_entry *entry, enum ebb_give how);

/*
 * It could not be sent.  If the device is gone, the CPU may have been parked
 * after stop_dev() let go of those that were, and would be so for ever.
 */
void ebb_return_unsent(struct ebb_dev *ebb, const struct ebb_cpu_entry *entry);

/*
 * An answer came, in the interrupt and under vq_lock: a CPU that is lent is so
 * in the table before any later answer can grant it.
 */
void ebb_return_answered(struct ebb_dev *ebb, const struct ebb_call *call);

/* The host answered for a CPU that is busy, LENDING or LEAVING; frees the call. */
int ebb_return_finish(struct ebb_dev *ebb, struct ebb_call *call);
void ebb_return_late(struct ebb_dev *ebb, struct ebb_call *call);
void ebb_return_retry(struct ebb_dev *ebb, u64 hv_cpu_id);

/* The host does not see it rest, which it may never do: it is to be lent only. */
void ebb_return_dont_park(struct ebb_dev *ebb, u64 hv_cpu_id);
void ebb_return_work(struct work_struct *work);

/* All CPUs of an owner, or of everybody (0), are let go in the background. */
void ebb_return_owner(struct ebb_dev *ebb, u64 owner);

/* Lets go of everything and waits, not for ever, until the host has it. */
void ebb_return_all(struct ebb_dev *ebb);

/* ---- chardev.c: /dev/ebb ---- */

int ebb_chardev_register(struct ebb_dev *ebb);
void ebb_chardev_unregister(struct ebb_dev *ebb);

#endif /* EBB_DEV_H */
