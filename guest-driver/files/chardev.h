/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/ebb; what it does for programs is told in ebb_ioctl.h. */
#ifndef EBB_CHARDEV_H
#define EBB_CHARDEV_H

#include <linux/atomic.h>
#include <linux/miscdevice.h>

#include "objects/limits.h"
#include "objects/vcpu.h"
#include "transport/queues.h"

struct ebb_chardev {
	struct miscdevice misc;
	struct ebb_queues *queues;	/* whose reference every open file holds */
	struct ebb_vcpus *vcpus;
	struct ebb_limit_state *limits;
	atomic64_t last_owner;		/* number given to the newest open */
};

/* The pointers are set, the rest is zeroed. */
int ebb_chardev_register(struct ebb_chardev *chardev);
void ebb_chardev_unregister(struct ebb_chardev *chardev);

#endif /* EBB_CHARDEV_H */
