/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Volumes of VMs as JSON; members as in docs/control-protocol.md. */
#ifndef EBB_DAEMON_VIEW_IO_H
#define EBB_DAEMON_VIEW_IO_H

#include <jansson.h>
#include "core/core.h"

/* io_volumes[]: what the SLA says of single volumes, their own values alone. */
json_t *ebb_view_sla_volumes(const struct ebb_sla *sla);

/* io: the volume server, and what it has promised to all volumes. */
json_t *ebb_view_io(const struct ebb_state *s);

/*
 * volumes[]: the VM's disks on the volume server, with what the SLA says of each in all, and
 * whether the server keeps it.
 */
json_t *ebb_view_volumes(const struct ebb_state *s, const struct ebb_vm *vm);

#endif
