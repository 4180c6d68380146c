// SPDX-License-Identifier: GPL-2.0-or-later
/* The reclaiming side of epochs: see epoch.h. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "epoch.h"

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

void epoch_init(struct epoch *epoch)
{
	atomic_init(&epoch->now, 1);
	epoch->has_membarrier = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

uint64_t epoch_advance(struct epoch *epoch)
{
	uint64_t now = atomic_fetch_add_explicit(&epoch->now, 1, memory_order_seq_cst) + 1;

	/* Registered, so it cannot fail. */
	if (epoch->has_membarrier)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	return now;
}
