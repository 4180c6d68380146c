// SPDX-License-Identifier: GPL-2.0-only
/* Numbers of ioctls and sizes of their structures; see abi.h. */
#include "abi.h"

#include <linux/ioctl.h>

u32 ebb_abi_bytes(u32 cmd)
{
	return _IOC_SIZE(cmd);
}

bool ebb_abi_is(const struct ebb_abi *abi, u32 cmd)
{
	u32 size_bits = (u32)_IOC_SIZEMASK << _IOC_SIZESHIFT;

	return (cmd & ~size_bits) == (abi->cmd & ~size_bits) && _IOC_SIZE(cmd) >= abi->first_bytes;
}

int ebb_abi_check(u32 cmd, u32 size_field, u32 flags, u32 known_flags)
{
	return size_field == _IOC_SIZE(cmd) && !(flags & ~known_flags) ? 0 : -EINVAL;
}
