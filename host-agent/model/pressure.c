// SPDX-License-Identifier: GPL-2.0-or-later
/* See model/pressure.h. */
#include <errno.h>
#include <stdio.h>

#include "model/pressure.h"
#include "model/types.h"

void ebb_pressure_default(struct ebb_pressure *ret_pressure)
{
	*ret_pressure = (struct ebb_pressure){
		.memory_target_percent = 80,
		.memory_threshold_percent = 90,
		.memory_failover_percent = 95,
		.memory_window_s = 5,
		.core_hot_percent = 85,
		.host_hot_percent = 75,
		.hot_window_s = 15,
		.cool_down_s = 60,
	};
}

int ebb_pressure_check(const struct ebb_pressure *p, char *ret_text)
{
	const struct {
		const char *name;
		uint32_t value, min, max;
	} all[] = {
		{ "memory_target_percent", p->memory_target_percent, 1, EBB_PRESSURE_PERCENT_MAX },
		{ "memory_threshold_percent", p->memory_threshold_percent, 1,
		  EBB_PRESSURE_PERCENT_MAX },
		{ "memory_failover_percent", p->memory_failover_percent, 1,
		  EBB_PRESSURE_PERCENT_MAX },
		{ "memory_window_s", p->memory_window_s, 0, EBB_PRESSURE_S_MAX },
		{ "core_hot_percent", p->core_hot_percent, 1, EBB_PRESSURE_PERCENT_MAX },
		{ "host_hot_percent", p->host_hot_percent, 1, EBB_PRESSURE_PERCENT_MAX },
		{ "hot_window_s", p->hot_window_s, 1, EBB_PRESSURE_S_MAX },
		{ "cool_down_s", p->cool_down_s, 1, EBB_PRESSURE_S_MAX },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].value >= all[i].min && all[i].value <= all[i].max)
			continue;
		snprintf(ret_text, EBB_TEXT_SIZE, "%s=%u: allowed: %u to %u", all[i].name,
			 all[i].value, all[i].min, all[i].max);
		return -EINVAL;
	}
	if (p->memory_target_percent >= p->memory_threshold_percent) {
		snprintf(ret_text, EBB_TEXT_SIZE,
			  "memory_target_percent=%u: must be less than memory_threshold_percent, "
			  "which is %u", p->memory_target_percent, p->memory_threshold_percent);
		return -EINVAL;
	}
	if (p->memory_threshold_percent >= p->memory_failover_percent) {
		snprintf(ret_text, EBB_TEXT_SIZE,
			  "memory_threshold_percent=%u: must be less than "
			  "memory_failover_percent, which is %u", p->memory_threshold_percent,
			  p->memory_failover_percent);
		return -EINVAL;
	}
	return 0;
}
