/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations that the files of balancing share.
 *   balance.c        loads, and places for newcomers; the look as a whole
 *   balance-move.c   which vCPUs change places
 */
#ifndef EBB_CORE_SHARE_INTERNAL_H
#define EBB_CORE_SHARE_INTERNAL_H

#include "core/shared/balance.h"

/* The load that a vCPU counts for besides its demand, when a newcomer gets its place. */
#define SHARE_LIGHT	50u
/* From here on a core counts as full: little time is left that no vCPU wanted. */
#define SHARE_FULL	950u
/* A vCPU that was idle for so much of the window has done all the work that came. */
#define SHARE_IDLE	100u

/* Whether a vCPU of the VM is there. */
bool share_has_vm(const struct ebb_share *s, const struct ebb_share_core *c, uint16_t vm);
/* Whether the core has enough left to promise for the vCPU, which is not there. */
bool share_has_reserve(const struct ebb_share *s, const struct ebb_share_core *c, uint32_t vcpu);
void share_attach(struct ebb_share *s, uint32_t vcpu, uint16_t core);
void share_detach(struct ebb_share *s, uint32_t vcpu);

/* Counts how many VMs demand something of the core as it is now. */
uint16_t share_num_active(const struct ebb_share *s, const struct ebb_share_core *c);

/* Changes places until the core is no longer too hot.  False: it could not. */
bool share_cool(struct ebb_share *s, usec_t now, uint16_t core, bool *ret_held);

#endif
