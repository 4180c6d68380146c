/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPUs of this VM, as a plain table: which belong to the startup set, who
 * owns the others, and which are on their way back to the host.  Pure: nothing
 * here sleeps, allocates, locks, reads a clock or does I/O.  The caller locks.
 *
 *     grant            ebb_cpuset_online
 *    -------> COMING ----------------------> OWNED
 *                |                             |
 *                | ebb_cpuset_leave            | ebb_cpuset_leave,
 *                v                             | ebb_cpuset_leave_owner
 *             LEAVING <------------------------+
 *              |   ^ |
 *              |   +-+ ebb_cpuset_retry: the host is busy or away, or Linux keeps the CPU
 *              v
 *          (deleted)   ebb_cpuset_delete: the host confirmed
 *
 * STARTUP   never changes.
 * COMING    granted; somebody waits for it to appear and brings it online.
 * OWNED     online, and of one open of /dev/ebb.  Its Linux number is known.
 * LEAVING   of nobody.  Perhaps still online, perhaps not even plugged yet.
 *
 * I1  hv_cpu_id is unique and not 0.
 * I2  arch_id is unique among the entries that are not LEAVING.  The host may
 *     plug a CPU again before this side has finished with its removal.
 * I3  owner is not 0 exactly if the state is COMING or OWNED.
 * I4  a busy entry is worked on by one task; nobody else takes it offline,
 *     asks the host about it, or deletes it.
 * I5  the startup set comes first, the rest is in the order of its arrival.
 */
#ifndef EBB_CPUSET_H
#define EBB_CPUSET_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include "tests/lib/kshim.h"
#endif

/* Linux number of a CPU that Linux does not know (yet, or any more). */
#define EBB_CPUSET_NO_CPU	0xffffffffu

/* ebb_cpuset_claim_leaving: nothing is waiting for a later time. */
#define EBB_CPUSET_NEVER	(~0ULL)

#define EBB_CPUSET_RETRY_MIN_NS	100000000ULL	/* first wait before a return is tried again */
#define EBB_CPUSET_RETRY_MAX_NS	10000000000ULL	/* it doubles up to this */

enum ebb_cpu_state {
	EBB_CPU_STATE_STARTUP,
	EBB_CPU_STATE_COMING,
	EBB_CPU_STATE_OWNED,
	EBB_CPU_STATE_LEAVING,
};

/* A CPU as the device describes it, in the byte order of this machine. */
struct ebb_cpu_desc {
	u64 hv_cpu_id;
	u32 arch_id;
	u16 pxm;		/* guest proximity domain */
	u16 flags;		/* VIRTIO_EBB_CPU_F_* */
};

struct ebb_cpu_entry {
	struct ebb_cpu_desc desc;
	u64 owner;		/* number of the open that owns it; 0: nobody */
	u64 retry_at_ns;	/* LEAVING: not to be tried again before */
	u32 cpu;		/* Linux number or EBB_CPUSET_NO_CPU */
	u8 state;		/* enum ebb_cpu_state */
	u8 failures;		/* LEAVING: tries since the last good sign, saturates */
	bool busy;		/* see I4 */
};

struct ebb_cpuset {
	struct ebb_cpu_entry *entries;
	unsigned int count;
	unsigned int capacity;
};

/* storage has room for capacity entries and stays the caller's. */
void ebb_cpuset_init(struct ebb_cpuset *set, struct ebb_cpu_entry *storage,
		     unsigned int capacity);

/*
 * -EINVAL hv_cpu_id is 0 or owner does not suit the state; -EEXIST one of the
 * ids is taken (I1, I2); -ENOSPC more CPUs than the VM can have.
 */
int ebb_cpuset_insert(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc,
		      enum ebb_cpu_state state, u64 owner, u32 cpu);

/* Both give NULL if there is none.  The pointer is good until the next insert or delete. */
struct ebb_cpu_entry *ebb_cpuset_find(struct ebb_cpuset *set, u64 hv_cpu_id);
struct ebb_cpu_entry *ebb_cpuset_find_cpu(struct ebb_cpuset *set, u32 cpu);

/* COMING to OWNED.  -ESTALE: it was taken from its owner meanwhile. */
int ebb_cpuset_online(struct ebb_cpuset *set, u64 hv_cpu_id, u32 cpu);

/*
 * May owner remove this CPU now?  Then it is busy and *ret_entry is a copy.
 * -ENOENT, -EPERM, -EACCES and -EINPROGRESS as for EBB_IOC_CPU_REMOVE; -EBUSY
 * another task of the same owner is removing it.
 */
int ebb_cpuset_begin_remove(struct ebb_cpuset *set, u32 cpu, u64 owner,
			    struct ebb_cpu_entry *ret_entry);

/* The task that made it busy is done with it, and nothing changed. */
void ebb_cpuset_end_busy(struct ebb_cpuset *set, u64 hv_cpu_id);

/* To LEAVING; a busy entry stays busy.  No effect on the startup set. */
void ebb_cpuset_leave(struct ebb_cpuset *set, u64 hv_cpu_id);

/* The same for all CPUs of an owner, or of everybody (0).  Returns how many. */
unsigned int ebb_cpuset_leave_owner(struct ebb_cpuset *set, u64 owner);

/*
 * Picks a LEAVING entry that is due and makes it busy.  If there is none,
 * returns false and when to look again.
 */
bool ebb_cpuset_claim_leaving(struct ebb_cpuset *set, u64 now_ns,
			      struct ebb_cpu_entry *ret_entry, u64 *ret_next_ns);

/* The claimed entry could not be returned: try again, later every time. */
void ebb_cpuset_retry(struct ebb_cpuset *set, u64 hv_cpu_id, u64 now_ns);

/* The agent is back: whatever waits is due. */
void ebb_cpuset_retry_now(struct ebb_cpuset *set);

void ebb_cpuset_delete(struct ebb_cpuset *set, u64 hv_cpu_id);

/* Was the return of every CPU outside the startup set tried, and is none of them worked on? */
bool ebb_cpuset_is_tried(const struct ebb_cpuset *set);

/*
 * New flags from the host.  -ENOENT no such CPU; -EINVAL something else than
 * FORCED differs, or FORCED is set for a CPU of the startup set.
 */
int ebb_cpuset_set_flags(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc);

/* Is an older plug of this CPU still being cleared away? */
bool ebb_cpuset_is_leaving(const struct ebb_cpuset *set, u32 arch_id);

/* Does an entry that is not LEAVING stand for this CPU? */
bool ebb_cpuset_is_used(const struct ebb_cpuset *set, u32 arch_id);

/* CPUs outside the startup set, LEAVING ones included. */
unsigned int ebb_cpuset_num_hotplug(const struct ebb_cpuset *set);
unsigned int ebb_cpuset_num_owned(const struct ebb_cpuset *set, u64 owner);

#endif /* EBB_CPUSET_H */
