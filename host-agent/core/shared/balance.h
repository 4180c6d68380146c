/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared cores: which of them the vCPUs of VMs that have no cores of their own run on.
 *
 * Every vCPU is assigned to one core, and several VMs may have vCPUs on a core.  A VM does not
 * notice idle VMs on its core, but it does notice a busy one.  So at the end of every window the
 * agent looks at what was used.  Where a core was hot and more than one VM computed on it, vCPUs
 * are moved to other cores until it is not hot any more: as few as possible, and those whose moves
 * cost least.  Where no move helps, the host counts as hot; if no move helps at the next look
 * either, VMs are throttled to their shares of the core.
 *
 * Other programs of the host may take time of a core, so that its vCPUs use less of it and wait.
 * Such a core is hot if it would have been hot without them.  vCPUs that wait and still demand no
 * more than the target have done all their work, if later: their core is not hot.
 *
 * The vCPUs of a VM come in groups: all of a group are on one node, different groups of a VM on
 * different nodes where there are enough.  A small VM is one group; a large one has several of
 * the same size.  No VM has two vCPUs on a core as long as the cores of the node suffice.
 *
 * Pure: the caller fills in what was measured, and gets where vCPUs are to run.  Loads are
 * thousandths of a core.  After "Flexible resource allocation for relational
 * database-as-a-service", section 5.
 */
#ifndef EBB_CORE_SHARE_H
#define EBB_CORE_SHARE_H

#include "model/types.h"

#define EBB_SHARE_NONE		0xffffu
#define EBB_SHARE_MAX_VCPUS	16384u

struct ebb_share_config {
	usec_t window;			/* over which loads are measured; the time between looks */
	/* A VM that was moved is not moved again for this many windows, unless its load changes. */
	uint16_t hold_windows;
	uint16_t hot;			/* a core is hot from this use on */
	uint16_t target;		/* a hot core is to come down to this; below hot */
	uint16_t host_hot;		/* the host is hot from this use of its shared cores on */
	uint16_t active;		/* a VM computes on a core if it uses this part of it */
	uint16_t change;		/* the load of a vCPU of a VM has changed */
	/*
	 * The most that may be promised on a core: no vCPU with a promise moves to a core where it
	 * would be more, and a new one gets such a place only if there is no other.
	 */
	uint16_t most_reserve;
	usec_t move_usec;		/* what moving a vCPU costs: caches that are cold */
};

/* 15 s, 4, 850, 750, 750, 50, 150, 950, 1 ms. */
void ebb_share_config_default(struct ebb_share_config *ret);

struct ebb_share_core {
	uint16_t thread;		/* of the host; for the caller, not looked at */
	uint16_t node;
	/* Out, and kept by the caller until the next look. */
	uint16_t num_vcpus;
	uint16_t num_active;		/* VMs that computed here */
	uint32_t use;			/* what was used in the window */
	uint32_t due;			/* at least one vCPU was running or ready for so long */
	uint32_t level;			/* what is_hot is judged by: use, due or demand */
	uint32_t demand;		/* what would be used with the places as they are now */
	uint32_t reserve;		/* promised to the vCPUs that have their places here */
	bool is_hot;			/* used too much by more than one VM in the window */
	bool is_stuck, was_stuck;	/* hot, and nothing helps; in the look before */
	bool is_held;			/* hot, and VMs whose move would help were moved lately */
	uint16_t first;			/* private: vCPUs here */
	bool is_done;			/* private: nothing more is to be tried */
};

struct ebb_share_vcpu {
	uint16_t vm, group;
	uint16_t core;			/* in and out; EBB_SHARE_NONE: has no place yet */
	uint16_t use;			/* of a core, in the window: computed */
	uint16_t wait;			/* the same: could have computed, but something else ran;
					 * so it was ready for use + wait */
	uint16_t reserve;		/* promised to it */
	/* Out. */
	uint16_t from;			/* where it was */
	uint16_t demand;		/* what it would use if it had a core alone */
	uint16_t next;			/* private */
};

struct ebb_share_vm {
	uint32_t weight;
	uint32_t first, num_vcpus;	/* its vCPUs: first to first + num_vcpus - 1 of
					 * ebb_share.vcpus */
	uint16_t num_groups;		/* 1 to EBB_MAX_GUEST_NODES */
	/* By group: the node where it stays; EBB_NODE_ANY: placing its vCPUs chooses one. */
	uint16_t nodes[EBB_MAX_GUEST_NODES];
	/* Kept by the caller from one look to the next; 0 at first. */
	usec_t moved_at;		/* 0: never */
	uint16_t moved_load;		/* mean demand of its vCPUs in the window after that;
					 * EBB_SHARE_NONE: that is not over yet */
	uint16_t throttle;		/* what each of its vCPUs may use of a core; 0: all */
	uint16_t throttle_load;		/* mean demand of its vCPUs before it was throttled */
	/* Out. */
	uint16_t load;			/* mean demand of its vCPUs */
	bool is_moved;			/* by this look */
};

struct ebb_share {
	struct ebb_share_config cfg;
	uint16_t num_cores;
	uint16_t num_vms;
	uint32_t num_vcpus;
	struct ebb_share_core *cores;	/* of the caller, as the others */
	struct ebb_share_vm *vms;
	struct ebb_share_vcpu *vcpus;
	/* Out. */
	uint32_t num_moves;		/* vCPUs that are elsewhere than before */
	uint32_t num_moved_vms;
	uint32_t num_hot, num_stuck, num_held; /* cores */
	uint32_t permille;		/* mean use of the cores */
	bool is_hot;			/* the host: cores are stuck, or used too much on average */
	usec_t cost_usec;		/* of the moves */
};

/*
 * Assigns cores to vCPUs that have none: the cores of their group's node that are used least and
 * have the fewest vCPUs.  Loads are those of the last look; vCPUs without a load count as lightly
 * busy.
 */
void ebb_share_place(struct ebb_share *s);

/*
 * The look at the end of a window: from the loads and cores of vCPUs it computes new cores and
 * throttles.  A vCPU without a core gets one, which does not count as a move.
 */
void ebb_share_look(struct ebb_share *s, usec_t now);

/* Into how many groups a VM of so many vCPUs is best divided on a host like this. */
uint16_t ebb_share_groups(const struct ebb_share *s, uint32_t num_vcpus);

#endif /* EBB_CORE_SHARE_H */
