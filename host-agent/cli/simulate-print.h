/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A simulation as ebbctl was asked for it, and what came of it. */
#ifndef EBB_CLI_SIMULATE_PRINT_H
#define EBB_CLI_SIMULATE_PRINT_H

#include "simulate/simulate.h"

#define SIMULATE_MAX_POLICIES	4u
#define SIMULATE_MAX_PLACERS	11u

struct sim_place_placer;

/* Of --place (placed.h). */
struct simulate_place {
	uint32_t num_hosts, upgrade_domains, fault_domains, weeks, balance_hours, num_seeds;
	uint32_t ahead_days, samples, candidates;
	double ratio;
	uint32_t num_placers;		/* 0: those of the default */
	const struct sim_place_placer *placers[SIMULATE_MAX_PLACERS];
};

struct simulate {
	const char *topology, *history;	/* history: NULL for a made-up trace */
	bool is_planned;		/* options of a made-up trace were given */
	bool is_broker;			/* the broker experiment in place of a trace */
	unsigned idle_half_s;
	bool is_promise;		/* a promised cache in place of a trace */
	bool is_shared;			/* shared cores in place of a trace */
	bool is_reserve;		/* tenants of the volume server in place of a trace */
	bool is_place;			/* a cluster of hosts in place of a trace */
	bool is_vms;			/* options of VMs were given, which those do not have */
	bool has_topology, has_vms, has_seconds;
	/* options of just one of these were given */
	bool is_broker_tuned, is_shared_tuned, is_place_tuned;
	unsigned vcpus, window_s, reserve_percent;
	const char *demand;		/* NULL: made up */
	struct simulate_place place;
	struct sim_plan plan;
	struct sim_options options;
	struct sim_trace trace;
	size_t num_policies, num_results;
	const struct ebb_policy_ops *policies[SIMULATE_MAX_POLICIES];
	struct sim_result results[SIMULATE_MAX_POLICIES];
};

void simulate_print(const struct simulate *s);
void simulate_print_json(const struct simulate *s);

/* The broker experiment (brokered.h): runs and prints it.  -errno with a text. */
int simulate_broker(const struct simulate *s, bool is_json, struct ebb_err *err);

/* A promised cache (promised.h), in the same way. */
int simulate_promise(const struct simulate *s, bool is_json, struct ebb_err *err);

/* VMs that share cores (shared.h), in the same way. */
int simulate_shared(const struct simulate *s, bool is_json, struct ebb_err *err);

/* Tenants that share a disk (reserved.h), in the same way. */
int simulate_reserve(const struct simulate *s, bool is_json, struct ebb_err *err);

/* A cluster of hosts (placed.h), in the same way. */
int simulate_place(struct simulate *s, bool is_json, struct ebb_err *err);

#endif
