/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A VM as the core knows it.  All rooms of the core may read all of it.  Each room writes only its
 * own parts of it (core/room.h); scripts/check-layers says which parts those are.
 */
#ifndef EBB_CORE_VM_H
#define EBB_CORE_VM_H

#include "core/pressure/violation.h"
#include "model/record.h"
#include "model/relio.h"
#include "model/types.h"

enum ebb_vcpu_life {
	EBB_VCPU_ABSENT,
	EBB_VCPU_PLUGGING,
	EBB_VCPU_PLUGGED,
	EBB_VCPU_UNPLUGGING,
};

/* Why a vCPU was forced, which decides whether it may get a core again. */
enum ebb_force {
	EBB_FORCE_NONE,
	EBB_FORCE_DEADLINE,		/* demand not met: may get a core again */
	EBB_FORCE_ABSENT,		/* nobody in the guest answers for it */
	EBB_FORCE_RESET,		/* held by a boot that is over; its successor removes it */
	EBB_FORCE_STUCK,		/* the guest gave it back but did not eject it */
	EBB_FORCE_NO_CORE,		/* found without a core of its own: may get one */
};

/* A vCPU, for the room of CPUs. */
struct ebb_vcpu {
	uint16_t node;			/* guest node */
	bool is_startup;
	bool is_granted;		/* the device lists it, or has been told to */
	bool is_unknown;		/* plugged, but no HELLO has said yet whether granted */
	bool is_suspect;		/* a HELLO contradicted that it is granted or lent, but may
					 * have been sent before the device heard of it; the link
					 * is closed at granted_at + confirm_usec to find out */
	bool told_forced;		/* the FORCED flag as last told to the device */
	bool is_lent;			/* granted, and the guest wants no core for it: the device
					 * knows, or will once its CPU_LEND is answered */
	bool is_parked;			/* lent, and as far as is known the device has stopped it */
	bool is_declined;		/* this boot of the guest had it removed: it is not
					 * plugged ahead */
	enum ebb_vcpu_life life;
	enum ebb_force force;		/* should have no core (NONE: may have one) */
	int8_t request;			/* index into ebb_vm.requests, or -1 */
	uint16_t thread;		/* the one it owns, or EBB_THREAD_NONE */
	uint16_t leaves;		/* while it moves to .thread: the one that it had, and owns
					 * until it is there (cpu/pack.c); or EBB_THREAD_NONE */
	uint16_t placed;		/* where it runs as last known, or EBB_THREAD_NONE */
	uint16_t placing;		/* target of place_action */
	uint64_t life_action;		/* PLUG or UNPLUG under way, or 0 */
	uint64_t place_action;		/* PLACE or HOME under way, or 0 */
	uint16_t life_failures, place_failures; /* in a row */
	usec_t life_retry_at, place_retry_at;
	usec_t life_at, placed_at;	/* last news, so that an older snapshot does not undo it */
	usec_t granted_at;		/* when it was last granted, lent or handed over; the one
					 * granted last is forced first */
};

/* Times of the thread of a vCPU since it was created, as last reported (struct ebb_cpu_time). */
struct ebb_vcpu_times {
	usec_t at;			/* 0: never */
	uint64_t cpu_usec, num_runs, wait_usec;
	uint32_t cpu_permille;		/* used of a real CPU, between the last two reports */
};

/* A vCPU of a VM that shares cores. */
struct ebb_vcpu_share {
	uint16_t thread;		/* the one that it is to run on, or EBB_THREAD_NONE */
	uint16_t use, wait;		/* in the last window, as in struct ebb_share_vcpu */
	usec_t window_at;		/* when this window began; 0: none has begun */
	uint64_t window_cpu_usec, window_wait_usec; /* of ebb_vcpu_times then */
};

/* The part of its core that a vCPU of a VM on shared cores gets. */
struct ebb_vcpu_reserve {
	struct ebb_action_reserve want, telling, told; /* told: in force */
	bool is_unknown;		/* an earlier agent may have put something in force */
	uint16_t failures;		/* in a row */
	uint64_t action;		/* RESERVE under way, or 0 */
	usec_t retry_at;
};

/* The accounts of a vCPU's thread, for the room that meters promises. */
struct ebb_vcpu_promise {
	bool is_known;			/* there was a reading in this run */
	uint64_t cpu_usec, wait_usec;	/* as in struct ebb_cpu_time, as of it */
	usec_t ran, waited;		/* in the interval that ended with it */
	usec_t length;			/* of that interval; 0: it was the first reading */
};

enum ebb_request_phase {
	EBB_REQUEST_FREE,
	EBB_REQUEST_ADD,		/* waits for its vCPUs to be plugged and placed */
	EBB_REQUEST_REMOVE,		/* waits for its vCPU to be gone */
	EBB_REQUEST_LEND,		/* waits for its vCPU to have left its core */
};

struct ebb_request {
	enum ebb_request_phase phase;
	uint64_t tag;
	uint16_t asked;			/* CPU_ADD: count of the request */
	uint16_t node;			/* of the request, may be EBB_NODE_ANY */
	uint16_t num_vcpus;
	uint16_t vcpus[VIRTIO_EBB_MAX_REQ_CPUS];
	uint16_t reason;		/* why there are fewer vCPUs than asked */
	bool allow_ht;			/* CPU_ADD: a thread beside one in use will do */
	usec_t wait_until;		/* CPU_ADD without a vCPU yet: end of its wait for a core
					 * that was offered in advance; 0: it does not wait */
	bool was_held;			/* CPU_REMOVE, CPU_LEND: the vCPU had a core until then */
	usec_t received_at;
	usec_t issued_at, libvirt_at, place_at; /* ends of the phases; 0: not reached */
};

#define EBB_MEM_DUES	8

/* An open demand for memory: by `at` no more than `limit` blocks are to be held. */
struct ebb_mem_due {
	usec_t at;
	uint32_t limit;
};

/*
 * The last brokering's decision about a pool, in blocks.  A brokering is a plan that asks VMs for
 * memory that they hold, because more than the threshold is in use on the node of the host.
 */
struct ebb_brokered {
	usec_t at;			/* 0: never in this run */
	uint32_t held, asked;		/* held then; asked for then, 0 if it was asked for none */
	uint64_t cutoff;		/* memory worth less is to go first; 0: none was told */
	uint64_t keeps_from;		/* the least value of the memory that it may keep */
	usec_t vom_at;			/* when the histogram in use had come; 0: it was a guess */
};

/* The pool of a guest node, in blocks. */
struct ebb_vm_pool {
	bool is_there;			/* the device lists it, as large as the domain says */
	uint32_t held, requested, unconfirmed; /* as the device last reported */
	uint32_t target;		/* the policy's goal, clamped */
	uint32_t limit;			/* in force now; told once a driver runs and the memory
					 * cgroup allows as much */
	uint32_t told;			/* limit in the last LIMITS; until the device reports it as
					 * requested, no other is told */
	usec_t told_at;
	uint32_t promised;		/* highest limit told since the device last confirmed one */
	bool must_tell;			/* LIMITS has to be sent again */
	usec_t told_due;		/* deadline as in the last LIMITS, or 0 */
	uint16_t num_due;		/* open demands: `at` rises, `limit` falls */
	struct ebb_mem_due due[EBB_MEM_DUES];
	bool is_revoking;		/* REVOKE was sent and not reported as done */
	uint32_t revoke_to, revoked;	/* goal of REVOKE; blocks taken so far */
	usec_t revoke_at, revoke_due_at; /* when it was first sent; the deadline that had passed */
	usec_t revoke_retry_at;
	bool is_leaving;		/* the guest was told which blocks go at the deadline: */
	uint32_t leave_to;		/* those above so many */
	uint32_t left;			/* blocks that it has unplugged since, not recorded yet */
	uint32_t released;		/* given back by the guest and not recorded yet */
	usec_t released_at;		/* when the first of them was given back */
	uint32_t mirrored;		/* requested size as libvirt was last told */
	uint64_t told_cutoff;		/* ebb_vm_vom.cutoff as in the last LIMITS; 0: none */
	uint32_t mirroring;		/* what libvirt is being told, or was told last: until
					 * mirror_until it may still set the device to this */
	uint64_t mirror_action;		/* MEM_MIRROR under way, or 0 */
	usec_t mirror_until;
	usec_t limit_at;		/* last change of limit */
};

/* The CPUs of a guest node. */
struct ebb_vm_node {
	uint16_t used;			/* startup set and every other vCPU that owns a thread */
	uint16_t held;			/* startup set and granted vCPUs, but not forced or lent */
	uint16_t lent;			/* granted vCPUs that are lent */
	uint16_t target;		/* the policy's goal, clamped */
	uint16_t limit;			/* in force now */
	uint16_t want;			/* CPUs it would have if its limit had allowed its last
					 * request; counts until want_until */
	uint16_t wanted;		/* as the last plan saw it (ebb_view_vm_node.wanted) */
	usec_t want_until;
	uint16_t told_held, told_limit;	/* as in the last LIMITS */
	uint16_t num_due;		/* open demands: CPUs that the guest must give back */
	usec_t told_due;		/* deadline as in the last LIMITS, or 0 */
	usec_t *due;			/* num_due deadlines, rising; within ebb_vm.vcpu_store */
};

/* CPUs of all nodes. */
struct ebb_vm_cpus {
	bool wants_cores;		/* a vCPU without a core waits for one to become free */
	uint16_t told_tier;		/* as in the last LIMITS */
	usec_t silent_since;		/* first missed deadline since its last request, or 0 */
};

/* The limit of the VM's memory cgroup. */
struct ebb_vm_cap {
	bool is_missing;		/* the host has no such limit */
	uint64_t bytes;			/* in force; 0: not set by this agent */
	uint64_t setting;		/* what action sets it to */
	uint64_t action;		/* MEM_CAP under way, or 0 */
	uint16_t failures;		/* in a row */
	usec_t retry_at;
};

/* Higher values count as this one: ns of time saved per second and MiB. */
#define EBB_VOM_VALUE_MAX	(1ull << 40)
/* Buckets of a guessed histogram, for a guest that has never sent one. */
#define EBB_VOM_GUESSES		8u
/*
 * Buckets that a guest may send; and for each node some of at most 4 TiB each, for memory that the
 * guest said nothing about.
 */
#define EBB_VOM_ROOM		(EBB_MAX_VOM_BUCKETS + 5u * EBB_MAX_GUEST_NODES)

/* The histogram of a guest, and asks for it; broker/vom.c says how far guests are believed. */
struct ebb_vm_vom {
	uint32_t asked, told;		/* number of the ask to answer; that in the last LIMITS */
	uint32_t seq;			/* ask that the histogram answers; 0: none in this boot */
	usec_t at;			/* when it came; 0: never, and buckets are guessed */
	uint64_t num_asks, num_answers, num_refused; /* in this run; refused: malformed */
	uint32_t first[EBB_MAX_GUEST_NODES + 1]; /* of guest node g: first[g] to first[g + 1] */
	struct ebb_vom_bucket buckets[EBB_VOM_ROOM]; /* by node, then by value; together as large
						      * as what it holds */
	/* By guest node; in this run. */
	uint64_t cutoff[EBB_MAX_GUEST_NODES]; /* of the open demand for memory; 0: no demand */
	struct ebb_brokered brokered[EBB_MAX_GUEST_NODES];
};

/*
 * Cores and memory that a VM has held since it started, by class (ebb_record.charge).  The counters
 * only grow, so a lost record does no harm: the next one includes it.
 */
struct ebb_vm_charge {
	uint64_t core_usec[EBB_CLASS_MAX];
	uint64_t mib_usec[EBB_CLASS_MAX];
	usec_t since, at;		/* when the counters were 0, and up to when they count */
};

/* Events in this period and the one before; since: when this one began. */
struct ebb_rate {
	uint32_t count, last;
	usec_t since;
};

/* Misbehaviour that counts against the guest for a while. */
struct ebb_misdeed {
	uint32_t most;			/* the highest number seen */
	usec_t at;			/* when it was last seen; 0: never */
};

/* How the guest has met demands and asked, since its driver started; see ebb_vm_verdict(). */
struct ebb_vm_conduct {
	uint32_t num_given, num_forced;	/* CPUs given back on demand in time, and not */
	uint32_t num_late;		/* of num_given, those shortly before the deadline */
	uint32_t num_unanswered;	/* forced in a row, with none given back in between */
	uint32_t num_reasked;		/* requests in a row that were refused soon after
					 * it gave a CPU back */
	usec_t given_at, forced_at, late_at; /* last; 0: never */
	struct ebb_rate requests, flaps; /* flaps: CPUs that went back soon after they came */
	struct ebb_misdeed flood, flap;	/* requests in a second; flaps in ten seconds */
	struct ebb_misdeed wake;	/* times a second that parked vCPUs woke up */
	/* CPU time of lent vCPUs in the last period: thousandths of a core; its length. */
	uint32_t lent_permille;
	usec_t lent_usec;
	bool is_squatting;		/* it computes on vCPUs that it has lent */
	uint16_t num_contrary;		/* periods in a row that contradict is_squatting */
	uint32_t told;			/* bits of enum ebb_verdict that were recorded */
};

/* Requests of a second that were counted instead of recorded; see journal-sum.c. */
struct ebb_vm_gather {
	usec_t since;			/* when the second began */
	uint32_t num_recorded;		/* in it */
	uint32_t num_requests, num_refused; /* not recorded */
	uint16_t code;			/* why the last of these was refused */
};

/* The use of real CPUs by the vCPUs of a VM, by guest node, as last measured. */
struct ebb_vm_use {
	uint32_t cpu_permille[EBB_MAX_GUEST_NODES];
	usec_t cpu_at;			/* 0: never in this run */
};

/* A VM that shares cores; struct ebb_share_vm (core/shared/balance.h) explains the first five. */
struct ebb_vm_share {
	usec_t moved_at;
	uint16_t moved_load, load;
	uint16_t throttle, throttle_load; /* throttle: the one wanted; 0: none */
	uint16_t throttled, throttling;	/* the one in force, which may be the SLA's maximum; the one
					 * throttle_action sets */
	uint64_t throttle_action;	/* THROTTLE under way, or 0 */
	bool is_missing;		/* the host has no such limit */
	uint16_t failures;		/* in a row */
	usec_t retry_at;
	uint64_t num_moves;		/* looks that moved it, in this run */
};

/* Promises of CPU time; percent is of one core. */
struct ebb_vm_reserve {
	uint32_t promised_percent;	/* ebb_sla.reserve_percent; if that is refused, what was
					 * promised before, or 0 */
	uint32_t keep_permille;		/* what is kept of it on the cores of its vCPUs, thousandths
					 * of one core; less where cores are overbooked */
	bool is_refused;		/* too little was left to promise: */
	uint16_t short_node;		/* on this node of the host */
	uint32_t short_percent;		/* which had so much left */
	bool is_missing;		/* the host can not keep promises */
	/* SHARES; 0: as the domain defines.  On hosts with parts of cores always 0. */
	uint32_t shares, sharing, shared; /* wanted; the one shares_action sets; in force */
	uint64_t shares_action;		/* SHARES under way, or 0 */
	bool is_weight_unknown;		/* an earlier agent may have set one */
	uint16_t failures;		/* in a row */
	usec_t retry_at;
};

/* The floor of memory that a promise takes; core/floor/control.h. */
struct floor_control {
	uint32_t want;			/* blocks beyond the minimums; 0 to what is promised */
	uint32_t calm;			/* intervals in a row with clearly fewer I/Os */
};

/* Promise of memory, and the floor that keeps it; core/floor/floor.h.  In blocks or MiB. */
struct ebb_vm_floor {
	bool is_refused;		/* too little was left to promise: */
	uint16_t short_node;		/* on this node of the host */
	uint32_t short_mib;		/* which had so much left */
	uint32_t refused_mib;		/* the reserve-mem that was refused last */
	uint32_t promised_mib;		/* size of the cache; 0: nothing is promised; if is_refused:
					 * what was promised before */
	bool is_raised;			/* more than what is promised is asked for */
	bool is_lowered;		/* the promise is to be made anew, on no node for more */
	uint32_t told_mib;		/* as in the last LIMITS */
	/* By guest node. */
	uint32_t promised[EBB_MAX_GUEST_NODES];
	uint32_t booked[EBB_MAX_GUEST_NODES]; /* what that takes of what may be promised */
	uint32_t keep[EBB_MAX_GUEST_NODES]; /* the floor in force, beyond mem_min */
	struct floor_control control;
	struct ebb_relio seen;		/* last reading that the control has used */
};

/* CPU time that the VM was promised, and whether it got it; core/promise/promise.h. */
struct ebb_vm_promise {
	usec_t at;			/* end of the last interval; 0: none has begun */
	uint32_t permille;		/* promised then, thousandths of a core; 0: nothing */
	usec_t spare, owed, credit;	/* struct promise_carry */
	usec_t since;			/* the counters were 0 then */
	struct ebb_ledger sum;		/* in this run, as far as this agent has seen it */
};

/* I/Os of the database and of the cache that it was promised; core/promise/cache.h. */
struct ebb_vm_promised_cache {
	struct ebb_relio seen;		/* last reading that the meter has used */
	uint32_t mib;			/* promised then */
	uint64_t owed;			/* too many, but too few to tell from chance */
	usec_t since;			/* the counters were 0 then */
	struct ebb_ledger sum;		/* in this run, as far as this agent has seen it */
};

/* Reads beyond the VM's promised cache that are to be charged to the system; core/io/beyond.h. */
struct io_beyond {
	uint64_t open;			/* reported, and not charged yet */
	uint64_t last;			/* those of the last report */
	usec_t until;			/* an interval of I/O that began later gets none of them */
};

/* Promises of I/O to the VM's volumes; core/io/io.h. */
struct ebb_vm_io {
	uint8_t taken;			/* bit k: volumes.names[k] is promised to another VM */
	uint16_t num_owned;		/* volumes in the table that are promised to this VM */
	struct io_beyond beyond;
};

struct ebb_vm {
	uint8_t uuid[16];
	char name[EBB_NAME_SIZE];	/* whole; nothing is found by it but what people ask for */
	char error[EBB_TEXT_SIZE];	/* why it is not (fully) managed; "": it is */
	bool has_sla;			/* sla and vcpus are valid */
	bool is_running;
	bool is_incoming;		/* running, as far as libvirt goes: its QEMU waits for it to
					 * arrive from another host.  Its floors are reserved, and
					 * nothing is done to it or told to it */
	bool is_outgoing;		/* running, as far as libvirt goes: it stands still, to go
					 * on at another host or, if that fails, here.  It has
					 * what it had */
	bool is_admitted;		/* running, and its floor fits the host */
	bool link_up;
	bool has_driver;		/* as of the last HELLO of this run */
	bool can_lend;			/* the driver knows of lending, as of that HELLO */
	bool can_vom;			/* it can say what memory is worth */
	bool can_leave;			/* it unplugs what leaves at once */
	bool can_account;		/* its device keeps counters */
	bool can_baseline;		/* it can be promised a cache, and say what became of it */
	bool is_removed;		/* undefined while running: forgotten when it stops */
	struct ebb_sla sla;
	uint64_t order;
	uint64_t resets;
	uint64_t generation;		/* of the last LIMITS */
	usec_t running_at;		/* start of this run as seen by the agent */
	usec_t link_at;			/* the link came up or went down */
	struct ebb_vm_cpus cpus;
	struct ebb_vm_node nodes[EBB_MAX_GUEST_NODES];
	struct ebb_vm_pool pools[EBB_MAX_GUEST_NODES];
	/* By guest node: memory besides the pool; size of its virtio-mem device by the domain. */
	uint64_t boot_bytes[EBB_MAX_GUEST_NODES];
	uint32_t pool_blocks[EBB_MAX_GUEST_NODES];
	struct ebb_vm_volumes volumes;	/* its disks on the volume server */
	uint64_t disk_bytes;		/* of its other disks, for people and placers */
	struct ebb_vm_cap cap;
	struct ebb_vm_share share;
	struct ebb_vm_reserve reserve;
	struct ebb_vm_floor floor;
	struct ebb_vm_vom vom;
	struct ebb_vm_charge charge;
	struct ebb_account before;	/* counted before this agent counts: account.c */
	struct ebb_vm_conduct conduct;
	struct ebb_vm_gather gather;
	struct ebb_vm_move move;
	struct ebb_vm_use use;
	struct ebb_vm_promise promise;
	struct ebb_vm_promised_cache promised_cache;
	struct ebb_vm_io io;
	uint16_t num_vcpus;
	/* By vCPU id: one array for each room that has a part of a vCPU. */
	const struct ebb_vcpu *vcpus;
	const struct ebb_vcpu_times *vcpu_times;
	const struct ebb_vcpu_share *vcpu_shares;
	const struct ebb_vcpu_reserve *vcpu_reserves;
	const struct ebb_vcpu_promise *vcpu_promises;
	void *vcpu_store;		/* memory of these, and of nodes[].due */
	struct ebb_request requests[VIRTIO_EBB_MAX_INFLIGHT];
	struct ebb_telemetry telemetry;
	usec_t telemetry_at;		/* 0: none in this run */
	/* Private to the core. */
	struct ebb_vm_work *work;
};

#endif /* EBB_CORE_VM_H */
