/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tenants that share a disk through the volume server, in virtual time: the very decisions of
 * volumed/tags.h, judged by volumed/meter.h, against two servers that promise nothing.
 *
 *   tags      requests in the order of tags.h
 *   max-only  requests in the order in which they came, but for those that a maximum holds back
 *   none      requests in the order in which they came
 *
 * All three send `depth` requests to the disk at a time.  The disk serves `parallel` of them at
 * once, each for a time drawn from a gamma distribution (shape 4: the standard deviation is half of
 * the mean), which grows with the size beyond 64 KiB; the others wait inside in their order.
 *
 * Loads are closed (so many requests open, each sent again a while after it is done) or open
 * (Poisson).  The method is that of "SQLVM", section 4.
 */
#ifndef EBB_SIMULATE_RESERVED_H
#define EBB_SIMULATE_RESERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volumed/meter.h"
#include "volumed/tags.h"

#define SIM_RESERVED_TENANTS	1024u
#define SIM_RESERVED_REQUESTS	1024u	/* of a tenant */

enum sim_reserved_policy {
	SIM_RESERVED_TAGS,
	SIM_RESERVED_MAX_ONLY,
	SIM_RESERVED_NONE,
	SIM_RESERVED_POLICIES,
};

struct sim_reserved_tenant {
	const char *name;
	struct ebb_tags_promise promise; /* max-only: without what is reserved */
	uint64_t limit_iops;		/* its maximum under max-only; 0: none */
	uint32_t outstanding;		/* closed: requests open, to SIM_RESERVED_REQUESTS */
	uint64_t think_nsec;		/* closed: mean pause before a request is sent again */
	double rate;			/* open: requests per second; 0: closed */
	uint64_t bytes;			/* of a request */
	bool is_scan;			/* each request begins where the last one ended */
	uint64_t start_nsec;		/* nothing before */
	uint64_t on_nsec, off_nsec;	/* it works and pauses in turns; off 0: never pauses */
};

/* From this time on the tenant is promised something else. */
struct sim_reserved_change {
	uint64_t at_nsec;
	uint32_t tenant;
	struct ebb_tags_promise promise;
};

enum sim_reserved_what {
	SIM_RESERVED_ARRIVED, SIM_RESERVED_ISSUED, SIM_RESERVED_COMPLETED, SIM_RESERVED_CHANGED,
};

/* What happened, in order.  request: a number of the tenant's, which is used again when done. */
struct sim_reserved_event {
	enum sim_reserved_what what;
	uint64_t now;
	uint32_t tenant, request;
	uint64_t bytes;
};

struct sim_reserved_options {
	enum sim_reserved_policy policy;
	enum ebb_tags_policy overbooked;
	double disk_iops;		/* requests of up to 64 KiB per second, at full depth */
	uint32_t parallel;		/* of them at once */
	uint32_t depth;
	uint32_t seconds;
	uint64_t seed;
	uint32_t num_tenants;
	const struct sim_reserved_tenant *tenants;
	uint32_t num_changes;		/* in the order of their times */
	const struct sim_reserved_change *changes;
	void (*trace)(void *ctx, const struct sim_reserved_event *e);	/* or NULL */
	void *ctx;
};

struct sim_reserved_result {
	double reserved;		/* units per second, the mean over the time; 0: nothing */
	double mean;			/* units issued per second */
	uint32_t intervals;		/* of 1 s in which it had requests that waited */
	uint32_t kept;			/* of these: got 97% of what its waiting time was worth */
	double p50_ms, p99_ms;		/* delays after deadlines */
	double response_p99_ms;		/* from arrival to completion */
	struct ebb_meter_counters meter;
};

/*
 * ret: one for each tenant.  -EINVAL: a number is out of its range, or tags.h refuses a promise;
 * -ENOMEM.
 */
int sim_reserved_run(const struct sim_reserved_options *o, struct sim_reserved_result *ret);

/* ---- the cases that ebbctl simulate --reserve and the tests run ---- */

enum sim_reserved_case_id {
	SIM_RESERVED_PROMISED,		/* different loads beside floods; the disk can do it all */
	SIM_RESERVED_SWAP,		/* two tenants, 3 to 1, swapped in the middle (figure 4) */
	SIM_RESERVED_OVERBOOKED,	/* eight, twice as much as there is; one is idle for half of
					 * the time (figures 6 and 7) */
	SIM_RESERVED_PENALTY,		/* the same, and three of them cost ten times as much */
	SIM_RESERVED_CASES,
};

#define SIM_RESERVED_CASE_TENANTS	8u

/* options points into the rest; policy and seed are the caller's to set. */
struct sim_reserved_case {
	const char *name, *text;
	struct sim_reserved_tenant tenants[SIM_RESERVED_CASE_TENANTS];
	struct sim_reserved_change changes[2];
	struct sim_reserved_options options;
};

/* seconds: how long it runs, 1 and more. */
void sim_reserved_case(enum sim_reserved_case_id id, uint32_t seconds,
		       struct sim_reserved_case *ret);

extern const char *const sim_reserved_policies[SIM_RESERVED_POLICIES];

#endif
