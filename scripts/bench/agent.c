// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the agent costs: raw values for scripts/bench-agent, one metric to a line.
 * usage: ebb-bench-agent VALUES SECONDS [MOST_VMS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scripts/bench/agent.h"

void bench_print(const char *name, const char *size, const char *variant, const char *unit,
		 const double *values, size_t num)
{
	printf("{\"name\":\"%s\",\"size\":\"%s\",\"variant\":\"%s\",\"unit\":\"%s\",\"values\":[",
	       name, size, variant, unit);
	for (size_t i = 0; i < num; i++)
		printf("%s%.6g", i ? "," : "", values[i]);
	puts("]}");
	fflush(stdout);
}

void bench_fail(const char *what, int err)
{
	fprintf(stderr, "ebb-bench-agent: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *size;
		uint32_t num_vms, sockets, cores, threads;
	} sizes[] = {
		{ "10 VMs", 10, 4, 36, 2 },
		{ "100 VMs", 100, 4, 36, 2 },
		/* The host has CPUs for 288 of these; the others wait for their startup sets. */
		{ "1000 VMs", 1000, 4, 36, 2 },
		/* Here all of them run. */
		{ "1000 VMs on 1024 cores", 1000, 16, 64, 1 },
	};
	const bool is_usage = argc == 3 || argc == 4;
	const unsigned num_values = is_usage ? (unsigned)atoi(argv[1]) : 0;
	const double seconds = is_usage ? atof(argv[2]) : 0;
	const uint32_t most_vms = argc == 4 ? (uint32_t)atoi(argv[3]) : 1000;

	if (num_values < 1 || num_values > 100000 || seconds <= 0) {
		fputs("usage: ebb-bench-agent VALUES SECONDS [MOST_VMS]\n", stderr);
		return 2;
	}
	for (size_t i = 0;
	     i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i].num_vms <= most_vms; i++)
		for (size_t p = 0; ebb_policy_at(p); p++)
			bench_decisions(sizes[i].size, sizes[i].num_vms, sizes[i].sockets,
					sizes[i].cores, sizes[i].threads, ebb_policy_at(p),
					num_values);
	for (size_t p = 0; most_vms >= 1000 && ebb_policy_at(p); p++)
		if (ebb_policy_at(p)->mem_review_usec > 0)
			bench_brokering("1000 VMs", 1000, VIRTIO_EBB_VOM_MAX_BUCKETS,
					ebb_policy_at(p), num_values);
	for (int is_brief = 0; is_brief < 2; is_brief++) {
		bench_meters("250 volumes", 250, is_brief, num_values);
		bench_meters("1000 volumes", 1000, is_brief, num_values);
	}
	for (size_t i = 0; i < 3 && sizes[i].num_vms <= most_vms; i++)
		for (size_t p = 0; ebb_policy_at(p); p++)
			bench_telemetry(sizes[i].size, sizes[i].num_vms, ebb_policy_at(p), seconds);
	return 0;
}
