/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every room of the core may use.
 *
 * A room (core/<room>/) looks after one matter.  It has its own struct in the state, its own parts
 * of each VM (core/vm.h), and one header.  It may read struct core_env and all of every VM, but it
 * writes only its own struct and its own parts: a VM is const to a room, and for each part the room
 * has a function that casts the const away (own() or <room>_own...()).  Rooms do not include each
 * other.  What one has to tell another goes through core.c, or is a call at the end of this header.
 */
#ifndef EBB_CORE_ROOM_H
#define EBB_CORE_ROOM_H

#include "core/core.h"
#include "core/set.h"
#include "core/vm.h"
#include "util/text.h"

struct core_journal;
struct ebb_explain;

/* Work for the rest of the cycle. */
struct core_cycle {
	bool plan_is_stale;		/* the policy has to be asked again */
	uint32_t stale_nodes;		/* bit h: limits may change on node h of the host, for what
					 * VMs use there has changed, or their targets */
	struct core_set news;		/* VMs that changed since they were last settled */
	struct core_set marked;		/* VMs that reconcile has to look at */
	bool held_has_changed;		/* VMs hold more or less memory than at the last plan */
	uint64_t num_actions;		/* ids given out */
};

/* Read only, but for what the two pointers lead to. */
struct core_env {
	struct ebb_state_config cfg;
	struct ebb_host host;
	const struct ebb_policy_ops *policy;
	bool is_loaded;
	bool has_quorum;		/* else nothing new is given (ebb_state_quorum_set()) */
	usec_t quorum_until;		/* when that is over; EBB_TIME_NEVER: never */
	bool has_taken_over;		/* the promises of an earlier agent have been made again */
	usec_t now;			/* of the call into the core that is under way */
	struct ebb_view_node nodes[EBB_MAX_NODES];
	uint16_t smt[EBB_MAX_NODES];	/* fewest threads of a core of the node */
	bool use_threads[EBB_MAX_NODES]; /* of the last plan */
	size_t num_active;
	const struct ebb_vm *const *active; /* VMs that run, by order */
	struct core_set on[EBB_MAX_NODES]; /* those that have a guest node on a node of the host */
	struct core_cycle *cycle;
	struct core_journal *journal;
};

/* ---- VMs ----------------------------------------------------------------- */

/*
 * mark: the VM changed, so it has to be settled and reconciled. stale: its use or its bounds
 * changed, so limits may change on its nodes of the host. touch: both.  No effect on a VM that does
 * not run.
 */
void core_mark(const struct core_env *e, const struct ebb_vm *vm);
void core_stale(const struct core_env *e, const struct ebb_vm *vm);
void core_touch(const struct core_env *e, const struct ebb_vm *vm);
/* It changed since it was last settled. */
bool core_has_news(const struct core_env *e, const struct ebb_vm *vm);
/* The VM has to be reconciled at that time, if not before. */
void core_wake_at(const struct ebb_vm *vm, usec_t at);
/* Closes its link, so that the device connects again and says HELLO. */
void core_close_link(const struct ebb_vm *vm);

/* Answers a request of the guest. */
void core_respond(const struct core_env *e, const struct ebb_vm *vm,
		  const struct ebb_action_response *r);

/* The last settling counted it as having a driver. */
bool core_counts_as_driven(const struct ebb_vm *vm);
/* A HELLO came in this run. */
bool core_has_hello(const struct ebb_vm *vm);
/* It was running when the agent started. */
bool core_is_found(const struct ebb_vm *vm);
/*
 * It may be promised more than it is by now.  Without quorum it may not; but an agent that has just
 * started makes the promises again that VMs had from the one before it.
 */
bool core_may_promise(const struct core_env *e, const struct ebb_vm *vm);

/* CPUs that guest node g wants: those it uses, and those it was refused lately for its limit. */
uint16_t core_wanted(const struct ebb_vm *vm, uint16_t g, usec_t now);
/* The most blocks that the guest can plug in the pool before its device reports again. */
uint32_t core_pool_reach(const struct ebb_vm_pool *p);
/* Time left until `at`, at least 1; 0 if there is no deadline (at is 0). */
uint32_t core_left_ms(usec_t at, usec_t now);
/* Capacity of a node of the host: cores, or threads where the last plan gives out threads. */
uint32_t core_node_capacity(const struct core_env *e, uint16_t host_node);

static inline uint16_t core_host_node(const struct ebb_vm *vm, uint16_t vcpu)
{
	return vm->sla.nodes[vm->vcpus[vcpu].node].host_node;
}

/* Blocks that are guaranteed to guest node g: its minimum, and what keeps a promise of memory. */
static inline uint32_t core_mem_floor(const struct ebb_vm *vm, uint16_t g)
{
	return vm->sla.nodes[g].mem_min + vm->floor.keep[g];
}

static inline bool core_vcpu_is_present(const struct ebb_vcpu *v)
{
	return v->life == EBB_VCPU_PLUGGED || v->life == EBB_VCPU_UNPLUGGING;
}

/* ---- actions ------------------------------------------------------------- */

/* How long to wait after so many failures in a row. */
usec_t core_backoff(const struct core_env *e, uint16_t failures);
/* Appends an action to *out; NULL if there is no space left.  vm: NULL for VOLUME alone. */
struct ebb_action *core_emit(struct ebb_actions *out, const struct ebb_vm *vm,
			     enum ebb_action_type type);
/*
 * A new id, which encodes the VM (NULL for VOLUME alone) and the vCPU: report_done() in core.c
 * decodes it.
 */
uint64_t core_action_id(const struct core_env *e, const struct ebb_vm *vm, uint16_t vcpu);

/* ---- records and texts --------------------------------------------------- */

/* vm may be NULL.  The record lives until the next one is made. */
struct ebb_record *core_record(const struct core_env *e, const struct ebb_vm *vm, usec_t now,
			       enum ebb_event event);
/* The same for a request for CPUs or its refusal; NULL: there were many, so it was only counted. */
struct ebb_record *core_gather_request(const struct core_env *e, const struct ebb_vm *vm,
				       usec_t now);
struct ebb_record *core_gather_refuse(const struct core_env *e, const struct ebb_vm *vm, usec_t now,
				      uint16_t reason);
void core_text(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The buffer of one more line of the explanation. */
char *core_explain_more(struct ebb_explain *x);

/* The VM's name, shortened so that the rest of a text has space. */
static inline struct ebb_text_label core_label(const struct ebb_vm *vm)
{
	return ebb_text_label(vm->name, EBB_LABEL_MOST);
}

/* ---- small things -------------------------------------------------------- */

/* In whole blocks, rounded down. */
static inline uint32_t core_percent(uint32_t blocks, uint32_t percent)
{
	return (uint32_t)((uint64_t)blocks * percent / 100);
}

static inline usec_t core_sooner(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

/* ---- told to the meter (meter/charge.c, meter/cputime.c, meter/conduct.c) -- */

/* Charges the VM for what it held until now.  To be called before that changes. */
void core_charge(const struct core_env *e, const struct ebb_vm *vm);

/* The thread of the vCPU is gone: a new one counts its times from 0. */
void core_times_forget(const struct ebb_vm *vm, uint16_t vcpu);

void core_conduct_request(usec_t now, const struct ebb_vm *vm);
/* A request was not met because of the limit, or was met. */
void core_conduct_refused(usec_t now, const struct ebb_vm *vm);
void core_conduct_granted(const struct ebb_vm *vm);
/* The guest gives the vCPU back, asked to or not. */
void core_conduct_back(usec_t now, const struct ebb_vm *vm, uint16_t vcpu);
/* It has met so many demands, `late` of them shortly before the deadline; or it has missed one. */
void core_conduct_given(const struct ebb_vm *vm, uint32_t count, uint32_t late, usec_t now);
void core_conduct_forced(const struct ebb_vm *vm, usec_t now);
/* Records verdicts on the guest that are new, and those that do not hold any more. */
void core_conduct_review(const struct core_env *e, usec_t now, const struct ebb_vm *vm);

#endif /* EBB_CORE_ROOM_H */
