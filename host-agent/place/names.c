// SPDX-License-Identifier: GPL-2.0-or-later
/* Words for what place.h numbers. */
#include "place/place.h"

const struct place_resource_info place_resources[PLACE_N_RESOURCES] = {
	[PLACE_CPU] = { "cpu", "thousandths of a CPU" },
	[PLACE_MEMORY] = { "memory", "MiB" },
	[PLACE_DISK] = { "disk", "MiB" },
};

static const char *const fault_names[PLACE_N_FAULTS] = {
	[PLACE_FAULT_NONE] = "no fault",
	[PLACE_FAULT_HOLE] = "missing value",
	[PLACE_FAULT_NEGATIVE] = "negative value",
	[PLACE_FAULT_TOO_BIG] = "value too large",
	[PLACE_FAULT_INTERVAL] = "trace with another interval",
	[PLACE_FAULT_SHORT] = "trace shorter than the window",
	[PLACE_FAULT_CLASS] = "class without traces",
	[PLACE_FAULT_ROLE] = "unknown role",
	[PLACE_FAULT_HOST] = "unknown host",
	[PLACE_FAULT_AFFINITY] = "affinity and anti-affinity of the same VMs",
	[PLACE_FAULT_PINNED] = "affinity of VMs that may not leave different hosts",
	[PLACE_FAULT_SETTING] = "setting out of range",
	[PLACE_FAULT_COUNT] = "too many hosts, VMs or classes",
};

static const char *const constraint_names[PLACE_N_CONSTRAINTS] = {
	[PLACE_ALLOWED] = "none",
	[PLACE_HOST_CLOSED] = "host takes no VM",
	[PLACE_HOST_FULL] = "number of VMs of a host",
	[PLACE_PINNED] = "VM may not move",
	[PLACE_BANNED] = "location",
	[PLACE_FLOOR] = "floors",
	[PLACE_CAPACITY] = "capacity",
	[PLACE_RESERVE] = "reserve",
	[PLACE_ANTI_AFFINITY] = "anti-affinity",
	[PLACE_FAULT_DOMAIN] = "fault domain",
	[PLACE_UPGRADE_DOMAIN] = "upgrade domain",
};

const char *place_fault_name(enum place_fault fault)
{
	return (unsigned int)fault < PLACE_N_FAULTS ? fault_names[fault] : "unknown fault";
}

const char *place_constraint_name(enum place_constraint constraint)
{
	return (unsigned int)constraint < PLACE_N_CONSTRAINTS ? constraint_names[constraint] :
								 "unknown constraint";
}
