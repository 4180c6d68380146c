/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef EBB_TEST_PLACE_EXACT_H
#define EBB_TEST_PLACE_EXACT_H

#include "place/place.h"

/*
 * The best plan of all, by trying them.  -E2BIG: not finished after max_nodes partial plans, the
 * plan is as it was.  -ENOENT: no plan keeps all constraints with all VMs on hosts.
 */
int place_exact(struct place *place, uint64_t max_nodes);

#endif
