/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scripts for the core: feed facts, say how the time goes, and compare the
 * actions that come out, written as text, one after the other:
 *
 *   welcome a ack            response a 7 ack none [4,5ht]
 *   limits a 1/4             held/limit of each node; " 5/2!300" a demand due in 300 ms;
 *                            " 1/4 m128/64!300<50" with pool memory, MiB, and a cut-off
 *                            " 1/4 v7" at the end: histogram 7 is asked for
 *                            " 1/4 p64" a cache of 64 MiB is promised, this node's part
 *   revoke a 0 64            pool of node 0 down to 64 MiB
 *   leave a 0 64             the same, by the guest
 *   cap a 1344               mirror a 0 64       MiB
 *   throttle a 462           thousandths of a core
 *   volume a x 300/0         requests and bytes per second promised to volume x; "-" for no VM;
 *                            " max 500/0", " weight 9", " penalty 7" where not the default
 *                            " 1/4 t2" where tier 2 is told
 *   flags a 4 forced         flags a 4 clear         flags a 4 lent       close a
 *   account a                the device is to keep the VM's counters
 *   plug a 4   unplug a 4    place a 4 @2   home a 4 @0
 *
 * VMs are called by one letter.
 */
#ifndef TESTS_UNIT_CORE_SCRIPT_H
#define TESTS_UNIT_CORE_SCRIPT_H

#include "core/core.h"

#define MSEC(n)	((usec_t)(n) * EBB_USEC_PER_MSEC)
#define SEC(n)	((usec_t)(n) * EBB_USEC_PER_SEC)

struct script {
	usec_t now;
	struct ebb_host host;
	struct ebb_state_config cfg;
	const struct ebb_policy_ops *policy;
	struct ebb_state *state;
	usec_t wake_at;			/* as of the last expect() */
	struct ebb_action last[64];	/* actions of the last expect() */
	size_t num_last;
	struct ebb_action open[64];	/* actions under way */
	size_t num_open;
	struct ebb_record record;	/* last one that find_record() found */
	struct ebb_vm_volumes volumes;	/* of each VM that is defined from now on */
	bool can_lend;			/* the drivers that HELLO speaks of know of lending */
	bool can_vom;			/* they can say what memory is worth */
	bool can_leave;			/* they unplug what leaves */
	bool can_baseline;		/* they can be promised a cache */
	/* What the devices have, by letter and guest node; by the SLA when a VM is defined. */
	struct ebb_pool_fact pools[26][EBB_MAX_GUEST_NODES];
};

/* MiB of every node of the host for pools, of each guest node besides its pool, of every QEMU. */
#define SCRIPT_POOL_MIB		1024u
#define SCRIPT_BOOT_MIB		256u
#define SCRIPT_OVERHEAD_MIB	64u

/* An emulated host, an empty core, LOADED reported. */
void script_init(struct script *s, uint32_t sockets, uint32_t cores, uint32_t threads,
		 bool count_threads);
/* The same, but the agent is still reading what there is. */
void script_init_loading(struct script *s, uint32_t sockets, uint32_t cores, uint32_t threads,
			 bool count_threads);
void script_loaded(struct script *s);
void script_finish(struct script *s);

/* For a setup function of cmocka: *state is a script that is not initialized yet. */
struct script *script_new(void **state);
/* For cmocka: *state is an empty core on a host of one socket with eight cores. */
int script_setup(void **state);
int script_teardown(void **state);

/*
 * "2/4" or "1/3,0/2": startup/max of each guest node, on the host node of the same number;
 * "2/4m64-512": with pool memory, min-max in MiB.
 */
struct ebb_sla script_sla(const char *nodes);
int script_define(struct script *s, char vm, const struct ebb_sla *sla);
/* Startup set plugged, nothing placed yet. */
int script_running(struct script *s, char vm, uint64_t order);
/* "0@0 1@3 4@-": vCPU @ thread */
int script_found(struct script *s, char vm, uint64_t order, usec_t as_of, const char *plugged);
int script_simple(struct script *s, char vm, enum ebb_fact_type type);
/* hotplugged: "4 5f 6l 7p": vCPUs granted, f: forced, l: lent, p: lent and parked. */
int script_hello(struct script *s, char vm, bool is_first, bool has_driver, uint64_t resets,
		 const char *hotplugged);
int script_add(struct script *s, char vm, uint64_t tag, uint16_t count, uint16_t node,
	       bool allow_ht);
int script_remove(struct script *s, char vm, uint64_t tag, uint16_t vcpu);
int script_lend(struct script *s, char vm, uint64_t tag, uint16_t vcpu, bool park);

/* Threads of vCPUs since they were created: "3:1500/20 4:0/7+300", ms run/times run+ms waited. */
int script_cpu_times(struct script *s, char vm, const char *times);

/* The pool of a VM's device has changed, MiB; reported with the next HELLO or script_mem(). */
void script_pool(struct script *s, char vm, uint16_t node, uint32_t requested_mib,
		 uint32_t held_mib, uint32_t unconfirmed_mib);
int script_mem(struct script *s, char vm);
/* The guest has plugged or unplugged in the pool of node 0, and the device says so. */
void script_holds(struct script *s, char vm, uint32_t held_mib);
/* The pool of node 0. */
const struct ebb_vm_pool *script_vm_pool(const struct script *s, char vm);
/* "0:100/64 0:500/32": node:value/MiB of each bucket. */
int script_vom(struct script *s, char vm, uint32_t seq, const char *buckets);
/* The guest's database: counters of I/Os, and of those of a simulated cache of so many MiB. */
int script_baseline(struct script *s, char vm, uint32_t mib, uint64_t baseline, uint64_t actual);
/* The device has taken over the memory limits of the last expect(), and says so. */
void script_took(struct script *s, char vm);

/* The actions that are due now, in order; a list of strings that ends with NULL. */
void script_expect_(struct script *s, const char *file, int line, ...);
#define script_expect(s, ...)	script_expect_(s, __FILE__, __LINE__, __VA_ARGS__, NULL)
#define script_expect_nothing(s) script_expect_(s, __FILE__, __LINE__, NULL)
/* Takes what is due now, whatever it is, and ends it well, until nothing is left. */
void script_settle(struct script *s);

/* Ends the action of that type and vCPU (MEM_MIRROR: node) that is under way. */
void script_done(struct script *s, enum ebb_action_type type, char vm, uint16_t vcpu, int err);

/* Defined, started, startup set placed, linked, driver up, settled. */
void script_boot(struct script *s, char vm, uint64_t order, const char *nodes);
/* Adds CPUs and carries everything out. */
void script_grow(struct script *s, char vm, uint16_t count, uint16_t node);

/* The volume server answers; or does not. */
void script_volumes_up(struct script *s);
/* With a promise to this volume that an agent has set. */
void script_volumes_up_with(struct script *s, const char *owned);
void script_volumes_lost(struct script *s, const char *text);
/* The server's counters of a volume, with intervals of a second. */
void script_volume_meter(struct script *s, const char *name, const char *taker,
			 struct ebb_volume_counters count);
/* Ends the VOLUME of that name that is under way; text: the server's words. */
void script_volume_done(struct script *s, const char *name, int err, const char *text);

const struct ebb_vm *script_vm(const struct script *s, char vm);
/* The first record of that kind for the VM that was not looked at yet. */
bool script_find_record(struct script *s, char vm, enum ebb_event event);

#endif /* TESTS_UNIT_CORE_SCRIPT_H */
