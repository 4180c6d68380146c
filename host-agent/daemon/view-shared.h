/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared cores as the control socket shows them. */
#ifndef EBB_DAEMON_VIEW_SHARED_H
#define EBB_DAEMON_VIEW_SHARED_H

#include <jansson.h>
#include <stdint.h>
#include "core/core.h"

/* Null where no VM shares the thread; else how much of it was used, and by which VMs. */
json_t *ebb_view_shared_thread(const struct ebb_state *s, uint16_t thread);

/* Null where the host has no shared cores; else all of them together. */
json_t *ebb_view_shared(const struct ebb_state *s);

/* Promises of CPU time on a node of the host; null where it has no shared cores. */
json_t *ebb_view_promises(const struct ebb_state *s, uint16_t node);

/* Adds a VM's part in shared cores. */
void ebb_view_add_share(json_t *o, const struct ebb_vm *vm);

#endif
