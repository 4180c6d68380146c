/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl simulate --broker. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cli/simulate-print.h"
#include "simulate/brokered.h"

#define NUM_VMS	200u

static void print_json(const struct brokered_result *r, bool is_first)
{
	printf("%s{\"policy\":\"%s\",\"ramp_median\":%.0f,\"ramp_p95\":%.0f,"
	       "\"restart_median\":%.0f,\"warm_mib\":%.0f,\"cold_mib\":%.0f,"
	       "\"asked\":%u,\"brokered\":%u,\"worst_used\":%.4f}", is_first ? "" : ",",
	       r->policy, r->ramp_median, r->ramp_p95, r->restart_median, r->warm_mib,
	       r->cold_mib, r->num_asked, r->num_brokered, r->worst_used);
}

static void print_row(const struct brokered_result *r)
{
	printf("%-13s %11.0f %9.0f %14.0f %9.0f %9.0f %6u %9u\n", r->policy, r->ramp_median,
	       r->ramp_p95, r->restart_median, r->warm_mib, r->cold_mib, r->num_asked,
	       r->num_brokered);
}

int simulate_broker(const struct simulate *s, bool is_json, struct ebb_err *err)
{
	const struct brokered_options options = {
		.seed = s->plan.seed, .num_nodes = s->options.host.num_nodes,
		.num_vms = s->has_vms ? s->plan.num_vms : NUM_VMS,
		.idle_half_s = s->idle_half_s,
	};
	static const char *const brokers[] = { "vom", "equal", "proportional", "balloon" };
	const size_t num = s->num_policies ? s->num_policies :
					     sizeof(brokers) / sizeof(brokers[0]);

	if (options.num_vms % (2u * options.num_nodes))
		return ebb_err_set(err, -EINVAL,
				   "--broker needs as many cold as warm VMs on each node: a "
				   "multiple of %u VMs", 2u * options.num_nodes);
	if (is_json)
		printf("{\"ok\":true,\"vms\":%u,\"idle_half_s\":%u,\"policies\":[",
		       options.num_vms, options.idle_half_s);
	else
		printf("%-13s %11s %9s %14s %9s %9s %6s %9s\n", "POLICY", "RAMP MEDIAN", "RAMP P95",
		       "RESTART MEDIAN", "WARM MIB", "COLD MIB", "ASKED", "BROKERED");
	for (size_t i = 0; i < num; i++) {
		const struct ebb_policy_ops *policy = s->num_policies ? s->policies[i] :
							      ebb_policy_find(brokers[i]);
		struct brokered_result r;
		const int rc = brokered_run(&options, policy, &r);

		if (rc < 0)
			return ebb_err_set(err, rc, "%s: %s", policy->name, strerror(-rc));
		if (is_json)
			print_json(&r, i == 0);
		else
			print_row(&r);
	}
	if (is_json)
		puts("]}");
	return 0;
}
