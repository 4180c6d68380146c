/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the sources of this room; nobody else includes it. */
#ifndef EBB_PLACE_INTERNAL_H
#define EBB_PLACE_INTERNAL_H

#include "place/place.h"

/*
 * One slot of the future: an amount of each resource.  One vector is what SSE2 and NEON add at
 * once, so a fourth resource is free and a fifth needs wider vectors.
 */
#define PLACE_LANES	4
typedef int32_t place_vec __attribute__((vector_size(4 * PLACE_LANES)));
typedef float place_floats __attribute__((vector_size(4 * PLACE_LANES)));
_Static_assert(PLACE_N_RESOURCES <= PLACE_LANES, "resources of a slot fill one vector");

/*
 * Amounts in vectors are multiples of place_traces.unit, at most this.  A host has at most
 * PLACE_VMS_PER_HOST_MAX VMs, so its sum is at most 2^30: it cannot overflow, and adding and
 * subtracting a VM is exact.
 */
#define PLACE_UNITS_MAX	(1 << 20)

static inline place_vec place_greater(place_vec a, place_vec b)
{
	place_vec is_a = a > b;

	return (a & is_a) | (b & ~is_a);
}

#define PLACE_NONE	UINT32_MAX

/* ---- traces.c ---- */

struct place_stored_trace {
	uint32_t first;			/* its first slot in place_traces.slots */
	uint32_t n_starts;		/* slots where a window may begin */
	uint32_t features, n_days;	/* its first in place_traces.features; days begun */
};

/*
 * VMs are compared by these: `now` is the first step of the slot, `peak` the day before it, `most`
 * all the time before it.
 */
enum place_feature { PLACE_NOW, PLACE_PEAK, PLACE_MOST, PLACE_N_FEATURES };

struct place_features {
	place_floats of[PLACE_N_FEATURES];
};

/* The traces of one class and role. */
struct place_group {
	uint32_t first, n;		/* of place_traces.traces */
	struct place_features scale;	/* 1 over standard deviations; 0: all alike */
	double reserve[PLACE_N_RESOURCES];
};

struct place_traces {
	struct place_grid grid;
	uint32_t day_slots;
	uint32_t n_classes;
	double unit[PLACE_N_RESOURCES];	/* powers of two: whole amounts stay exact */
	struct place_group *groups;	/* [n_classes * PLACE_N_ROLES] */
	struct place_stored_trace *traces; /* by group */
	place_vec *slots;		/* highest demand within each slot */
	place_vec *peaks;		/* beside slots: highest in the window that begins there */
	struct place_features *features; /* by place_features_at() */
};

/* Those of the same time of the day lie side by side: they are looked at together. */
static inline uint32_t place_features_at(const struct place_traces *t,
					 const struct place_stored_trace *trace, uint32_t start)
{
	return trace->features + start % t->day_slots * trace->n_days + start / t->day_slots;
}

/* The group to draw from: the other role's if this one is empty; NULL: the class has no trace. */
const struct place_group *place_group_of(const struct place_traces *traces, uint32_t class,
					 enum place_role role);

/* ---- draw.c ---- */

struct place_candidates {
	uint32_t n;			/* those to draw from, evenly */
	struct place_candidate {
		float distance;
		uint32_t start;		/* index into place_traces.slots */
	} *at;
};

/* Windows that may be the future of the VM.  -ENOMEM. */
int place_candidates_find(struct place_candidates *ret, const struct place_traces *traces,
			  const struct place_vm *vm);
void place_candidates_free(struct place_candidates *found);
/* The stream from which sample after sample of a VM is drawn. */
uint64_t place_draw_begin(uint64_t seed, uint64_t vm_id);
uint32_t place_draw_next(uint64_t *stream, const struct place_candidates *from);

/* ---- state of a cluster ---- */

struct vm {
	struct place_vm in;
	uint32_t item;
	uint32_t next_member;		/* of its item, or PLACE_NONE */
	uint32_t next_anti;		/* ring of its anti-affinity set; itself if alone */
	uint32_t first_parted, first_banned; /* in place.rules, or PLACE_NONE */
	double load[PLACE_N_RESOURCES], needed[PLACE_N_RESOURCES];
	enum place_cost bucket;
	double weight;			/* of moving it */
};

/* VMs of one affinity set, or one VM: what is placed. */
struct item {
	uint32_t first, last, n;	/* its members */
	int32_t host;
	int32_t pinned;			/* host that it may not leave, -1: none */
	uint32_t pos;			/* in the list of its host */
	uint32_t moved_pos;		/* in place.moved, PLACE_NONE while no member is moved */
	/* needed: load without reserves; likely: place_demand_peak() */
	double load[PLACE_N_RESOURCES], needed[PLACE_N_RESOURCES], floor[PLACE_N_RESOURCES];
	double likely[PLACE_N_RESOURCES];
	uint32_t n_bucket[PLACE_N_COSTS]; /* members of each move cost */
	place_vec peak;			/* of its demand over samples and slots */
};

/* Of one VM: another VM that it must not be with, or a host that it must not be on. */
struct rule {
	uint32_t other, scopes;
	uint32_t next;			/* of the VM, or PLACE_NONE */
};

/* The part of one host in the score. */
struct terms {
	double used[PLACE_N_RESOURCES];	/* likely load / capacity */
	double excess, expected, violations;
};

struct host {
	struct place_host in;
	double load[PLACE_N_RESOURCES], needed[PLACE_N_RESOURCES], floor[PLACE_N_RESOURCES];
	double likely[PLACE_N_RESOURCES];
	uint32_t n_vms, n_items;
	uint32_t n_bucket[PLACE_N_COSTS];
	uint32_t *items;
	place_vec capacity, peak;	/* peak: of sums over samples and slots */
	place_vec *sums;		/* [n_samples][n_slots], demand of its VMs */
	uint32_t n_bad;			/* samples with a violation */
	struct terms terms;
};

struct totals {
	double used[PLACE_N_RESOURCES], used_squared[PLACE_N_RESOURCES];
	double excess, expected, violations, moves;
	uint32_t n_unplaced;
};

struct place {
	struct place_config config;
	const struct place_traces *traces; /* used only to look ahead */
	uint32_t n_samples, n_slots;	/* 0 without look-ahead */
	uint32_t n_hosts;
	struct host *hosts;
	place_vec *sums;		/* of all hosts */
	uint32_t *host_items;		/* of all hosts */
	uint32_t n_vms, n_items, max;	/* max: room for either */
	struct vm *vms;
	struct item *items;
	uint32_t *starts;		/* [max][n_samples]: window of each sample of each VM */
	uint32_t *moved, n_moved;	/* items that are not where they were */
	struct rule *rules;
	uint32_t n_rules, max_rules;
	struct totals totals;
	place_vec *rows;		/* [3][n_slots]: two to add up items in, one of zeros */
};

/* ---- demand.c: sums over samples ---- */

/* Draws the samples of a VM.  -ENOMEM. */
int place_demand_draw(struct place *p, uint32_t vm);
/*
 * Highest demand of an item, and the load that is likely: without look-ahead the load, with it for
 * each member the mean over samples of the most that it wants, or what is needed if that is more.
 */
void place_demand_peak(struct place *p, struct item *item);
/* Adds (sign 1) or removes (-1) the demand of a VM. */
void place_demand_add(struct place *p, struct host *host, uint32_t vm, int32_t sign);
/* Samples with a violation if one item went and another came; either may be NULL. */
uint32_t place_demand_count(struct place *p, const struct host *host, const struct item *minus,
			    const struct item *plus);

/* ---- check.c: constraints ---- */

#define PLACE_ALL_SCOPES	(PLACE_WITHIN_HOST | PLACE_WITHIN_FAULT_DOMAIN | \
				 PLACE_WITHIN_UPGRADE_DOMAIN)

/*
 * Bits of the constraints that keep the item off the host when `without`, unless NULL, has left
 * it.  ret_resource, the scarcest, may be NULL.
 */
uint32_t place_check(const struct place *p, const struct item *item, uint32_t host,
		     const struct item *without, enum place_resource *ret_resource);
/* Why the item of a VM can be nowhere. */
void place_refuse(const struct place *p, uint32_t vm, struct place_refusal *ret);

/* ---- score.c ---- */

struct change {
	uint32_t item;
	uint32_t to;
	uint32_t other;			/* it takes the place of `item`; PLACE_NONE: nothing does */
};

/* Recomputes what is kept of a host, and the totals from all hosts and items. */
struct terms place_terms(const struct place *p, const struct host *host, const double *likely,
			 const double *needed, uint32_t n_bad, const uint32_t *n_bucket);
/* Adds them, or with a sign of -1 takes them away. */
void place_add_terms(struct totals *totals, const struct terms *terms, double sign);
void place_totals(struct place *p);
double place_value(const struct place *p, const struct totals *totals);
/* Weighted moves with the item on a host. */
double place_moves(const struct place *p, const struct item *item, int32_t host);
/*
 * Value after a change.  May stop early and return a lower bound of it that is above `limit`.
 * With `is_bound`, it stops there in any case: nothing is simulated.
 */
double place_eval(struct place *p, const struct change *change, double limit, bool is_bound);

/* ---- place.c ---- */

void place_move_item(struct place *p, uint32_t item, int32_t host);

static inline double place_needed_of(const struct place_vm *vm, uint32_t resource)
{
	return vm->use[resource] < vm->floor[resource] ? vm->floor[resource] : vm->use[resource];
}

/* Once a VM has a host, its load is known. */
static inline double place_load_of(const struct place_config *config, const struct place_vm *vm,
				   uint32_t resource)
{
	double load = place_needed_of(vm, resource);

	if (config->reserve_new && vm->host < 0 && load < vm->reserve[resource])
		load = vm->reserve[resource];
	return load;
}

/* ---- input.c ---- */

/* -EINVAL with the problem, or 0. */
int place_check_amount(double amount, enum place_resource resource, struct place_problem *problem);
int place_check_config(const struct place_config *config, struct place_problem *problem);
int place_check_host(const struct place_host *host, struct place_problem *problem);
int place_check_vm(const struct place_traces *traces, const struct place_vm *vm, uint32_t n_hosts,
		   struct place_problem *problem);

/* ---- fit.c ---- */

/*
 * The best host for an item by score, other than that where it is; -1: there is none.  forgiven:
 * bits of constraints that do not count.  ret_value, of the plan with the item there, may be NULL.
 * -ENOMEM.
 */
int place_best_host(struct place *p, uint32_t item, uint32_t forgiven, int32_t *ret,
		    double *ret_value);
/* The same for an item on no host: if it can be on none, reserves give way. */
int place_find_home(struct place *p, uint32_t item, int32_t *ret);
/* 0 if all VMs are on a host, else -EBUSY with the first that is not. */
int place_answer(const struct place *p, struct place_refusal *ret_refusal);

#endif
