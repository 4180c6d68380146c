/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which ioctl a program calls, and with a structure of which size.  Its number
 * holds the size that the program was compiled with: an older program's is
 * smaller than the driver's, a newer one's is larger.  Pure, as cpuset.h.
 */
#ifndef EBB_ABI_H
#define EBB_ABI_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/types.h>
#else
#include "tests/lib/kshim.h"
#endif

/* One ioctl as this driver knows it. */
struct ebb_abi {
	u32 cmd;		/* its number, with the size of the structure as it is now */
	u32 first_bytes;	/* size of the structure when it was first published */
};

/* Bytes of the structure in an ioctl's number. */
u32 ebb_abi_bytes(u32 cmd);

/* cmd is this ioctl, with a structure of any size that was ever published, or a larger one. */
bool ebb_abi_is(const struct ebb_abi *abi, u32 cmd);

/*
 * Checks a structure: size_field is its first field, flags its second.
 * 0; -EINVAL the first is not the size in cmd, or a flag is not in known_flags.
 */
int ebb_abi_check(u32 cmd, u32 size_field, u32 flags, u32 known_flags);

#endif /* EBB_ABI_H */
