/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPUs of this VM, as a plain table: which belong to the startup set, who
 * owns the others, which are lent, and which are on their way back to the host.
 * Pure: nothing here sleeps, allocates, locks, reads a clock or does I/O.  The
 * caller locks.
 *
 *      grant           ebb_cpuset_online
 *    --------> COMING ------------------> OWNED
 *               ^  |                        |
 *      regrant  |  | let_go, let_go_owner,  | end_give, let_go_owner
 *               |  v                        v
 *              LENT <------ LENDING <-------+      if the device can lend
 *               |     lent   ^ |            |
 *    begin_give |            | | begin_give |
 *               v            | v            v
 *              LEAVING       +- - - - - > LEAVING  otherwise, or if it is to be removed
 *                 |
 *                 v
 *             (deleted)   ebb_cpuset_delete: the host confirmed
 *
 * STARTUP   never changes.
 * COMING    granted; somebody waits for it to appear and brings it online.
 * OWNED     online, and of one open of /dev/ebb.  Its Linux number is known.
 * LENDING   of nobody; the host is to lend it, or to park it (parks).  Tried
 *           again with ebb_cpuset_retry() while the host is busy or away.
 * LENT      of nobody; the host has its core.  arrives: it is to be brought online.
 * LEAVING   of nobody.  Perhaps still online, perhaps not even plugged yet.
 *           Tried again, as LENDING.
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
	EBB_CPU_STATE_LENDING,
	EBB_CPU_STATE_LENT,
};

/* How a CPU is given back. */
enum ebb_give {
	EBB_GIVE_REMOVE,
	EBB_GIVE_LEND,
	EBB_GIVE_PARK,
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
	u64 last_owner;		/* of nobody: the open that let it go; 0: none did */
	u64 retry_at_ns;	/* of nobody: not to be tried again before */
	u32 cpu;		/* Linux number or EBB_CPUSET_NO_CPU */
	u8 state;		/* enum ebb_cpu_state */
	u8 failures;		/* of nobody: tries since the last good sign, saturates */
	bool busy;		/* see I4 */
	bool parks;		/* LENDING: to be taken offline and parked */
	bool arrives;		/* LENT: not parked and not seen online yet */
};

struct ebb_cpuset {
	struct ebb_cpu_entry *entries;
	unsigned int count;
	unsigned int capacity;
	bool can_lend;		/* what its owner lets go is lent, not returned */
};

/* storage has room for capacity entries and stays the caller's. */
void ebb_cpuset_init(struct ebb_cpuset *set, struct ebb_cpu_entry *storage,
		     unsigned int capacity, bool can_lend);

/*
 * A LENT one arrives unless its flags say that it is parked.  -EINVAL hv_cpu_id
 * is 0, owner does not suit the state, or it is to be lent and can not; -EEXIST
 * one of the ids is taken (I1, I2); -ENOSPC more CPUs than the VM can have.
 */
int ebb_cpuset_insert(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc,
		      enum ebb_cpu_state state, u64 owner, u32 cpu);

/* Both give NULL if there is none.  The pointer is good until the next insert or delete. */
struct ebb_cpu_entry *ebb_cpuset_find(struct ebb_cpuset *set, u64 hv_cpu_id);
struct ebb_cpu_entry *ebb_cpuset_find_cpu(struct ebb_cpuset *set, u32 cpu);

/* COMING to OWNED.  -ESTALE: it was taken from its owner meanwhile. */
int ebb_cpuset_online(struct ebb_cpuset *set, u64 hv_cpu_id, u32 cpu);

/*
 * The host granted a CPU that is lent: LENT to COMING for owner, with the flags
 * of desc, or (0) back to LENDING.  -ENOENT there is none with this hv_cpu_id;
 * -ESTALE it is on its way back, and the host will hear of that after this
 * grant; -EEXIST it is another CPU, or not lent.
 */
int ebb_cpuset_regrant(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc, u64 owner);

/*
 * May owner give this CPU back like this, now?  Then it is busy and *ret_entry
 * is a copy of what it was.  A CPU that nobody owns may be parked or removed by
 * its last owner, and by an administrator (is_admin); it is LENDING or LEAVING
 * from now on, so that nobody is granted it meanwhile.
 * -ENOENT, -EPERM, -EACCES and -EINPROGRESS as for EBB_IOC_CPU_LEND; -EBUSY
 * another task works on it, or it is parked and would not be; -EALREADY it is
 * lent, or parked, as wished.
 */
int ebb_cpuset_begin_give(struct ebb_cpuset *set, u32 cpu, u64 owner, bool is_admin,
			  enum ebb_give how, struct ebb_cpu_entry *ret_entry);

/* The task that gives it back has stopped its use: LENDING or LEAVING, and still busy. */
void ebb_cpuset_end_give(struct ebb_cpuset *set, u64 hv_cpu_id, enum ebb_give how);

/*
 * It could not: what ebb_cpuset_begin_give() did is undone; old is its ret_entry.
 * A CPU that was LENT becomes LENDING: if the host granted it in the meantime,
 * ebb_cpuset_regrant() dropped that grant, and the host must hear that the CPU
 * is lent.
 */
void ebb_cpuset_undo_give(struct ebb_cpuset *set, const struct ebb_cpu_entry *old);

/* To LEAVING; a busy entry stays busy.  No effect on the startup set, or on what is lent. */
void ebb_cpuset_leave(struct ebb_cpuset *set, u64 hv_cpu_id);

/* The same, but to LENDING if the device can lend. */
void ebb_cpuset_let_go(struct ebb_cpuset *set, u64 hv_cpu_id);

/* The same by its Linux number, if it is still this owner's. */
void ebb_cpuset_let_go_cpu(struct ebb_cpuset *set, u32 cpu, u64 owner);

/* Lets go all CPUs of an owner, or of everybody (0).  Returns how many. */
unsigned int ebb_cpuset_let_go_owner(struct ebb_cpuset *set, u64 owner);

/*
 * The host has lent a LENDING one, with these flags: LENT, and not busy any
 * more.  It arrives unless it is parked or online.  False: it is not LENDING.
 */
bool ebb_cpuset_lent(struct ebb_cpuset *set, u64 hv_cpu_id, u16 flags, bool is_online);

/*
 * The task that brought it online is done: cpu is its number, or
 * EBB_CPUSET_NO_CPU if that failed for good.
 */
void ebb_cpuset_arrived(struct ebb_cpuset *set, u64 hv_cpu_id, u32 cpu);

/*
 * The result of the request does not say whether the CPU still exists: a LENT entry becomes
 * LENDING, which asks the host.  Not busy then.
 */
void ebb_cpuset_doubt(struct ebb_cpuset *set, u64 hv_cpu_id);

/*
 * Picks an entry that is due and makes it busy: LENDING ones first, since that
 * takes no time, then LEAVING ones, then those that arrive.  If there is none,
 * returns false and when to look again.
 */
bool ebb_cpuset_claim(struct ebb_cpuset *set, u64 now_ns, struct ebb_cpu_entry *ret_entry,
		      u64 *ret_next_ns);

/*
 * The step that was due for the claimed entry failed: it is due again, after a pause that grows
 * each time.
 */
void ebb_cpuset_retry(struct ebb_cpuset *set, u64 hv_cpu_id, u64 now_ns);

/* The agent is back: whatever waits is due. */
void ebb_cpuset_retry_now(struct ebb_cpuset *set);

void ebb_cpuset_delete(struct ebb_cpuset *set, u64 hv_cpu_id);

/* Was it tried to give back every CPU that is not lent, and is none of them worked on? */
bool ebb_cpuset_is_tried(const struct ebb_cpuset *set);

/*
 * New flags from the host.  A CPU that is LENT or LENDING, or that the new flags call lent, keeps
 * its own flags: the message has crossed a request.  -ENOENT no such CPU; -EINVAL something else
 * than FORCED differs, or FORCED is set for a CPU of the startup set.
 */
int ebb_cpuset_set_flags(struct ebb_cpuset *set, const struct ebb_cpu_desc *desc);

/* Is an older plug of this CPU still being cleared away? */
bool ebb_cpuset_is_leaving(const struct ebb_cpuset *set, u32 arch_id);

/* Does an entry that is not LEAVING stand for this CPU? */
bool ebb_cpuset_is_used(const struct ebb_cpuset *set, u32 arch_id);

/* CPUs outside the startup set, LENDING and LEAVING ones included, LENT ones not. */
unsigned int ebb_cpuset_num_hotplug(const struct ebb_cpuset *set);
unsigned int ebb_cpuset_num_lent(const struct ebb_cpuset *set);
unsigned int ebb_cpuset_num_owned(const struct ebb_cpuset *set, u64 owner);

#endif /* EBB_CPUSET_H */
