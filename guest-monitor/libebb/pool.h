/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which blocks of which leases a handle has.  Pure bookkeeping: no I/O, no lock
 * (the caller holds one), no clock.  Private to libebb.
 *
 * A block of a lease is in one of these states:
 *
 *   held ----take----> releasing --released--> gone
 *    |  <--give_back--     |
 *    |                     +-- revoked meanwhile --> gone
 *    +--revoked--> untold --told, or taken--> gone
 *
 *   held       the application uses it
 *   releasing  the application has given it up and the driver is being asked
 *   untold     the host has taken it and the application has not been told
 *   gone       for ever
 *
 * Invariants:
 *   P1  leases do not overlap, and are sorted by address
 *   P2  owned_bytes[] are the bytes of held blocks, releasing_bytes[] those of releasing ones
 *   P3  a block never leaves gone, and is told of as revoked at most once
 *   P4  seq changes whenever owned_bytes[] or releasing_bytes[] do
 */
#ifndef EBB_POOL_H
#define EBB_POOL_H

#include <stddef.h>

#include "ebb.h"

/* revoked_known_bytes: what the lease has is to be read again in any case. */
#define EBB_POOL_UNKNOWN	UINT64_MAX

struct ebb_pool_lease {
	struct ebb_lease lease;		/* as the application sees it */
	uint32_t num_blocks;
	uint32_t num_held;
	uint32_t num_releasing;
	uint32_t num_untold;
	int has_told;			/* of a block that the host has taken, ever */
	unsigned int num_users;		/* threads that use it without the lock */
	uint64_t revoked_known_bytes;	/* of the driver's count, what the maps know of */
	int is_stale;			/* the driver's count has been seen to differ */
	int is_polled;			/* by the thread that reads the maps from the driver */
	uint64_t *held;			/* num_blocks bits each */
	uint64_t *releasing;
	uint64_t *untold;
};

struct ebb_pool {
	struct ebb_pool_lease **leases;	/* by address */
	size_t num;
	size_t room;
	size_t num_stale;
	uint64_t num_untold;		/* blocks of all leases */
	uint64_t seq;
	uint64_t owned_bytes[EBB_MAX_NODES]; /* by node number */
	uint64_t releasing_bytes[EBB_MAX_NODES];
};

/* All blocks held.  NULL: no memory. */
struct ebb_pool_lease *ebb_pool_lease_create(const struct ebb_lease *lease);
void ebb_pool_lease_destroy(struct ebb_pool_lease *lease);

/* -ENOMEM, or -EEXIST if it would overlap. */
int ebb_pool_insert(struct ebb_pool *pool, struct ebb_pool_lease *lease);
void ebb_pool_remove(struct ebb_pool *pool, struct ebb_pool_lease *lease);
void ebb_pool_finish(struct ebb_pool *pool);

/* The lease that the address is in, or NULL. */
struct ebb_pool_lease *ebb_pool_find(const struct ebb_pool *pool, const void *addr);

/*
 * The application gives the range up: held blocks of it are releasing, untold
 * ones gone.  -EINVAL, -ERANGE or -ENOENT as ebb_mem_release(), and nothing has
 * changed.
 */
int ebb_pool_take(struct ebb_pool *pool, struct ebb_pool_lease *lease, const void *addr,
		  uint64_t bytes, uint32_t *ret_first, uint32_t *ret_count);

/* The end of that, for blocks of the range that are releasing: they are gone, or held as before. */
void ebb_pool_released(struct ebb_pool *pool, struct ebb_pool_lease *lease, uint32_t first,
		       uint32_t count);
void ebb_pool_give_back(struct ebb_pool *pool, struct ebb_pool_lease *lease, uint32_t first,
			uint32_t count);

/* Blocks from start on that are held here but not in the driver's map: untold, or gone. */
void ebb_pool_revoked(struct ebb_pool *pool, struct ebb_pool_lease *lease, uint32_t start,
		      uint32_t count, const uint64_t *held_map, int is_told);

/* The next run of untold blocks; they are gone.  0: there is none. */
int ebb_pool_untold_next(struct ebb_pool *pool, void **ret_addr, uint64_t *ret_bytes);

/* Compares with revoked_bytes, the driver's count for the lease: are there new revoked blocks? */
void ebb_pool_compare(struct ebb_pool *pool, struct ebb_pool_lease *lease,
		      uint64_t revoked_bytes);
void ebb_pool_stale_set(struct ebb_pool *pool, struct ebb_pool_lease *lease, int is_stale);

/* May it be unmapped although nobody has asked for that? */
int ebb_pool_is_spent(const struct ebb_pool_lease *lease);

#endif /* EBB_POOL_H */
