// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs come: asks the host, waits for ACPI to plug them in, brings them online.
 * Removal starts here too; ebb_return.c sees it through if the caller does not.
 */
#include "ebb.h"

#include <linux/ktime.h>

int ebb_cpu_take_grants(struct ebb_dev *ebb, const struct ebb_call *call, u64 owner,
			struct ebb_cpu_desc *ret_cpus)
{
	enum ebb_cpu_state state = owner ? EBB_CPU_STATE_COMING : EBB_CPU_STATE_LEAVING;
	unsigned int i, taken = 0;
	int bad = 0;

	spin_lock_irq(&ebb->lock);
	for (i = 0; i < call->answer.count; i++) {
		struct ebb_cpu_desc cpu;
		int rc = ebb_wire_read_cpu(&call->resp.cpus[i], &ebb->cfg, &cpu);

		if (!rc) {
			/* Whatever else is wrong with it: what has a name can be given back. */
			rc = ebb_cpuset_insert(&ebb->cpuset, &cpu, state, owner, EBB_CPUSET_NO_CPU);
			if (rc == -EEXIST)
				ebb_cpuset_insert(&ebb->cpuset, &cpu, EBB_CPU_STATE_LEAVING, 0,
						  EBB_CPUSET_NO_CPU);
			else if (!rc)
				ret_cpus[taken++] = cpu;
		}
		if (!rc)
			rc = ebb_wire_check_grant(&call->req, &cpu);
		bad = bad ?: rc;
	}
	if (bad || ebb->is_closing)
		for (i = 0; i < taken; i++)
			ebb_cpuset_leave(&ebb->cpuset, ret_cpus[i].hv_cpu_id);
	spin_unlock_irq(&ebb->lock);

	if (bad) {
		dev_err(&ebb->vdev->dev, "returning CPUs that the host can not have granted: %d\n",
			bad);
		return -EIO;
	}
	return ebb_dev_is_gone(ebb) ? -ENODEV : 0;
}

/* Nobody waits for these CPUs any more. */
static void add_late(struct ebb_dev *ebb, struct ebb_call *call)
{
	struct ebb_cpu_desc cpus[EBB_MAX_REQ_CPUS];

	ebb_cpu_take_grants(ebb, call, 0, cpus);
	ebb_call_free(call);
	ebb_kick_returns(ebb, 0);
}

/* Waits until Linux has the CPU that the host granted, and no older plug of it. */
static int wait_for_plug(struct ebb_dev *ebb, const struct ebb_cpu_desc *desc, u64 deadline_ns)
{
	for (;;) {
		int changes = ebb_hotplug_count();
		bool is_leaving;
		int rc;

		spin_lock_irq(&ebb->lock);
		is_leaving = ebb_cpuset_is_leaving(&ebb->cpuset, desc->arch_id);
		spin_unlock_irq(&ebb->lock);
		if (!is_leaving && ebb_hotplug_lookup(desc->arch_id) != EBB_CPUSET_NO_CPU)
			return 0;
		rc = ebb_hotplug_wait(ebb, changes, deadline_ns, true);
		if (rc)
			return rc;
	}
}

static int make_usable(struct ebb_dev *ebb, const struct ebb_cpu_desc *desc, u64 deadline_ns,
		       struct ebb_cpu *ret_cpu)
{
	u32 cpu = EBB_CPUSET_NO_CPU;
	int rc;

	if (ebb_dev_is_gone(ebb))
		return -ENODEV;
	do {
		rc = wait_for_plug(ebb, desc, deadline_ns);
		if (rc)
			break;
		rc = ebb_hotplug_online(desc->arch_id, &cpu);
	} while (rc == -EAGAIN);	/* ejected again in between */
	if (rc == -ETIMEDOUT)
		dev_err_ratelimited(&ebb->vdev->dev,
				    "the host granted CPU %#x and did not plug it in time\n",
				    desc->arch_id);
	if (rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV)
		return rc;
	if (rc) {
		dev_err(&ebb->vdev->dev, "CPU %#x does not come online: %d\n", desc->arch_id, rc);
		return -EIO;
	}

	spin_lock_irq(&ebb->lock);
	rc = ebb_cpuset_online(&ebb->cpuset, desc->hv_cpu_id, cpu);
	spin_unlock_irq(&ebb->lock);
	if (rc)
		return -ENODEV;	/* taken from us: the driver is being removed */

	*ret_cpu = (struct ebb_cpu) {
		.cpu = cpu,
		.node = ebb->linux_node[desc->pxm],
		.flags = EBB_CPU_OWNED | (desc->flags & VIRTIO_EBB_CPU_F_HT ? EBB_CPU_HT : 0),
	};
	return 0;
}

static u16 pxm_of_linux_node(const struct ebb_dev *ebb, u32 node)
{
	u32 i;

	for (i = 0; i < ebb->cfg.num_nodes; i++)
		if (ebb->linux_node[i] == node)
			return i;
	return VIRTIO_EBB_NODE_ANY;
}

static struct ebb_call *add_call(struct ebb_dev *ebb, const struct ebb_cpu_add *arg)
{
	u16 pxm = arg->node == EBB_NODE_ANY ? VIRTIO_EBB_NODE_ANY :
		pxm_of_linux_node(ebb, arg->node);
	struct ebb_call *call = ebb_call_create(VIRTIO_EBB_REQ_CPU_ADD, add_late);

	if (!call)
		return NULL;
	if (arg->flags & EBB_ADD_ALLOW_HT)
		call->req.flags = cpu_to_le16(VIRTIO_EBB_ADD_F_ALLOW_HT);
	call->req.u.cpu_add.count = cpu_to_le16(arg->count);
	call->req.u.cpu_add.node = cpu_to_le16(pxm);
	return call;
}

static u64 deadline_of(u32 timeout_ms)
{
	return ktime_get_ns() + (u64)(timeout_ms ?: EBB_TIMEOUT_DEFAULT_MS) * NSEC_PER_MSEC;
}

int ebb_cpu_add(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_add *arg)
{
	u64 deadline_ns = deadline_of(arg->timeout_ms);
	struct ebb_cpu_desc cpus[EBB_MAX_REQ_CPUS];
	unsigned int count, i, granted = 0;
	struct ebb_call *call;
	u64 answered_ns;
	int rc;

	if (arg->node != EBB_NODE_ANY && pxm_of_linux_node(ebb, arg->node) == VIRTIO_EBB_NODE_ANY)
		return -ENXIO;
	call = add_call(ebb, arg);
	if (!call)
		return -ENOMEM;
	rc = ebb_call_run(ebb, call, deadline_ns);
	if (rc)
		return rc;

	count = call->answer.count;
	answered_ns = call->answered_ns;
	arg->host_ns = answered_ns - call->sent_ns;
	rc = ebb_wire_add_errno(&call->answer);
	if (rc == -EIO)
		dev_err_ratelimited(&ebb->vdev->dev, "adding CPUs: the host failed, reason %u\n",
				    call->answer.reason);
	if (!rc)
		rc = ebb_cpu_take_grants(ebb, call, owner, cpus);
	ebb_call_free(call);
	if (rc) {
		ebb_kick_returns(ebb, 0);
		return rc;
	}

	memset(arg->cpus, 0, sizeof(arg->cpus));
	for (i = 0; i < count; i++) {
		bool is_over = rc == -EINTR || rc == -ENODEV;
		int r = is_over ? rc :
			make_usable(ebb, &cpus[i], deadline_ns, &arg->cpus[granted]);

		if (!r) {
			granted++;
			continue;
		}
		rc = rc ?: r;
		spin_lock_irq(&ebb->lock);
		ebb_cpuset_leave(&ebb->cpuset, cpus[i].hv_cpu_id);
		spin_unlock_irq(&ebb->lock);
	}
	arg->granted = granted;
	arg->online_ns = ktime_get_ns() - answered_ns;
	if (granted < count)
		ebb_kick_returns(ebb, 0);
	return granted ? 0 : rc;
}

void ebb_cpu_undo_add(struct ebb_dev *ebb, const struct ebb_cpu_add *arg)
{
	unsigned int i;

	spin_lock_irq(&ebb->lock);
	for (i = 0; i < arg->granted; i++) {
		struct ebb_cpu_entry *e = ebb_cpuset_find_cpu(&ebb->cpuset, arg->cpus[i].cpu);

		if (e)
			ebb_cpuset_leave(&ebb->cpuset, e->desc.hv_cpu_id);
	}
	spin_unlock_irq(&ebb->lock);
	ebb_kick_returns(ebb, 0);
}

int ebb_cpu_remove(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_remove *arg)
{
	u64 deadline_ns = deadline_of(arg->timeout_ms);
	struct ebb_cpu_entry entry;
	struct ebb_call *call;
	u64 start_ns;
	int rc;

	spin_lock_irq(&ebb->lock);
	rc = ebb_cpuset_begin_remove(&ebb->cpuset, arg->cpu, owner, &entry);
	spin_unlock_irq(&ebb->lock);
	if (rc)
		return rc;

	start_ns = ktime_get_ns();
	rc = ebb_hotplug_offline(entry.desc.arch_id);
	if (rc) {
		dev_dbg(&ebb->vdev->dev, "CPU %u does not go offline: %d\n", arg->cpu, rc);
		spin_lock_irq(&ebb->lock);
		ebb_cpuset_end_busy(&ebb->cpuset, entry.desc.hv_cpu_id);
		spin_unlock_irq(&ebb->lock);
		/* If the driver is being removed, it is the background's now. */
		ebb_kick_returns(ebb, 0);
		return -EBUSY;
	}
	arg->offline_ns = ktime_get_ns() - start_ns;

	spin_lock_irq(&ebb->lock);
	ebb_cpuset_leave(&ebb->cpuset, entry.desc.hv_cpu_id);
	spin_unlock_irq(&ebb->lock);

	call = ebb_return_call(&entry);
	rc = call ? ebb_call_submit(ebb, call, deadline_ns, true) : -ENOMEM;
	if (rc) {
		ebb_return_retry(ebb, entry.desc.hv_cpu_id);
	} else {
		rc = ebb_call_wait(ebb, call, deadline_ns);
		if (!rc) {
			arg->host_ns = call->answered_ns - call->sent_ns;
			rc = ebb_return_finish(ebb, call);
		}
	}
	return !rc || rc == -EINTR || rc == -ENODEV ? rc : -EINPROGRESS;
}
