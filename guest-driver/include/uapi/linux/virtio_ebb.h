/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio-ebb: a virtio control device through which a guest asks its host for
 * CPUs (and, with VIRTIO_EBB_F_MEM, memory), and the host tells the guest how
 * much it may hold.  This file defines the protocol between the guest driver and
 * the device (QEMU).
 *
 * Model
 * -----
 * The host publishes, for each NUMA node of the guest, how many CPUs the guest
 * may hold (the limit).  It counts every CPU, those of the startup set
 * included.  held < limit is an offer, held > limit is a demand and carries a
 * deadline.  The limits are a level, not a sequence of deltas: the newest ones
 * replace all older ones, and losing or repeating an event changes nothing.
 * The guest walks towards the limits with CPU_ADD and CPU_REMOVE requests.
 * When a deadline passes the host takes the physical core away on its own
 * (VIRTIO_EBB_CPU_F_FORCED): the virtual CPU then keeps running, more slowly,
 * on the cores of the startup set until the guest removes it.
 *
 * This expresses the hotplug, hotunplug and poll operations of "A system
 * design for elastically scaling transaction processing engines in virtualized
 * servers" (PVLDB 13(12), figure 2).
 *
 * Identity
 * --------
 * The device draws a random hv_cpu_id for every CPU that it grants; it is
 * opaque, never 0, and valid until the CPU was removed.  The CPUs of the
 * startup set have an hv_cpu_id too, so that every CPU can be named, but they
 * can not be removed.  arch_id is how the guest finds the CPU: on x86 the APIC
 * id, as in the guest's ACPI tables.  Nodes are guest proximity domains,
 * 0 to num_nodes - 1; the guest learns nothing of the host's topology.
 *
 * Rules for both sides
 * --------------------
 * All fields are little-endian.  Every structure is a multiple of 8 bytes.
 * Fields and bits that are not defined here are "reserved": they are sent as
 * zero, and a receiver answers a message in which one of them is set with
 * VIRTIO_EBB_ERROR; it never ignores them.  A buffer of the wrong size or direction, or a chain longer than two
 * descriptors, is a violation of the virtio contract: the device stops
 * (DEVICE_NEEDS_RESET) and loses nothing that the guest holds.
 *
 * Memory (VIRTIO_EBB_F_MEM)
 * -------------------------
 * Memory moves through stock virtio-mem devices, at most one for each node,
 * which the control device lists as its pools (struct virtio_ebb_pool).  The
 * driver claims a virtio-mem device whose region is listed here; all others are
 * none of its business.  The limit of a node counts bytes plugged into its
 * pool, not the memory that the VM booted with.  The device keeps the
 * requested_size of each pool at the node's limit, so the guest plugs blocks up
 * to the limit and unplugs any block by virtio-mem's own requests, and no agent
 * is asked.  When the deadline of a demand passes, the host takes blocks on its
 * own (revokes them): they are unplugged and their content is gone at once,
 * whatever the guest does.  The device then lists them in MEM_REVOKED events
 * until the guest has confirmed with MEM_CONFIRM that it uses them no more.
 * A revoked block may be plugged again only after that.
 *
 * Leaving (VIRTIO_EBB_F_LEAVE, with VIRTIO_EBB_F_MEM only)
 * --------------------------------------------------------
 * What reads a block that was revoked, a transfer to a disk among it, reads
 * zeroes until the guest hears of it.  So the host first asks for the same
 * blocks, shortly before the deadline: the device lists them in MEM_LEAVING
 * events, and they stay plugged, with their content.  The guest stops using
 * them, waits for what still does, and unplugs them by virtio-mem's own
 * requests.  What is still plugged at the deadline is revoked.  A block that is
 * listed may not be plugged again until none of those listed is plugged, or the
 * host has revoked.
 *
 * Lending and parking (VIRTIO_EBB_F_LEND)
 * ---------------------------------------
 * A CPU that the guest does not need now need not be unplugged.  With CPU_LEND
 * the guest says that it has stopped using a CPU: the host gives its core to
 * somebody else, and the CPU stays plugged and, in the guest, online and idle
 * (VIRTIO_EBB_CPU_F_LENT).  It is not held any more; what runs on it all the
 * same shares the cores of the startup set.  With VIRTIO_EBB_LEND_F_PARK the
 * guest has taken the CPU offline before, and the device holds the CPU back
 * from running at all (VIRTIO_EBB_CPU_F_PARKED): trying to bring it up fails in
 * the guest and does no other harm.  CPU_ADD gives CPUs that are lent first,
 * under the hv_cpu_id that they have; a parked one may be brought up from the
 * moment in which the request completes.  The host may also hand over new CPUs
 * as lent ones, unasked (an event): then nothing has to be plugged when the
 * guest needs them.
 * How CPUs are given back is the guest's choice; virtio_ebb_limit.tier says
 * what suits the host best.
 *
 * The value of memory (VIRTIO_EBB_F_VOM, with VIRTIO_EBB_F_MEM only)
 * ------------------------------------------------------------------
 * Not all memory is worth the same to who holds it.  The value of memory (VoM)
 * of an object in it is the time that it saves, per access, that it is there,
 * times how often it is accessed; per MiB of the object.  The unit is ns of time
 * saved per second and MiB.  A host that has to take memory from several guests
 * wants to take what is worth least: it asks for a histogram by value
 * (struct virtio_ebb_vom) of what the guest holds.  The ask is a level in the
 * limits: vom_seq is a number, and the guest sends one histogram for each number
 * that is neither 0 nor the one that it answered last; numbers that passed
 * meanwhile are not asked for any more, and they need not rise (the agent may be
 * another one).  virtio_ebb_limit.mem_cutoff tells what the host made of it.
 * Source: "Flexible resource allocation for relational database-as-a-service".
 *
 * Memory that is promised (VIRTIO_EBB_F_BASELINE, with VIRTIO_EBB_F_MEM only)
 * ---------------------------------------------------------------------------
 * The host may promise a guest's database the hit ratio that it would have with a
 * dedicated cache of M MiB, however much memory it really holds.  M is the sum of
 * virtio_ebb_limit.mem_promise_mib of all nodes, a level as the limits are; 0:
 * nothing is promised.  The database simulates that cache beside its real one, and
 * the telemetry compares the two: baseline_ios counts the reads of records or pages
 * from disk that the simulated cache would have needed, actual_ios those that were
 * made, and baseline_mib is the size of the simulated cache now.  Relative IO of an interval is
 * (actual - baseline) / baseline; the promise is that it is not above 0.
 * Source: "SQLVM: Performance Isolation in Multi-Tenant Relational
 * Database-as-a-Service", section 2.3.
 *
 * Virtqueues
 * ----------
 * VIRTIO_EBB_VQ_REQUEST   one device-readable struct virtio_ebb_req followed by
 *                         one device-writable struct virtio_ebb_resp.  Requests
 *                         may complete in any order; the driver matches them by
 *                         buffer or tag.  Up to VIRTIO_EBB_MAX_INFLIGHT are
 *                         worked on; more stay in the queue.  The device takes
 *                         requests from the queue no faster than its rate limit.
 *                         Each is completed within config.request_timeout_ms.
 * VIRTIO_EBB_VQ_EVENT     device-writable buffers of struct virtio_ebb_event,
 *                         posted by the driver.  With no buffer posted, the
 *                         device keeps what it has to say (for limits: the
 *                         newest only) until there is one.
 * VIRTIO_EBB_VQ_TELEMETRY one device-readable struct virtio_ebb_telemetry, or,
 *                         with VIRTIO_EBB_F_VOM, struct virtio_ebb_vom with its
 *                         buckets.  It is advice: the device may drop it, and
 *                         does so with histograms within
 *                         VIRTIO_EBB_VOM_INTERVAL_MS after another.
 *
 * Life cycle
 * ----------
 * After DRIVER_OK the driver reads the CPUs that the VM holds with
 * VIRTIO_EBB_REQ_STATE, and the device sends the current limits as an event.
 * A reset of the device drops all requests without completing them and leaves
 * everything that the VM holds as it is; the host may force the hotplugged
 * CPUs at once, since nobody in the guest answers for them any more.  A driver
 * that finds hotplugged CPUs in VIRTIO_EBB_REQ_STATE on start removes them: no
 * process of this boot holds them; with VIRTIO_EBB_F_LEND it may lend them
 * instead.  A reset of the machine does the same, and ends parking: CPUs that
 * were parked are lent from then on.
 * On migration the device takes its CPU table, parked CPUs among it, and the last
 * limits along; requests in flight are completed with VIRTIO_EBB_BUSY on the destination.
 * While no agent is connected, CPU_ADD, CPU_REMOVE and CPU_LEND are answered
 * with VIRTIO_EBB_BUSY, VIRTIO_EBB_REASON_NO_AGENT, and nothing is taken away.
 */
#ifndef _LINUX_VIRTIO_EBB_H
#define _LINUX_VIRTIO_EBB_H

#include <linux/types.h>

#if defined(__cplusplus)
#define VIRTIO_EBB_ASSERT(expr, msg)	static_assert(expr, msg)
#else
#define VIRTIO_EBB_ASSERT(expr, msg)	_Static_assert(expr, msg)
#endif
#define VIRTIO_EBB_ASSERT_SIZE(type, size) \
	VIRTIO_EBB_ASSERT(sizeof(type) == (size), "size of " #type)
#define VIRTIO_EBB_ASSERT_OFFSET(type, field, offset) \
	VIRTIO_EBB_ASSERT(__builtin_offsetof(type, field) == (offset), \
			  "offset of " #type "." #field)

/* Virtio device id; PCI 1af4:107f.  VIRTIO_F_VERSION_1 is required. */
#define VIRTIO_ID_EBB			63

/*
 * Different numbers do not talk to each other.  What can be added without a new
 * one has a feature bit.
 */
#define VIRTIO_EBB_PROTO		2

/* Feature bits.  A bit that is not negotiated keeps its fields reserved. */
#define VIRTIO_EBB_F_MEM		0	/* memory limits and requests */
#define VIRTIO_EBB_F_LEND		1	/* CPUs that are lent or parked */
#define VIRTIO_EBB_F_VOM		2	/* the value of memory; needs VIRTIO_EBB_F_MEM */
#define VIRTIO_EBB_F_LEAVE		3	/* blocks to unplug at once; needs VIRTIO_EBB_F_MEM */
#define VIRTIO_EBB_F_BASELINE		4	/* memory that is promised; needs VIRTIO_EBB_F_MEM */

#define VIRTIO_EBB_VQ_REQUEST		0
#define VIRTIO_EBB_VQ_EVENT		1
#define VIRTIO_EBB_VQ_TELEMETRY		2

#define VIRTIO_EBB_MAX_NODES		16	/* NUMA nodes of a guest */
#define VIRTIO_EBB_MAX_REQ_CPUS		32	/* CPUs in one request or response */
#define VIRTIO_EBB_MAX_INFLIGHT		32	/* requests that the device works on */

/* virtio_ebb_config.status */
#define VIRTIO_EBB_S_AGENT_UP		(1u << 0) /* an agent is connected and agreed on the protocol */

/* A virtio-mem device that serves as the pool of a node. */
struct virtio_ebb_pool {
	__le64 addr;			/* virtio_mem_config.addr: start of its region */
	__le64 size_bytes;		/* virtio_mem_config.region_size */
	__le32 block_bytes;		/* virtio_mem_config.block_size */
	__le16 node;			/* guest proximity domain; no two pools have the same */
	__le16 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_pool, 24);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_pool, block_bytes, 16);

struct virtio_ebb_config {
	__le16 proto;			/* VIRTIO_EBB_PROTO of the device; constant */
	__le16 num_nodes;		/* 1 to VIRTIO_EBB_MAX_NODES; constant */
	__le32 status;			/* VIRTIO_EBB_S_*; changes, with a config interrupt */
	__le32 max_cpus;		/* most CPUs the VM can ever have; constant */
	__le32 num_startup_cpus;	/* CPUs of the startup set, 1 or more; constant */
	__le32 request_timeout_ms;	/* the device answers every request within; constant */
	__le32 num_pools;		/* valid entries in pools[]; 0 without VIRTIO_EBB_F_MEM; constant */
	struct virtio_ebb_pool pools[VIRTIO_EBB_MAX_NODES]; /* constant */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_config, 408);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_config, status, 4);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_config, max_cpus, 8);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_config, request_timeout_ms, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_config, pools, 24);

/*
 * Requests, guest to host.  Numbers 4 to 15 are for memory
 * (VIRTIO_EBB_F_MEM), 16 to 31 for lending and parking (VIRTIO_EBB_F_LEND).
 */
#define VIRTIO_EBB_REQ_CPU_ADD		1	/* answered by the agent */
#define VIRTIO_EBB_REQ_CPU_REMOVE	2	/* answered by the agent */
#define VIRTIO_EBB_REQ_STATE		3	/* answered by the device, with or without an agent */
#define VIRTIO_EBB_REQ_MEM_CONFIRM	4	/* answered by the device, with or without an agent */
#define VIRTIO_EBB_REQ_CPU_LEND		16	/* answered by the agent */

/* virtio_ebb_req.flags for CPU_ADD */
#define VIRTIO_EBB_ADD_F_ALLOW_HT	(1u << 0) /* hardware threads whose sibling is in use will do */

/* virtio_ebb_req_cpu_add.node: any node, the agent chooses */
#define VIRTIO_EBB_NODE_ANY		0xffff

struct virtio_ebb_req_cpu_add {
	__le16 count;			/* 1 to VIRTIO_EBB_MAX_REQ_CPUS; fewer may be granted */
	__le16 node;			/* 0 to num_nodes - 1, or VIRTIO_EBB_NODE_ANY */
	__le32 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_req_cpu_add, 8);

/*
 * The guest has already stopped using the CPU (it is offline); the host ejects
 * it, and the CPU's core is free when the answer arrives.
 */
struct virtio_ebb_req_cpu_remove {
	__le64 hv_cpu_id;		/* as granted */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_req_cpu_remove, 8);

/* All CPUs of the VM, startup set first, in pieces of VIRTIO_EBB_MAX_REQ_CPUS. */
struct virtio_ebb_req_state {
	__le32 start;			/* index of the first CPU to list */
	__le32 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_req_state, 8);

/* Blocks of a pool: both fields are multiples of its block size, inside its region. */
struct virtio_ebb_range {
	__le64 addr;			/* guest physical */
	__le64 size_bytes;		/* not 0 */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_range, 16);

/*
 * The guest has stopped using revoked blocks.  The device discards them once
 * more, since the guest may have written to them after they were revoked.
 * It answers when all are discarded, perhaps after requests that came later.
 * NACK, NOT_HELD: not all of them are revoked and unconfirmed; nothing changed.
 * BUSY, IN_PROGRESS: an earlier request confirms some of them.
 * ERROR, RANGE: not blocks of one pool.
 */
struct virtio_ebb_req_mem_confirm {
	struct virtio_ebb_range range;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_req_mem_confirm, 16);

/* virtio_ebb_req.flags for CPU_LEND */
#define VIRTIO_EBB_LEND_F_PARK		(1u << 0) /* the CPU is offline in the guest: park it */

/*
 * The guest uses a granted CPU no more, and keeps it.  ACK: it has no core any
 * more; the answer has the CPU with its new flags.  If it was to be parked and
 * runs again by then, it is lent only (PARKED is not set).  Lending a CPU that
 * is lent changes nothing, or parks it.  One that is parked can not be lent
 * without: CPU_ADD ends that.
 * NACK, NOT_HELD, STARTUP: as for CPU_REMOVE.  NACK, RUNNING: it was to be
 * parked and is not halted, or it is parked and would not be; nothing changed.
 */
struct virtio_ebb_req_cpu_lend {
	__le64 hv_cpu_id;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_req_cpu_lend, 8);

struct virtio_ebb_req {
	__le16 type;			/* VIRTIO_EBB_REQ_* */
	__le16 flags;			/* by type; 0 where none is defined */
	__le32 reserved;
	__le64 tag;			/* chosen by the driver, echoed; unique among those in flight */
	union {
		struct virtio_ebb_req_cpu_add cpu_add;
		struct virtio_ebb_req_cpu_remove cpu_remove;
		struct virtio_ebb_req_state state;
		struct virtio_ebb_req_mem_confirm mem_confirm;
		struct virtio_ebb_req_cpu_lend cpu_lend;
		__le64 words[4];	/* what the type does not use is reserved */
	} u;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_req, 48);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_req, tag, 8);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_req, u, 16);

/* virtio_ebb_resp.status */
#define VIRTIO_EBB_ACK			0	/* done; for CPU_ADD perhaps with fewer CPUs than asked */
#define VIRTIO_EBB_NACK			1	/* well-formed, and refused: see reason */
#define VIRTIO_EBB_BUSY			2	/* not now; the same request may succeed later: see reason */
#define VIRTIO_EBB_ERROR		3	/* malformed request: see reason */

/* virtio_ebb_resp.reason; also the reasons in the agent's log and in ebbctl */
#define VIRTIO_EBB_REASON_NONE		0	/* with ACK */
#define VIRTIO_EBB_REASON_LIMIT		1	/* NACK: more than the limit of the node(s) allows now */
#define VIRTIO_EBB_REASON_CEILING	2	/* NACK: more than the VM may ever have there */
#define VIRTIO_EBB_REASON_NODE		3	/* NACK: the VM has no such node */
#define VIRTIO_EBB_REASON_NOT_HELD	4	/* NACK: the VM holds no such CPU */
#define VIRTIO_EBB_REASON_STARTUP	5	/* NACK: the CPU belongs to the startup set */
#define VIRTIO_EBB_REASON_HOST		6	/* NACK: the host tried and failed; its log says why */
#define VIRTIO_EBB_REASON_CAPACITY	7	/* BUSY: within the limit, but no core is free yet */
#define VIRTIO_EBB_REASON_NO_AGENT	8	/* BUSY: no agent is connected */
#define VIRTIO_EBB_REASON_TIMEOUT	9	/* BUSY: the agent did not answer in time */
#define VIRTIO_EBB_REASON_IN_PROGRESS	10	/* BUSY: the same CPU or memory is worked on */
#define VIRTIO_EBB_REASON_MIGRATED	11	/* BUSY: the VM moved while the request was in flight */
#define VIRTIO_EBB_REASON_TYPE		12	/* ERROR: unknown request type */
#define VIRTIO_EBB_REASON_FLAGS		13	/* ERROR: unknown flag */
#define VIRTIO_EBB_REASON_RESERVED	14	/* ERROR: a reserved field is not zero */
#define VIRTIO_EBB_REASON_RANGE		15	/* ERROR: count, start or address out of range */
#define VIRTIO_EBB_REASON_TAG		16	/* ERROR: a request with this tag is in flight */
#define VIRTIO_EBB_REASON_RUNNING	17	/* NACK: to be parked and not halted, or to be lent and parked */
#define VIRTIO_EBB_REASON_MAX		18	/* one past the last */

/* virtio_ebb_cpu.flags */
#define VIRTIO_EBB_CPU_F_STARTUP	(1u << 0) /* of the startup set; can not be removed */
#define VIRTIO_EBB_CPU_F_HT		(1u << 1) /* shares its core with another thread in use */
#define VIRTIO_EBB_CPU_F_FORCED		(1u << 2) /* the host took its core away; remove it */
#define VIRTIO_EBB_CPU_F_LENT		(1u << 3) /* without a core, and not held: see CPU_LEND */
#define VIRTIO_EBB_CPU_F_PARKED		(1u << 4) /* with LENT: can not be brought up */
#define VIRTIO_EBB_CPU_F_ALL		31u	/* LENT and PARKED with VIRTIO_EBB_F_LEND only */

/* virtio_ebb_limit.tier: how the host would like CPUs to be given back; advice */
#define VIRTIO_EBB_TIER_ANY		0	/* it has no wish */
#define VIRTIO_EBB_TIER_LEND		1
#define VIRTIO_EBB_TIER_PARK		2
#define VIRTIO_EBB_TIER_UNPLUG		3	/* CPU_REMOVE */
#define VIRTIO_EBB_TIER_MAX		4	/* one past the last */

struct virtio_ebb_cpu {
	__le64 hv_cpu_id;		/* opaque, never 0 */
	__le32 arch_id;			/* x86: APIC id */
	__le16 node;			/* guest proximity domain */
	__le16 flags;			/* VIRTIO_EBB_CPU_F_* */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_cpu, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_cpu, arch_id, 8);

struct virtio_ebb_resp {
	__le64 tag;			/* of the request */
	__le16 type;			/* of the request */
	__le16 status;			/* VIRTIO_EBB_ACK, NACK, BUSY or ERROR */
	__le16 reason;			/* VIRTIO_EBB_REASON_* */
	__le16 count;			/* valid entries in cpus[] */
	__le32 total;			/* STATE: all CPUs of the VM; otherwise 0 */
	__le32 reserved;
	struct virtio_ebb_cpu cpus[VIRTIO_EBB_MAX_REQ_CPUS]; /* ADD: granted; LEND: it; STATE: from start on */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_resp, 536);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_resp, total, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_resp, cpus, 24);

/*
 * Events, host to guest.  Numbers 3 to 15 are for memory.
 */
#define VIRTIO_EBB_EVENT_LIMITS		1	/* nodes[] are the limits from now on */
/*
 * The flags of one CPU changed (FORCED set or cleared); or the guest has a new
 * CPU that is lent (LENT, with VIRTIO_EBB_F_LEND).  The device tells of each new
 * one that STATE did not list when it was last read to its end.
 */
#define VIRTIO_EBB_EVENT_CPU		2
/*
 * ranges[] are revoked and not confirmed yet, by rising address; if there are
 * more, they follow when these are confirmed.  A level, as the limits are.
 */
#define VIRTIO_EBB_EVENT_MEM_REVOKED	3
/*
 * With VIRTIO_EBB_F_LEAVE: ranges[] are to be unplugged at once, by rising address;
 * if there are more, they follow when some of these are unplugged.  A level.
 */
#define VIRTIO_EBB_EVENT_MEM_LEAVING	4

#define VIRTIO_EBB_MAX_RANGES		48	/* in one event */

struct virtio_ebb_limit {
	__le16 node;			/* guest proximity domain */
	__le16 tier;			/* VIRTIO_EBB_TIER_*; 0 without VIRTIO_EBB_F_LEND */
	__le32 deadline_ms;		/* time left to meet a demand for CPUs on this node; 0: no demand */
	__le32 cpus_held;		/* as the host counts, startup set included, forced and lent ones not */
	__le32 cpus_limit;		/* most CPUs the VM may hold here, startup set included */
	__le64 mem_held_bytes;		/* plugged in the node's pool; 0 without VIRTIO_EBB_F_MEM */
	__le64 mem_limit_bytes;		/* a multiple of the pool's block size; 0 without a pool */
	__le32 mem_deadline_ms;		/* time left to meet a demand for memory; 0: no demand */
	__le32 mem_promise_mib;		/* part of the dedicated cache that is promised, see above; the
					 * parts of all nodes together fit 32 bits; 0: none, or without
					 * VIRTIO_EBB_F_BASELINE, or without a pool */
	/*
	 * The VoM cut-off, in ns of time saved per second and MiB: what the guest holds of this
	 * node's pool and is worth less goes first to meet a demand.  0: none, or without
	 * VIRTIO_EBB_F_VOM, or without a pool.
	 */
	__le64 mem_cutoff;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_limit, 48);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_limit, cpus_held, 8);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_limit, mem_held_bytes, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_limit, mem_deadline_ms, 32);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_limit, mem_promise_mib, 36);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_limit, mem_cutoff, 40);

struct virtio_ebb_event {
	__le16 type;			/* VIRTIO_EBB_EVENT_* */
	__le16 num_nodes;		/* LIMITS: valid entries in nodes[]; otherwise 0 */
	__le32 num_ranges;		/* MEM_REVOKED, MEM_LEAVING: valid entries in ranges[]; otherwise 0 */
	__le64 generation;		/* LIMITS: grows with every change; otherwise 0 */
	struct virtio_ebb_cpu cpu;	/* CPU: the CPU with its new flags; otherwise 0 */
	__le32 vom_seq;			/* LIMITS, with VIRTIO_EBB_F_VOM: the histogram that the host
					 * wants, 0: none yet; otherwise 0 */
	__le32 reserved;
	union {				/* what the type does not use is reserved */
		struct virtio_ebb_limit nodes[VIRTIO_EBB_MAX_NODES];
		struct virtio_ebb_range ranges[VIRTIO_EBB_MAX_RANGES];
	};
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_event, 808);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_event, generation, 8);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_event, cpu, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_event, vom_seq, 32);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_event, nodes, 40);

/*
 * What the guest says of itself.  Counters count from the start of the
 * sender and never decrease, unless the sender restarts.  The host believes
 * none of it where it matters for others.
 */
#define VIRTIO_EBB_TELEMETRY_TOTALS	1	/* struct virtio_ebb_telemetry */
#define VIRTIO_EBB_TELEMETRY_VOM	2	/* struct virtio_ebb_vom, with VIRTIO_EBB_F_VOM only */

struct virtio_ebb_telemetry {
	__le16 type;			/* VIRTIO_EBB_TELEMETRY_TOTALS */
	__le16 num_apps;		/* applications summed up here */
	__le32 interval_ms;		/* what the latencies below cover */
	__le64 committed;		/* transactions, counter */
	__le64 aborted;			/* attempts undone and retried, counter */
	__le64 failed;			/* transactions given up, counter */
	__le64 accesses;		/* record accesses, counter */
	__le32 p50_us;			/* latency of transactions in the interval */
	__le32 p95_us;
	__le32 p99_us;
	__le32 workers;			/* threads that run transactions now */
	__le32 cpus_online;		/* CPUs online in the guest */
	__le32 cpu_permille;		/* CPU time used in the interval; 1000 is one CPU */
	__le64 mem_total_bytes;
	__le64 mem_available_bytes;
	/* With VIRTIO_EBB_F_BASELINE; otherwise 0. */
	__le64 baseline_ios;		/* reads from disk that the simulated cache needed, counter */
	__le64 actual_ios;		/* reads from disk that were made, counter */
	__le32 baseline_mib;		/* size of the simulated cache; 0: there is none */
	__le32 reserved2;
	__le64 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_telemetry, 112);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_telemetry, committed, 8);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_telemetry, p50_us, 40);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_telemetry, mem_total_bytes, 64);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_telemetry, baseline_ios, 80);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_telemetry, baseline_mib, 96);

#define VIRTIO_EBB_VOM_MAX_BUCKETS	512	/* in one histogram, of all nodes together */
#define VIRTIO_EBB_VOM_INTERVAL_MS	1000	/* the device takes no more than one in this time */

/* Memory of one node whose value is above that of the bucket before, and not above value. */
struct virtio_ebb_vom_bucket {
	__le64 value;			/* ns of time saved per second and MiB; 0: unused */
	__le32 kib;			/* how much of it the guest holds, 1 or more */
	__le16 node;			/* guest proximity domain */
	__le16 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_vom_bucket, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_vom_bucket, kib, 8);

/*
 * What the memory that the guest holds of its pools is worth to it.  Followed by
 * num_buckets buckets and nothing else: nodes rise, and within a node values do.
 */
struct virtio_ebb_vom {
	__le16 type;			/* VIRTIO_EBB_TELEMETRY_VOM */
	__le16 num_buckets;		/* 0 to VIRTIO_EBB_VOM_MAX_BUCKETS */
	__le32 seq;			/* the vom_seq that this answers */
	__le64 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_vom, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_vom, seq, 4);

/*
 * Changes
 *   proto 1   CPUs by plug and unplug; with VIRTIO_EBB_F_MEM memory by pools;
 *             with VIRTIO_EBB_F_LEND CPUs that stay plugged while they are lent.
 *   proto 2   longer limits and events: with VIRTIO_EBB_F_VOM the value of memory;
 *             with VIRTIO_EBB_F_LEAVE blocks that the guest unplugs before they are
 *             revoked; with VIRTIO_EBB_F_BASELINE memory that is promised.
 */
#endif /* _LINUX_VIRTIO_EBB_H */
