// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs come: asks the host, waits for ACPI to plug them in, brings them online.
 * And they go because a program says so: removed, lent or parked; vcpu_return.c
 * sees that through if the program does not wait for the end.
 */
#include "objects/vcpu.h"

#include <linux/capability.h>
#include <linux/ktime.h>

#include "hotplug/hotplug.h"
#include "objects/vcpu_return.h"

/* -ESTALE: it goes back, by a request that the host will hear of after this grant. */
static int take_grant(struct ebb_vcpus *v, const struct ebb_cpu_desc *cpu, u64 owner)
{
	enum ebb_cpu_state state = EBB_CPU_STATE_COMING;
	int rc = ebb_cpuset_regrant(&v->cpuset, cpu, owner);

	if (rc != -ENOENT)
		return rc;
	if (!owner)
		state = v->cfg->can_lend ? EBB_CPU_STATE_LENDING : EBB_CPU_STATE_LEAVING;
	rc = ebb_cpuset_insert(&v->cpuset, cpu, state, owner, EBB_CPUSET_NO_CPU);
	/* Whatever else is wrong with it: what has a name can be given back. */
	if (rc == -EEXIST)
		ebb_cpuset_insert(&v->cpuset, cpu, EBB_CPU_STATE_LEAVING, 0, EBB_CPUSET_NO_CPU);
	return rc;
}

/* Adds what an answer to CPU_ADD grants, for owner, or (0) to be let go. */
static int take_grants(struct ebb_vcpus *v, const struct ebb_call *call, u64 owner,
		       struct ebb_cpu_desc *ret_cpus, unsigned int *ret_count)
{
	unsigned int i, taken = 0;
	int bad = 0;

	spin_lock_irq(&v->lock);
	for (i = 0; i < call->answer.count; i++) {
		struct ebb_cpu_desc cpu;
		int rc = ebb_wire_read_cpu(&call->resp.cpus[i], v->cfg, &cpu);

		if (!rc)
			rc = take_grant(v, &cpu, owner);
		if (rc == -ESTALE)
			continue;
		if (!rc) {
			ret_cpus[taken++] = cpu;
			rc = ebb_wire_check_grant(&call->req, &cpu);
		}
		bad = bad ?: rc;
	}
	if (bad || v->is_closing)
		for (i = 0; i < taken; i++)
			ebb_cpuset_let_go(&v->cpuset, ret_cpus[i].hv_cpu_id);
	spin_unlock_irq(&v->lock);
	*ret_count = taken;

	if (bad) {
		dev_err(ebb_vcpus_dev(v), "returning CPUs that the host can not have granted: %d\n",
			bad);
		return -EIO;
	}
	return ebb_vcpus_is_gone(v) ? -ENODEV : 0;
}

/* Nobody waits for these CPUs any more. */
static void add_late(struct ebb_call *call)
{
	struct ebb_vcpus *v = call->sender;
	struct ebb_cpu_desc cpus[EBB_MAX_REQ_CPUS];
	unsigned int count;

	take_grants(v, call, 0, cpus, &count);
	ebb_call_free(call);
	ebb_vcpus_kick(v, 0);
}

static const struct ebb_call_ops add_ops = { .late = add_late };

/* Waits until Linux has the CPU that the host granted, and no older plug of it. */
static int wait_for_plug(struct ebb_vcpus *v, const struct ebb_cpu_desc *desc, u64 deadline_ns)
{
	for (;;) {
		int changes = ebb_hotplug_count();
		bool is_leaving;
		int rc;

		spin_lock_irq(&v->lock);
		is_leaving = ebb_cpuset_is_leaving(&v->cpuset, desc->arch_id);
		spin_unlock_irq(&v->lock);
		if (!is_leaving && ebb_hotplug_lookup(desc->arch_id) != EBB_CPUSET_NO_CPU)
			return 0;
		rc = ebb_hotplug_wait(&v->queues->is_dead, changes, deadline_ns, true);
		if (rc)
			return rc;
	}
}

/* Number of a CPU that was lent and is still online, so that nothing is to be done for it. */
static u32 find_usable(struct ebb_vcpus *v, const struct ebb_cpu_desc *desc)
{
	const struct ebb_cpu_entry *e;
	u32 cpu = EBB_CPUSET_NO_CPU;

	spin_lock_irq(&v->lock);
	e = ebb_cpuset_find(&v->cpuset, desc->hv_cpu_id);
	if (e)
		cpu = e->cpu;
	spin_unlock_irq(&v->lock);
	return ebb_hotplug_is_usable(cpu, desc->arch_id) ? cpu : EBB_CPUSET_NO_CPU;
}

static int bring_online(struct ebb_vcpus *v, const struct ebb_cpu_desc *desc, u64 deadline_ns,
			u32 *ret_cpu)
{
	int rc;

	do {
		rc = wait_for_plug(v, desc, deadline_ns);
		if (rc)
			break;
		rc = ebb_hotplug_online(desc->arch_id, ret_cpu);
	} while (rc == -EAGAIN);	/* ejected again in between */
	if (rc == -ETIMEDOUT)
		dev_err_ratelimited(ebb_vcpus_dev(v),
				    "the host granted CPU %#x and did not plug it in time\n",
				    desc->arch_id);
	if (rc == -ETIMEDOUT || rc == -EINTR || rc == -ENODEV)
		return rc;
	if (rc) {
		dev_err(ebb_vcpus_dev(v), "CPU %#x does not come online: %d\n", desc->arch_id, rc);
		return -EIO;
	}
	return 0;
}

static int make_usable(struct ebb_vcpus *v, const struct ebb_cpu_desc *desc, u64 deadline_ns,
		       struct ebb_cpu *ret_cpu)
{
	u32 cpu = find_usable(v, desc);
	int rc = 0;

	if (ebb_vcpus_is_gone(v))
		return -ENODEV;
	if (cpu == EBB_CPUSET_NO_CPU)
		rc = bring_online(v, desc, deadline_ns, &cpu);
	if (rc)
		return rc;

	spin_lock_irq(&v->lock);
	rc = ebb_cpuset_online(&v->cpuset, desc->hv_cpu_id, cpu);
	spin_unlock_irq(&v->lock);
	if (rc)
		return -ENODEV;	/* taken from us: the driver is being removed */

	*ret_cpu = (struct ebb_cpu) {
		.cpu = cpu,
		.node = v->cfg->linux_node[desc->pxm],
		.flags = EBB_CPU_OWNED | (desc->flags & VIRTIO_EBB_CPU_F_HT ? EBB_CPU_HT : 0),
	};
	return 0;
}

static struct ebb_call *add_call(struct ebb_vcpus *v, const struct ebb_cpu_add *arg)
{
	u16 pxm = arg->node == EBB_NODE_ANY ? VIRTIO_EBB_NODE_ANY :
		ebb_wire_pxm_of_node(v->cfg, arg->node);
	struct ebb_call *call = ebb_call_create(VIRTIO_EBB_REQ_CPU_ADD, &add_ops, v);

	if (!call)
		return NULL;
	if (arg->flags & EBB_ADD_ALLOW_HT)
		call->req.flags = cpu_to_le16(VIRTIO_EBB_ADD_F_ALLOW_HT);
	call->req.u.cpu_add.count = cpu_to_le16(arg->count);
	call->req.u.cpu_add.node = cpu_to_le16(pxm);
	return call;
}

/* When a program's timeout ends that starts now. */
static u64 deadline_of_ms(u32 timeout_ms)
{
	return ktime_get_ns() + (u64)(timeout_ms ?: EBB_TIMEOUT_DEFAULT_MS) * NSEC_PER_MSEC;
}

int ebb_vcpu_add(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_add *arg)
{
	u64 deadline_ns = deadline_of_ms(arg->timeout_ms);
	struct ebb_cpu_desc cpus[EBB_MAX_REQ_CPUS];
	unsigned int count, i, granted = 0;
	struct ebb_call *call;
	u64 answered_ns;
	int rc;

	if (arg->node != EBB_NODE_ANY &&
	    ebb_wire_pxm_of_node(v->cfg, arg->node) == VIRTIO_EBB_NODE_ANY)
		return -ENXIO;
	call = add_call(v, arg);
	if (!call)
		return -ENOMEM;
	rc = ebb_call_run(v->queues, call, deadline_ns);
	if (rc)
		return rc;

	answered_ns = call->answered_ns;
	arg->host_ns = answered_ns - call->sent_ns;
	rc = ebb_wire_add_errno(&call->answer);
	if (rc == -EIO)
		dev_err_ratelimited(ebb_vcpus_dev(v), "adding CPUs: the host failed, reason %u\n",
				    call->answer.reason);
	if (!rc)
		rc = take_grants(v, call, owner, cpus, &count);
	ebb_call_free(call);
	if (rc) {
		ebb_vcpus_kick(v, 0);
		return rc;
	}

	/* All of them are on their way back, at somebody else's request. */
	if (!count)
		return -EAGAIN;
	memset(arg->cpus, 0, sizeof(arg->cpus));
	for (i = 0; i < count; i++) {
		bool is_over = rc == -EINTR || rc == -ENODEV;
		int r = is_over ? rc :
			make_usable(v, &cpus[i], deadline_ns, &arg->cpus[granted]);

		if (!r) {
			granted++;
			continue;
		}
		rc = rc ?: r;
		/* A CPU that does not come online is of no use, lent or not. */
		spin_lock_irq(&v->lock);
		if (r == -EINTR || r == -ENODEV)
			ebb_cpuset_let_go(&v->cpuset, cpus[i].hv_cpu_id);
		else
			ebb_cpuset_leave(&v->cpuset, cpus[i].hv_cpu_id);
		spin_unlock_irq(&v->lock);
	}
	arg->granted = granted;
	arg->online_ns = ktime_get_ns() - answered_ns;
	if (granted < count)
		ebb_vcpus_kick(v, 0);
	return granted ? 0 : rc;
}

void ebb_vcpu_undo_add(struct ebb_vcpus *v, u64 owner, const struct ebb_cpu_add *arg)
{
	unsigned int i;

	spin_lock_irq(&v->lock);
	for (i = 0; i < arg->granted; i++)
		ebb_cpuset_let_go_cpu(&v->cpuset, arg->cpus[i].cpu, owner);
	spin_unlock_irq(&v->lock);
	ebb_vcpus_kick(v, 0);
}

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
static int tell_host(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry, enum ebb_give how,
		     u64 deadline_ns, u64 *ret_host_ns)
{
	struct ebb_call *call;
	int rc;

	for (;;) {
		call = ebb_return_call(v, entry, how);
		rc = call ? ebb_call_submit(v->queues, call, deadline_ns, true) : -ENOMEM;
		if (rc) {
			ebb_return_unsent(v, entry);
			ebb_return_retry(v, entry->desc.hv_cpu_id);
			return rc;
		}
		rc = ebb_call_wait(v->queues, call, deadline_ns);
		if (rc)
			return rc;
		*ret_host_ns = call->answered_ns - call->sent_ns;
		if (how != EBB_GIVE_PARK || !ebb_wire_is_running(&call->answer))
			return ebb_return_finish(v, call);
		ebb_call_free(call);
		how = EBB_GIVE_LEND;
		ebb_return_dont_park(v, entry->desc.hv_cpu_id);
	}
}

static int give(struct ebb_vcpus *v, u64 owner, u32 cpu, enum ebb_give how, u64 deadline_ns,
		struct give_times *ret)
{
	/* Whom Linux lets take any CPU offline through sysfs. */
	bool is_admin = capable(CAP_SYS_ADMIN);
	struct ebb_cpu_entry entry;
	u64 start_ns;
	int rc;

	spin_lock_irq(&v->lock);
	rc = ebb_cpuset_begin_give(&v->cpuset, cpu, owner, is_admin, how, &entry);
	spin_unlock_irq(&v->lock);
	if (rc)
		return rc == -EALREADY ? 0 : rc;

	start_ns = ktime_get_ns();
	rc = stop_use(&entry, how);
	if (rc) {
		dev_dbg(ebb_vcpus_dev(v), "CPU %u does not go offline: %d\n", cpu, rc);
		spin_lock_irq(&v->lock);
		ebb_cpuset_undo_give(&v->cpuset, &entry);
		spin_unlock_irq(&v->lock);
		/* If the driver is being removed, it is the background's now. */
		ebb_vcpus_kick(v, 0);
		return -EBUSY;
	}
	if (how != EBB_GIVE_LEND)
		ret->offline_ns = ktime_get_ns() - start_ns;

	spin_lock_irq(&v->lock);
	ebb_cpuset_end_give(&v->cpuset, entry.desc.hv_cpu_id, how);
	spin_unlock_irq(&v->lock);
	rc = tell_host(v, &entry, how, deadline_ns, &ret->host_ns);
	return !rc || rc == -EINTR || rc == -ENODEV ? rc : -EINPROGRESS;
}

int ebb_vcpu_remove(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_remove *arg)
{
	struct give_times times = { 0 };
	int rc = give(v, owner, arg->cpu, EBB_GIVE_REMOVE,
		      deadline_of_ms(arg->timeout_ms), &times);

	arg->offline_ns = times.offline_ns;
	arg->host_ns = times.host_ns;
	return rc;
}

int ebb_vcpu_lend(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_lend *arg)
{
	enum ebb_give how = arg->flags & EBB_LEND_PARK ? EBB_GIVE_PARK : EBB_GIVE_LEND;
	struct give_times times = { 0 };
	int rc;

	if (!v->cfg->can_lend)
		return -EOPNOTSUPP;
	rc = give(v, owner, arg->cpu, how, deadline_of_ms(arg->timeout_ms), &times);
	arg->offline_ns = times.offline_ns;
	arg->host_ns = times.host_ns;
	return rc;
}

int ebb_vcpus_take_event(struct ebb_vcpus *v, const struct ebb_cpu_desc *cpu)
{
	bool is_new = false;
	unsigned long irqflags;
	int rc;

	spin_lock_irqsave(&v->lock, irqflags);
	rc = ebb_cpuset_set_flags(&v->cpuset, cpu);
	if (rc == -ENOENT && cpu->flags & VIRTIO_EBB_CPU_F_LENT) {
		rc = ebb_cpuset_insert(&v->cpuset, cpu, EBB_CPU_STATE_LENT, 0, EBB_CPUSET_NO_CPU);
		is_new = !rc;
	}
	spin_unlock_irqrestore(&v->lock, irqflags);
	if (is_new)
		ebb_vcpus_kick(v, 0);
	return rc;
}

void ebb_vcpus_set_agent(struct ebb_vcpus *v, bool is_up)
{
	unsigned long irqflags;
	bool is_back;

	spin_lock_irqsave(&v->lock, irqflags);
	is_back = is_up && !v->is_agent_up;
	v->is_agent_up = is_up;
	if (is_back)
		ebb_cpuset_retry_now(&v->cpuset);
	spin_unlock_irqrestore(&v->lock, irqflags);
	if (is_back)
		ebb_vcpus_kick(v, 0);
	wake_up_all(&v->returned_wait);
}

void ebb_vcpus_info(struct ebb_vcpus *v, u64 owner, struct ebb_info *ret)
{
	spin_lock_irq(&v->lock);
	ret->status = v->is_agent_up ? EBB_INFO_AGENT_UP : 0;
	ret->num_hotplug_cpus = ebb_cpuset_num_hotplug(&v->cpuset);
	ret->num_owned_cpus = ebb_cpuset_num_owned(&v->cpuset, owner);
	spin_unlock_irq(&v->lock);
}

static u32 flags_of_entry(const struct ebb_cpu_entry *e, u64 owner)
{
	return (e->desc.flags & VIRTIO_EBB_CPU_F_STARTUP ? EBB_CPU_STARTUP : 0) |
	       (e->desc.flags & VIRTIO_EBB_CPU_F_HT ? EBB_CPU_HT : 0) |
	       (e->desc.flags & VIRTIO_EBB_CPU_F_FORCED ? EBB_CPU_FORCED : 0) |
	       (e->owner == owner ? EBB_CPU_OWNED : 0) |
	       (e->state == EBB_CPU_STATE_LEAVING ||
		e->state == EBB_CPU_STATE_LENDING ? EBB_CPU_LEAVING : 0) |
	       (e->state == EBB_CPU_STATE_LENT ? EBB_CPU_LENT : 0) |
	       (e->desc.flags & VIRTIO_EBB_CPU_F_PARKED ? EBB_CPU_PARKED : 0);
}

/* CPUs that Linux has no number for, because they are still to be plugged, do not show. */
void ebb_vcpus_list(struct ebb_vcpus *v, u64 owner, struct ebb_cpu_list *ret)
{
	u32 i, index = 0, count = 0;

	memset(ret->cpus, 0, sizeof(ret->cpus));
	spin_lock_irq(&v->lock);
	for (i = 0; i < v->cpuset.count; i++) {
		const struct ebb_cpu_entry *e = &v->cpuset.entries[i];

		if (e->cpu == EBB_CPUSET_NO_CPU)
			continue;
		if (index++ < ret->start || count == EBB_MAX_REQ_CPUS)
			continue;
		ret->cpus[count++] = (struct ebb_cpu) {
			.cpu = e->cpu,
			.node = v->cfg->linux_node[e->desc.pxm],
			.flags = flags_of_entry(e, owner),
		};
	}
	spin_unlock_irq(&v->lock);
	ret->count = count;
	ret->total = index;
}
