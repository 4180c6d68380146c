/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The core and a policy as ebbd runs them, against simulated VMs in virtual time: what VMs come,
 * go and want is a trace; what becomes of it under a policy is a result.  The same trace, host and
 * seed give the same result.
 */
#ifndef EBB_SIMULATE_SIMULATE_H
#define EBB_SIMULATE_SIMULATE_H

#include <stddef.h>
#include "model/policy.h"
#include "model/record.h"
#include "util/err.h"

/* ---- traces ---- */

enum sim_event_type {
	SIM_START,
	SIM_STOP,
	SIM_WANT,			/* from now on the VM can use `cpus` on its node */
};

struct sim_event {
	usec_t at;			/* since the beginning */
	enum sim_event_type type;
	uint32_t vm;			/* index into sim_trace.vms */
	uint16_t node;			/* WANT: guest node */
	uint16_t cpus;			/* WANT: startup set included */
};

struct sim_vm {
	char name[EBB_NAME_SIZE];
	struct ebb_sla sla;
};

struct sim_trace {
	usec_t length;
	uint32_t num_vms;		/* at most EBB_MAX_VMS */
	struct sim_vm *vms;
	size_t num_events, max_events;
	struct sim_event *events;	/* by time; a VM that starts is not running */
};

/* The trace to generate. */
struct sim_plan {
	uint64_t seed;
	uint32_t num_vms;		/* 1 to EBB_MAX_VMS; they come and go, not all at once */
	uint32_t seconds;		/* 1 to 1000000 */
	uint32_t spot_percent;		/* of VMs that are of class spot, 0 to 100 */
};

/*
 * Arrivals at random over the whole time, stays of a third of it on average, work in bursts.
 * -ENOMEM.
 */
int sim_trace_generate(const struct sim_plan *plan, const struct ebb_host *host,
		       struct sim_trace *ret);

/*
 * From a history of ebbd.  A VM wanted the CPUs that it held or asked for, and still wanted those
 * that were taken from it; CPUs that it gave back within a second are one change of mind.  Each VM
 * has the CPU half of the SLA that was in force when it first started, and no pools.  Histories of
 * before version 4 tell neither the host nodes of a VM (they are taken to be 0, 1, ...) nor what
 * was reserved on each (class reserved: all).  -errno with a text that names the file.
 */
int sim_trace_load(const char *path, const struct ebb_host *host, struct sim_trace *ret,
		   struct ebb_err *err);

/* -ENOMEM. */
int sim_trace_add(struct sim_trace *t, const struct sim_event *event);
/* By time; those of the same time keep their order. */
int sim_trace_sort(struct sim_trace *t);
void sim_trace_finish(struct sim_trace *t);

/* ---- running them ---- */

struct sim_options {
	struct ebb_host host;
	bool count_threads;
	uint64_t seed;			/* of the latencies of host and guests */
	/*
	 * Latencies are not random: a history that runs under the policy of its recording gives the
	 * same result again, unless messages crossed each other.
	 */
	bool is_even;
	uint32_t num_slots;		/* parts of the time that shares are told of, 1 to 1000 */
	/* Unless NULL: told every record of the core, in order; times begin at a second. */
	void (*note)(void *ctx, const struct ebb_record *record);
	void *note_ctx;
};

/* Of a VM of the trace, over all its runs; core-seconds. */
struct sim_vm_result {
	double run_s;			/* time that it ran */
	double held_s;
	double wanted_s;		/* CPU time that it could use */
	double missed_s;		/* the part of wanted_s that it did not have */
};

/* Of one part of the time; core-seconds. */
struct sim_slot {
	double by_class[EBB_CLASS_MAX];
	double missed;
	double wasted;
};

struct sim_result {
	const char *policy;
	uint32_t capacity;		/* cores, or threads where these count */
	struct sim_vm_result *vms;	/* as in the trace */
	struct sim_slot *slots;
	size_t num_waits, max_waits;
	double *waits_ms;		/* from wanting or losing a CPU to having it; rising */
	uint64_t num_unmet;		/* CPUs that were wanted and did not come before the end */
	double wasted_s;		/* core-seconds that nobody held though a VM of that node
					 * wanted them */
	uint64_t num_moves;		/* cores that another VM got than the one before */
	uint64_t num_forced;
	uint64_t num_not_admitted;	/* runs in which a VM had to wait for its startup set */
};

/* -ENOMEM, -EINVAL: the trace is not for this host, or the core misbehaved; err says what. */
int sim_run(const struct sim_trace *trace, const struct sim_options *options,
	    const struct ebb_policy_ops *policy, struct sim_result *ret, struct ebb_err *err);
void sim_result_finish(struct sim_result *r);

/* The value that `percent` of the waits do not exceed; 0 if there are none. */
double sim_wait_percentile(const struct sim_result *r, unsigned percent);

#endif
