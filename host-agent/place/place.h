/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which host a database VM should be on, judged by what it may want within the next hours
 * ("Flexible Resource Allocation for Relational Database-as-a-Service", VLDB 2023, section 6).
 *
 * Pure: no file, clock, output or global state.  Memory comes from malloc().  A call needs the
 * object that it is given for itself, calls on other objects may run beside it.  The same input
 * with the same seeds gives the same result, unless a time limit ends a search.
 *
 * Errors of all functions: -ENOMEM; -EINVAL for input that cannot be, described in
 * struct place_problem where a function takes one.  Outputs are written on success only, but for
 * place_problem and place_refusal, which are written on failure.
 *
 * docs/placement.md has the formulas and the choices behind them.
 */
#ifndef EBB_PLACE_PLACE_H
#define EBB_PLACE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* One more resource is one more line here and in the table place_resources. */
enum place_resource {
	PLACE_CPU,			/* thousandths of a CPU */
	PLACE_MEMORY,			/* MiB */
	PLACE_DISK,			/* MiB */
	PLACE_N_RESOURCES,
};

struct place_resource_info {
	const char *name;		/* "cpu", "memory", "disk" */
	const char *unit;		/* "thousandths of a CPU", "MiB" */
};

extern const struct place_resource_info place_resources[PLACE_N_RESOURCES];

enum place_role {
	PLACE_PRIMARY,
	PLACE_SECONDARY,
	PLACE_N_ROLES,
};

/* ---- limits of what is accepted ---- */

#define PLACE_AMOUNT_MAX	1e12	/* of a resource, for demand and capacity */
#define PLACE_HOSTS_MAX		4096u
#define PLACE_VMS_MAX		131072u
#define PLACE_VMS_PER_HOST_MAX	1024u	/* a host with as many takes no more */
#define PLACE_SAMPLES_MAX	100000u
#define PLACE_CLASSES_MAX	1024u
#define PLACE_SLOTS_MAX		1024u

/* ---- what is wrong with an input ---- */

enum place_fault {
	PLACE_FAULT_NONE,
	PLACE_FAULT_HOLE,		/* not a number */
	PLACE_FAULT_NEGATIVE,		/* or a capacity of 0 */
	PLACE_FAULT_TOO_BIG,		/* above PLACE_AMOUNT_MAX, or infinite */
	PLACE_FAULT_INTERVAL,		/* a trace with another time between its values */
	PLACE_FAULT_SHORT,		/* no values, or the VM lived on and the window is longer */
	PLACE_FAULT_CLASS,		/* no such class, or a class without traces */
	PLACE_FAULT_ROLE,		/* no such role */
	PLACE_FAULT_HOST,		/* a VM on a host that is not there; no host at all */
	PLACE_FAULT_AFFINITY,		/* VMs that must be together and must not be */
	PLACE_FAULT_PINNED,		/* VMs that must be together, pinned to different hosts */
	PLACE_FAULT_SETTING,		/* a number of struct place_config or place_grid */
	PLACE_FAULT_COUNT,		/* too many hosts, classes, VMs, or VMs on a host */
	PLACE_N_FAULTS,
};

struct place_problem {
	enum place_fault fault;
	uint32_t index;			/* of the trace, host or VM in the array given */
	uint32_t step;			/* of the trace, where a value is at fault */
	enum place_resource resource;	/* where an amount is at fault */
};

/* "hole", "negative" and so on: a short noun phrase, for messages and JSON. */
const char *place_fault_name(enum place_fault fault);

/* ---- demand of earlier VMs ---- */

/*
 * The demand of one earlier VM from its first step on.  `demand` has `steps` rows of
 * PLACE_N_RESOURCES amounts; who calls keeps it until place_traces_create() has returned.
 */
struct place_trace {
	uint32_t class;			/* 0 to n_classes - 1 */
	enum place_role role;
	uint32_t step_seconds;		/* time between two rows */
	uint32_t steps;
	bool was_deleted;		/* it wants nothing after its last step. Else it lived on */
	const float *demand;
};

/*
 * The future that is looked at: `slots` slots of `slot_steps` steps each.  Within a slot the
 * highest demand of each VM counts, so a sum over VMs is never less than that at any step in it.
 */
struct place_grid {
	uint32_t step_seconds;		/* 600; a day must be a whole number of slots */
	uint32_t slot_steps;		/* 6: an hour */
	uint32_t slots;			/* 24: a day. 1 to PLACE_SLOTS_MAX */
};

struct place_grid place_grid_default(void);

struct place_traces;

/* Copies what it needs.  n may be 0 if nobody looks ahead or asks for a reserve. */
int place_traces_create(const struct place_grid *grid, uint32_t n_classes,
			const struct place_trace *traces, uint32_t n, struct place_traces **ret,
			struct place_problem *ret_problem);
void place_traces_destroy(struct place_traces *traces);

/*
 * The reserve of a new VM (section 6, "Handling New Tenants"): the amount that 90% of the earlier
 * VMs of its class and role did not exceed in their first 24 hours.  The other role counts if this
 * one has no trace.  -ENOENT: the class has none at all.
 */
int place_reserve(const struct place_traces *traces, uint32_t class, enum place_role role,
		  double ret[PLACE_N_RESOURCES]);

/* ---- cluster ---- */

/* Anything but OPEN: the VMs there may stay, and no other VM comes. */
enum place_host_state {
	PLACE_HOST_OPEN,
	PLACE_HOST_OTHER_VERSION,	/* its agent speaks another version than this program */
	PLACE_HOST_SILENT,		/* its agent or its libvirtd does not answer */
	PLACE_N_HOST_STATES,
};

/* A host that is lost is left out, and its VMs are on no host. */
struct place_host {
	double capacity[PLACE_N_RESOURCES]; /* above 0; a violation is demand above it */
	int32_t fault_domain, upgrade_domain; /* -1: none, shared with no other host */
	enum place_host_state state;
};

struct place_vm {
	uint64_t id;			/* picks its samples: the same id, the same traces */
	uint32_t class;
	enum place_role role;
	uint32_t age;			/* steps of the traces since it was created */
	double use[PLACE_N_RESOURCES];	/* now */
	double peak[PLACE_N_RESOURCES];	/* most that it used within the last day; 0: not known */
	double most[PLACE_N_RESOURCES];	/* ... since it was created; 0: not known */
	double reserve[PLACE_N_RESOURCES]; /* while it is on no host, its load is at least this */
	double floor[PLACE_N_RESOURCES]; /* always kept free for it: never oversold */
	uint32_t affinity;		/* VMs of the same number, but 0, are on one host */
	uint32_t anti_affinity;		/* VMs of the same number, but 0, share no host or domain */
	int32_t host;			/* index of its host now, -1: on none */
	bool may_move;			/* false: stays where it is, if it is on a host */
	bool is_active;			/* it works for clients: moving it disturbs somebody */
};

/* ---- move cost (section 6, "Assigning Weights to Tenants") ---- */

enum place_cost { PLACE_COST_LOW, PLACE_COST_MEDIUM, PLACE_COST_HIGH, PLACE_N_COSTS };

/* cost = a log2(disk) + b log2(memory) + c activity, of MiB in use, those below 1 taken as 1. */
struct place_move_cost {
	double a, b, c;			/* at least 0 */
	double limit[PLACE_N_COSTS - 1]; /* cost from which on a VM is MEDIUM, HIGH */
	double weight[PLACE_N_COSTS];	/* what a failover of such a VM counts in the score, > 0 */
};

/* A move that was made, and what it did. */
struct place_disruption {
	double disk, memory;		/* MiB in use */
	bool is_active;
	double cost;			/* seconds of disruption or another measure, >= 0 */
};

double place_move_cost(const struct place_move_cost *cost, double disk, double memory,
		       bool is_active);
enum place_cost place_cost_bucket(const struct place_move_cost *cost, double value);

/*
 * Finds a, b and c, each at least 0, with the least sum of squared errors of log2(1 + cost), the
 * limits that divide the measured VMs by cost into thirds, and the weights: mean measured cost of a
 * third over that of the lowest.  -EINVAL: numbers that cannot be.  -ENODATA: what was measured
 * does not determine them (fewer than 6 moves, or all alike).
 */
int place_calibrate(const struct place_disruption *moves, uint32_t n, struct place_move_cost *ret,
		    double *ret_rms_error);

/* ---- settings ---- */

struct place_config {
	uint64_t seed;			/* of the samples */
	uint32_t samples;		/* 100; 1 to PLACE_SAMPLES_MAX */
	bool look_ahead;		/* expected failovers count. False: the paper's PLB */
	bool move_costs;		/* MC: moves are weighted. False: each counts 1 */
	bool reserve_new;		/* ARU: reserves count. False: as if they were 0 */
	double weight[PLACE_N_RESOURCES]; /* of its standard deviation; >= 0, not all 0 */
	double future;			/* 1: an expected failover counts as much as a move now */
	struct place_move_cost cost;
};

/* All three techniques on, all weights 1. */
struct place_config place_config_default(void);

/* ---- constraints ---- */

enum place_constraint {
	PLACE_ALLOWED,
	PLACE_HOST_CLOSED,		/* its state is not PLACE_HOST_OPEN */
	PLACE_HOST_FULL,		/* PLACE_VMS_PER_HOST_MAX */
	PLACE_PINNED,			/* the VM may not move away from where it is */
	PLACE_BANNED,			/* place_ban() */
	PLACE_FLOOR,			/* floors add up to more than the capacity */
	PLACE_CAPACITY,			/* use and floors add up to more than the capacity */
	PLACE_RESERVE,			/* they do not, but with reserves they do */
	PLACE_ANTI_AFFINITY,		/* a VM of its anti-affinity set is on the host, or one
					 * that it was parted from */
	PLACE_FAULT_DOMAIN,		/* ... in the fault domain */
	PLACE_UPGRADE_DOMAIN,		/* ... in the upgrade domain */
	PLACE_N_CONSTRAINTS,
};

/* "capacity", "fault domain" and so on. */
const char *place_constraint_name(enum place_constraint constraint);

/* Why a VM can be on no host. */
struct place_refusal {
	uint32_t vm;
	/*
	 * The constraint to blame: the only one that rules out some host, of several such the one
	 * of most hosts; if each host is ruled out by two or more, the one that rules out most.
	 */
	enum place_constraint constraint;
	enum place_resource resource;	/* for FLOOR, CAPACITY, RESERVE: the scarcest there */
	uint32_t hosts[PLACE_N_CONSTRAINTS]; /* that it rules out; a host may count at several */
};

/* ---- a cluster to place VMs in ---- */

struct place;

/*
 * VMs of one affinity set are moved as one.  If they are on several hosts, they are brought to
 * that of the first of them which is on one.  traces may be NULL unless config->look_ahead (steps
 * are then 600 s); it stays with the caller and must outlive the result.  All else is copied.
 */
int place_create(const struct place_config *config, const struct place_traces *traces,
		 const struct place_host *hosts, uint32_t n_hosts, const struct place_vm *vms,
		 uint32_t n_vms, struct place **ret, struct place_problem *ret_problem);
void place_destroy(struct place *place);

/*
 * One more VM, with a host or on none.  A VM of an affinity set that is placed joins it there;
 * -EBUSY: it cannot, for the reason in *ret_refusal.
 */
int place_add(struct place *place, const struct place_vm *vm, uint32_t *ret_index,
	      struct place_problem *ret_problem, struct place_refusal *ret_refusal);

/* Within which two VMs may not be together; bits. */
enum place_scope {
	PLACE_WITHIN_HOST = 1,
	PLACE_WITHIN_FAULT_DOMAIN = 2,	/* without domain the host counts as one */
	PLACE_WITHIN_UPGRADE_DOMAIN = 4,
};

/*
 * Rules about single VMs, for those that form no sets.  place_part(): a and b must not be together
 * within `scopes`; -EINVAL also for VMs of one affinity set.  place_ban(): the VM must not be on
 * the host.  VMs that break a rule already stay where they are until they are put elsewhere.
 */
int place_part(struct place *place, uint32_t a, uint32_t b, uint32_t scopes);
int place_ban(struct place *place, uint32_t vm, uint32_t host);

uint32_t place_n_hosts(const struct place *place);
uint32_t place_n_vms(const struct place *place);

/* Where a VM is in the plan so far, -1: on no host.  place_create() begins with `host`. */
int32_t place_host_of(const struct place *place, uint32_t vm);
/* Where it was when it was given. */
int32_t place_origin_of(const struct place *place, uint32_t vm);

/* Puts a VM (and its affinity set) on a host, -1: on none, whether that is allowed or not. */
int place_put(struct place *place, uint32_t vm, int32_t host);

/* ---- what a plan is worth ---- */

struct place_score {
	double value;			/* what the search minimises */
	double deviation;		/* weighted sum of standard deviations of load / capacity */
	double moves;			/* weighted moves that the plan needs now */
	double expected;		/* weighted failovers that are expected afterwards */
	double violations;		/* hosts that are expected to see a violation */
	double excess;			/* (use, floors) / capacity above 1 now, of all hosts */
	uint32_t n_moves;		/* VMs that change hosts */
	uint32_t n_unplaced;		/* VMs on no host */
};

void place_score(const struct place *place, struct place_score *ret);

/* Share of the samples in which some resource of the host is exceeded; 0 without look-ahead. */
double place_host_risk(const struct place *place, uint32_t host);
/* Load of its VMs: use or floor, and for those that were given on no host, at least the reserve. */
void place_host_load(const struct place *place, uint32_t host, double ret[PLACE_N_RESOURCES]);

struct place_risk {
	double probability;		/* that some resource is exceeded within the window */
	double low, high;		/* its 95% interval (Wilson) */
	double by_resource[PLACE_N_RESOURCES];
};

/* The same for any set of VMs on one host; their hosts and sets do not matter. */
int place_risk(const struct place_config *config, const struct place_traces *traces,
	       const double capacity[PLACE_N_RESOURCES], const struct place_vm *vms, uint32_t n_vms,
	       struct place_risk *ret, struct place_problem *ret_problem);

/* ---- search ---- */

/*
 * A search ends after `steps` candidates, or when `usec` have passed by `now`; 0 and NULL are no
 * limit, one of both is needed.  By steps alone the same seed gives the same plan.
 */
struct place_limit {
	uint64_t seed;
	uint64_t steps;
	uint64_t usec;
	uint64_t (*now)(void *ctx);	/* microseconds, any origin */
	void *ctx;
};

/*
 * All of these change where VMs are in the plan, and are done with 0.  -EBUSY: VMs are left on no
 * host, the first of them with its reason in *ret_refusal; the others are placed.
 *
 * Simulated annealing: VMs on no host are placed, hosts over their capacity are relieved, then
 * moves and swaps that lower the score are searched.  What is then in the plan is the best found.
 * Reserves give way to VMs that no host could take otherwise.
 * ret_steps, the candidates looked at, may be NULL.
 */
int place_anneal(struct place *place, const struct place_limit *limit, uint64_t *ret_steps,
		 struct place_refusal *ret_refusal);

/*
 * The host with the best score for one VM (and its affinity set) that is on none.  Reserves give
 * way before it is refused: if none but PLACE_RESERVE rules out some hosts, the best of these.
 */
int place_new(struct place *place, uint32_t vm, struct place_refusal *ret_refusal);

/*
 * Baselines: VMs on no host, in the order given, to the first host that can take them, to the one
 * that is least free afterwards, or to that with the greatest dot product of demand and room.
 */
int place_first_fit(struct place *place, struct place_refusal *ret_refusal);
int place_best_fit(struct place *place, struct place_refusal *ret_refusal);
int place_worst_fit(struct place *place, struct place_refusal *ret_refusal);

/* ---- why ---- */

/* One host as a place for a VM, all other VMs where they are in the plan. */
struct place_reason {
	uint32_t host;
	bool is_chosen;			/* where the VM is in the plan */
	/* Bit n: place_constraint n rules it out; RESERVE alone for the chosen one: it gave way. */
	uint32_t constraints;
	enum place_resource resource;	/* the scarcest with the VM there */
	double room;			/* 1 - load / capacity of that, with the VM there */
	double risk_without, risk_with;	/* probability of violation of the host */
	struct place_score score;	/* of the plan with the VM there */
};

/*
 * Fills ret with one row for each host: first the chosen one, then allowed ones by score, then
 * those ruled out in order of hosts.  ret has place_n_hosts() rows.  The plan stays as it is.
 */
int place_explain(struct place *place, uint32_t vm, struct place_reason *ret);

#endif
