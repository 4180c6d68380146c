/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The blocks of a pool: which are free, who has the others, and what becomes
 * of those that left.  Pure: no locks, no clock, no allocation, nobody is
 * called but the caller's own predicate; one lock of the caller protects it.
 *
 *   FREE --plug--> PLUGGING --grant--> GRANTED --leave--> DRAINING --unplugged--> FREE
 *     |               |  |                |                  |  ^
 *     |               |  +--(no lease)----|------------------|--+
 *     |               +--(refused)--------|------------------|--> FREE
 *     |               |                   |                  |
 *     +---------------+------revoke-------+------------------+--> REVOKED
 *
 *   PLUGGING, GRANTED --expel--> DRAINING
 *   REVOKED --claim--> CONFIRMING --(confirmed)--> FREE, --(not confirmed)--> REVOKED
 *   FREE --fail--> BAD; others as by expel, and BAD where FREE is written, from then on
 *
 * FREE        not plugged, used by nobody
 * PLUGGING    the host was asked to plug it and has not answered
 * GRANTED     plugged, in the lease that is its owner
 * DRAINING    plugged, in no lease; leaves when the kernel uses it no more
 * REVOKED     the host unplugged it; the kernel may still use it
 * CONFIRMING  the host is being told that nobody uses it any more
 * BAD         as FREE, but its memory has failed: nobody gets it any more
 *
 * Invariants
 *   R1  num[s] is the number of blocks in state s; together all blocks.
 *   R2  What the host counts as plugged is PLUGGING, GRANTED or DRAINING.
 *   R3  A block has an owner exactly while it is GRANTED.
 *   R4  A block becomes FREE only from DRAINING and CONFIRMING: the host has
 *       discarded it since.  Or from PLUGGING, if the host has not plugged it.
 *       A lease does not rely on that: leasefile.c zeroes each block.
 *   R5  Only blocks that were FREE when the host was asked for them are granted,
 *       and only if nothing was heard of them until it answered.
 *   R6  A block that is CONFIRMING changes only by the end of that.
 *   R7  A call that fails changes nothing.
 *   R8  A block whose memory has failed is never FREE, PLUGGING or GRANTED again.
 */
#ifndef EBB_REGION_H
#define EBB_REGION_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/types.h>
#else
#include "tests/lib/kshim.h"
#endif

enum ebb_block_state {
	EBB_BLOCK_FREE,
	EBB_BLOCK_PLUGGING,
	EBB_BLOCK_GRANTED,
	EBB_BLOCK_DRAINING,
	EBB_BLOCK_BAD,
	EBB_BLOCK_REVOKED,
	EBB_BLOCK_CONFIRMING,
	EBB_BLOCK_STATE_MAX,
};

struct ebb_block {
	void *owner;			/* a lease; NULL unless GRANTED */
	u32 index;			/* GRANTED: place in the lease */
	u16 state;			/* enum ebb_block_state */
	bool has_failed;		/* set once: see R8 */
};

/* Neighbours. */
struct ebb_run {
	u32 first;
	u32 count;
};

struct ebb_region {
	struct ebb_block *blocks;	/* storage of the caller */
	u32 num_blocks;
	u32 num[EBB_BLOCK_STATE_MAX];	/* by state */
};

/* blocks: zeroed.  All are FREE. */
void ebb_region_init(struct ebb_region *r, struct ebb_block *blocks, u32 num_blocks);

/* Plugged, as the host counts (R2), or about to be. */
static inline u32 ebb_region_num_plugged(const struct ebb_region *r)
{
	return r->num[EBB_BLOCK_PLUGGING] + r->num[EBB_BLOCK_GRANTED] + r->num[EBB_BLOCK_DRAINING];
}

/*
 * The first run of blocks in this state in [from, end), at most max_count long;
 * is_in, if given, says of each block whether it counts.  False if there is none.
 */
bool ebb_region_next(const struct ebb_region *r, enum ebb_block_state state, u32 from, u32 end,
		     u32 max_count, bool (*is_in)(void *data, u32 block), void *data,
		     struct ebb_run *ret);

/* How many blocks a lease can get now, of want, with this many plugged at most. */
u32 ebb_region_room(const struct ebb_region *r, u32 want, u32 max_plugged);

/* The host is about to be asked to plug these.  -EBUSY: not all are FREE. */
int ebb_region_plug(struct ebb_region *r, const struct ebb_run *run);

/* It plugged this one.  -ENOENT: it is not PLUGGING (the host revoked it meanwhile). */
int ebb_region_grant(struct ebb_region *r, u32 block, void *owner, u32 index);

/*
 * It plugged these, but no lease gets them, or (is_plugged false) it did not:
 * then there is nothing to unplug of those that drain since they were to be
 * plugged.  Those that were granted or revoked meanwhile stay as they are.
 */
void ebb_region_end_plug(struct ebb_region *r, const struct ebb_run *run, bool is_plugged);

/* It left its lease.  -ENOENT: it is not the owner's (the host revoked it meanwhile). */
int ebb_region_leave(struct ebb_region *r, u32 block, const void *owner);

/*
 * The host wants it back: true if a lease had it or was to get it.  One that had
 * it is told in ret (else ret->owner is NULL).
 */
bool ebb_region_expel(struct ebb_region *r, u32 block, struct ebb_block *ret);

/* The host unplugged these.  -EBUSY: not all are DRAINING. */
int ebb_region_unplugged(struct ebb_region *r, const struct ebb_run *run);

/*
 * The host took it: true if that is news.  A lease that had it is told in ret
 * (else ret->owner is NULL).
 */
bool ebb_region_revoke(struct ebb_region *r, u32 block, struct ebb_block *ret);

/*
 * Its memory has failed: true if a lease had it or was to get it.  One that had it
 * is told in ret (else ret->owner is NULL).
 */
bool ebb_region_fail(struct ebb_region *r, u32 block, struct ebb_block *ret);

/* The host is about to be told.  -EBUSY: not all are REVOKED. */
int ebb_region_claim(struct ebb_region *r, const struct ebb_run *run);

/* The host was told, or (is_confirmed false) could not be.  -EBUSY: not all are CONFIRMING. */
int ebb_region_confirmed(struct ebb_region *r, const struct ebb_run *run, bool is_confirmed);

#endif /* EBB_REGION_H */
