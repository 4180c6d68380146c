/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The core of the host agent: facts in, actions out.
 *
 * Nothing here does I/O, reads a clock, or allocates other than through the
 * allocator given at creation (when a VM is defined).  The caller reports
 * every fact with the time at which it happened, then calls ebb_state_next()
 * for what to do, hands the actions to a backend, and calls again at the
 * wake-up time or after the next fact, whichever is first.  Time never goes
 * backwards from one call to the next.
 *
 * Everything is level-triggered: for each vCPU the state holds what should be
 * and what is known to be, and ebb_state_next() issues what turns one into the
 * other.  A failed action leaves the difference in place, and a back-off time
 * after which it is tried again.
 *
 *   life of a vCPU (enum ebb_vcpu_life)
 *
 *              PLUG issued           PLUG done
 *     ABSENT ---------------> PLUGGING --------> PLUGGED
 *       ^  ^---- PLUG failed ----'                |  ^
 *       |                            UNPLUG issued|  |UNPLUG failed
 *       |            UNPLUG done                  v  |
 *       `-----------------------------------  UNPLUGGING
 *
 *   ABSENT      no thread, no core, unless reserved for a request (request >= 0)
 *   PLUGGING    a request waits for it, or did when it was issued
 *   PLUGGED     of the startup set; or granted; or being granted (request >= 0); or
 *               unowned: then it is unplugged, unless a new request takes it first
 *               or it is handed over as a lent one (ebb_sla.plug_ahead)
 *   UNPLUGGING  the guest gave it back, or it is unowned; it keeps its core until
 *               it is unplugged or its thread has gone home
 *
 * A granted vCPU is lent while the guest has no use for it.  It has no core and
 * counts neither as held nor as used, but it stays plugged and granted.  CPU_ADD
 * gives lent vCPUs a core before it plugs others.
 *
 * Memory needs no requests.  What a VM may hold is a limit of its device, within
 * which the guest plugs and unplugs blocks by itself; the device reports what is
 * plugged.  A block belongs to a VM for as long as its guest could plug it
 * without being asked: from the moment it is promised (ebb_vm_pool.limit) until
 * the device has reported that it is not plugged and can not be any more.
 *
 * A core belongs to a vCPU from the moment it is reserved (ebb_vcpu.thread)
 * until the vCPU is unplugged, or its thread runs at home or on another core that
 * the vCPU owns.  Only then can another VM get the core ("freed before given").
 */
#ifndef EBB_CORE_STATE_H
#define EBB_CORE_STATE_H

#include "core/pressure/violation.h"
#include "core/vm.h"
#include "model/policy.h"
#include "model/pressure.h"
#include "model/promise.h"
#include "model/types.h"

struct ebb_alloc {
	void *ctx;
	void *(*alloc)(void *ctx, size_t bytes);	/* zeroed; NULL: out of memory */
	void (*free)(void *ctx, void *ptr);		/* accepts NULL */
};

struct ebb_state_config {
	struct ebb_alloc alloc;
	/*
	 * Capacity of a node counts hardware threads instead of cores.  Without
	 * it every CPU has a core of its own; with it a request that does not
	 * allow hyperthreads may find no whole core (BUSY, CAPACITY).
	 */
	bool count_threads;
	bool lacks_quorum;		/* at the start; see ebb_state_quorum_set() */
	usec_t request_usec;		/* answer a request after this at the latest */
	usec_t link_grace_usec;		/* a VM without link counts as without driver after this */
	usec_t confirm_usec;		/* see ebb_vcpu.is_suspect and ebb_vm_pool.mirroring; also
					 * how long to wait before a REVOKE is sent again */
	usec_t leave_usec;		/* how long before its deadline a guest with can_leave is
					 * told which blocks will be taken; 0: never */
	usec_t tidy_usec;		/* libvirt is told of a new memory limit after this */
	uint64_t mem_overhead_bytes;	/* what a QEMU needs besides the memory of its guest */
	/*
	 * Names this agent in the counters that devices keep.  Every charge_usec the agent tells
	 * each device what its VM has held and got; 0: never.
	 */
	uint64_t writer;
	usec_t charge_usec;		/* how often it is recorded what all VMs held */
	usec_t meter_usec;		/* length of the intervals over which promises are judged */
	usec_t retry_usec[2];		/* back-off after a failed action: first, longest */
	struct ebb_pressure pressure;
	struct ebb_promise_config promise;
};

/*
 * 12 s (the device gives up after 15), 5 s, 1 s, 30 ms, 0.5 s, 1 s, 1 s, 0.2 to 30 s; pressure as
 * by default; promises not overbooked, proportional; no allocator, no overhead.
 */
void ebb_state_config_default(struct ebb_state_config *ret_cfg);

struct ebb_state;

/*
 * NULL if out of memory, or if ebb_host_check(), ebb_pressure_check() or ebb_policy_usable()
 * refuses its argument.  host is copied.
 */
struct ebb_state *ebb_state_create(const struct ebb_state_config *cfg,
				   const struct ebb_host *host,
				   const struct ebb_policy_ops *policy);
void ebb_state_destroy(struct ebb_state *s);	/* accepts NULL */

/*
 * Takes note of a fact.  Returns 0, or
 *   -ENOENT  the VM is not known or has no SLA yet; or the fact came over the
 *            link of a VM that was not reported as running: close the link,
 *            the device connects again
 *   -EINVAL  contents out of range; for a definition the VM's error says what,
 *            for a request: close the link, its sender is broken
 *   -EBUSY   the definition changes vCPUs or pools of a running VM; kept as it was
 *   -ENOSPC  more than EBB_MAX_VMS VMs
 *   -ENOMEM
 * and has changed nothing then, except the VM's error text.  An ACTION_DONE
 * with an id that is not awaited any more is ignored: 0.
 */
int ebb_state_report(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);

/* Another policy from now on; -EINVAL if ebb_policy_usable() says no. */
int ebb_state_policy_set(struct ebb_state *s, usec_t now, const struct ebb_policy_ops *policy);

/*
 * Whether the host is part of the majority of its cluster.  While it is not, another host may have
 * been given what this one has, so nothing new is given: no VM is admitted that was not before, no
 * VM gets more CPUs or memory than it has, and no higher promise of these is made.  VMs keep their
 * resources, and demands are carried out as before.  A host without a cluster has it.
 *
 * until: that it has quorum holds until then, and is over if nobody has said it again: who watches
 * the cluster may have died, and the host may have been cut off since.  EBB_TIME_NEVER: it holds
 * until something else is said.  That it has none always holds on.
 */
void ebb_state_quorum_set(struct ebb_state *s, usec_t now, bool has_quorum, usec_t until);

struct ebb_actions {
	struct ebb_action *items;	/* of the caller */
	size_t capacity;		/* at least 1 */
	size_t count;			/* out */
	usec_t wake_at;			/* out: call again then; if that is now: at once, since
					 * items was too small or the core has more to do */
};

/*
 * Returns the actions that are due now.  Every action that is returned counts as under way;
 * the caller must carry it out.
 */
void ebb_state_next(struct ebb_state *s, usec_t now, struct ebb_actions *ret_actions);

/* Records what all VMs have held until now: before the agent ends. */
void ebb_state_charge_all(struct ebb_state *s, usec_t now);

/*
 * Before LOADED, for a VM that was found running: the agent before this one recorded that this run
 * of the VM had held *last until last->at.  The counters continue from there.  For the time since
 * then the VM is charged for what it is found to hold, because without an agent it could not be
 * granted more.  Ignored if last is about another run of the VM.
 */
void ebb_state_charge_resume(struct ebb_state *s, const uint8_t *uuid, uint64_t order,
			     const struct ebb_vm_charge *last);

/*
 * Oldest record that was not fetched yet; false if there is none.  The core
 * keeps the last 4096; if some were lost, a record says how many.
 */
bool ebb_state_record_pop(struct ebb_state *s, struct ebb_record *ret_record);

/* ---- reading, for the daemon ------------------------------------------- */

const struct ebb_host *ebb_state_host(const struct ebb_state *s);
const struct ebb_policy_ops *ebb_state_policy(const struct ebb_state *s);
bool ebb_state_is_loaded(const struct ebb_state *s);
bool ebb_state_has_quorum(const struct ebb_state *s);
const struct ebb_pressure *ebb_state_pressure(const struct ebb_state *s);

/* VMs by uuid, 0 to ebb_state_num_vms() - 1; valid until the next fact. */
size_t ebb_state_num_vms(const struct ebb_state *s);
const struct ebb_vm *ebb_state_vm_at(const struct ebb_state *s, size_t i);
const struct ebb_vm *ebb_state_vm(const struct ebb_state *s, const uint8_t *uuid);
/*
 * How many VMs have this name; *ret_vm is one of them.  In libvirt names are unique, but while VMs
 * are renamed the agent hears of one after the other, and two may have the same name meanwhile.
 */
size_t ebb_state_vms_named(const struct ebb_state *s, const char *name,
			   const struct ebb_vm **ret_vm);

/*
 * CPU time, memory and I/O of the VM since it was started, on all its hosts, as of the last time
 * that this agent counted them (writer: 0).  The history has the part of this host.
 */
void ebb_vm_account(const struct ebb_vm *vm, struct ebb_account *ret);

/* Sums over the nodes of a VM. */
struct ebb_vm_totals {
	uint32_t floor, ceiling, held, lent, limit, target;
	/* Bytes. */
	uint64_t mem_floor, mem_ceiling, mem_held, mem_limit, mem_target, mem_unconfirmed;
};
void ebb_vm_totals(const struct ebb_vm *vm, struct ebb_vm_totals *ret_totals);

/*
 * For a node of the host: its capacity, how many of its CPUs are owned by running VMs, and whether
 * the last plan gives out hardware threads there (ebb_plan.use_threads).
 */
uint32_t ebb_state_node_capacity(const struct ebb_state *s, uint16_t host_node);
uint32_t ebb_state_node_used(const struct ebb_state *s, uint16_t host_node);
/*
 * Core-microseconds for which cores of the node had no owner while VMs with a driver had fewer CPUs
 * there than the policy wants: the cost of moving cores, and of offers that no guest takes.  If
 * more cores are free than those VMs lack, only as many as they lack are counted.
 */
uint64_t ebb_state_node_wasted_usec(const struct ebb_state *s, uint16_t host_node, usec_t now);
bool ebb_state_node_uses_threads(const struct ebb_state *s, uint16_t host_node);

/*
 * The same for pool memory, in bytes: the capacity for all VMs together, the memory that they hold,
 * and the memory that they hold or were promised (a pool that no device has reported yet counts
 * with its size).
 */
uint64_t ebb_state_pool_capacity(const struct ebb_state *s, uint16_t host_node);
/* A percentage of the capacity, in whole blocks, rounded down: how thresholds are computed. */
uint64_t ebb_state_pool_bytes(const struct ebb_state *s, uint16_t host_node, uint32_t percent);
uint64_t ebb_state_pool_held(const struct ebb_state *s, uint16_t host_node);
uint64_t ebb_state_pool_promised(const struct ebb_state *s, uint16_t host_node);

/* Asking guests what their memory is worth; see broker.c. */
struct ebb_broker {
	uint32_t seq;			/* number of the last ask; 0: none yet */
	usec_t asked_at;		/* 0: never */
	bool is_open;			/* answers may still come */
	bool is_wanted;			/* the policy wants to ask, but must await the cool-down */
	uint64_t num_asks;
	uint64_t num_brokered[EBB_MAX_NODES]; /* brokerings, by node of the host */
	usec_t brokered_at[EBB_MAX_NODES];
	usec_t planned_at;		/* last plan */
	bool held_has_changed;		/* VMs hold more or less memory since that plan */
	bool is_short;			/* at that plan a node was above its threshold */
	usec_t short_at;		/* last plan at which a node was above it; 0: none */
};
const struct ebb_broker *ebb_state_broker(const struct ebb_state *s);

/* The histogram of a guest node, as told by the guest or guessed; returns the number of buckets. */
uint32_t ebb_vm_vom_of(const struct ebb_vm *vm, uint16_t node,
		       const struct ebb_vom_bucket **ret_buckets);

/* i: node of the host (MEMORY, CPU), or core; NULL beyond the last. */
const struct ebb_violation *ebb_state_violation(const struct ebb_state *s,
						enum ebb_pressed pressed, uint16_t i);

/*
 * A thread of the host that VMs share, as the last look found it; false: VMs do not share it.  And
 * the shared cores as a whole: whether they are hot and no change of places helps, and how many
 * looks and moves of VMs there were.
 */
struct ebb_shared_thread {
	uint32_t use, demand;		/* thousandths of it; see core/shared/balance.h */
	uint16_t num_vcpus, num_active;
	bool is_hot, is_stuck;
};
bool ebb_state_shared_thread(const struct ebb_state *s, uint16_t thread,
			     struct ebb_shared_thread *ret);
/* Promises of CPU time on the shared cores of a node of the host, in per cent of one core. */
struct ebb_promise_node {
	uint32_t most_percent;		/* can be kept; 0: no shared cores */
	uint32_t allowed_percent;	/* may be promised: more if overbooking is allowed */
	uint32_t promised_percent;
};
/* host_node: below ebb_host.num_nodes. */
void ebb_state_promises(const struct ebb_state *s, uint16_t host_node,
			struct ebb_promise_node *ret);
/* Promises of memory on a node of the host (reserve-mem), in bytes. */
struct ebb_mem_promise_node {
	uint64_t most_bytes;		/* can be kept: what minimums leave of the pools */
	uint64_t allowed_bytes;		/* may be promised: more if overbooking is allowed */
	uint64_t promised_bytes;
	uint64_t free_bytes;		/* may be promised besides */
};
/* host_node: below ebb_host.num_nodes. */
void ebb_state_mem_promises(const struct ebb_state *s, uint16_t host_node,
			    struct ebb_mem_promise_node *ret);
struct ebb_shared_totals {
	uint16_t num_threads, num_vms;
	uint32_t num_vcpus;
	uint32_t permille;		/* mean use */
	bool is_hot;
	uint32_t num_hot, num_stuck;	/* threads, in the last window */
	uint32_t num_throttled;		/* VMs */
	uint64_t num_looks, num_moved_vms, num_moved_vcpus, cost_usec;
};
void ebb_state_shared_totals(const struct ebb_state *s, struct ebb_shared_totals *ret);

/* The promise of I/O to a volume of a VM: is it in force, and what did the meter count? */
enum ebb_io_state {
	EBB_IO_NONE,			/* the SLA says nothing about it, or the VM does not run */
	EBB_IO_SET,			/* the volume server keeps it */
	EBB_IO_SETTING,			/* the volume server is being told */
	EBB_IO_WAITING,			/* the volume server does not answer */
	EBB_IO_REFUSED,			/* the volume server does not take it; tried again */
	EBB_IO_TAKEN,			/* the volume is promised to another VM */
	EBB_IO_STATE_MAX,
};

struct ebb_io_view {
	enum ebb_io_state state;
	char text[EBB_TEXT_SIZE];	/* WAITING, REFUSED, TAKEN: why; else "" */
	/* Counted by the meter since this VM has the volume; 0: nothing was metered. */
	struct ebb_ledger sum;
	uint64_t system;		/* units that are not in it: reads beyond the VM's promised
					 * cache, charged to the system */
	struct ebb_volume_reading last;	/* of the volume server's meter; of num_intervals > 0 */
};

/* Of vm->volumes.names[k], k below vm->volumes.num. */
void ebb_state_volume(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t k,
		      struct ebb_io_view *ret);
/* NULL: the volume server does not answer, or has not said yet. */
const struct ebb_volume_server *ebb_state_volume_server(const struct ebb_state *s);
/* Why the volume server does not answer; "": it does, or nobody has asked it yet. */
const char *ebb_state_volumes_lost(const struct ebb_state *s);
/* "none", "set", ...; "?" for what is not known. */
const char *ebb_io_state_name(enum ebb_io_state state);

/* The VM and vCPU that own a thread; NULL if it is free. */
const struct ebb_vm *ebb_state_thread_owner(const struct ebb_state *s, uint16_t thread,
					    uint16_t *ret_vcpu);

/*
 * "shared" (its VM shares cores), "startup",
 * "waiting" (of the startup set; shares a core until it gets its own),
 * "absent", "plugging", "placing", "granted", "forced", "lent", "parked"
 * (lent, and stopped by the device), "unplugging", "unowned" (plugged, but
 * granted to no guest) or "unknown" (plugged, no HELLO yet).
 */
const char *ebb_vcpu_state_name(const struct ebb_vm *vm, uint16_t vcpu);

#endif /* EBB_CORE_STATE_H */
