/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPUs of this VM: they come and go at the request of programs, and in the
 * background (vcpu_return.h) where no program waits for it.
 */
#ifndef EBB_VCPU_H
#define EBB_VCPU_H

#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/ebb_ioctl.h>

#include "pure/cpuset.h"
#include "pure/wire.h"
#include "transport/queues.h"

struct ebb_vcpus {
	struct ebb_queues *queues;
	const struct ebb_wire_config *cfg;

	spinlock_t lock;		/* what follows, up to is_agent_up */
	struct ebb_cpuset cpuset;
	bool is_closing;		/* set once, at remove: programs get ENODEV */
	bool is_agent_up;

	wait_queue_head_t returned_wait; /* a CPU left the table, or was lent */
	struct delayed_work return_work; /* works on what the table has for it */
};

static inline bool ebb_vcpus_is_gone(const struct ebb_vcpus *v)
{
	return READ_ONCE(v->is_closing) || READ_ONCE(v->queues->is_dead);
}

static inline struct device *ebb_vcpus_dev(const struct ebb_vcpus *v)
{
	return &v->queues->vdev->dev;
}

/* Call this before all other functions of this file; v is zeroed. */
void ebb_vcpus_setup(struct ebb_vcpus *v, struct ebb_queues *queues);

/* The configuration is valid now: makes the table. */
int ebb_vcpus_init(struct ebb_vcpus *v);

/* With the last reference. */
void ebb_vcpus_free(struct ebb_vcpus *v);

/*
 * Reads the table of CPUs from the device; hotplugged ones that are not lent are
 * to be lent or returned.
 */
int ebb_vcpus_read_state(struct ebb_vcpus *v);

/* Has return_work look at the table: now, or after delay if nobody wants it earlier. */
void ebb_vcpus_kick(struct ebb_vcpus *v, unsigned long delay_jiffies);

/* From now on programs get ENODEV. */
void ebb_vcpus_close(struct ebb_vcpus *v);

/* The queues were stopped.  Any context. */
void ebb_vcpus_stop(struct ebb_vcpus *v);

/* The agent is there, or away.  Any context. */
void ebb_vcpus_set_agent(struct ebb_vcpus *v, bool is_up);

/*
 * An event CPU: new flags, or a new CPU that is lent.  0; -ENOENT it may have
 * left while the event was on its way; others: it makes no sense.  Any context.
 */
int ebb_vcpus_take_event(struct ebb_vcpus *v, const struct ebb_cpu_desc *cpu);

/* EBB_IOC_INFO: status and the numbers of CPUs added. */
void ebb_vcpus_info(struct ebb_vcpus *v, u64 owner, struct ebb_info *ret);

/* EBB_IOC_CPU_LIST, from ret->start on. */
void ebb_vcpus_list(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_list *ret);

/* The ioctls of these names; checked arguments, results as there. */
int ebb_vcpu_add(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_add *arg);
int ebb_vcpu_remove(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_remove *arg);
int ebb_vcpu_lend(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_lend *arg);

/*
 * The caller could not be told what ebb_vcpu_add() added: those of these CPUs
 * that are still owner's are let go.  Another thread of the program may have
 * given one back meanwhile, and it may be another owner's by now.
 */
void ebb_vcpu_undo_add(struct ebb_vcpus *v, u64 owner, const struct ebb_cpu_add *arg);

/* All CPUs of an owner, or of everybody (0), are let go in the background. */
void ebb_vcpus_let_go(struct ebb_vcpus *v, u64 owner);

/* Lets go of everything and waits, not for ever, until the host has it. */
void ebb_vcpus_return_all(struct ebb_vcpus *v);

#endif /* EBB_VCPU_H */
