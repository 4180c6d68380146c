/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Putting threads of vCPUs onto hardware threads: through libvirt's pinning on a real host, through
 * the groups of cores on an emulated one.  Blocks: for worker threads only.
 */
#ifndef EBB_IO_PLACER_H
#define EBB_IO_PLACER_H

#include <libvirt/libvirt.h>
#include "model/types.h"
#include "backend/emulated/emuhost.h"

struct ebb_placer {
	const struct ebb_host *host;
	struct ebb_emuhost *emuhost;	/* NULL: a real host */
};

/* The hardware thread that a thread runs on alone or with others, or EBB_THREAD_NONE. */
uint16_t ebb_placer_where(const struct ebb_placer *p, pid_t tid);

/* conn may be NULL on an emulated host. */
int ebb_placer_place(const struct ebb_placer *p, virConnectPtr conn, const uint8_t uuid[16],
		     uint16_t vcpu, pid_t pid, pid_t tid, uint16_t thread, struct ebb_err *err);

#endif
