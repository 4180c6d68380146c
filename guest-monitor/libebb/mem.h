/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a handle.  Private to libebb.
 *
 * The lock is held for bookkeeping and for EBB_IOC_LEASE_INFO, never for calls
 * that take long (mapping, releasing, closing) nor for callbacks.
 */
#ifndef EBB_MEM_H
#define EBB_MEM_H

#include <pthread.h>

#include "dev.h"
#include "pool.h"

struct ebb_mem {
	/* Constant after init. */
	const struct ebb_dev_ops *ops;
	void *dev;
	int epoll_fd;			/* of all leases */
	int wake_fd;			/* the handle's: what it owns has changed */

	pthread_mutex_t lock;		/* for all below */
	struct ebb_pool pool;
	ebb_revoked_fn fn;
	void *fn_arg;
};

/* Owned memory by node number; seq changes with it. */
struct ebb_mem_sums {
	uint64_t seq;
	uint64_t owned_bytes[EBB_MAX_NODES];
	uint64_t releasing_bytes[EBB_MAX_NODES]; /* no more, but the driver may still count it */
};

int ebb_mem_init(struct ebb_mem *mem, const struct ebb_dev_ops *ops, void *dev, int wake_fd);

/* Unmaps and closes all leases.  Also right for what init has not got to (zeroed, epoll_fd -1). */
void ebb_mem_finish(struct ebb_mem *mem);

/* Finds out what was revoked, and tells.  -EIO: the driver makes no sense. */
int ebb_mem_dispatch(struct ebb_mem *mem);

void ebb_mem_sums_get(struct ebb_mem *mem, struct ebb_mem_sums *ret);

/* EBB_IOC_LEASE_INFO, checked, and what it says noted.  -EIO: it makes no sense. */
int ebb_mem_info_read_locked(struct ebb_mem *mem, struct ebb_pool_lease *l, uint32_t start,
			     struct ebb_lease_info *info);

/* Stops waiting for news of a lease. */
void ebb_mem_unpoll_locked(struct ebb_mem *mem, struct ebb_pool_lease *l);

/* The end of a lease that is in no pool any more. */
void ebb_mem_lease_unmap(struct ebb_mem *mem, struct ebb_pool_lease *l);

#endif /* EBB_MEM_H */
