/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl simulate --promise. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cli/simulate-print.h"
#include "simulate/promised.h"

#define NUM_OTHERS	7u

static void print_json(const struct promised_result *r, bool is_kept, bool is_first)
{
	printf("%s{\"policy\":\"%s\",\"kept\":%s,\"relative_io\":%.4f,\"violations\":%u,"
	       "\"mib\":%.0f,\"least_floor_mib\":%.0f,\"others\":%.0f}", is_first ? "" : ",",
	       r->policy, is_kept ? "true" : "false", r->relative_io, r->num_violations, r->mib,
	       r->least_floor_mib, r->others);
}

static void print_row(const struct promised_result *r, bool is_kept)
{
	printf("%-13s %-8s %+11.3f %6u/%u %8.0f %10.0f %9.0f\n", r->policy,
	       is_kept ? "kept" : "metered", r->relative_io, r->num_violations,
	       PROMISED_LENGTH_S - 1, r->mib, r->least_floor_mib, r->others);
}

int simulate_promise(const struct simulate *s, bool is_json, struct ebb_err *err)
{
	static const char *const brokers[] = { "vom", "equal", "proportional", "fair" };
	const size_t num = s->num_policies ? s->num_policies :
					     sizeof(brokers) / sizeof(brokers[0]);
	struct promised_options options = {
		.seed = s->plan.seed,
		.num_others = s->has_vms ? s->plan.num_vms - 1 : NUM_OTHERS,
	};

	if (options.num_others == 0 || options.num_others > PROMISED_MAX_OTHERS)
		return ebb_err_set(err, -EINVAL, "--promise needs 2 to %u VMs",
				   PROMISED_MAX_OTHERS + 1);
	if (is_json)
		printf("{\"ok\":true,\"vms\":%u,\"promised_mib\":%u,\"runs\":[",
		       options.num_others + 1, PROMISED_MIB);
	else
		printf("%-13s %-8s %11s %11s %8s %10s %9s\n", "POLICY", "PROMISE", "RELATIVE IO",
		       "BROKEN", "MIB", "FLOOR MIB", "OTHERS");
	for (size_t i = 0; i < 2 * num; i++) {
		const struct ebb_policy_ops *policy = s->num_policies ? s->policies[i / 2] :
							      ebb_policy_find(brokers[i / 2]);
		struct promised_result r;
		int rc;

		options.is_kept = i % 2 == 0;
		rc = promised_run(&options, policy, &r);
		if (rc < 0)
			return ebb_err_set(err, rc, "%s: %s", policy->name, strerror(-rc));
		if (is_json)
			print_json(&r, options.is_kept, i == 0);
		else
			print_row(&r, options.is_kept);
	}
	if (is_json)
		puts("]}");
	return 0;
}
