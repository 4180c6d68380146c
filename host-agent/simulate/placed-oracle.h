/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the VMs of a simulated cluster will use, as traces: with them a placer (place/place.h) looks
 * ahead and is never wrong.  It is no placer for a real cluster, but tells how much any look ahead
 * could be worth.  VMs that are still to come are not in it.
 */
#ifndef EBB_SIMULATE_PLACED_ORACLE_H
#define EBB_SIMULATE_PLACED_ORACLE_H

#include "simulate/placed.h"

/*
 * window: how many steps ahead it knows, whole days up to 28; in slots as short as place/ allows.
 * vms: of all VMs of the cluster, in their order; class, role, age and peak are changed so that the
 * only window which can be drawn for a VM is its own future.  One sample is then enough.  -ENOMEM,
 * -EINVAL.  The caller destroys *ret.
 */
int sim_place_oracle(const struct sim_place_world *w, uint32_t window, struct place_vm *vms,
		     struct place_traces **ret);

#endif
