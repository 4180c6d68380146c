/* SPDX-License-Identifier: GPL-2.0-only */
/* CPU hot-plug by Linux and ACPI, for all owners.  Every function may sleep, unless stated. */
#ifndef EBB_HOTPLUG_H
#define EBB_HOTPLUG_H

#include <linux/types.h>

int ebb_hotplug_init(void);
void ebb_hotplug_exit(void);

/*
 * Number of the CPU with this id of the architecture, or EBB_CPUSET_NO_CPU if
 * none is plugged in.
 */
u32 ebb_hotplug_lookup(u32 arch_id);

/* Rises when a CPU is plugged in or ejected, and at ebb_hotplug_wake(): waiters then look again. */
int ebb_hotplug_count(void);
void ebb_hotplug_wake(void);	/* any context */

/*
 * Sleeps until ebb_hotplug_count() is not count any more, or for a short
 * while: look again.  -EINTR, -ENODEV (*is_over is set), -ETIMEDOUT.
 */
int ebb_hotplug_wait(const bool *is_over, int count, u64 deadline_ns, bool is_interruptible);

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

#endif /* EBB_HOTPLUG_H */
