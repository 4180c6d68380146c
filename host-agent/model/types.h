/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words of the host agent: the host, the VMs and their SLAs, the facts
 * that flow into its core and the actions that flow out of it.
 *
 * Facts come from libvirt, from the links to the devices, from the operator, and
 * from actions that have ended; actions are what the core wants done.  Both are
 * plain data.  A fact may point to an array, which need only live for the call.
 * All numbers are in host byte order; the code that speaks a wire protocol
 * converts them.
 *
 * A VM is known by its libvirt uuid everywhere; its name is for people.  A
 * hardware thread is named by its index in struct ebb_host.  Times are
 * microseconds of CLOCK_MONOTONIC.
 */
#ifndef EBB_TYPES_H
#define EBB_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/virtio_ebb.h>

#include "model/ledger.h"
#include "model/volume.h"

typedef uint64_t usec_t;

#define EBB_USEC_PER_MSEC	1000ull
#define EBB_USEC_PER_SEC	1000000ull
#define EBB_TIME_NEVER		UINT64_MAX

#define EBB_MAX_VMS		1024	/* VMs with an SLA, running or not */
#define EBB_MAX_NODES		16	/* NUMA nodes of the host */
#define EBB_MAX_THREADS		1024	/* hardware threads of the host */
#define EBB_MAX_SMT		8	/* hardware threads of a core */
#define EBB_MAX_GUEST_NODES	VIRTIO_EBB_MAX_NODES
#define EBB_MAX_VCPUS		512	/* vCPUs of a VM */
#define EBB_NAME_SIZE		256	/* bytes of a VM's name with its NUL: as libvirt's */
#define EBB_TEXT_SIZE		192	/* bytes of a reason or an error with its NUL */

/*
 * Memory moves in blocks of this size (virtio_ebb_link_pool.block_bytes of every pool that is
 * used); the core and the policies count blocks.
 */
#define EBB_BLOCK_BYTES		(2ull << 20)
#define EBB_BLOCK_MIB		2u
#define EBB_MAX_POOL_MIB	(1u << 24)	/* of a guest node, or of a node of the host */

#define EBB_MAX_VOM_BUCKETS	512u	/* of a VM, all nodes together */

#define EBB_THREAD_NONE		0xffffu	/* no hardware thread, or not known */
#define EBB_NODE_ANY		VIRTIO_EBB_NODE_ANY

/* ---- the host ---------------------------------------------------------- */

struct ebb_thread {
	uint16_t core;			/* index of its core */
	uint16_t node;			/* index of its node */
	uint16_t rank;			/* 0: first thread of the core; others are hyperthreads */
	uint32_t os_cpu;		/* CPU number for the host's kernel; emulated: the index */
};

struct ebb_core {
	uint16_t node;
	bool is_shared;			/* never given to one VM alone: VMs with ebb_sla.is_shared
					 * run on it */
	uint16_t num_threads;		/* 1 to EBB_MAX_SMT */
	uint16_t threads[EBB_MAX_SMT];	/* by rank */
};

/*
 * The cores and memory that the agent may give to VMs.  Cores that are kept for the host itself are
 * not listed.  Indices are dense; the node index is the number used in SLAs.
 */
struct ebb_host {
	bool is_emulated;
	uint32_t share_permille;	/* emulated: quota of a core, thousandths of a real CPU */
	uint32_t period_usec;		/* in each of which it has that quota; 0: it has none */
	uint16_t num_nodes;		/* 1 to EBB_MAX_NODES */
	uint16_t num_cores;
	uint16_t num_threads;		/* 1 to EBB_MAX_THREADS */
	struct ebb_core cores[EBB_MAX_THREADS];
	struct ebb_thread threads[EBB_MAX_THREADS];
	/*
	 * By node: its memory, in MiB, as far as the operating system says.  An emulated node has
	 * an equal part of the machine's.
	 */
	uint32_t memory_mib[EBB_MAX_NODES];
	/*
	 * By node: blocks that VMs together may have in their pools.  With pool_has_boot the
	 * memory that VMs boot with comes out of it, too: that of all VMs with a valid SLA,
	 * running or not.
	 */
	uint32_t pool_blocks[EBB_MAX_NODES];
	bool pool_has_boot;
};

/* ---- SLA and definition of a VM ---------------------------------------- */

enum ebb_class {
	EBB_CLASS_RESERVED,
	EBB_CLASS_SPOT,
	EBB_CLASS_MAX,
};

#define EBB_WEIGHT_MIN		1u
#define EBB_WEIGHT_MAX		10000u
#define EBB_WEIGHT_DEFAULT	100u
#define EBB_DEADLINE_MS_MIN	10u
#define EBB_DEADLINE_MS_MAX	600000u
#define EBB_DEADLINE_MS_DEFAULT	2000u

/* How CPUs are given back: VIRTIO_EBB_TIER_*. */
/* Hundredths of the time of one core; 0: no promise, no maximum. */
#define EBB_CPU_PERCENT_MIN	0u
#define EBB_CPU_PERCENT_MAX	51200u	/* EBB_MAX_VCPUS whole cores */
#define EBB_CPU_PERCENT_DEFAULT	0u
/* MiB; 0: no promise. */
#define EBB_RESERVE_MEM_MIN	0u
#define EBB_RESERVE_MEM_MAX	EBB_MAX_POOL_MIB
#define EBB_RESERVE_MEM_DEFAULT	0u
#define EBB_PENALTY_MIN		0u
#define EBB_PENALTY_MAX		1000000u
#define EBB_PENALTY_DEFAULT	1u
#define EBB_PRIORITY_MAX	1000u
#define EBB_PRIORITY_DEFAULT	100u

struct ebb_sla_node {
	uint16_t startup;		/* CPUs that the VM boots with here and always keeps */
	uint16_t reserved;		/* CPUs it gets whenever it asks for them; startup to max */
	uint16_t max;			/* most it may ever hold here, startup included */
	uint16_t host_node;		/* where its CPUs run and its memory is */
	uint32_t mem_min;		/* blocks of pool memory kept for it, 0 to mem_max */
	uint32_t mem_max;		/* most blocks it may ever hold */
	bool has_pool;			/* the SLA names a pool here, if only with a mem_max of 0 */
};

struct ebb_sla {
	enum ebb_class class;		/* spot: every `reserved` is the startup set */
	uint16_t priority;		/* 0 to EBB_PRIORITY_MAX; within a class the higher first */
	uint16_t tier;			/* VIRTIO_EBB_TIER_*, as told to the guest */
	bool plug_ahead;		/* plug all vCPUs once the driver is there, as lent ones */
	/*
	 * No cores of its own: all vCPUs run on shared cores of their node of the host, and all
	 * are of the startup set.
	 */
	bool is_shared;
	/*
	 * With is_shared, else without effect.  Of the time of one core, so over 100 for several
	 * cores; reserve: promised to the VM (ResCPU, "SQLVM", section 2.1); max: the most that it
	 * gets.  penalty: what a per cent that is promised and not kept costs, of CPU time and of
	 * memory (reserve_mem_mib), which is promised to VMs with cores of their own, too.
	 */
	uint32_t reserve_percent;	/* EBB_CPU_PERCENT_MIN to _MAX; 0: no promise */
	uint32_t max_percent;		/* the same; 0: no maximum */
	uint32_t penalty;		/* EBB_PENALTY_MIN to EBB_PENALTY_MAX */
	uint32_t weight;		/* EBB_WEIGHT_MIN to EBB_WEIGHT_MAX */
	uint32_t deadline_ms;		/* time to meet a demand; EBB_DEADLINE_MS_MIN to _MAX */
	uint32_t mem_weight;		/* the same for memory; used if it has a pool */
	uint32_t mem_deadline_ms;
	/*
	 * The VM's database is promised the hit ratio of a dedicated cache of so many MiB (ResMem,
	 * "SQLVM", section 2.3), which are beyond the mem_min of its nodes and within their
	 * mem_max; 0: no promise.
	 */
	uint32_t reserve_mem_mib;	/* EBB_RESERVE_MEM_MIN to _MAX */
	uint16_t num_nodes;		/* guest nodes, all of them: 1 to EBB_MAX_GUEST_NODES */
	struct ebb_sla_node nodes[EBB_MAX_GUEST_NODES];
	struct ebb_sla_io io;		/* of each volume of the VM that has no value of its own */
	uint16_t num_volumes;		/* 0 to EBB_MAX_VOLUMES */
	struct ebb_sla_volume volumes[EBB_MAX_VOLUMES];
};

struct ebb_vcpu_def {
	uint16_t node;			/* guest node */
	bool is_startup;		/* plugged at boot, never unplugged */
};

/*
 * A part of the memory that a guest holds on a node, and its value for the guest: the time to fetch
 * the contents again if they were lost, times how often they are used (VoM = STS x lambda).
 * Source: "Flexible resource allocation for relational database-as-a-service", section 4.1.
 */
struct ebb_vom_bucket {
	uint64_t value;			/* of its most valuable MiB: ns of time saved per second */
	uint32_t kib;			/* at least 1 */
	uint16_t node;			/* guest node */
};

/* ---- kinds of actions -------------------------------------------------- */

enum ebb_action_type {
	/* With an id: each is answered by exactly one EBB_FACT_ACTION_DONE. */
	EBB_ACTION_PLUG,		/* plug the vCPU (libvirt) */
	EBB_ACTION_UNPLUG,		/* unplug the vCPU (libvirt) and wait for the guest */
	EBB_ACTION_PLACE,		/* run the vCPU's thread on `thread`, which it has alone */
	EBB_ACTION_HOME,		/* run it on `thread`, which other vCPUs run on too */
	/*
	 * The most memory that the VM's processes may use (libvirt, memory cgroup).  -EOPNOTSUPP:
	 * there is no such limit on this host.
	 */
	EBB_ACTION_MEM_CAP,
	EBB_ACTION_MEM_MIRROR,		/* tell libvirt a requested size, after the fact */
	/*
	 * The most that each vCPU of the VM may use of a core (libvirt, vcpu_quota).  -EOPNOTSUPP:
	 * there is no such limit on this host.
	 */
	EBB_ACTION_THROTTLE,
	/* Set the part of its core that a vCPU of a VM on shared cores gets (emulated hosts). */
	EBB_ACTION_RESERVE,
	/*
	 * The weight of the VM on its cores (libvirt, cpu_shares): on a host that has no parts of
	 * cores.  -EOPNOTSUPP: libvirt has no weights for it.
	 */
	EBB_ACTION_SHARES,
	/*
	 * Set what a volume of the volume server is promised.  -ENOTCONN: the connection was lost,
	 * the volume may have the old promise or the new one; -ENOENT: it has no such volume;
	 * -EDQUOT: more would be promised than the disk can do; -EACCES: the agent may not.
	 */
	EBB_ACTION_VOLUME,
	/* Without: messages on the link; a failed one is followed by LINK_LOST. */
	EBB_ACTION_WELCOME,
	EBB_ACTION_RESPONSE,
	EBB_ACTION_LIMITS,
	EBB_ACTION_CPU_FLAGS,
	EBB_ACTION_REVOKE,
	EBB_ACTION_ACCOUNT,		/* have the device keep the VM's counters */
	EBB_ACTION_LINK_CLOSE,		/* close; the device connects again and says HELLO */
	EBB_ACTION_MAX,
};

/* ---- facts ------------------------------------------------------------- */

enum ebb_fact_type {
	/*
	 * A domain with a valid SLA exists, or its SLA changed.  While the
	 * domain runs this describes the running instance.
	 */
	EBB_FACT_VM_DEFINED,
	/*
	 * A domain has an SLA that cannot be used; text says why.  A VM that
	 * is being managed already keeps its last valid SLA until it stops.
	 */
	EBB_FACT_VM_INVALID,
	/* The domain is gone for good. */
	EBB_FACT_VM_REMOVED,
	/*
	 * The domain runs: it has just started, or it was found running when
	 * the agent started.  Follows VM_DEFINED (also where the definition of
	 * a running domain becomes valid).  Also reported again when vCPUs changed behind
	 * the agent's back (device removed, somebody's virsh setvcpus) or when
	 * libvirt rewrote pins: the core takes it over, and repairs what
	 * differs from what it wants.
	 */
	EBB_FACT_VM_RUNNING,
	/* The domain stopped, crashed or QEMU died: nothing of it runs any more. */
	EBB_FACT_VM_STOPPED,
	/*
	 * Everything that existed when the agent started has been reported.
	 * Before this fact the core only takes note; it gives nothing.
	 */
	EBB_FACT_LOADED,
	/* HELLO on the VM's link. */
	EBB_FACT_HELLO,
	/* The VM's link went down. */
	EBB_FACT_LINK_LOST,
	/* REQUEST on the VM's link. */
	EBB_FACT_REQUEST,
	/* TELEMETRY on the VM's link. */
	EBB_FACT_TELEMETRY,
	/* MEM on the VM's link. */
	EBB_FACT_MEM,
	/* An action that had an id has ended. */
	EBB_FACT_ACTION_DONE,
	/* The operator replaces the SLA of a VM; checked like a definition. */
	EBB_FACT_SLA_SET,
	/* CPU times of the threads of vCPUs; every few seconds. */
	EBB_FACT_CPU_TIMES,
	/* The histogram that was asked for (ebb_action_limits.vom_seq), on the VM's link. */
	EBB_FACT_VOM,
	/* ACCOUNT on the VM's link. */
	EBB_FACT_ACCOUNT,
	/* The volume server answers: it has just been started, or the agent, or it was lost. */
	EBB_FACT_VOLUMES_UP,
	/*
	 * The volume server does not answer; after VOLUMES_UP, or at the start.  Promises stay as
	 * the server has them.
	 */
	EBB_FACT_VOLUMES_LOST,
	/* The server's capacity and promises; after VOLUMES_UP, and about once in an interval. */
	EBB_FACT_VOLUMES_SERVER,
	/*
	 * The server's meters; about once in an interval while it keeps a promise that the agent
	 * set.
	 */
	EBB_FACT_VOLUMES_METERS,
	EBB_FACT_MAX,
};

struct ebb_fact_vm_defined {
	char name[EBB_NAME_SIZE];
	struct ebb_sla sla;
	uint16_t num_vcpus;		/* 1 to EBB_MAX_VCPUS */
	const struct ebb_vcpu_def *vcpus; /* num_vcpus, by vCPU id; copied */
	/* By guest node: what it boots with, and the size of the virtio-mem device of its pool. */
	uint64_t boot_bytes[EBB_MAX_GUEST_NODES];
	uint32_t pool_blocks[EBB_MAX_GUEST_NODES];
	struct ebb_vm_volumes volumes;	/* may change while the VM runs */
	uint64_t disk_bytes;		/* of its disks that are no such volumes; it may, too */
};

struct ebb_fact_vm_invalid {
	char name[EBB_NAME_SIZE];
	char text[EBB_TEXT_SIZE];	/* element, attribute, value, allowed range */
};

struct ebb_vcpu_fact {
	uint16_t vcpu;			/* vCPU id */
	uint16_t thread;		/* where its thread is placed now, alone or shared;
					 * EBB_THREAD_NONE: on no single thread, or not known */
};

struct ebb_fact_vm_running {
	/*
	 * A domain that was started later has a higher one, also among those
	 * that an agent finds running (libvirt's domain ids are like that).
	 */
	uint64_t order;
	/*
	 * When the backend began to read what follows.  What the core has
	 * learnt of a vCPU since then is newer than this fact and is kept.
	 */
	usec_t as_of;
	/*
	 * Its QEMU has been started to receive the VM from another host, where it still runs.  Told
	 * of a VM that runs here already it means that the VM leaves: libvirt may not say more.
	 */
	bool is_incoming;
	bool is_outgoing;		/* paused, for the last of it to go to another host */
	uint16_t num_plugged;
	const struct ebb_vcpu_fact *plugged; /* every plugged vCPU once; copied */
	/*
	 * By guest node: blocks that libvirt knows to be plugged or requested in the pool.  Counts
	 * until the first HELLO of a run only.
	 */
	uint32_t mem_blocks[EBB_MAX_GUEST_NODES];
};

struct ebb_hello_cpu {
	uint16_t vcpu;
	uint16_t flags;			/* VIRTIO_EBB_CPU_F_* as the device has them */
};

/* A pool as the device reports it; all bytes are multiples of block_bytes. */
struct ebb_pool_fact {
	uint16_t node;			/* guest node */
	uint32_t block_bytes;		/* a power of two */
	uint64_t size_bytes;
	uint64_t requested_bytes;	/* 0 to size_bytes */
	uint64_t held_bytes;		/* plugged; 0 to size_bytes */
	uint64_t unconfirmed_bytes;	/* revoked, but not confirmed by the driver; together with
					 * held_bytes at most size_bytes */
};

struct ebb_fact_hello {
	bool is_first;			/* first of this connection: to be answered with WELCOME */
	bool has_driver;		/* a guest driver is running */
	bool can_lend;			/* it negotiated VIRTIO_EBB_F_LEND */
	bool can_vom;			/* it negotiated VIRTIO_EBB_F_VOM */
	bool can_leave;			/* it negotiated VIRTIO_EBB_F_LEAVE */
	bool can_baseline;		/* it negotiated VIRTIO_EBB_F_BASELINE */
	bool can_account;		/* the device keeps counters (EBB_ACTION_ACCOUNT) */
	uint16_t num_nodes;
	uint32_t max_cpus;
	uint64_t generation;		/* of the last LIMITS that the device knows */
	uint64_t resets;
	uint16_t num_cpus;
	const struct ebb_hello_cpu *cpus; /* startup set and granted CPUs; copied */
	uint16_t num_pools;		/* at most EBB_MAX_GUEST_NODES */
	const struct ebb_pool_fact *pools; /* each guest node at most once; copied */
};

struct ebb_fact_mem {
	uint16_t num_pools;		/* the pools of the last HELLO, all of them */
	const struct ebb_pool_fact *pools; /* copied */
};

struct ebb_fact_request {
	uint64_t tag;
	uint16_t type;			/* VIRTIO_EBB_REQ_CPU_ADD, _CPU_REMOVE or _CPU_LEND */
	uint16_t count;			/* CPU_ADD: 1 to VIRTIO_EBB_MAX_REQ_CPUS */
	uint16_t node;			/* CPU_ADD: guest node or EBB_NODE_ANY */
	bool allow_ht;			/* CPU_ADD: hyperthreads will do */
	uint16_t vcpu;			/* CPU_REMOVE, CPU_LEND */
	bool park;			/* CPU_LEND: the device parks it once it is answered */
};

struct ebb_telemetry {
	uint32_t num_apps;
	uint32_t interval_ms;
	uint64_t committed, aborted, failed, accesses; /* counters */
	uint32_t p50_us, p95_us, p99_us;
	uint32_t workers;
	uint32_t cpus_online;
	uint32_t cpu_permille;
	uint64_t mem_total_bytes, mem_available_bytes;
	/* Of a dedicated cache that the guest simulates: see virtio_ebb.h; 0 without one. */
	uint64_t baseline_ios, actual_ios; /* counters */
	uint32_t baseline_mib;
};

/* Of the thread of a vCPU, since it was created. */
struct ebb_cpu_time {
	uint16_t vcpu;
	uint64_t cpu_usec;		/* time on a CPU of the host */
	uint64_t num_runs;		/* how often it was put on one */
	uint64_t wait_usec;		/* time in which it could have run but something else ran */
};

struct ebb_fact_cpu_times {
	usec_t as_of;			/* when reading began */
	uint16_t num_vcpus;
	const struct ebb_cpu_time *vcpus; /* plugged vCPUs, each at most once; copied */
};

struct ebb_fact_vom {
	uint32_t seq;			/* the number that it answers */
	uint32_t num_buckets;		/* at most EBB_MAX_VOM_BUCKETS */
	const struct ebb_vom_bucket *buckets; /* by node, in it by value; copied */
};

/*
 * CPU time, memory and I/O of a VM since it was started, on all its hosts.  The device keeps these
 * counters and takes them along to another host.
 */
struct ebb_account {
	uint64_t writer;		/* ebb_state_config.writer of the agent that wrote it */
	usec_t age;			/* the time for which core_usec and mib_usec were counted */
	uint64_t core_usec[EBB_CLASS_MAX], mib_usec[EBB_CLASS_MAX]; /* as in ebb_vm_charge */
	struct ebb_ledger cpu, mem;	/* promises of CPU time and of a cache */
};

struct ebb_fact_action_done {
	uint64_t id;
	enum ebb_action_type type;	/* of the action, as is the id */
	int err;			/* 0 or -errno; -ETIMEDOUT: not ejected in time */
	const char *text;		/* VOLUME: the server's words for err; NULL or "": none */
};

struct ebb_fact_volumes_up {
	uint32_t num;
	/* Volumes that keep a promise which an agent has set, each once, in any order; copied. */
	const char (*owned)[EBB_VOLUME_NAME_SIZE];
};

struct ebb_fact_volumes_lost {
	char text[EBB_TEXT_SIZE];	/* why */
};

struct ebb_fact_volumes_meters {
	usec_t as_of;			/* when it was asked */
	usec_t interval_usec;		/* length of its intervals */
	uint32_t num;
	const struct ebb_volume_reading *volumes; /* each at most once, in any order; copied */
};

struct ebb_fact {
	enum ebb_fact_type type;
	uint8_t uuid[16];		/* of the VM; not used by LOADED, ACTION_DONE, VOLUMES_* */
	union {
		struct ebb_fact_vm_defined vm_defined;
		struct ebb_fact_vm_invalid vm_invalid;
		struct ebb_fact_vm_running vm_running;
		struct ebb_fact_hello hello;
		struct ebb_fact_request request;
		struct ebb_telemetry telemetry;
		struct ebb_fact_mem mem;
		struct ebb_fact_action_done action_done;
		struct ebb_sla sla_set;
		struct ebb_fact_cpu_times cpu_times;
		struct ebb_fact_vom vom;
		struct ebb_account account;
		struct ebb_fact_volumes_up volumes_up;
		struct ebb_fact_volumes_lost volumes_lost;
		struct ebb_volume_server volumes_server;
		struct ebb_fact_volumes_meters volumes_meters;
	} u;
};

/* ---- actions ----------------------------------------------------------- */

struct ebb_action_vcpu {
	uint16_t vcpu;
	uint16_t thread;		/* PLACE, HOME: target; otherwise EBB_THREAD_NONE */
};

/* In thousandths of the thread. */
struct ebb_action_reserve {
	uint16_t vcpu;
	uint16_t thread;		/* of the host, on which the vCPU runs */
	uint16_t keep;			/* promised to the vCPU; 0: nothing */
	uint16_t rest;			/* for all vCPUs there without a promise together; with
					 * what is promised there it is 1000 */
	uint16_t max;			/* the most that the vCPU gets; 0: no maximum */
};

struct ebb_action_welcome {
	uint16_t status;		/* VIRTIO_EBB_ACK; NACK: close after sending */
	uint16_t reason;		/* VIRTIO_EBB_REASON_* */
};

struct ebb_action_response {
	uint64_t tag;
	uint16_t type;			/* of the request */
	uint16_t status;
	uint16_t reason;
	uint16_t count;
	struct {
		uint16_t vcpu;
		uint16_t flags;		/* 0 or VIRTIO_EBB_CPU_F_HT */
	} cpus[VIRTIO_EBB_MAX_REQ_CPUS];
};

struct ebb_action_limits {
	uint64_t generation;
	uint16_t num_nodes;
	/*
	 * The number of the ask for a histogram; a guest that has not answered this number yet
	 * should.  0: no histogram is asked for.
	 */
	uint32_t vom_seq;
	struct {
		uint16_t held;		/* startup and granted CPUs, forced and lent ones not */
		uint16_t limit;
		uint16_t tier;		/* VIRTIO_EBB_TIER_*; 0 if the driver can not lend */
		uint32_t deadline_ms;	/* 0: no demand */
		uint32_t mem_deadline_ms;
		uint64_t mem_held_bytes;
		uint64_t mem_limit_bytes; /* 0 without a pool */
		/* Memory worth less (ebb_vom_bucket.value) is to go first; 0: no such bound. */
		uint64_t mem_cutoff;
		/* Part of the dedicated cache that is promised; 0 if the driver can not say. */
		uint32_t mem_promise_mib;
	} nodes[EBB_MAX_GUEST_NODES];
};

/*
 * REVOKE: the device unplugs until at most `bytes` are plugged, or (is_leave) has the guest do so
 * at once.  MEM_MIRROR: `bytes` is the requested size.
 */
struct ebb_action_pool {
	uint16_t node;			/* guest node with a pool */
	bool is_leave;			/* for a driver that can_leave; MEM_MIRROR: false */
	uint64_t bytes;			/* a multiple of EBB_BLOCK_BYTES */
};

struct ebb_action_volume {
	char name[EBB_VOLUME_NAME_SIZE];
	struct ebb_sla_io io;		/* all of it replaces what the volume was promised */
	bool is_owned;			/* by a VM, so that the agent will take it back one day */
};

struct ebb_action_cpu_flags {
	uint16_t vcpu;
	uint16_t flags;			/* 0, _CPU_F_FORCED, or _LENT to hand a new vCPU over */
};

struct ebb_action {
	enum ebb_action_type type;
	uint64_t id;			/* 0 for those without an answer */
	uint8_t uuid[16];		/* of the VM; VOLUME: all 0 where no VM is promised it */
	union {
		struct ebb_action_vcpu vcpu;	/* PLUG, UNPLUG, PLACE, HOME */
		struct ebb_action_welcome welcome;
		struct ebb_action_response response;
		struct ebb_action_limits limits;
		struct ebb_action_cpu_flags cpu_flags;
		struct ebb_action_pool pool;	/* REVOKE, MEM_MIRROR */
		struct ebb_account account;
		uint64_t cap_bytes;		/* MEM_CAP */
		struct ebb_action_reserve reserve;
		uint32_t shares;		/* SHARES: 2 to 10000; 0: as the domain defines */
		uint16_t permille;		/* THROTTLE: 1 to 1000; 0: no limit any more */
		struct ebb_action_volume volume;
	} u;
};

/* ---- names and checks --------------------------------------------------- */

/* Lower-case name as in the history and the CLI; "?" for what is not known. */
const char *ebb_class_name(enum ebb_class class);
const char *ebb_reason_name(uint16_t reason);	/* VIRTIO_EBB_REASON_*: "limit", "ceiling", ... */
const char *ebb_action_name(enum ebb_action_type type);
const char *ebb_fact_name(enum ebb_fact_type type);
/*
 * Whether the fact comes from the device or the guest over the VM's link.  If the core refuses such
 * a fact, the link has to be closed: the sender is broken or has missed something.
 */
bool ebb_fact_is_from_link(enum ebb_fact_type type);
/* Whether the action is a message on the VM's link; all others have an id. */
bool ebb_action_is_on_link(enum ebb_action_type type);

const char *ebb_tier_name(uint16_t tier);	/* VIRTIO_EBB_TIER_*: "any", "lend", ... */

/*
 * The value of memory (ebb_vom_bucket.value) for people: "3.20 ms/s per MiB", "nothing".
 * ret_text: EBB_VALUE_SIZE bytes.
 */
#define EBB_VALUE_SIZE	32
void ebb_value_print(uint64_t value, char *ret_text);

/*
 * The CPU half of an SLA in one line of words, for the history: what model/sla.h marks as replayed
 * (class, priority, tier, plug, weight, deadline-ms), each as "name=value", and "nodes=" with
 * startup/reserved/max@host of each guest node, with commas between them.  ret_text:
 * EBB_SLA_TEXT_SIZE bytes.
 */
#define EBB_SLA_TEXT_SIZE	512
void ebb_sla_print(const struct ebb_sla *sla, char *ret_text);

/* Whether the SLA names a pool anywhere. */
bool ebb_sla_has_mem(const struct ebb_sla *sla);

/*
 * Whether a host or an SLA keeps the ranges given above and, for the SLA, fits
 * the host.  On -EINVAL ret_text (EBB_TEXT_SIZE bytes) names field, value and
 * allowed range.
 */
int ebb_host_check(const struct ebb_host *host, char *ret_text);
int ebb_sla_check(const struct ebb_sla *sla, const struct ebb_host *host, char *ret_text);

/*
 * An emulated host of sockets x cores x threads, one node for each socket;
 * -EINVAL if that exceeds a capacity.
 */
int ebb_host_emulate(uint32_t sockets, uint32_t cores, uint32_t threads, uint32_t share_permille,
		     struct ebb_host *ret_host);

#endif /* EBB_TYPES_H */
