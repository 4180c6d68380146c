/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the halves of the benchmark of the agent share. */
#ifndef SCRIPTS_BENCH_AGENT_H
#define SCRIPTS_BENCH_AGENT_H

#include "model/policy.h"

/* Prints one metric as a line of JSON: its values, in the unit. */
void bench_print(const char *name, const char *size, const char *variant, const char *unit,
		 const double *values, size_t num);

/* Ends the program. */
void bench_fail(const char *what, int err) __attribute__((noreturn));

/* Times of decisions about num_vms simulated VMs on a host of sockets x cores x threads. */
void bench_decisions(const char *size, uint32_t num_vms, uint32_t sockets, uint32_t cores,
		     uint32_t threads, const struct ebb_policy_ops *policy, unsigned num_values);

/* Times of brokerings of memory: of num_vms VMs with num_buckets buckets each, on 4 nodes. */
void bench_brokering(const char *size, uint32_t num_vms, uint32_t num_buckets,
		     const struct ebb_policy_ops *policy, unsigned num_values);

/* Times to read the answer of the volume server about the meters of so many volumes. */
void bench_meters(const char *size, uint32_t num_volumes, bool is_brief, unsigned num_values);

/* CPU that an agent uses while num_vms devices on real sockets send telemetry each second. */
void bench_telemetry(const char *size, uint32_t num_vms, const struct ebb_policy_ops *policy,
		     double seconds);

#endif
