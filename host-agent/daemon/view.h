/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the core as JSON, as docs/control-protocol.md describes it.  Reads only. */
#ifndef EBB_DAEMON_VIEW_H
#define EBB_DAEMON_VIEW_H

#include <jansson.h>
#include "core/core.h"
#include "model/sla.h"

/* Each returns a new reference, or NULL when out of memory. */
json_t *ebb_view_host(const struct ebb_state *s, usec_t now);
json_t *ebb_view_vm(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
		    const char *link_error);
json_t *ebb_view_explain(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now);

/* The value that a VM's guest reports for its memory (view-vom.c). */
json_t *ebb_view_histogram(const struct ebb_vm *vm, usec_t now);
/* The memory that brokering last demanded of this VM and of others, by guest node. */
json_t *ebb_view_brokered(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now);

/* The value of an attribute of model/sla.h: a number, true, false, or the name of a choice. */
json_t *ebb_view_sla_value(const struct ebb_sla_key *key, uint64_t value);
/* All attributes of model/sla.h, by their JSON names. */
void ebb_view_add_sla(json_t *o, const struct ebb_sla *sla);

#endif
