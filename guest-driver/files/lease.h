/* SPDX-License-Identifier: GPL-2.0-only */
/* Leases: blocks of a pool, as a file to be mapped.  Locks: see pool.h. */
#ifndef EBB_LEASE_H
#define EBB_LEASE_H

#include <linux/fs.h>
#include <linux/rwsem.h>
#include <linux/wait.h>

#include <linux/ebb_ioctl.h>

#include "objects/pool.h"
#include "pure/leasemap.h"
#include "pure/wire.h"

struct ebb_lease {
	struct ebb_pool_user user;	/* owner of its blocks */
	struct ebb_pool *pool;		/* has a reference */
	struct inode *inode;		/* its mapping; of no other lease */
	u32 linux_node;

	struct rw_semaphore lock;
	struct ebb_leasemap map;
	bool is_gone;			/* the pool was removed */
	u32 revoked_seq;		/* grows with every revocation */
	u32 told_seq;			/* revoked_seq when the program last asked */
	wait_queue_head_t wait;		/* revoked_seq or is_gone changed */
};

/*
 * EBB_IOC_MEM_ADD: fills in the [out] fields but for lease_fd.  Errors as
 * there.  fput() gives everything back.
 */
struct file *ebb_lease_create(const struct ebb_wire_config *cfg, struct ebb_mem_add *arg);

/* EBB_IOC_LEASE_RELEASE; checked arguments. */
int ebb_lease_release(struct ebb_lease *lease, struct ebb_lease_release *arg);

/* Everything goes back; frees it. */
void ebb_lease_destroy(struct ebb_lease *lease);

extern const struct file_operations ebb_lease_fops;

#endif /* EBB_LEASE_H */
