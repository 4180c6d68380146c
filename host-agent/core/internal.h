/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the core share.
 *
 *   core.c         creation, dispatch of facts, accessors
 *   tables.c       definitions and SLAs; VMs come and go in the tables
 *   lifecycle.c    VMs start, stop, and change behind the agent's back
 *   link.c         HELLO, loss of the link, who counts as having a driver
 *   plan.c         admission, policy, limits ("settling")
 *   reconcile.c    what differs from what should be becomes actions
 *   explain.c      why a VM has what it has
 *   journal.c      decision records
 *   journal-sum.c  requests that are too many to be recorded one by one
 *   cpu/           vCPUs: requests, cores, deadlines
 *   mem/           pools: what devices report, deadlines, revoking, what is told to whom
 *   broker/        what guests say that their memory is worth, and brokering by it
 *   shared/        VMs that share cores
 *   pressure/      resources beyond their thresholds, and VMs that should move for it
 *   meter/         what VMs held and used, and how guests behave
 */
#ifndef EBB_CORE_INTERNAL_H
#define EBB_CORE_INTERNAL_H

#include "core/arbiter.h"
#include "core/cpu/cores.h"
#include "core/shared/balance.h"
#include "core/pressure/move.h"
#include "core/core.h"
#include "util/text.h"

#define EBB_RECORDS	4096u

/* What is divided among VMs. */
enum ebb_resource { EBB_CPUS, EBB_MEM, EBB_RESOURCES };

struct ebb_vm_work {
	uint16_t slot;			/* in ebb_state.slots; part of the ids of its actions */
	bool is_dirty;			/* reconcile has to look at it */
	bool is_found;			/* was running when the agent started */
	bool has_hello;			/* a HELLO came in this run */
	bool counts_as_driven;		/* has a driver as far as planning goes */
	bool is_void;			/* the definition became invalid; the last SLA is in use */
	bool is_refused;		/* running, but its floor does not fit */
	bool wants_cores;		/* a vCPU waits for any core to come free */
	bool is_welcome_due;
	bool is_close_due;
	struct ebb_action_welcome welcome;
	usec_t wake_at;			/* reconcile has to look at it then */
	uint16_t num_responses;
	struct ebb_action_response responses[VIRTIO_EBB_MAX_INFLIGHT];
};

/* VMs that share cores.  What is kept of them is in struct ebb_vm and struct ebb_vcpu. */
struct core_shared {
	bool is_stale;			/* VMs or their vCPUs came, went or were found elsewhere */
	bool is_hot;
	uint16_t core_of[EBB_MAX_THREADS]; /* index in cores, or EBB_SHARE_NONE */
	usec_t look_at;			/* 0: nobody shares cores */
	uint64_t num_looks, num_moved_vms, num_moved_vcpus, cost_usec;
	struct ebb_share share;		/* of the last look */
	struct ebb_share_core cores[EBB_MAX_THREADS];
	struct ebb_vm *of[EBB_MAX_VMS];	/* by index in vms */
	struct ebb_share_vm vms[EBB_MAX_VMS];
	struct ebb_share_vcpu vcpus[EBB_SHARE_MAX_VCPUS];
	uint16_t ids[EBB_SHARE_MAX_VCPUS]; /* vCPU ids */
};

struct ebb_state {
	struct ebb_state_config cfg;
	struct ebb_host host;
	struct ebb_view_node nodes[EBB_MAX_NODES];
	uint16_t smt[EBB_MAX_NODES];	/* fewest threads of a core of the node */
	bool use_threads[EBB_MAX_NODES]; /* of the last plan */
	struct ebb_cores cores;
	struct ebb_broker broker;
	const struct ebb_policy_ops *policy;
	uint64_t policy_state[EBB_POLICY_STATE_MAX / 8];
	bool is_loaded;
	bool plan_is_stale;		/* the policy has to be asked again */
	bool limits_are_stale;		/* used, held or targets changed */
	usec_t now;			/* of the call into the core that is under way */
	uint32_t idle[EBB_MAX_NODES];	/* cores that are wasted now */
	uint64_t wasted_usec[EBB_MAX_NODES]; /* until wasted_at */
	usec_t wasted_at;
	usec_t settle_at;		/* settling changes something then by itself */
	usec_t charge_at;		/* what VMs held is recorded then */
	uint64_t num_actions;
	struct ebb_vm *slots[EBB_MAX_VMS];
	size_t num_vms;
	struct ebb_vm *vms[EBB_MAX_VMS];	/* by uuid */
	size_t num_active;
	struct ebb_vm *active[EBB_MAX_VMS];	/* running, by order */
	struct core_shared shared;
	/* Scratch of plan.c. */
	struct ebb_view_vm view_vms[EBB_MAX_VMS];
	struct ebb_plan_vm targets[EBB_MAX_VMS];
	struct ebb_arbiter_entry entries[EBB_MAX_VMS * EBB_MAX_GUEST_NODES];
	struct ebb_violation violations[EBB_PRESSED_CORE][EBB_MAX_NODES];
	struct ebb_violation core_violations[EBB_MAX_THREADS];
	bool is_throttled[EBB_MAX_NODES];
	bool pressure_is_stale;		/* a level may have changed */
	usec_t pressure_at;		/* something changes by itself then */
	struct ebb_move_candidate move_candidates[EBB_MAX_VMS]; /* scratch of violation.c */
	struct ebb_record records[EBB_RECORDS];	/* ring */
	size_t first_record, num_records;
	uint64_t lost_records;
};

/* tables.c */
struct ebb_vm *core_vm_find(const struct ebb_state *s, const uint8_t *uuid);
int core_vm_defined(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);
int core_vm_invalid(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);
int core_vm_removed(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
int core_sla_set(struct ebb_state *s, usec_t now, struct ebb_vm *vm, const struct ebb_sla *sla);
void core_vm_forget(struct ebb_state *s, struct ebb_vm *vm);
void core_vm_destroy(struct ebb_state *s, struct ebb_vm *vm);

/* lifecycle.c */
int core_vm_running(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		    const struct ebb_fact_vm_running *f);
void core_claim_all(struct ebb_state *s);
int core_vm_stopped(struct ebb_state *s, usec_t now, struct ebb_vm *vm);

/* link.c */
int core_hello(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
	       const struct ebb_fact_hello *f);
int core_link_lost(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/* When the answer of core_vm_is_driven() changes by itself, or EBB_TIME_NEVER. */
usec_t core_vm_driven_until(const struct ebb_state *s, const struct ebb_vm *vm);
bool core_vm_is_driven(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now);

/* cpu/request.c */
int core_request(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		 const struct ebb_fact_request *f);
/* Answers requests that are complete or late. */
void core_requests_check(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/* Grants what it can of requests that wait for a core that was offered in advance. */
void core_requests_retry(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/* The request is no more; nobody waits for an answer. */
void core_requests_drop(struct ebb_state *s, struct ebb_vm *vm);
/* A vCPU that was to be granted will not be. */
void core_request_lose(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu, uint16_t reason);
/* The UNPLUG that a CPU_REMOVE waits for has ended. */
void core_request_removed(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu,
			  int err);
/* A free slot in ebb_vm.requests, or -1. */
int core_request_slot(const struct ebb_vm *vm);
/* VIRTIO_EBB_ACK, NACK or BUSY, by the reason. */
uint16_t core_status_of(uint16_t reason);
void core_respond(struct ebb_state *s, struct ebb_vm *vm, const struct ebb_action_response *r);
void core_refuse(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		 const struct ebb_fact_request *f, uint16_t reason, const char *text);

/* cpu/lend.c */
int core_request_lend(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		      const struct ebb_fact_request *f);
/* Answers a CPU_LEND whose vCPU has left its core (err is 0), or did not in time. */
void core_request_lent(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu,
		       int err);
/* The flags LENT and PARKED of a vCPU that HELLO lists. */
void core_hello_lent(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu,
		     uint16_t flags, bool is_first);
/* A plugged vCPU that is nobody's will be handed over as a lent one. */
bool core_vcpu_is_ahead(const struct ebb_vm *vm, const struct ebb_vcpu *v);
/* An absent vCPU is to be plugged now, so that it is there when the guest wants it. */
bool core_vcpu_plugs_ahead(const struct ebb_vm *vm, const struct ebb_vcpu *v, usec_t now);

/* meter/conduct.c */
void core_conduct_request(usec_t now, struct ebb_vm *vm);
/* A request was not met because of the limit, or was met. */
void core_conduct_refused(usec_t now, struct ebb_vm *vm);
void core_conduct_granted(struct ebb_vm *vm);
/* The guest gives the vCPU back, asked to or not. */
void core_conduct_back(usec_t now, struct ebb_vm *vm, uint16_t vcpu);
/* It has met demands, of which so many were nearly overdue; or has not met one. */
void core_conduct_given(struct ebb_vm *vm, uint32_t count, uint32_t late, usec_t now);
void core_conduct_forced(struct ebb_vm *vm, usec_t now);
/* Holds against the guest that something has happened so often. */
void core_misdeed(struct ebb_misdeed *m, uint32_t count, usec_t now);
/* Records what there is to be said now and was not before, and the other way round. */
void core_conduct_review(struct ebb_state *s, usec_t now, struct ebb_vm *vm);

/* meter/cputime.c */
int core_cpu_times(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		   const struct ebb_fact_cpu_times *f);

/* journal-sum.c */
/* As core_record(); NULL: it was counted, and is recorded with others at the end of the second. */
struct ebb_record *core_gather_request(struct ebb_state *s, struct ebb_vm *vm, usec_t now);
struct ebb_record *core_gather_refuse(struct ebb_state *s, struct ebb_vm *vm, usec_t now,
				      uint16_t reason);
/* When core_gather_end() has something to record, or EBB_TIME_NEVER. */
usec_t core_gather_until(const struct ebb_vm *vm);
/* Records what was counted. */
void core_gather_end(struct ebb_state *s, struct ebb_vm *vm, usec_t now);

/* meter/charge.c */
/* Before anything changes of what the VM holds: counts what it held until now. */
void core_charge(const struct ebb_state *s, struct ebb_vm *vm);
/* A run begins, and is not among the active ones yet. */
void core_charge_start(struct ebb_state *s, struct ebb_vm *vm);
void core_charge_record(struct ebb_state *s, struct ebb_vm *vm);
/* Records what is due; returns when that is again. */
usec_t core_charge_due(struct ebb_state *s);
/* Counts the cores that were wasted until now. */
void core_waste(struct ebb_state *s);
/* How many are from now on. */
void core_waste_look(struct ebb_state *s);

/* mem/pool.c */
/* Most that the guest can hold until its device reports otherwise. */
uint32_t core_pool_reach(const struct ebb_vm_pool *p);
int core_mem(struct ebb_state *s, usec_t now, struct ebb_vm *vm, const struct ebb_fact_mem *f);
/* The pools as HELLO lists them; those that are not listed are not there. */
void core_pools_hello(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		      const struct ebb_fact_hello *f);
/* A run begins; what libvirt knows of the pools counts until the first HELLO. */
void core_pools_start(struct ebb_state *s, struct ebb_vm *vm,
		      const struct ebb_fact_vm_running *f);
/* A run is over: nothing is held any more. */
void core_pools_stop(struct ebb_vm *vm);
/* Opens and closes demands by what is held and allowed now. */
void core_pools_update_due(struct ebb_vm *vm, usec_t now);

/* broker/vom.c */
int core_vom(struct ebb_state *s, usec_t now, struct ebb_vm *vm, const struct ebb_fact_vom *f);
/* Nothing is known of it any more: another boot. */
void core_vom_clear(struct ebb_vm *vm);
/* Makes what they have said be about what they hold now, and guesses the rest. */
void core_vom_fit_all(struct ebb_state *s);

/* broker/broker.c */
/* Before the policy decides: what it sees besides VMs and nodes. */
void core_broker_view(struct ebb_state *s, usec_t now, struct ebb_view *view);
/* It has decided, and targets are set. */
void core_broker_decided(struct ebb_state *s, usec_t now, const struct ebb_plan *plan);
/* When the policy is to be asked again by itself, or EBB_TIME_NEVER; and whether it is now. */
usec_t core_broker_at(const struct ebb_state *s);
bool core_broker_is_due(struct ebb_state *s, usec_t now);
/* What LIMITS says of it now. */
uint32_t core_vom_tells(const struct ebb_vm *vm);

/* mem/act.c */
/* Time left until `at`, at least 1; 0 if there is no deadline (at is 0). */
uint32_t core_left_ms(usec_t at, usec_t now);
/* What LIMITS says of the pool now, in blocks. */
uint32_t core_pool_tells(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g);
/* Before messages: demands, what has to be told again, records. */
void core_pools_prepare(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
bool core_pools_must_tell(const struct ebb_state *s, const struct ebb_vm *vm);
/* Fills in the memory half of LIMITS, which is sent. */
void core_pools_tell(const struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		     struct ebb_action_limits *l);
/* These return false if there is no room for all of it. */
bool core_pools_revoke(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		       struct ebb_actions *out);
bool core_pools_reconcile(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			  struct ebb_actions *out);
/* False: the id is none of the VM's MEM_CAP and MEM_MIRROR. */
bool core_pools_action_done(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint64_t id,
			    int err);

/* cpu/done.c */
int core_action_done(struct ebb_state *s, usec_t now, const struct ebb_fact_action_done *f);

/* cpu/vcpu.c */
static inline uint16_t core_host_node(const struct ebb_vm *vm, uint16_t vcpu)
{
	return vm->sla.nodes[vm->vcpus[vcpu].node].host_node;
}

static inline bool core_vcpu_is_present(const struct ebb_vcpu *v)
{
	return v->life == EBB_VCPU_PLUGGED || v->life == EBB_VCPU_UNPLUGGING;
}

/* Plugged and nobody's: not startup, not granted, not being granted. */
static inline bool core_vcpu_is_unowned(const struct ebb_vcpu *v)
{
	return v->life == EBB_VCPU_PLUGGED && !v->is_startup && !v->is_granted &&
	       !v->is_unknown && v->request < 0;
}

/* Its request will give it a core. */
static inline bool core_vcpu_is_getting(const struct ebb_vm *vm, const struct ebb_vcpu *v)
{
	return v->request >= 0 && vm->requests[v->request].phase == EBB_REQUEST_ADD;
}

/* It is to run on a home of its VM, and to own no core. */
static inline bool core_vcpu_goes_home(const struct ebb_vm *vm, const struct ebb_vcpu *v)
{
	if (v->force != EBB_FORCE_NONE)
		return true;
	return v->is_lent ? !core_vcpu_is_getting(vm, v) : core_vcpu_is_ahead(vm, v);
}

/* It runs on the thread, or may for all that is known. */
static inline bool core_vcpu_may_run_on(const struct ebb_vcpu *v, uint16_t thread)
{
	return v->placed == thread || v->placing == thread ||
	       (v->placed == EBB_THREAD_NONE && v->place_failures > 0);
}

/* The guest counts with its core: it is granted and was neither forced nor lent. */
static inline bool core_vcpu_is_held(const struct ebb_vcpu *v)
{
	return v->is_granted && v->force == EBB_FORCE_NONE && !v->is_lent;
}

void core_touch(struct ebb_state *s, struct ebb_vm *vm);
bool core_vcpu_own(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu, uint16_t thread);
void core_vcpu_release(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu);
void core_vcpu_set_placed(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu, uint16_t thread);
/* Its thread is gone: nothing is under way for it, it owns and occupies nothing. */
void core_vcpu_gone(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu);
/* Forgets all, as if the VM had just been defined. */
void core_vcpu_clear(struct ebb_vcpu *v);
void core_vcpu_force(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu, enum ebb_force why);
/*
 * Where the vCPU's thread should run: its own thread, a home, or
 * EBB_THREAD_NONE where it does not matter.  A home that it already runs on
 * stays.
 */
uint16_t core_vcpu_wants(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t vcpu);
/* Recomputes used and held of all nodes, and what is still due. */
void core_vm_count(struct ebb_state *s, struct ebb_vm *vm);

/* cpu/force.c */
/* Opens and closes demands for CPUs, forces what is overdue, gives cores to those without. */
void core_cpus_settle(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/* cpu/advance.c */
/*
 * Cores are offered to other VMs this long before the deadline at which their owner loses them, so
 * that the next owner has asked by then.
 */
#define CORE_ADVANCE_USEC	(10 * EBB_USEC_PER_MSEC)
/* A request for a core that was offered in advance is answered after this at the latest. */
#define CORE_ADVANCE_WAIT_USEC	(3 * CORE_ADVANCE_USEC)
/* CPUs of the guest node that have a core now and surely lose it by CORE_ADVANCE_USEC from now. */
uint16_t core_cpus_leaving(const struct ebb_vm *vm, uint16_t g, usec_t now);
/* When core_cpus_leaving() grows by itself next, or EBB_TIME_NEVER. */
usec_t core_cpus_leaving_from(const struct ebb_vm *vm, uint16_t g, usec_t now);

/* Nobody in the guest answers for what it holds. */
void core_cpus_force_absent(struct ebb_state *s, usec_t now, struct ebb_vm *vm);

/* plan.c */
void core_count_capacity(struct ebb_state *s);
void core_admit_all(struct ebb_state *s, usec_t now);
void core_settle(struct ebb_state *s, usec_t now);

/* cpu/threads.c */
/* Cores that the VM's guest node has threads of, or waits for. */
uint32_t core_count_cores(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g);
/* CPUs of a node of the host as the arbiter counts them: cores where threads are given out. */
uint32_t core_to_units(const struct ebb_state *s, uint16_t host_node, uint32_t cpus);
uint32_t core_from_units(const struct ebb_state *s, uint16_t host_node, uint32_t units);
/* Whether a thread of the same core belongs to another VM. */
bool core_is_foreign(const struct ebb_state *s, uint16_t thread, const struct ebb_vm *vm);
/* Takes over what the plan says of threads, where the floors leave room for it. */
void core_use_threads(struct ebb_state *s, const bool *use_threads);
/* Whether all of the core that has an owner belongs to the guest node. */
bool core_is_own(const struct ebb_state *s, const struct ebb_core *core, const struct ebb_vm *vm,
		 uint16_t g);
/* A thread for a vCPU of the startup set on guest node g; EBB_THREAD_NONE if there is none. */
uint16_t core_pick_startup(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g);
/* The same for another one. */
uint16_t core_pick_thread(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
			  bool allow_ht);

/* Whether no startup vCPU of the VM is still there, without its core having been there. */
bool core_thread_is_vacated(const struct ebb_vm *vm, uint16_t thread);

/* cpu/pack.c */
/* Limits are set: begins to free cores that others wait for. */
void core_pack_all(struct ebb_state *s);
/* Frees the thread that the vCPU has left, once it and all that ran beside it have. */
void core_pack_end(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu);

/* cpu/refused.c */
/* A request was not met because of the limit: so many CPUs less than it asked for. */
void core_want(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t g, uint16_t missing);
/* What the view says that guest node g wants. */
uint16_t core_wanted(const struct ebb_vm *vm, uint16_t g, usec_t now);
/* When what is wanted changes by itself, or EBB_TIME_NEVER. */
usec_t core_wanted_until(const struct ebb_vm *vm, uint16_t g);
/* Whether a new plan may be due because somebody wants less than the last one saw. */
bool core_wants_less(const struct ebb_vm *vm, usec_t now);

/* pressure/pressure.c */
/* Records what begins and ends; returns when that changes by itself. */
usec_t core_violations_review(struct ebb_state *s, usec_t now);
/* CPU times of the VM have been taken over. */
void core_violation_times(struct ebb_state *s, usec_t as_of, struct ebb_vm *vm);
/* A VM that should have moved does not run here any more. */
void core_move_left(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/*
 * Of a core that several VMs share: thousandths of its time that were used over the last
 * hot_window_s, and who used them, for people ("a 60%, b 37%").  0 if VMs share it no more.
 */
void core_violation_core(struct ebb_state *s, usec_t now, uint16_t core, uint32_t permille,
			 const char *who);
/* No assignment of VMs to the cores of a node helps, and they are throttled; or that is over. */
void core_violation_throttle(struct ebb_state *s, uint16_t host_node, bool is_throttled);

/* shared/shared.c */
void core_shared_create(struct ebb_state *s);
/* Places for newcomers, and a look where one is due; returns when the next one is. */
usec_t core_shared_settle(struct ebb_state *s, usec_t now);
/* False if there is no room for the action. */
bool core_shared_reconcile(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			   struct ebb_actions *out);
/* False: the id is not that of the VM's THROTTLE. */
bool core_shared_action_done(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint64_t id,
			     int err);

/* reconcile.c */
usec_t core_backoff(const struct ebb_state *s, uint16_t failures);
/* One more action, or NULL if the caller has no room for it now. */
struct ebb_action *core_emit(struct ebb_actions *out, const struct ebb_vm *vm,
			     enum ebb_action_type type);
/* The id says by itself which VM and vCPU it is about: see core_action_done(). */
uint64_t core_action_id(struct ebb_state *s, const struct ebb_vm *vm, uint16_t vcpu);

struct ebb_explain;
/* explain.c: one more line about how things are. */
char *core_explain_more(struct ebb_explain *e);
/* broker/explain.c: brokering of memory, and the histogram. */
void core_explain_vom(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
		      struct ebb_explain *e);

/* journal.c; vm may be NULL.  The record lives until the next one is made. */
struct ebb_record *core_record(struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
			       enum ebb_event event);
void core_text(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The VM's name, for a text that has other things to say, too. */
static inline struct ebb_text_label core_label(const struct ebb_vm *vm)
{
	return ebb_text_label(vm->name, EBB_LABEL_MOST);
}

/* In whole blocks, rounded down. */
static inline uint32_t core_percent(uint32_t blocks, uint32_t percent)
{
	return (uint32_t)((uint64_t)blocks * percent / 100);
}

static inline usec_t core_sooner(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

#endif /* EBB_CORE_INTERNAL_H */
