// SPDX-License-Identifier: GPL-2.0-only
/* Copies the structures of ioctls in and out; see args.h. */
#include "files/args.h"

#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* How all structures begin. */
struct head {
	u32 size;
	u32 flags;
};

void *ebb_args_get(const struct ebb_abi *abi, unsigned int cmd, u32 known_flags,
		   const void __user *user)
{
	u32 bytes = ebb_abi_bytes(abi->cmd);
	struct head *head = kmalloc(bytes, GFP_KERNEL);
	int rc;

	if (!head)
		return ERR_PTR(-ENOMEM);
	rc = copy_struct_from_user(head, bytes, user, ebb_abi_bytes(cmd)) ?:
		ebb_abi_check(cmd, head->size, head->flags, known_flags);
	if (rc) {
		kfree(head);
		return ERR_PTR(rc);
	}
	return head;
}

int ebb_args_put(const struct ebb_abi *abi, unsigned int cmd, const void *arg, void __user *user)
{
	u32 bytes = min(ebb_abi_bytes(abi->cmd), ebb_abi_bytes(cmd));

	/* The bytes beyond were zero when the caller passed them in, and stay so. */
	return copy_to_user(user, arg, bytes) ? -EFAULT : 0;
}
