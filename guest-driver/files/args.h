/* SPDX-License-Identifier: GPL-2.0-only */
/* The structures of ioctls, from programs that are older or newer than this driver. */
#ifndef EBB_ARGS_H
#define EBB_ARGS_H

#include <linux/compiler.h>

#include "pure/abi.h"

/*
 * The program's structure in the driver's size, to be freed by kfree(); what the
 * program's does not have is zero.  cmd is the ioctl abi.  -EFAULT, -ENOMEM,
 * -E2BIG: something is set that this driver does not know; -EINVAL: see ebb_abi_check().
 */
void *ebb_args_get(const struct ebb_abi *abi, unsigned int cmd, u32 known_flags,
		   const void __user *user);

/* Gives as much of it back as the program's has.  -EFAULT. */
int ebb_args_put(const struct ebb_abi *abi, unsigned int cmd, const void *arg, void __user *user);

#endif /* EBB_ARGS_H */
