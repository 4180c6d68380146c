// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of CPUs; see ebb_cpuset.h.  Linear searches: a VM has at most a few
 * hundred CPUs, and every use of the table is followed by work that takes
 * thousands of times longer.
 */
#include "ebb_cpuset.h"

#include <linux/virtio_ebb.h>

void ebb_cpuset_init(struct ebb_cpuset *set, struct ebb_cpu_entry *storage, unsigned int capacity)
{
	set->entries = storage;
	set->count = 0;
	set->capacity = capacity;
}

int ebb_cpuset_insert(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc,
		      enum ebb_cpu_state state, u64 owner, u32 cpu)
{
	bool needs_owner = state == EBB_CPU_STATE_COMING || state == EBB_CPU_STATE_OWNED;

	if (!desc->hv_cpu_id || needs_owner != !!owner)
		return -EINVAL;
	if (ebb_cpuset_find(set, desc->hv_cpu_id) ||
	    (state != EBB_CPU_STATE_LEAVING && ebb_cpuset_is_used(set, desc->arch_id)))
		return -EEXIST;
	if (set->count == set->capacity)
		return -ENOSPC;

	set->entries[set->count++] = (struct ebb_cpu_entry) {
		.desc = *desc,
		.owner = owner,
		.cpu = cpu,
		.state = state,
	};
	return 0;
}

struct ebb_cpu_entry *ebb_cpuset_find(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	unsigned int i;

	for (i = 0; i < set->count; i++)
		if (set->entries[i].desc.hv_cpu_id == hv_cpu_id)
			return &set->entries[i];
	return NULL;
}

struct ebb_cpu_entry *ebb_cpuset_find_cpu(struct ebb_cpuset *set, u32 cpu)
{
	struct ebb_cpu_entry *leaving = NULL;
	unsigned int i;

	if (cpu == EBB_CPUSET_NO_CPU)
		return NULL;
	for (i = 0; i < set->count; i++) {
		if (set->entries[i].cpu != cpu)
			continue;
		if (set->entries[i].state != EBB_CPU_STATE_LEAVING)
			return &set->entries[i];
		leaving = &set->entries[i];
	}
	return leaving;
}

int ebb_cpuset_online(struct ebb_cpuset *set, u64 hv_cpu_id, u32 cpu)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (!e)
		return -ENOENT;
	if (e->state == EBB_CPU_STATE_LEAVING)
		e->cpu = cpu;
	if (e->state != EBB_CPU_STATE_COMING)
		return -ESTALE;
	e->cpu = cpu;
	e->state = EBB_CPU_STATE_OWNED;
	return 0;
}

int ebb_cpuset_begin_remove(struct ebb_cpuset *set, u32 cpu, u64 owner,
			    struct ebb_cpu_entry *ret_entry)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find_cpu(set, cpu);

	if (!e)
		return -ENOENT;
	switch (e->state) {
	case EBB_CPU_STATE_STARTUP:
		return -EPERM;
	case EBB_CPU_STATE_LEAVING:
		return -EINPROGRESS;
	default:
		break;
	}
	if (e->owner != owner)
		return -EACCES;
	if (e->busy || e->state != EBB_CPU_STATE_OWNED)
		return -EBUSY;
	e->busy = true;
	*ret_entry = *e;
	return 0;
}

void ebb_cpuset_end_busy(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (e)
		e->busy = false;
}

static bool leave(struct ebb_cpu_entry *e)
{
	if (e->state != EBB_CPU_STATE_COMING && e->state != EBB_CPU_STATE_OWNED)
		return false;
	e->state = EBB_CPU_STATE_LEAVING;
	e->owner = 0;
	e->failures = 0;
	e->retry_at_ns = 0;
	return true;
}

void ebb_cpuset_leave(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (e)
		leave(e);
}

unsigned int ebb_cpuset_leave_owner(struct ebb_cpuset *set, u64 owner)
{
	unsigned int i, n = 0;

	for (i = 0; i < set->count; i++)
		if ((!owner || set->entries[i].owner == owner) && leave(&set->entries[i]))
			n++;
	return n;
}

bool ebb_cpuset_claim_leaving(struct ebb_cpuset *set, u64 now_ns,
			      struct ebb_cpu_entry *ret_entry, u64 *ret_next_ns)
{
	u64 next_ns = EBB_CPUSET_NEVER;
	unsigned int i;

	for (i = 0; i < set->count; i++) {
		struct ebb_cpu_entry *e = &set->entries[i];

		if (e->state != EBB_CPU_STATE_LEAVING || e->busy)
			continue;
		if (e->retry_at_ns <= now_ns) {
			e->busy = true;
			*ret_entry = *e;
			return true;
		}
		if (e->retry_at_ns < next_ns)
			next_ns = e->retry_at_ns;
	}
	*ret_next_ns = next_ns;
	return false;
}

void ebb_cpuset_retry(struct ebb_cpuset *set, u64 hv_cpu_id, u64 now_ns)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);
	u64 wait_ns = EBB_CPUSET_RETRY_MIN_NS;
	unsigned int i;

	if (!e)
		return;
	for (i = 0; i < e->failures && wait_ns < EBB_CPUSET_RETRY_MAX_NS; i++)
		wait_ns *= 2;
	if (wait_ns > EBB_CPUSET_RETRY_MAX_NS)
		wait_ns = EBB_CPUSET_RETRY_MAX_NS;
	if (e->failures < 255)
		e->failures++;
	e->retry_at_ns = now_ns + wait_ns;
	e->busy = false;
}

void ebb_cpuset_retry_now(struct ebb_cpuset *set)
{
	unsigned int i;

	for (i = 0; i < set->count; i++) {
		set->entries[i].failures = 0;
		set->entries[i].retry_at_ns = 0;
	}
}

void ebb_cpuset_delete(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);
	unsigned int i;

	if (!e)
		return;
	i = e - set->entries;
	set->count--;
	memmove(e, e + 1, (set->count - i) * sizeof(*e));
}

bool ebb_cpuset_is_tried(const struct ebb_cpuset *set)
{
	unsigned int i;

	for (i = 0; i < set->count; i++) {
		const struct ebb_cpu_entry *e = &set->entries[i];

		if (e->state != EBB_CPU_STATE_STARTUP &&
		    (e->state != EBB_CPU_STATE_LEAVING || e->busy || !e->failures))
			return false;
	}
	return true;
}

int ebb_cpuset_set_flags(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, desc->hv_cpu_id);

	if (!e)
		return -ENOENT;
	if (e->desc.arch_id != desc->arch_id || e->desc.pxm != desc->pxm ||
	    (e->desc.flags ^ desc->flags) & ~VIRTIO_EBB_CPU_F_FORCED ||
	    e->state == EBB_CPU_STATE_STARTUP)
		return -EINVAL;
	e->desc.flags = desc->flags;
	return 0;
}

bool ebb_cpuset_is_leaving(const struct ebb_cpuset *set, u32 arch_id)
{
	unsigned int i;

	for (i = 0; i < set->count; i++)
		if (set->entries[i].desc.arch_id == arch_id &&
		    set->entries[i].state == EBB_CPU_STATE_LEAVING)
			return true;
	return false;
}

bool ebb_cpuset_is_used(const struct ebb_cpuset *set, u32 arch_id)
{
	unsigned int i;

	for (i = 0; i < set->count; i++)
		if (set->entries[i].desc.arch_id == arch_id &&
		    set->entries[i].state != EBB_CPU_STATE_LEAVING)
			return true;
	return false;
}

unsigned int ebb_cpuset_num_hotplug(const struct ebb_cpuset *set)
{
	unsigned int i, n = 0;

	for (i = 0; i < set->count; i++)
		n += set->entries[i].state != EBB_CPU_STATE_STARTUP;
	return n;
}

unsigned int ebb_cpuset_num_owned(const struct ebb_cpuset *set, u64 owner)
{
	unsigned int i, n = 0;

	for (i = 0; i < set->count; i++)
		n += owner && set->entries[i].owner == owner;
	return n;
}
