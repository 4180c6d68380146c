// SPDX-License-Identifier: GPL-2.0-only
/* CPUs come: asks the host, waits for ACPI to plug them in, brings them online. */
#include "dev.h"

#include <linux/ktime.h>

/* -ESTALE: it goes back, by a request that the host will hear of after this grant. */
static int take_grant(struct ebb_dev *ebb, const struct ebb_cpu_desc *cpu, u64 owner)
{
	enum ebb_cpu_state state = EBB_CPU_STATE_COMING;
	int rc = ebb_cpuset_regrant(&ebb->cpuset, cpu, owner);

	if (rc != -ENOENT)
		return rc;
	if (!owner)
		state = ebb->cfg.can_lend ? EBB_CPU_STATE_LENDING : EBB_CPU_STATE_LEAVING;
	rc = ebb_cpuset_insert(&ebb->cpuset, cpu, state, owner, EBB_CPUSET_NO_CPU);
	/* Whatever else is wrong with it: what has a name can be given back. */
	if (rc == -EEXIST)
		ebb_cpuset_insert(&ebb->cpuset, cpu, EBB_CPU_STATE_LEAVING, 0, EBB_CPUSET_NO_CPU);
	return rc;
}

/* Adds what an answer to CPU_ADD grants, for owner, or (0) to be let go. */
static int take_grants(struct ebb_dev *ebb, const struct ebb_call *call, u64 owner,
		       struct ebb_cpu_desc *ret_cpus, unsigned int *ret_count)
{
	unsigned int i, taken = 0;
	int bad = 0;

	spin_lock_irq(&ebb->lock);
	for (i = 0; i < call->answer.count; i++) {
		struct ebb_cpu_desc cpu;
		int rc = ebb_wire_read_cpu(&call->resp.cpus[i], &ebb->cfg, &cpu);

		if (!rc)
			rc = take_grant(ebb, &cpu, owner);
		if (rc == -ESTALE)
			continue;
		if (!rc) {
			ret_cpus[taken++] = cpu;
			rc = ebb_wire_check_grant(&call->req, &cpu);
		}
		bad = bad ?: rc;
	}
	if (bad || ebb->is_closing)
		for (i = 0; i < taken; i++)
			ebb_cpuset_let_go(&ebb->cpuset, ret_cpus[i].hv_cpu_id);
	spin_unlock_irq(&ebb->lock);
	*ret_count = taken;

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
	unsigned int count;

	take_grants(ebb, call, 0, cpus, &count);
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

/* Number of a CPU that was lent and is still online, so that nothing is to be done for it. */
static u32 find_usable(struct ebb_dev *ebb, const struct ebb_cpu_desc *desc)
{
	const struct ebb_cpu_entry *e;
	u32 cpu = EBB_CPUSET_NO_CPU;

	spin_lock_irq(&ebb->lock);
	e = ebb_cpuset_find(&ebb->cpuset, desc->hv_cpu_id);
	if (e)
		cpu = e->cpu;
	spin_unlock_irq(&ebb->lock);
	return ebb_hotplug_is_usable(cpu, desc->arch_id) ? cpu : EBB_CPUSET_NO_CPU;
}

static int bring_online(struct ebb_dev *ebb, const struct ebb_cpu_desc *desc, u64 deadline_ns,
			u32 *ret_cpu)
{
	int rc;

	do {
		rc = wait_for_plug(ebb, desc, deadline_ns);
		if (rc)
			break;
		rc = ebb_hotplug_online(desc->arch_id, ret_cpu);
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
	return 0;
}

static int make_usable(struct ebb_dev *ebb, const struct ebb_cpu_desc *desc, u64 deadline_ns,
		       struct ebb_cpu *ret_cpu)
{
	u32 cpu = find_usable(ebb, desc);
	int rc = 0;

	if (ebb_dev_is_gone(ebb))
		return -ENODEV;
	if (cpu == EBB_CPUSET_NO_CPU)
		rc = bring_online(ebb, desc, deadline_ns, &cpu);
	if (rc)
		return rc;

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

u64 ebb_cpu_deadline_ns(u32 timeout_ms)
{
	return ktime_get_ns() + (u64)(timeout_ms ?: EBB_TIMEOUT_DEFAULT_MS) * NSEC_PER_MSEC;
}

int ebb_cpu_add(struct ebb_dev *ebb, u64 owner, struct ebb_cpu_add *arg)
{
	u64 deadline_ns = ebb_cpu_deadline_ns(arg->timeout_ms);
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

	answered_ns = call->answered_ns;
	arg->host_ns = answered_ns - call->sent_ns;
	rc = ebb_wire_add_errno(&call->answer);
	if (rc == -EIO)
		dev_err_ratelimited(&ebb->vdev->dev, "adding CPUs: the host failed, reason %u\n",
				    call->answer.reason);
	if (!rc)
		rc = take_grants(ebb, call, owner, cpus, &count);
	ebb_call_free(call);
	if (rc) {
		ebb_kick_returns(ebb, 0);
		return rc;
	}

	/* All of them are on their way back, at somebody else's request. */
	if (!count)
		return -EAGAIN;
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
		/* What does not come up is of no use, lent or not. */
		spin_lock_irq(&ebb->lock);
		if (r == -EINTR || r == -ENODEV)
			ebb_cpuset_let_go(&ebb->cpuset, cpus[i].hv_cpu_id);
		else
			ebb_cpuset_leave(&ebb->cpuset, cpus[i].hv_cpu_id);
		spin_unlock_irq(&ebb->lock);
	}
	arg->granted = granted;
	arg->online_ns = ktime_get_ns() - answered_ns;
	if (granted < count)
		ebb_kick_returns(ebb, 0);
	return granted ? 0 : rc;
}

void ebb_cpu_undo_add(struct ebb_dev *ebb, u64 owner, const struct ebb_cpu_add *arg)
{
	unsigned int i;

	spin_lock_irq(&ebb->lock);
	for (i = 0; i < arg->granted; i++)
		ebb_cpuset_let_go_cpu(&ebb->cpuset, arg->cpus[i].cpu, owner);
	spin_unlock_irq(&ebb->lock);
	ebb_kick_returns(ebb, 0);
}
