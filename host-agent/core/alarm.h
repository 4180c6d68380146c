/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A time for each VM at which the core has to look at it again.  The soonest of all is known at
 * once, and a VM whose time has come is found without a look at the others.
 */
#ifndef EBB_CORE_ALARM_H
#define EBB_CORE_ALARM_H

#include "model/types.h"

/*
 * A binary tree, at[i] above at[2 * i] and at[2 * i + 1] and the sooner of the two; leaves, one for
 * each slot (ebb_vm_work.slot), from EBB_MAX_VMS on.
 */
struct core_alarms {
	usec_t at[2 * EBB_MAX_VMS];
};

/* All are EBB_TIME_NEVER. */
void core_alarms_clear(struct core_alarms *a);
/* EBB_TIME_NEVER: not at all. */
void core_alarm_set(struct core_alarms *a, uint16_t slot, usec_t at);
/* A slot whose time has come, which is over then (EBB_TIME_NEVER); EBB_MAX_VMS: there is none. */
uint16_t core_alarm_take(struct core_alarms *a, usec_t now);

static inline usec_t core_alarms_next(const struct core_alarms *a)
{
	return a->at[1];
}

#endif /* EBB_CORE_ALARM_H */
