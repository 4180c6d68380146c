/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a lease has: for each of its blocks, which block of the pool it is, and
 * whether it is still there.  Pure, as region.h; the lease's own lock
 * protects it.
 *
 * Invariants
 *   L1  num_held + num_released + num_revoked is num_blocks.
 *   L2  A block that has left stays out; nothing is put in its place.
 *   L3  A call that fails changes nothing.
 */
#ifndef EBB_LEASEMAP_H
#define EBB_LEASEMAP_H

#include "region.h"

/* In an entry: neither of these says that the block is held. */
#define EBB_LEASEMAP_RELEASED	(1u << 31)
#define EBB_LEASEMAP_REVOKED	(1u << 30)

/*
 * Of a block that is held, and for who maps it: it was zeroed for this lease,
 * or somebody is at it.
 */
#define EBB_LEASEMAP_ZEROED	(1u << 29)
#define EBB_LEASEMAP_ZEROING	(1u << 28)
#define EBB_LEASEMAP_NUMBER	(EBB_LEASEMAP_ZEROING - 1)

/* Blocks of a pool have smaller numbers. */
#define EBB_LEASEMAP_MAX_BLOCKS	EBB_LEASEMAP_ZEROING

struct ebb_leasemap {
	u32 *entries;			/* storage of the caller: number of the block, and flags */
	u32 num_blocks;			/* as granted */
	u32 num_held;
	u32 num_revoked;
	u32 block_bytes;		/* a power of two */
};

void ebb_leasemap_init(struct ebb_leasemap *m, u32 *entries, u32 block_bytes);

/* More blocks at the end, while the lease is being made; entries has room for them. */
void ebb_leasemap_append(struct ebb_leasemap *m, const struct ebb_run *run);

/* All of it is in entries from now on; returns the storage that it was in. */
u32 *ebb_leasemap_move(struct ebb_leasemap *m, u32 *entries);

/* Number of the block in the pool; -ENOENT: not held, or past the end. */
int ebb_leasemap_lookup(const struct ebb_leasemap *m, u64 index, u32 *ret_block);

/* In bytes: -EINVAL unless whole blocks and not nothing, -ERANGE past the end. */
int ebb_leasemap_range(const struct ebb_leasemap *m, u64 offset, u64 bytes, struct ebb_run *ret);

/* -ENOENT: a block of them is not held.  Entries keep the numbers of the blocks. */
int ebb_leasemap_release(struct ebb_leasemap *m, const struct ebb_run *run);

/* The host took this block of the pool, unless the lease has let go of it meanwhile. */
void ebb_leasemap_revoke(struct ebb_leasemap *m, u32 index, u32 block);

/* The pool is gone, and all that is held with it. */
void ebb_leasemap_revoke_all(struct ebb_leasemap *m);

static inline u32 ebb_leasemap_block(const struct ebb_leasemap *m, u32 index)
{
	return m->entries[index] & EBB_LEASEMAP_NUMBER;
}

static inline bool ebb_leasemap_is_held(const struct ebb_leasemap *m, u32 index)
{
	return !(m->entries[index] & (EBB_LEASEMAP_RELEASED | EBB_LEASEMAP_REVOKED));
}

#endif /* EBB_LEASEMAP_H */
