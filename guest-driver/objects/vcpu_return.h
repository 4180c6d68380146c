/* SPDX-License-Identifier: GPL-2.0-only */
/* CPUs on their way back to the host: what vcpu.c and vcpu_return.c share. */
#ifndef EBB_VCPU_RETURN_H
#define EBB_VCPU_RETURN_H

#include "objects/vcpu.h"

/* A request for an entry that is given back like this; NULL if there is no memory. */
struct ebb_call *ebb_return_call(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry,
				 enum ebb_give how);

/*
 * It could not be sent.  If the device is gone, the CPU may have been parked
 * after the driver let go of those that were, and would be so for ever.
 */
void ebb_return_unsent(struct ebb_vcpus *v, const struct ebb_cpu_entry *entry);

/* The host answered for a CPU that is busy, LENDING or LEAVING; frees the call. */
int ebb_return_finish(struct ebb_vcpus *v, struct ebb_call *call);
void ebb_return_retry(struct ebb_vcpus *v, u64 hv_cpu_id);

/* The host does not see it rest, which it may never do: it is to be lent only. */
void ebb_return_dont_park(struct ebb_vcpus *v, u64 hv_cpu_id);

/* Of ebb_vcpus.return_work. */
void ebb_return_work(struct work_struct *work);

#endif /* EBB_VCPU_RETURN_H */
