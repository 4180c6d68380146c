// SPDX-License-Identifier: GPL-2.0-or-later
/* See alarm.h. */
#include "core/alarm.h"

_Static_assert((EBB_MAX_VMS & (EBB_MAX_VMS - 1)) == 0, "all leaves are equally deep");

void core_alarms_clear(struct core_alarms *a)
{
	for (uint32_t i = 0; i < 2 * EBB_MAX_VMS; i++)
		a->at[i] = EBB_TIME_NEVER;
}

void core_alarm_set(struct core_alarms *a, uint16_t slot, usec_t at)
{
	uint32_t i = EBB_MAX_VMS + slot;

	a->at[i] = at;
	for (i /= 2; i > 0; i /= 2)
		a->at[i] = a->at[2 * i] < a->at[2 * i + 1] ? a->at[2 * i] : a->at[2 * i + 1];
}

uint16_t core_alarm_take(struct core_alarms *a, usec_t now)
{
	uint32_t i = 1;

	if (a->at[1] > now)
		return EBB_MAX_VMS;
	while (i < EBB_MAX_VMS)
		i = a->at[2 * i] <= now ? 2 * i : 2 * i + 1;
	core_alarm_set(a, (uint16_t)(i - EBB_MAX_VMS), EBB_TIME_NEVER);
	return (uint16_t)(i - EBB_MAX_VMS);
}
