// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs are given back because a program says so: removed, lent or parked.
 * vcpu_return.c sees it through if the program does not wait for the end.
 */
#include "dev.h"

#include <linux/capability.h>
#include <linux/ktime.h>

struct give_times {
	u64 offline_ns;
	u64 host_ns;
};

static int stop_use(const struct ebb_cpu_entry *entry, enum ebb_give how)
{
	switch (how) {
	case EBB_GIVE_REMOVE:
		return ebb_hotplug_offline(entry->desc.arch_id);
	case EBB_GIVE_PARK:
		return ebb_hotplug_park(entry->desc.arch_id);
	default:
		return 0;
	}
}

/* Asks the host; from here on the entry is the background's if this does not end well. */
static int tell_host(struct ebb_dev *ebb, const struct ebb_cpu_entry *entry, enum ebb_give how,
		     u64 deadline_ns, u64 *ret_host_ns)
{
	struct ebb_call *call;
	int rc;

	for (;;) {
		call = ebb_return_call(entry, how);
		rc = call ? ebb_call_submit(ebb, call, deadline_ns, true) : -ENOMEM;
		if (rc) {
			ebb_return_unsent(ebb, entry);
			ebb_return_retry(ebb, entry->desc.hv_cpu_id);
			return rc;
		}
		rc = ebb_call_wait(ebb, call, deadline_ns);
		if (rc)
			return rc;
		*ret_host_ns = call->answered_ns - call->sent_ns;
		if (how != EBB_GIVE_PARK || !ebb_wire_is_running(&call->answer))
			return ebb_return_finish(ebb, call);
		ebb_call_free(call);
		how = EBB_GIVE_LEND;
		ebb_return_dont_park(ebb, entry->desc.hv_cpu_id);
	}
}

static int give(struct ebb_dev *ebb, u64 owner, u32 cpu, enum ebb_give how, u64 deadline_ns,
		struct give_times *ret)
{
	/* Whom Linux lets take any CPU offline through sysfs. */
	bool is_admin = capable(CAP_SYS_ADMIN);
	struct ebb_cpu_entry entry;
	u64 start_ns;
	int rc;

	spin_lock_irq(&ebb->lock);
	rc = ebb_cpuset_begin_give(&ebb->cpuset, cpu, owner, is_admin, how, &entry);
	spin_unlock_irq(&ebb->lock);
	if (rc)
		return rc == -EALREADY ? 0 : rc;

	start_ns = ktime_get_ns();
	rc = stop_use(&entry, how);
	if (rc) {
		dev_dbg(&ebb->vdev->dev, "CPU %u does not go offline: %d\n", cpu, rc);
		spin_lock_irq(&ebb->lock);
		ebb_cpuset_undo_give(&ebb->cpuset, &entry);
		spin_unlock_irq(&ebb->lock);
		/* If the driver is being removed, it is the background's now. */
		ebb_kick_returns(ebb, 0);
		return -EBUSY;
	}
	if (how != EBB_GIVE_LEND)
		ret->offline_ns = ktime_get_ns() - start_ns;

	spin_lock_irq(&ebb->lock);
	ebb_cpuset_end_give(&ebb->cpuset, entry.desc.hv_cpu_id, how);
	spin_unlock_irq(&ebb->lock);
	rc = tell_host(ebb, &entry, how, deadline_ns, &ret->host_ns);
	return !rc || rc == -EINTR || rc == -ENODEV ? rc : -EINPROGRESS;
}

int ebb_cpu_remove(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_remove *arg)
{
	struct give_times times = { 0 };
	int rc = give(ebb, owner, arg->cpu, EBB_GIVE_REMOVE,
		      ebb_cpu_deadline_ns(arg->timeout_ms), &times);

	arg->offline_ns = times.offline_ns;
	arg->host_ns = times.host_ns;
	return rc;
}

int ebb_cpu_lend(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_lend *arg)
{
	enum ebb_give how = arg->flags & EBB_LEND_PARK ? EBB_GIVE_PARK : EBB_GIVE_LEND;
	struct give_times times = { 0 };
	int rc;

	if (!ebb->cfg.can_lend)
		return -EOPNOTSUPP;
	rc = give(ebb, owner, arg->cpu, how, ebb_cpu_deadline_ns(arg->timeout_ms), &times);
	arg->offline_ns = times.offline_ns;
	arg->host_ns = times.host_ns;
	return rc;
}
