// SPDX-License-Identifier: GPL-2.0-only
/*
 * What Linux and ACPI have of CPUs: which are plugged in, and bringing them
 * online and offline.  Knows nothing of who owns them.
 */
#include "hotplug/hotplug.h"

#include <linux/acpi.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/notifier.h>
#include <linux/smp.h>

#include "compat.h"
#include "pure/cpuset.h"

/* Exported for modules, but declared in a header of the RCU code itself. */
void rcu_expedite_gp(void);
void rcu_unexpedite_gp(void);

/* How often to look for a plugged CPU if no notifier says that there is one. */
#define EBB_LOOK_MS	50

/* CPUs that must not come online. */
static struct cpumask held;

static int prepare_state;	/* number that Linux gave to refuse_held() */

static atomic_t hotplug_changes = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(hotplug_wait);

void ebb_hotplug_wake(void)
{
	atomic_inc(&hotplug_changes);
	wake_up_all(&hotplug_wait);
}

/* Called in the middle of ACPI's plug or eject, under its locks: must only wake. */
static int cpu_device_changed(struct notifier_block *nb, unsigned long action, void *data)
{
	if (action == BUS_NOTIFY_ADD_DEVICE || action == BUS_NOTIFY_REMOVED_DEVICE)
		ebb_hotplug_wake();
	return NOTIFY_OK;
}

static struct notifier_block cpu_device_nb = {
	.notifier_call = cpu_device_changed,
};

/* Called before Linux wakes the CPU; an error ends the attempt of any caller. */
static int refuse_held(unsigned int cpu)
{
	return cpumask_test_cpu(cpu, &held) ? -EPERM : 0;
}

int ebb_hotplug_init(void)
{
	int rc = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "ebb:held", refuse_held, NULL);

	if (rc < 0)
		return rc;
	prepare_state = rc;
	rc = bus_register_notifier(&cpu_subsys, &cpu_device_nb);
	if (rc)
		cpuhp_remove_state_nocalls(prepare_state);
	return rc;
}

void ebb_hotplug_exit(void)
{
	bus_unregister_notifier(&cpu_subsys, &cpu_device_nb);
	cpuhp_remove_state_nocalls(prepare_state);
}

void ebb_hotplug_hold(u32 cpu, bool is_held)
{
	if (cpu >= nr_cpu_ids)
		return;
	if (is_held)
		cpumask_set_cpu(cpu, &held);
	else
		cpumask_clear_cpu(cpu, &held);
}

void ebb_hotplug_hold_none(void)
{
	cpumask_clear(&held);
}

bool ebb_hotplug_is_usable(u32 cpu, u32 arch_id)
{
	/* Online is too early: programs can not be bound to it yet. */
	return cpu < nr_cpu_ids && cpu_active(cpu) && cpu_physical_id(cpu) == arch_id;
}

u32 ebb_hotplug_lookup(u32 arch_id)
{
	u32 found = EBB_CPUSET_NO_CPU;
	unsigned int cpu;

	/*
	 * ACPI plugs and ejects with this lock held for writing, so a CPU is
	 * seen here with its device or not at all.  Linux 6.12 knows the APIC
	 * ids of CPUs that are not plugged, hence only those that are present.
	 */
	cpus_read_lock();
	for_each_present_cpu(cpu) {
		if (cpu_physical_id(cpu) == arch_id && get_cpu_device(cpu)) {
			found = cpu;
			break;
		}
	}
	cpus_read_unlock();
	return found;
}

int ebb_hotplug_count(void)
{
	return atomic_read(&hotplug_changes);
}

static bool is_changed(const bool *is_over, int count)
{
	return atomic_read(&hotplug_changes) != count || READ_ONCE(*is_over);
}

int ebb_hotplug_wait(const bool *is_over, int count, u64 deadline_ns, bool is_interruptible)
{
	u64 now_ns = ktime_get_ns();
	unsigned long timeout;
	long left;

	if (READ_ONCE(*is_over))
		return -ENODEV;
	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	timeout = nsecs_to_jiffies(min_t(u64, deadline_ns - now_ns,
					 EBB_LOOK_MS * NSEC_PER_MSEC)) + 1;
	if (is_interruptible)
		left = wait_event_interruptible_timeout(hotplug_wait, is_changed(is_over, count),
							timeout);
	else
		left = wait_event_timeout(hotplug_wait, is_changed(is_over, count), timeout);
	return left < 0 ? -EINTR : 0;
}

/*
 * As add_cpu() and remove_cpu(), which can not be used: they look up the
 * device of the CPU under device_hotplug_lock and do not bear that it is gone.
 * It is gone if ACPI ejected the CPU while they waited for that lock, and a
 * host that repeats an eject makes ACPI do so to a CPU that was just plugged
 * in again.  acpi_scan_lock, which ACPI takes right after device_hotplug_lock,
 * keeps the CPU here as well; device_lock() keeps sysfs away.
 */
static int set_online_locked(struct device *dev, bool is_online)
{
	int rc;

	if (dev_offline_disabled(dev))
		return -EPERM;
	if (dev_offline(dev) != is_online)
		return 0;	/* somebody else (udev, say) was faster */
	rc = is_online ? cpu_subsys.online(dev) : cpu_subsys.offline(dev);
	if (rc)
		return rc;
	kobject_uevent(&dev->kobj, is_online ? KOBJ_ONLINE : KOBJ_OFFLINE);
	dev_assign_offline(dev, !is_online);
	return 0;
}

enum goal {
	GOAL_ONLINE,
	GOAL_OFFLINE,
	GOAL_PARKED,
};

static int reach(u32 arch_id, enum goal goal, u32 *ret_cpu)
{
	int rc = -EAGAIN;
	u32 cpu;

	/* Most of the time would go to RCU grace periods. */
	rcu_expedite_gp();
	acpi_scan_lock_acquire();
	cpu = ebb_hotplug_lookup(arch_id);
	if (cpu != EBB_CPUSET_NO_CPU) {
		struct device *dev = get_cpu_device(cpu);

		device_lock(dev);
		if (goal == GOAL_ONLINE)
			ebb_hotplug_hold(cpu, false);
		rc = set_online_locked(dev, goal == GOAL_ONLINE);
		if (!rc && goal == GOAL_PARKED)
			ebb_hotplug_hold(cpu, true);
		device_unlock(dev);
	}
	acpi_scan_lock_release();
	rcu_unexpedite_gp();
	if (!rc)
		*ret_cpu = cpu;
	return rc;
}

int ebb_hotplug_online(u32 arch_id, u32 *ret_cpu)
{
	return reach(arch_id, GOAL_ONLINE, ret_cpu);
}

static int take_offline(u32 arch_id, enum goal goal)
{
	u32 cpu;
	int rc = reach(arch_id, goal, &cpu);

	return rc == -EAGAIN ? 0 : rc;
}

int ebb_hotplug_offline(u32 arch_id)
{
	return take_offline(arch_id, GOAL_OFFLINE);
}

int ebb_hotplug_park(u32 arch_id)
{
	return take_offline(arch_id, GOAL_PARKED);
}
