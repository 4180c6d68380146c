// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work in the background: each CPU that is LENDING or LEAVING in the table goes back
 * to the host, however often that has to be tried, and what the host hands over
 * comes online.  Also what a former life of the driver or of the machine has
 * left behind.
 */
#include "objects/vcpu_return.h"

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "hotplug/hotplug.h"

/* ACPI ejects a CPU a little before or after the host confirms; longest wait for it. */
#define EBB_EJECT_WAIT_NS	(1000 * NSEC_PER_MSEC)

/* A device answers STATE by itself, at once; wait this long even if it claims to be quicker. */
#define EBB_STATE_WAIT_NS	(5000 * NSEC_PER_MSEC)

/* Longest that unloading the module waits for the host to take the CPUs back. */
#define EBB_RETURN_ALL_WAIT_MS	5000

/* Failures after which a CPU that does not appear may be one that the host does not know of. */
#define EBB_DOUBT_FAILURES	4

void ebb_vcpus_kick(struct ebb_vcpus *v, unsigned long delay_jiffies)
{
	ebb_queues_schedule(v->queues, &v->return_work, delay_jiffies);
}

void ebb_return_retry(struct ebb_vcpus *v, u64 hv_cpu_id)
{
	spin_lock_irq(&v->lock);
	ebb_cpuset_retry(&v->cpuset, hv_cpu_id, ktime_get_ns());
	spin_unlock_irq(&v->lock);
	wake_up_all(&v->returned_wait);
	ebb_vcpus_kick(v, 0);
}

void ebb_return_dont_park(struct ebb_vcpus *v, u64 hv_cpu_id)
{
	spin_lock_irq(&v->lock);
	ebb_cpuset_end_give(&v->cpuset, hv_cpu_id, EBB_GIVE_LEND);
	spin_unlock_irq(&v->lock);
}

void ebb_return_unsent(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry)
{
	if (ebb_queues_is_dead(v->queues))
		ebb_hotplug_hold(ebb_hotplug_lookup(entry->desc.arch_id), false);
}

static bool is_lend(const struct ebb_call *call)
{
	return call->req.type == cpu_to_le16(VIRTIO_EBB_REQ_CPU_LEND);
}

/*
 * In the interrupt, under the queues' lock: a CPU that is lent is so in the table
 * before any later answer can grant it.
 */
static void return_answered(struct ebb_call *call)
{
	struct ebb_vcpus *v = call->sender;
	u16 flags = call->answer.lent_flags;
	bool is_lent;

	if (!is_lend(call) || call->answer.status != VIRTIO_EBB_ACK)
		return;
	spin_lock(&v->lock);
	is_lent = ebb_cpuset_lent(&v->cpuset, le64_to_cpu(call->req.u.cpu_lend.hv_cpu_id), flags,
				  ebb_hotplug_is_usable(call->cpu, call->arch_id));
	if (is_lent && !(flags & VIRTIO_EBB_CPU_F_PARKED))
		ebb_hotplug_hold(call->cpu, false);
	spin_unlock(&v->lock);
}

/*
 * Linux 6.12 clears an ejected CPU away after the host may have heard of the
 * ejection.  Until then it must stay in the table, so that nobody takes it for
 * the CPU that the host may plug in its place.
 */
static void wait_for_eject(struct ebb_vcpus *v, u32 arch_id)
{
	u64 deadline_ns = ktime_get_ns() + EBB_EJECT_WAIT_NS;

	for (;;) {
		int changes = ebb_hotplug_count();

		if (ebb_hotplug_lookup(arch_id) == EBB_CPUSET_NO_CPU ||
		    ebb_hotplug_wait(&v->queues->is_dead, changes, deadline_ns, false))
			return;
	}
}

/* The table has no use for it any more. */
static void forget(struct ebb_vcpus *v, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e;

	spin_lock_irq(&v->lock);
	e = ebb_cpuset_find(&v->cpuset, hv_cpu_id);
	if (e)
		ebb_hotplug_hold(e->cpu, false);
	ebb_cpuset_delete(&v->cpuset, hv_cpu_id);
	spin_unlock_irq(&v->lock);
	wake_up_all(&v->returned_wait);
	/* Somebody may wait to use the CPU that was plugged in its place. */
	ebb_hotplug_wake();
}

int ebb_return_finish(struct ebb_vcpus *v, struct ebb_call *call)
{
	u64 hv_cpu_id = le64_to_cpu(is_lend(call) ? call->req.u.cpu_lend.hv_cpu_id :
				    call->req.u.cpu_remove.hv_cpu_id);
	struct ebb_wire_answer answer = call->answer;
	bool is_lent = is_lend(call) && answer.status == VIRTIO_EBB_ACK;
	u32 arch_id = call->arch_id;

	ebb_call_free(call);
	if (is_lent) {
		/* The table knows: return_answered(). */
		wake_up_all(&v->returned_wait);
		ebb_vcpus_kick(v, 0);
		return 0;
	}
	if (!ebb_wire_is_removed(&answer)) {
		if (ebb_wire_is_running(&answer))
			ebb_return_dont_park(v, hv_cpu_id);
		else if (answer.status != VIRTIO_EBB_BUSY)
			dev_err_ratelimited(ebb_vcpus_dev(v),
					    "CPU %#x: the host refused it (%u, %u), will retry\n",
					    arch_id, answer.status, answer.reason);
		ebb_return_retry(v, hv_cpu_id);
		return -EAGAIN;
	}
	if (answer.status == VIRTIO_EBB_ACK)
		wait_for_eject(v, arch_id);
	forget(v, hv_cpu_id);
	return 0;
}

static void return_late(struct ebb_call *call)
{
	ebb_return_finish(call->sender, call);
}

static const struct ebb_call_ops return_ops = {
	.answered = return_answered,
	.late = return_late,
};

struct ebb_call *ebb_return_call(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry,
				 enum ebb_give how)
{
	struct ebb_call *call = ebb_call_create(how == EBB_GIVE_REMOVE ?
						VIRTIO_EBB_REQ_CPU_REMOVE :
						VIRTIO_EBB_REQ_CPU_LEND, &return_ops, v);

	if (!call)
		return NULL;
	if (how == EBB_GIVE_REMOVE)
		call->req.u.cpu_remove.hv_cpu_id = cpu_to_le64(entry->desc.hv_cpu_id);
	else
		call->req.u.cpu_lend.hv_cpu_id = cpu_to_le64(entry->desc.hv_cpu_id);
	if (how == EBB_GIVE_PARK)
		call->req.flags = cpu_to_le16(VIRTIO_EBB_LEND_F_PARK);
	call->arch_id = entry->desc.arch_id;
	call->cpu = entry->cpu;
	return call;
}

static int take_offline(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry, enum ebb_give how)
{
	bool is_used;

	if (how == EBB_GIVE_LEND)
		return 0;
	if (how == EBB_GIVE_PARK)
		return ebb_hotplug_park(entry->desc.arch_id);
	/* Plugged again meanwhile, or granted twice by a broken host: not ours to stop. */
	spin_lock_irq(&v->lock);
	is_used = ebb_cpuset_is_used(&v->cpuset, entry->desc.arch_id);
	spin_unlock_irq(&v->lock);
	return is_used ? 0 : ebb_hotplug_offline(entry->desc.arch_id);
}

static int send_back(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry)
{
	enum ebb_give how = entry->state == EBB_CPU_STATE_LEAVING ? EBB_GIVE_REMOVE :
			    entry->parks ? EBB_GIVE_PARK : EBB_GIVE_LEND;
	int rc = take_offline(v, entry, how);
	struct ebb_call *call;

	if (rc) {
		dev_warn_ratelimited(ebb_vcpus_dev(v),
				     "CPU %#x does not go offline, will retry: %d\n",
				     entry->desc.arch_id, rc);
		return rc;
	}
	call = ebb_return_call(v, entry, how);
	rc = call ? ebb_call_submit(v->queues, call, 0, false) : -ENOMEM;
	if (rc)
		ebb_return_unsent(v, entry);
	return rc;
}

/* -EAGAIN: ACPI has not plugged it yet, or is still clearing an older plug away. */
static int find_and_bring_online(struct ebb_vcpus *v, u32 arch_id, u32 *ret_cpu)
{
	bool is_leaving;

	spin_lock_irq(&v->lock);
	is_leaving = ebb_cpuset_is_leaving(&v->cpuset, arch_id);
	spin_unlock_irq(&v->lock);
	return is_leaving ? -EAGAIN : ebb_hotplug_online(arch_id, ret_cpu);
}

/* A CPU that is lent is online, so that it is of use the moment that it is granted. */
static int bring_online(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry)
{
	u32 cpu = EBB_CPUSET_NO_CPU;
	int rc = find_and_bring_online(v, entry->desc.arch_id, &cpu);

	if (rc == -EAGAIN && entry->failures < EBB_DOUBT_FAILURES)
		return rc;
	if (rc && rc != -EAGAIN)
		dev_warn(ebb_vcpus_dev(v), "CPU %#x, which is lent, does not come online: %d\n",
			 entry->desc.arch_id, rc);
	spin_lock_irq(&v->lock);
	if (rc == -EAGAIN)
		ebb_cpuset_doubt(&v->cpuset, entry->desc.hv_cpu_id);
	else
		ebb_cpuset_arrived(&v->cpuset, entry->desc.hv_cpu_id, cpu);
	spin_unlock_irq(&v->lock);
	return 0;
}

void ebb_return_work(struct work_struct *work)
{
	struct ebb_vcpus *v = container_of(to_delayed_work(work), struct ebb_vcpus, return_work);
	struct ebb_cpu_entry entry;
	u64 now_ns, next_ns;
	bool is_claimed;

	while (!READ_ONCE(v->queues->is_dead)) {
		now_ns = ktime_get_ns();
		spin_lock_irq(&v->lock);
		is_claimed = ebb_cpuset_claim(&v->cpuset, now_ns, &entry, &next_ns);
		spin_unlock_irq(&v->lock);
		if (!is_claimed) {
			if (next_ns != EBB_CPUSET_NEVER)
				ebb_vcpus_kick(v, nsecs_to_jiffies(next_ns - now_ns) + 1);
			break;
		}
		if (entry.state == EBB_CPU_STATE_LENT ? bring_online(v, &entry) :
		    send_back(v, &entry)) {
			spin_lock_irq(&v->lock);
			ebb_cpuset_retry(&v->cpuset, entry.desc.hv_cpu_id, ktime_get_ns());
			spin_unlock_irq(&v->lock);
			wake_up_all(&v->returned_wait);
		}
	}
	ebb_ref_put(v->queues->ref);
}

void ebb_vcpus_let_go(struct ebb_vcpus *v, u64 owner)
{
	unsigned int left;

	spin_lock_irq(&v->lock);
	left = ebb_cpuset_let_go_owner(&v->cpuset, owner);
	spin_unlock_irq(&v->lock);
	if (left)
		ebb_vcpus_kick(v, 0);
}

static bool is_wait_over(struct ebb_vcpus *v)
{
	bool is_over;

	/*
	 * Without an agent nobody takes them: at least they are offline then,
	 * unless they were to be lent, and the next driver will see to them.
	 */
	spin_lock_irq(&v->lock);
	is_over = v->is_agent_up ? !ebb_cpuset_num_hotplug(&v->cpuset) :
		ebb_cpuset_is_tried(&v->cpuset);
	spin_unlock_irq(&v->lock);
	return is_over || READ_ONCE(v->queues->is_dead);
}

void ebb_vcpus_return_all(struct ebb_vcpus *v)
{
	ebb_vcpus_let_go(v, 0);
	if (!wait_event_timeout(v->returned_wait, is_wait_over(v),
				msecs_to_jiffies(EBB_RETURN_ALL_WAIT_MS)))
		dev_warn(ebb_vcpus_dev(v), "the host did not take all CPUs back in time\n");
}

static enum ebb_cpu_state state_at_start(const struct ebb_vcpus *v, u16 flags)
{
	if (flags & VIRTIO_EBB_CPU_F_STARTUP)
		return EBB_CPU_STATE_STARTUP;
	if (flags & VIRTIO_EBB_CPU_F_LENT)
		return EBB_CPU_STATE_LENT;
	return v->cfg->can_lend ? EBB_CPU_STATE_LENDING : EBB_CPU_STATE_LEAVING;
}

static int take_cpu(struct ebb_vcpus *v, const struct ebb_cpu_desc *cpu)
{
	u32 number = ebb_hotplug_lookup(cpu->arch_id);
	enum ebb_cpu_state state = state_at_start(v, cpu->flags);
	int rc;

	spin_lock_irq(&v->lock);
	rc = ebb_cpuset_insert(&v->cpuset, cpu, state, 0, number);
	/* An event may have told of it already. */
	if (state == EBB_CPU_STATE_LENT && ebb_cpuset_find(&v->cpuset, cpu->hv_cpu_id))
		rc = 0;
	if (!rc && cpu->flags & VIRTIO_EBB_CPU_F_PARKED)
		ebb_hotplug_hold(number, true);
	else if (!rc && state == EBB_CPU_STATE_LENT &&
		 ebb_hotplug_is_usable(number, cpu->arch_id))
		ebb_cpuset_arrived(&v->cpuset, cpu->hv_cpu_id, number);
	spin_unlock_irq(&v->lock);
	return rc;
}

/* Takes over one piece of the device's table; returns how many CPUs it had. */
static int take_state(struct ebb_vcpus *v, const struct ebb_call *call, u32 start)
{
	const struct ebb_wire_answer *answer = &call->answer;
	u32 i;

	if (answer->status != VIRTIO_EBB_ACK || answer->total < v->cfg->num_startup_cpus ||
	    answer->total > v->cfg->max_cpus || answer->count > answer->total - start ||
	    (!answer->count && start < answer->total))
		return -EPROTO;

	for (i = 0; i < answer->count; i++) {
		bool is_startup = start + i < v->cfg->num_startup_cpus;
		struct ebb_cpu_desc cpu;
		int rc = ebb_wire_read_cpu(&call->resp.cpus[i], v->cfg, &cpu);

		if (rc)
			return rc;
		if (is_startup != !!(cpu.flags & VIRTIO_EBB_CPU_F_STARTUP) || take_cpu(v, &cpu))
			return -EPROTO;
	}
	return answer->count;
}

static const struct ebb_call_ops state_ops = { .late = ebb_call_free };

int ebb_vcpus_read_state(struct ebb_vcpus *v)
{
	u64 wait_ns = max_t(u64, EBB_STATE_WAIT_NS, v->cfg->request_timeout_ms * NSEC_PER_MSEC);
	u32 start = 0, total;
	int rc;

	do {
		struct ebb_call *call = ebb_call_create(VIRTIO_EBB_REQ_STATE, &state_ops, v);
		u64 deadline_ns = ktime_get_ns() + min_t(u64, wait_ns, 3 * EBB_STATE_WAIT_NS);

		if (!call)
			return -ENOMEM;
		call->req.u.state.start = cpu_to_le32(start);
		rc = ebb_call_run(v->queues, call, deadline_ns);
		if (rc)
			return rc;
		total = call->answer.total;
		rc = take_state(v, call, start);
		ebb_call_free(call);
		if (rc < 0)
			return rc;
		start += rc;
	} while (start < total);
	return 0;
}

void ebb_vcpus_setup(struct ebb_vcpus *v, struct ebb_queues *queues)
{
	v->queues = queues;
	v->cfg = queues->cfg;
	spin_lock_init(&v->lock);
	init_waitqueue_head(&v->returned_wait);
	INIT_DELAYED_WORK(&v->return_work, ebb_return_work);
}

int ebb_vcpus_init(struct ebb_vcpus *v)
{
	/*
	 * Twice as many as the VM can have: a CPU may be granted again before
	 * this side has heard that the host took it back.
	 */
	unsigned int capacity = 2 * v->cfg->max_cpus;
	struct ebb_cpu_entry *storage = kvcalloc(capacity, sizeof(*storage), GFP_KERNEL);

	if (!storage)
		return -ENOMEM;
	ebb_cpuset_init(&v->cpuset, storage, capacity, v->cfg->can_lend);
	return 0;
}

void ebb_vcpus_free(struct ebb_vcpus *v)
{
	kvfree(v->cpuset.entries);
}

void ebb_vcpus_close(struct ebb_vcpus *v)
{
	spin_lock_irq(&v->lock);
	WRITE_ONCE(v->is_closing, true);
	spin_unlock_irq(&v->lock);
}

void ebb_vcpus_stop(struct ebb_vcpus *v)
{
	wake_up_all(&v->returned_wait);
	ebb_queues_cancel(v->queues, &v->return_work);
}
