/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which addresses are leases, for the handler of SIGBUS.  Private to libebb.
 */
#ifndef EBB_GUARD_H
#define EBB_GUARD_H

#include <stddef.h>

/* A range of addresses that SIGBUS is expected at.  -ENOMEM. */
int ebb_guard_range_add(const void *addr, size_t bytes);

/* Before it is unmapped. */
void ebb_guard_range_remove(const void *addr);

#endif /* EBB_GUARD_H */
