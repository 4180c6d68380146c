// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of CPUs; see cpuset.h.  Linear searches: a VM has at most a few
 * hundred CPUs, and every use of the table is followed by work that takes
 * thousands of times longer.
 */
#include "cpuset.h"

#include <linux/virtio_ebb.h>

void ebb_cpuset_init(struct ebb_cpuset *set, struct ebb_cpu_entry *storage, unsigned int capacity,
		     bool can_lend)
{
	set->entries = storage;
	set->count = 0;
	set->capacity = capacity;
	set->can_lend = can_lend;
}

static bool is_returning(const struct ebb_cpu_entry *e)
{
	return e->state == EBB_CPU_STATE_LEAVING || e->state == EBB_CPU_STATE_LENDING;
}

int ebb_cpuset_insert(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc,
		      enum ebb_cpu_state state, u64 owner, u32 cpu)
{
	bool needs_owner = state == EBB_CPU_STATE_COMING || state == EBB_CPU_STATE_OWNED;
	bool is_lending = state == EBB_CPU_STATE_LENDING || state == EBB_CPU_STATE_LENT;
	unsigned int i = set->count;

	if (!desc->hv_cpu_id || needs_owner != !!owner || (is_lending && !set->can_lend))
		return -EINVAL;
	if (ebb_cpuset_find(set, desc->hv_cpu_id) ||
	    (state != EBB_CPU_STATE_LEAVING && ebb_cpuset_is_used(set, desc->arch_id)))
		return -EEXIST;
	if (set->count == set->capacity)
		return -ENOSPC;

	/* I5: an event may have been faster than the list of the startup set. */
	if (state == EBB_CPU_STATE_STARTUP)
		while (i > 0 && set->entries[i - 1].state != EBB_CPU_STATE_STARTUP)
			i--;
	memmove(&set->entries[i + 1], &set->entries[i],
		(set->count - i) * sizeof(set->entries[0]));
	set->count++;
	set->entries[i] = (struct ebb_cpu_entry) {
		.desc = *desc,
		.owner = owner,
		.cpu = cpu,
		.state = state,
		.arrives = state == EBB_CPU_STATE_LENT &&
			   !(desc->flags & VIRTIO_EBB_CPU_F_PARKED),
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
	if (is_returning(e))
		e->cpu = cpu;
	if (e->state != EBB_CPU_STATE_COMING)
		return -ESTALE;
	e->cpu = cpu;
	e->state = EBB_CPU_STATE_OWNED;
	return 0;
}

static void to_nobody(struct ebb_cpu_entry *e, enum ebb_cpu_state state)
{
	e->state = state;
	if (e->owner)
		e->last_owner = e->owner;
	e->owner = 0;
	e->failures = 0;
	e->retry_at_ns = 0;
	e->parks = false;
	e->arrives = false;
	/* The host says anew what is lent. */
	e->desc.flags &= ~(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED);
}

int ebb_cpuset_regrant(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc, u64 owner)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, desc->hv_cpu_id);

	if (!e)
		return -ENOENT;
	if (e->desc.arch_id != desc->arch_id || e->desc.pxm != desc->pxm)
		return -EEXIST;
	if (is_returning(e))
		return -ESTALE;
	if (e->state != EBB_CPU_STATE_LENT)
		return -EEXIST;
	to_nobody(e, owner ? EBB_CPU_STATE_COMING : EBB_CPU_STATE_LENDING);
	e->owner = owner;
	e->last_owner = 0;
	e->desc.flags = desc->flags;
	return 0;
}

static int check_give_lent(const struct ebb_cpu_entry *e, enum ebb_give how)
{
	bool is_parked = e->desc.flags & VIRTIO_EBB_CPU_F_PARKED;

	if (how == EBB_GIVE_PARK && is_parked)
		return -EALREADY;
	if (how == EBB_GIVE_LEND)
		return is_parked ? -EBUSY : -EALREADY;
	return e->busy ? -EBUSY : 0;
}

/* Lending what is lent changes nothing; all else is for its last owner and administrators. */
static bool may_give(const struct ebb_cpu_entry *e, u64 owner, bool is_admin, enum ebb_give how)
{
	return how == EBB_GIVE_LEND || is_admin || e->last_owner == owner;
}

static int check_give(const struct ebb_cpu_entry *e, u64 owner, bool is_admin, enum ebb_give how)
{
	switch (e->state) {
	case EBB_CPU_STATE_STARTUP:
		return -EPERM;
	case EBB_CPU_STATE_LEAVING:
		return -EINPROGRESS;
	case EBB_CPU_STATE_LENDING:
		if (how == EBB_GIVE_LEND)
			return -EINPROGRESS;
		if (!may_give(e, owner, is_admin, how))
			return -EACCES;
		return e->busy ? -EBUSY : 0;
	case EBB_CPU_STATE_LENT:
		return may_give(e, owner, is_admin, how) ? check_give_lent(e, how) : -EACCES;
	default:
		break;
	}
	if (e->owner != owner)
		return -EACCES;
	return e->busy || e->state != EBB_CPU_STATE_OWNED ? -EBUSY : 0;
}

static void give(struct ebb_cpu_entry *e, enum ebb_give how)
{
	to_nobody(e, how == EBB_GIVE_REMOVE ? EBB_CPU_STATE_LEAVING : EBB_CPU_STATE_LENDING);
	e->parks = how == EBB_GIVE_PARK;
}

int ebb_cpuset_begin_give(struct ebb_cpuset *set, u32 cpu, u64 owner, bool is_admin,
			  enum ebb_give how, struct ebb_cpu_entry *ret_entry)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find_cpu(set, cpu);
	int rc = e ? check_give(e, owner, is_admin, how) : -ENOENT;

	if (rc)
		return rc;
	*ret_entry = *e;
	if (e->state != EBB_CPU_STATE_OWNED)
		give(e, how);
	e->busy = true;
	return 0;
}

void ebb_cpuset_end_give(struct ebb_cpuset *set, u64 hv_cpu_id, enum ebb_give how)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (e)
		give(e, how);
}

void ebb_cpuset_undo_give(struct ebb_cpuset *set, const struct ebb_cpu_entry *old)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, old->desc.hv_cpu_id);

	if (!e)
		return;
	/* An owned one may have been taken from its owner meanwhile. */
	if (old->state != EBB_CPU_STATE_OWNED)
		*e = *old;
	if (old->state == EBB_CPU_STATE_LENT)
		give(e, old->desc.flags & VIRTIO_EBB_CPU_F_PARKED ? EBB_GIVE_PARK : EBB_GIVE_LEND);
	e->busy = false;
}

static bool is_owned(const struct ebb_cpu_entry *e)
{
	return e->state == EBB_CPU_STATE_COMING || e->state == EBB_CPU_STATE_OWNED;
}

static bool let_go(const struct ebb_cpuset *set, struct ebb_cpu_entry *e)
{
	if (!is_owned(e))
		return false;
	give(e, set->can_lend ? EBB_GIVE_LEND : EBB_GIVE_REMOVE);
	return true;
}

void ebb_cpuset_leave(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (e && is_owned(e))
		give(e, EBB_GIVE_REMOVE);
}

void ebb_cpuset_let_go(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (e)
		let_go(set, e);
}

void ebb_cpuset_let_go_cpu(struct ebb_cpuset *set, u32 cpu, u64 owner)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find_cpu(set, cpu);

	if (e && e->owner == owner)
		let_go(set, e);
}

unsigned int ebb_cpuset_let_go_owner(struct ebb_cpuset *set, u64 owner)
{
	unsigned int i, n = 0;

	for (i = 0; i < set->count; i++)
		if (!owner || set->entries[i].owner == owner)
			n += let_go(set, &set->entries[i]);
	return n;
}

bool ebb_cpuset_lent(struct ebb_cpuset *set, u64 hv_cpu_id, u16 flags, bool is_online)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (!e || e->state != EBB_CPU_STATE_LENDING)
		return false;
	to_nobody(e, EBB_CPU_STATE_LENT);
	e->desc.flags = flags;
	e->arrives = !is_online && !(flags & VIRTIO_EBB_CPU_F_PARKED);
	e->busy = false;
	return true;
}

void ebb_cpuset_arrived(struct ebb_cpuset *set, u64 hv_cpu_id, u32 cpu)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (!e)
		return;
	if (cpu != EBB_CPUSET_NO_CPU)
		e->cpu = cpu;
	e->arrives = false;
	e->busy = false;
}

void ebb_cpuset_doubt(struct ebb_cpuset *set, u64 hv_cpu_id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(set, hv_cpu_id);

	if (!e)
		return;
	if (e->state == EBB_CPU_STATE_LENT)
		give(e, EBB_GIVE_LEND);
	e->busy = false;
}

/* What there is to do with an entry, the most urgent first; negative: nothing. */
static int rank_of(const struct ebb_cpu_entry *e)
{
	switch (e->state) {
	case EBB_CPU_STATE_LENDING:
		return 0;
	case EBB_CPU_STATE_LEAVING:
		return 1;
	case EBB_CPU_STATE_LENT:
		return e->arrives ? 2 : -1;
	default:
		return -1;
	}
}

bool ebb_cpuset_claim(struct ebb_cpuset *set, u64 now_ns, struct ebb_cpu_entry *ret_entry,
		      u64 *ret_next_ns)
{
	struct ebb_cpu_entry *best = NULL;
	u64 next_ns = EBB_CPUSET_NEVER;
	unsigned int i;

	for (i = 0; i < set->count; i++) {
		struct ebb_cpu_entry *e = &set->entries[i];

		if (rank_of(e) < 0 || e->busy)
			continue;
		if (e->retry_at_ns > now_ns) {
			if (e->retry_at_ns < next_ns)
				next_ns = e->retry_at_ns;
		} else if (!best || rank_of(e) < rank_of(best)) {
			best = e;
		}
	}
	if (best) {
		best->busy = true;
		*ret_entry = *best;
		return true;
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

		if (is_owned(e) || (is_returning(e) && (e->busy || !e->failures)))
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
	    e->state == EBB_CPU_STATE_STARTUP)
		return -EINVAL;
	if (e->state == EBB_CPU_STATE_LENT || e->state == EBB_CPU_STATE_LENDING ||
	    desc->flags & VIRTIO_EBB_CPU_F_LENT)
		return 0;
	if ((e->desc.flags ^ desc->flags) & ~VIRTIO_EBB_CPU_F_FORCED)
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
		n += set->entries[i].state != EBB_CPU_STATE_STARTUP &&
		     set->entries[i].state != EBB_CPU_STATE_LENT;
	return n;
}

unsigned int ebb_cpuset_num_lent(const struct ebb_cpuset *set)
{
	unsigned int i, n = 0;

	for (i = 0; i < set->count; i++)
		n += set->entries[i].state == EBB_CPU_STATE_LENT;
	return n;
}

unsigned int ebb_cpuset_num_owned(const struct ebb_cpuset *set, u64 owner)
{
	unsigned int i, n = 0;

	for (i = 0; i < set->count; i++)
		n += owner && set->entries[i].owner == owner;
	return n;
}
