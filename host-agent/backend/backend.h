/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A backend stands between the core and the world.  It carries out actions
 * and reports facts; it decides nothing and retries nothing.  The daemon owns
 * the loop:
 *
 *   backend --fact--> sink (daemon: ebb_state_report) ... ebb_state_next
 *                     --actions--> backend->submit
 *
 * Facts are reported from the loop's thread only, never from inside submit().
 */
#ifndef EBB_BACKEND_H
#define EBB_BACKEND_H

#include "model/types.h"

/*
 * The receiver of a backend's facts.  The fact and its arrays live for the call only.  Returns the
 * result of ebb_state_report(): a fact that was refused has to be reported again.
 */
struct ebb_sink {
	void *ctx;
	int (*report)(void *ctx, usec_t now, const struct ebb_fact *fact);
};

struct ebb_backend_ops {
	const char *name;
	/*
	 * Starts an action and returns at once; what blocks runs elsewhere.
	 * Actions on one vCPU take effect in the order of submission, link
	 * messages of one VM arrive in the order of submission.  An action
	 * with an id that cannot even be started is reported as done with an
	 * error like any other.
	 */
	void (*submit)(void *be, usec_t now, const struct ebb_action *action);
	/*
	 * Optional: for backends without file descriptors (the fake one).
	 * next() is when run() has something to do, or EBB_TIME_NEVER; run()
	 * reports all that is due at now.
	 */
	usec_t (*next)(void *be);
	void (*run)(void *be, usec_t now);
	void (*destroy)(void *be);	/* accepts NULL */
};

struct ebb_backend {
	const struct ebb_backend_ops *ops;
	void *be;
};

/* ---- the fake backend -------------------------------------------------- */

/*
 * A simulated host full of simulated guests, driven by a seed alone: the same
 * seed, calls and times give the same facts.  Used by the unit tests, the
 * simulation and `ebbd --dry-run`.
 */
struct ebb_fake;

struct ebb_fake_config {
	uint64_t seed;
	/*
	 * Nothing is left to chance: every latency is the middle of its range, what happens in half
	 * of all cases or more happens.
	 */
	bool is_even;
	usec_t plug_usec[2];		/* shortest and longest time of a PLUG */
	usec_t unplug_usec[2];
	usec_t place_usec[2];		/* of PLACE and HOME */
	usec_t link_usec[2];		/* of a message, either way */
	usec_t think_usec[2];		/* guest: limit seen -> request sent */
	uint32_t plug_fail_permille;	/* PLUG ends with -EIO */
	uint32_t unplug_fail_permille;	/* UNPLUG ends with -ETIMEDOUT, vCPU still there */
	uint32_t place_fail_permille;	/* PLACE, HOME and MEM_CAP end with -EIO */
	bool has_no_cap;		/* MEM_CAP ends with -EOPNOTSUPP */
	bool has_no_pools;		/* devices list no pools, whatever the SLA says */
	uint32_t lend_permille;		/* drivers that can lend */
	uint32_t vom_permille;		/* drivers that can say what memory is worth */
};

/* Latencies as measured on a small KVM host, no failures; every driver can lend and say
 * what memory is worth. */
void ebb_fake_config_default(struct ebb_fake_config *ret_cfg);

/* How a simulated guest behaves, with CPUs and with memory. */
enum ebb_fake_guest {
	EBB_FAKE_GREEDY,		/* takes every offer, meets every demand */
	EBB_FAKE_IDLE,			/* takes nothing, meets demands */
	EBB_FAKE_SILENT,		/* takes every offer, gives and confirms nothing */
	EBB_FAKE_NO_DRIVER,		/* device present, no driver */
	EBB_FAKE_RANDOM,		/* asks and gives at random, meets demands mostly */
	EBB_FAKE_WANTING,		/* has as many CPUs as ebb_fake_vm_want() said, if it may */
};

/* NULL if out of memory. */
struct ebb_fake *ebb_fake_create(const struct ebb_fake_config *cfg, struct ebb_sink sink);
void ebb_fake_destroy(struct ebb_fake *f);
struct ebb_backend ebb_fake_backend(struct ebb_fake *f);

/* ops->submit, next and run of the fake, for callers that hold a struct ebb_fake. */
void ebb_fake_submit(struct ebb_fake *f, usec_t now, const struct ebb_action *action);
usec_t ebb_fake_next(struct ebb_fake *f);
void ebb_fake_run(struct ebb_fake *f, usec_t now);

/* The world acts.  0, or -ENOENT, -EEXIST, -ENOSPC, -EINVAL, -EBUSY. */
int ebb_fake_vm_define(struct ebb_fake *f, usec_t now, const uint8_t *uuid, const char *name,
		       const struct ebb_sla *sla, enum ebb_fake_guest guest);
int ebb_fake_vm_undefine(struct ebb_fake *f, usec_t now, const uint8_t *uuid);
int ebb_fake_vm_start(struct ebb_fake *f, usec_t now, const uint8_t *uuid);
int ebb_fake_vm_kill(struct ebb_fake *f, usec_t now, const uint8_t *uuid);
int ebb_fake_vm_reboot(struct ebb_fake *f, usec_t now, const uint8_t *uuid);
int ebb_fake_vm_behave(struct ebb_fake *f, usec_t now, const uint8_t *uuid,
		       enum ebb_fake_guest guest);

/*
 * Sets how many CPUs, the startup set included, a guest in state EBB_FAKE_WANTING wants on a guest
 * node; 0 before.  The guest gives back CPUs beyond that number, takes offers up to it, and asks
 * once for CPUs that are not offered; another call makes it ask again.  0, -ENOENT, -ERANGE (node).
 */
int ebb_fake_vm_want(struct ebb_fake *f, usec_t now, const uint8_t *uuid, uint16_t node,
		     uint16_t cpus);

/*
 * Blocks that the work of a guest needs on a guest node, all that there are before it is said.  One
 * that is EBB_FAKE_GREEDY or _SILENT takes no more; what it holds beyond is worth nothing to it,
 * and stays until it is asked for.  0, -ENOENT, -ERANGE (node).
 */
int ebb_fake_vm_need(struct ebb_fake *f, usec_t now, const uint8_t *uuid, uint16_t node,
		     uint32_t blocks);
/*
 * Guests take turns to need much memory: the guest whose turn it is needs half of its pools, all
 * others together need a quarter of such pools.  Turn n is that of the VM with this number among
 * the defined ones, modulo their number.
 */
void ebb_fake_need_turn(struct ebb_fake *f, usec_t now, uint32_t turn);

/* From now on, in place of those of the configuration. */
void ebb_fake_set_failures(struct ebb_fake *f, uint32_t plug_permille, uint32_t unplug_permille,
			   uint32_t place_permille);

/*
 * The agent was restarted: whatever was under way is carried to its end but
 * reported to nobody, all links drop and come back.  Then everything that
 * exists is reported, closing with LOADED.  Also to be called once at the
 * beginning.
 */
void ebb_fake_agent_start(struct ebb_fake *f, usec_t now);

/* The state of the simulated world, for tests and `--dry-run`. */
struct ebb_fake_vcpu {
	bool is_startup, is_plugged;
	bool is_granted;		/* in the device's table */
	bool is_forced;			/* the device's FORCED flag */
	bool is_lent, is_parked;	/* its LENT and PARKED flags */
	bool is_given_back;		/* the guest has stopped using it */
	bool is_alone;			/* placed by PLACE, not by HOME, since it was plugged */
	uint16_t node;
	uint16_t thread;		/* where its thread runs, or EBB_THREAD_NONE */
};

/* 0, -ENOENT (VM), -ERANGE (vCPU). */
int ebb_fake_vcpu(const struct ebb_fake *f, const uint8_t *uuid, uint16_t vcpu,
		  struct ebb_fake_vcpu *ret_vcpu);

/* The pool of a guest node, in blocks. */
struct ebb_fake_pool {
	uint32_t size;			/* of the virtio-mem device; 0: there is no pool */
	uint32_t requested;		/* the device's requested size */
	uint32_t held;			/* plugged */
	uint32_t unconfirmed;		/* revoked, and the guest has not said that it knows */
};

/* Memory that a simulated VM boots with on each guest node. */
#define EBB_FAKE_BOOT_BYTES	(128ull << 20)

/* 0, -ENOENT (VM), -ERANGE (node). */
int ebb_fake_pool(const struct ebb_fake *f, const uint8_t *uuid, uint16_t node,
		  struct ebb_fake_pool *ret_pool);

/* The limit of the VM's memory cgroup, 0: none was set in this run. */
uint64_t ebb_fake_vm_cap(const struct ebb_fake *f, const uint8_t *uuid);

/* Requests of the VM's guest that were not answered yet; -ENOENT. */
int ebb_fake_vm_inflight(const struct ebb_fake *f, const uint8_t *uuid);

/* The last limits that the device was told; -ENOENT, -EAGAIN if none in this run. */
int ebb_fake_vm_limits(const struct ebb_fake *f, const uint8_t *uuid,
		       struct ebb_action_limits *ret_limits);

/*
 * The first thing that an agent did and must never do (grant a vCPU twice, give
 * a thread away that somebody has alone, unplug what a guest uses, answer what
 * was not asked, revoke before the deadline, ...), or NULL.  A real device or
 * guest would suffer from it.
 */
const char *ebb_fake_violation(const struct ebb_fake *f);

/*
 * Each vCPU of the VM wants so many thousandths of a core from now on (more than 1000: 1000).
 * -ENOENT.
 */
int ebb_fake_vm_load(struct ebb_fake *f, const uint8_t *uuid, uint16_t permille);
/*
 * Lets @usec pass, during which each vCPU computes on the thread that it is on now; reports
 * CPU_TIMES of VMs that have a load.  A core is worth so many thousandths of a real CPU.
 */
void ebb_fake_load_run(struct ebb_fake *f, usec_t now, usec_t usec, uint32_t share_permille);

#endif /* EBB_BACKEND_H */
