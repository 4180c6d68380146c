/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration of the promises of CPU time that SLAs make (reserve-percent). */
#ifndef EBB_MODEL_PROMISE_H
#define EBB_MODEL_PROMISE_H

#include <stdint.h>

/* Whose promises are cut where a core has less than is promised on it. */
enum ebb_overbook {
	EBB_OVERBOOK_PROPORTIONAL,	/* all, by the same fraction */
	EBB_OVERBOOK_PENALTY,		/* so that the sum of ebb_sla.penalty times per cents that
					 * are not kept is least */
	EBB_OVERBOOK_MAX,
};

/*
 * The part of each core for VMs without a promise, together: no promise takes it, so that they
 * are never starved.
 */
#define EBB_PROMISE_LEFT	50u
/* The most that promises get of a core. */
#define EBB_PROMISE_MOST	(1000u - EBB_PROMISE_LEFT)

#define EBB_OVERBOOK_PERCENT_MIN	1u
#define EBB_OVERBOOK_PERCENT_MAX	1000u

struct ebb_promise_config {
	/*
	 * How much may be promised, in per cent of what can be kept; 100: no more than that.
	 * EBB_OVERBOOK_PERCENT_MIN to _MAX.
	 */
	uint32_t overbook_percent;
	enum ebb_overbook overbook_policy;
};

/* "proportional" or "penalty"; NULL from EBB_OVERBOOK_MAX on. */
const char *ebb_overbook_name(enum ebb_overbook policy);

#endif /* EBB_MODEL_PROMISE_H */
