/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Thresholds of the configuration: how much of a resource of the host may be in use, and for how
 * long, before the agent acts.
 *
 *   memory of a node    above the threshold memory is brokered, down to the target; above the
 *                       failover threshold brokering does not help any more, and a VM has to
 *                       leave the host
 *   a shared core       above core_hot_percent it is hot: vCPUs move to other cores
 *   the CPUs of a node  above host_hot_percent they are hot: moving vCPUs does not help
 *
 * Source: "Flexible resource allocation for relational database-as-a-service", sections 3 to 5.
 */
#ifndef EBB_PRESSURE_H
#define EBB_PRESSURE_H

#include "model/types.h"

#define EBB_PRESSURE_PERCENT_MAX	100u
#define EBB_PRESSURE_S_MAX		3600u

struct ebb_pressure {
	/* Percent of a node's memory for pools, each 1 to 100; target < threshold < failover. */
	uint32_t memory_target_percent;
	uint32_t memory_threshold_percent;
	uint32_t memory_failover_percent;
	uint32_t memory_window_s;	/* how long memory must be above; 0 to 3600 */
	/* Percent of a core, and of all cores of a node; 1 to 100. */
	uint32_t core_hot_percent;
	uint32_t host_hot_percent;
	uint32_t hot_window_s;		/* how long CPUs of a node must be above; the average use of
					 * a core is taken over it; 1 to 3600 */
	/* Least time between two brokerings, and between two moves; 1 to 3600. */
	uint32_t cool_down_s;
};

/* 80, 90 and 95% for 5 s; 85 and 75% over 15 s; 60 s. */
void ebb_pressure_default(struct ebb_pressure *ret_pressure);

/*
 * Whether all keep their ranges.  On -EINVAL ret_text (EBB_TEXT_SIZE bytes) names field, value and
 * allowed range.
 */
int ebb_pressure_check(const struct ebb_pressure *p, char *ret_text);

#endif /* EBB_PRESSURE_H */
