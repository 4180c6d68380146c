/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thresholds, violations and moves as JSON, as docs/control-protocol.md describes them. */
#ifndef EBB_DAEMON_VIEW_PRESSURE_H
#define EBB_DAEMON_VIEW_PRESSURE_H

#include <jansson.h>
#include "core/core.h"

/* Each returns a new reference, or NULL when out of memory. */
json_t *ebb_view_pressure(const struct ebb_state *s);
/* Those that are on; and the VMs that should move. */
json_t *ebb_view_violations(const struct ebb_state *s, usec_t now);
json_t *ebb_view_moves(const struct ebb_state *s, usec_t now);
/* null if the VM need not move */
json_t *ebb_view_move(const struct ebb_vm *vm, usec_t now);

/* Adds the thresholds of a node of the host to its view. */
void ebb_view_node_pressure(json_t *node_view, const struct ebb_state *s, uint16_t node);

#endif
