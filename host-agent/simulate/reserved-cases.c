/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tenants that share a disk: the cases of "SQLVM", section 4, and one of different loads. */
#include <string.h>

#include "simulate/reserved.h"

#define SEC		EBB_RATE_NSEC
#define PAGE		8192u
#define PROMISE(...)	{ .weight = 100, .penalty = 1, __VA_ARGS__ }

const char *const sim_reserved_policies[SIM_RESERVED_POLICIES] = { "tags", "max-only", "none" };

/* 860 of 1000 units per second are promised.  Maxima add up to more than there is. */
static const struct sim_reserved_tenant promised[] = {
	{ .name = "busy", .promise = PROMISE(.reserve_iops = 300), .limit_iops = 400,
	  .outstanding = 16, .bytes = PAGE },
	{ .name = "few-open", .promise = PROMISE(.reserve_iops = 100), .limit_iops = 400,
	  .outstanding = 4, .bytes = PAGE },
	{ .name = "poisson", .promise = PROMISE(.reserve_iops = 200), .limit_iops = 400,
	  .rate = 190, .bytes = PAGE },
	{ .name = "scan", .promise = PROMISE(.reserve_bytes = 10 << 20), .limit_iops = 400,
	  .outstanding = 4, .bytes = 256 << 10, .is_scan = true },
	{ .name = "on-off", .promise = PROMISE(.reserve_iops = 100), .limit_iops = 400,
	  .outstanding = 16, .bytes = PAGE, .on_nsec = 700000000, .off_nsec = 400000000 },
	{ .name = "flood", .promise = PROMISE(.reserve_iops = 0), .limit_iops = 400,
	  .outstanding = 1000, .bytes = PAGE },
	{ .name = "large", .promise = PROMISE(.reserve_iops = 0), .limit_iops = 400,
	  .outstanding = 16, .bytes = 1 << 20, .is_scan = true },
};

static const struct sim_reserved_tenant swap[] = {
	{ .name = "first", .promise = PROMISE(.reserve_iops = 600), .limit_iops = 600,
	  .outstanding = 16, .bytes = PAGE },
	{ .name = "second", .promise = PROMISE(.reserve_iops = 200), .limit_iops = 600,
	  .outstanding = 16, .bytes = PAGE },
	{ .name = "flood", .promise = PROMISE(.reserve_iops = 0), .limit_iops = 600,
	  .outstanding = 64, .bytes = PAGE },
};

static const struct sim_reserved_tenant overbooked = {
	.promise = PROMISE(.reserve_iops = 80), .limit_iops = 80, .outstanding = 16, .bytes = PAGE,
};

static const char *const names[SIM_RESERVED_CASE_TENANTS] = {
	"vm1", "vm2", "vm3", "vm4", "vm5", "vm6", "vm7", "half-idle",
};

static void copy(struct sim_reserved_case *c, const struct sim_reserved_tenant *tenants,
		 size_t size)
{
	memcpy(c->tenants, tenants, size);
	c->options.num_tenants = (uint32_t)(size / sizeof(*tenants));
}

static void copy_overbooked(struct sim_reserved_case *c)
{
	for (uint32_t i = 0; i < SIM_RESERVED_CASE_TENANTS; i++) {
		c->tenants[i] = overbooked;
		c->tenants[i].name = names[i];
	}
	c->tenants[SIM_RESERVED_CASE_TENANTS - 1].on_nsec = 5 * SEC;
	c->tenants[SIM_RESERVED_CASE_TENANTS - 1].off_nsec = 5 * SEC;
	c->options.num_tenants = SIM_RESERVED_CASE_TENANTS;
	c->options.disk_iops = 300;
	c->options.parallel = 4;
}

void sim_reserved_case(enum sim_reserved_case_id id, uint32_t seconds,
		       struct sim_reserved_case *ret)
{
	*ret = (struct sim_reserved_case){
		.options = { .disk_iops = 1000, .parallel = 8, .depth = 8, .seconds = seconds },
	};
	switch (id) {
	case SIM_RESERVED_SWAP:
		ret->name = "swap";
		ret->text = "600 and 200 of 1000 per second beside a flood, swapped in the middle";
		copy(ret, swap, sizeof(swap));
		for (uint32_t i = 0; i < 2; i++)
			ret->changes[i] = (struct sim_reserved_change){
				.at_nsec = seconds * SEC / 2, .tenant = i,
				.promise = swap[1 - i].promise,
			};
		ret->options.num_changes = 2;
		break;
	case SIM_RESERVED_OVERBOOKED:
		ret->name = "overbooked";
		ret->text = "640 of 300 per second, policy proportional";
		copy_overbooked(ret);
		break;
	case SIM_RESERVED_PENALTY:
		ret->name = "penalty";
		ret->text = "640 of 300 per second, policy penalty: 10 for the first three, else 1";
		copy_overbooked(ret);
		for (uint32_t i = 0; i < 3; i++)
			ret->tenants[i].promise.penalty = 10;
		ret->options.overbooked = EBB_TAGS_PENALTY;
		break;
	default:
		ret->name = "promised";
		ret->text = "860 of 1000 per second, different loads beside two floods";
		copy(ret, promised, sizeof(promised));
		break;
	}
	ret->options.tenants = ret->tenants;
	ret->options.changes = ret->changes;
}
