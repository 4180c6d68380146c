/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link protocol, between a VM's virtio-ebb device (QEMU) and the host agent: a
 * byte stream (unix socket), one per VM.  Words and structures of the device's own
 * protocol are those of virtio_ebb.h, and so are the rules for fields: little-endian,
 * multiples of 8 bytes, what is not defined is reserved and sent as zero.
 *
 * The agent listens; the device connects and reconnects.  The socket's path
 * says which VM it is for.  Frames are a header and len bytes of payload.  A
 * frame with a wrong magic, proto, type, length, reserved field or content is
 * answered by closing the connection, with one log line that says what was
 * wrong.
 *
 *   device -> agent   HELLO      on connection, and whenever the agent must
 *                                look again (driver started or reset, machine
 *                                reset, a response came too late): all the VM
 *                                holds.  Idempotent.
 *                     REQUEST    a guest request that passed the device's checks
 *                     TELEMETRY  as the guest sent it; length by type and count
 *                     MEM        pools whose state changed; a level, newest counts
 *                     ACCOUNT    after the first HELLO of a connection: the last one
 *                                that an agent sent, also one of another host
 *   agent -> device   WELCOME    answer to the first HELLO of a connection;
 *                                after it the device reports AGENT_UP
 *                     RESPONSE   answer to a REQUEST
 *                     LIMITS     level; the device keeps and forwards the newest
 *                     CPU        set or clear VIRTIO_EBB_CPU_F_FORCED; hand over
 *                                a new CPU as a lent one
 *                     REVOKE     take memory from a pool, without the guest, or
 *                                have the guest unplug it at once
 *                     KEEP_ACCOUNT  counters of the VM; the device keeps the newest,
 *                                and takes it along when the VM moves to another host
 *
 * If the connection ends, the device completes what is in flight with BUSY,
 * NO_AGENT.  A RESPONSE that grants a CPU to a request that is no longer in
 * flight is not taken over: the device answers with HELLO, in which the CPU is
 * missing, and the agent unplugs it.  A vCPU that is plugged and in no HELLO
 * belongs to nobody.
 */
#ifndef _VIRTIO_EBB_LINK_H
#define _VIRTIO_EBB_LINK_H

#include <linux/types.h>
#include <linux/virtio_ebb.h>

/* Different numbers do not talk to each other. */
#define VIRTIO_EBB_LINK_PROTO		2

#define VIRTIO_EBB_LINK_MAGIC		0x4c424245u	/* "EBBL" */
#define VIRTIO_EBB_LINK_MAX_LEN		65536u		/* longest payload, bytes */

#define VIRTIO_EBB_LINK_HELLO		1
#define VIRTIO_EBB_LINK_REQUEST		2
#define VIRTIO_EBB_LINK_TELEMETRY	3
#define VIRTIO_EBB_LINK_MEM		4
#define VIRTIO_EBB_LINK_ACCOUNT		5
#define VIRTIO_EBB_LINK_WELCOME		128
#define VIRTIO_EBB_LINK_RESPONSE	129
#define VIRTIO_EBB_LINK_LIMITS		130
#define VIRTIO_EBB_LINK_CPU		131
#define VIRTIO_EBB_LINK_REVOKE		132
#define VIRTIO_EBB_LINK_KEEP_ACCOUNT	133

struct virtio_ebb_link_hdr {
	__le32 magic;			/* VIRTIO_EBB_LINK_MAGIC */
	__le16 proto;			/* VIRTIO_EBB_LINK_PROTO of the sender */
	__le16 type;			/* VIRTIO_EBB_LINK_* */
	__le32 len;			/* bytes of payload, a multiple of 8, at most VIRTIO_EBB_LINK_MAX_LEN */
	__le32 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_hdr, 16);

/* A CPU as device and agent name it. */
struct virtio_ebb_link_cpu {
	struct virtio_ebb_cpu cpu;	/* from the agent only flags is set, the rest is 0 */
	__le32 vcpu;			/* index of the vCPU: libvirt's vcpu id, QEMU's cpu-index */
	__le32 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_cpu, 24);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_link_cpu, vcpu, 16);

/* virtio_ebb_link_hello.flags */
#define VIRTIO_EBB_HELLO_F_DRIVER	(1u << 0) /* a guest driver is running (DRIVER_OK) */
#define VIRTIO_EBB_HELLO_F_LEND		(1u << 1) /* with DRIVER: it negotiated VIRTIO_EBB_F_LEND */
#define VIRTIO_EBB_HELLO_F_VOM		(1u << 2) /* with DRIVER: it negotiated VIRTIO_EBB_F_VOM */
#define VIRTIO_EBB_HELLO_F_LEAVE	(1u << 3) /* with DRIVER: it negotiated VIRTIO_EBB_F_LEAVE */
#define VIRTIO_EBB_HELLO_F_BASELINE	(1u << 4) /* with DRIVER: it negotiated VIRTIO_EBB_F_BASELINE */
#define VIRTIO_EBB_HELLO_F_ACCOUNT	(1u << 5) /* the device takes KEEP_ACCOUNT */

/* A pool as the device reports it to the agent. */
struct virtio_ebb_link_pool {
	__le16 node;			/* guest proximity domain */
	__le16 reserved;
	__le32 block_bytes;		/* constant */
	__le64 size_bytes;		/* constant: most that can be plugged */
	__le64 requested_bytes;		/* the virtio-mem device's requested_size */
	__le64 held_bytes;		/* plugged by the guest */
	__le64 unconfirmed_bytes;	/* revoked, and not confirmed by the guest; not part of held */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_pool, 40);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_link_pool, held_bytes, 24);

/*
 * Payload of HELLO; followed by num_cpus struct virtio_ebb_link_cpu and
 * num_pools struct virtio_ebb_link_pool.
 */
struct virtio_ebb_link_hello {
	__u8 uuid[16];			/* of the VM, RFC 4122 byte order; all 0 if it has none */
	__le32 flags;			/* VIRTIO_EBB_HELLO_F_* */
	__le32 max_cpus;		/* as in struct virtio_ebb_config */
	__le32 num_cpus;		/* entries that follow: startup set and granted CPUs */
	__le16 num_nodes;		/* as in struct virtio_ebb_config */
	__le16 num_pools;		/* as in struct virtio_ebb_config */
	__le64 generation;		/* of the last LIMITS that the device knows, or 0 */
	__le64 resets;			/* times the device was reset since QEMU started; a new number
					 * means that what the guest held before is held by nobody */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_hello, 48);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_link_hello, num_cpus, 24);
VIRTIO_EBB_ASSERT_OFFSET(struct virtio_ebb_link_hello, generation, 32);

/* Payload of REQUEST. */
struct virtio_ebb_link_request {
	struct virtio_ebb_req req;	/* verbatim, CPU_*; tag replaced by the device's own */
	struct virtio_ebb_link_cpu cpu;	/* CPU_REMOVE, CPU_LEND: the CPU that hv_cpu_id names; otherwise 0 */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_request, 72);

/* Payload of WELCOME. */
struct virtio_ebb_link_welcome {
	__le32 status;			/* VIRTIO_EBB_ACK, or NACK: the agent will close, see reason */
	__le32 reason;			/* VIRTIO_EBB_REASON_* */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_welcome, 8);

/*
 * Payload of RESPONSE; followed by count struct virtio_ebb_link_cpu.  A CPU that
 * is granted may be one that is lent: then the grant ends that.
 */
struct virtio_ebb_link_response {
	__le64 tag;			/* of the REQUEST */
	__le16 type;			/* of the REQUEST */
	__le16 status;			/* ACK, NACK or BUSY */
	__le16 reason;			/* VIRTIO_EBB_REASON_* */
	__le16 count;			/* CPU_ADD with ACK: 1 to VIRTIO_EBB_MAX_REQ_CPUS; otherwise 0 */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_response, 16);

/* Payload of LIMITS; followed by num_nodes struct virtio_ebb_limit. */
struct virtio_ebb_link_limits {
	__le64 generation;		/* larger than any before from this agent and than HELLO's */
	__le32 num_nodes;		/* 1 to VIRTIO_EBB_MAX_NODES, every node of the VM once */
	__le32 vom_seq;			/* as in struct virtio_ebb_event; a driver without
					 * VIRTIO_EBB_F_VOM hears of neither it nor mem_cutoff */
	/* In the nodes that follow, mem_promise_mib is 0 without VIRTIO_EBB_HELLO_F_BASELINE. */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_limits, 16);

/* Payload of CPU. */
struct virtio_ebb_link_cpu_flags {
	__le32 vcpu;			/* FORCED, 0: a granted vCPU; LENT: a plugged one that is not granted.
					 * Others are ignored (they raced with a removal or a grant) */
	__le32 flags;			/* 0, VIRTIO_EBB_CPU_F_FORCED or VIRTIO_EBB_CPU_F_LENT; the rest stays */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_cpu_flags, 8);

/* Payload of MEM; followed by num_pools struct virtio_ebb_link_pool, every pool of the VM. */
struct virtio_ebb_link_mem {
	__le32 num_pools;
	__le32 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_mem, 8);

/* virtio_ebb_link_revoke.flags */
#define VIRTIO_EBB_REVOKE_F_LEAVE	(1u << 0) /* ask the guest; with VIRTIO_EBB_HELLO_F_LEAVE only */

/*
 * Payload of REVOKE.  A goal: the device unplugs blocks of the pool, the
 * highest addresses first, until no more than target_bytes are plugged; with
 * less plugged it does nothing.  It does not touch requested_size, which LIMITS
 * has lowered before.  It works in steps, in between which the VM runs, and
 * refuses to plug blocks of the pool until it is done; a later REVOKE of the
 * pool has a new goal, and the end of the connection ends it.  MEM tells the
 * result, also if nothing had to be done; it may tell of steps before that.
 * With LEAVE it takes nothing: it lists the same blocks as leaving (in place of
 * those it had listed before), and the guest unplugs them.  The agent sends a
 * REVOKE without LEAVE at the deadline if that has not happened by then.
 */
struct virtio_ebb_link_revoke {
	__le16 node;			/* guest proximity domain, with a pool */
	__le16 flags;			/* VIRTIO_EBB_REVOKE_F_* */
	__le32 reserved;
	__le64 target_bytes;		/* a multiple of the pool's block size */
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_revoke, 16);

/* Of one promise to the VM: struct ebb_ledger of the agent says what each counter means. */
struct virtio_ebb_link_ledger {
	__le64 metered_usec;
	__le64 wanted;
	__le64 promised;
	__le64 got;
	__le64 violated;
	__le64 unclear;
	__le64 num_intervals;
	__le64 num_violations;
	__le64 num_unclear;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_ledger, 72);

/*
 * Payload of ACCOUNT and KEEP_ACCOUNT, the latter with VIRTIO_EBB_HELLO_F_ACCOUNT only: what the VM has
 * held and got since it was started, on whatever host.  The device does not look into it.
 */
struct virtio_ebb_link_account {
	__le64 writer;			/* which agent wrote it; not 0 */
	__le64 age_usec;		/* the time for which the next four were counted */
	__le64 core_usec[2];		/* cores held: reserved, spot */
	__le64 mib_usec[2];		/* MiB of pools held: reserved, spot */
	struct virtio_ebb_link_ledger cpu;
	struct virtio_ebb_link_ledger mem;
};
VIRTIO_EBB_ASSERT_SIZE(struct virtio_ebb_link_account, 192);

/*
 * Changes
 *   proto 2   limits with vom_seq and mem_cutoff.  A device that offers the guest
 *             VIRTIO_EBB_F_LEAVE needs an agent that knows VIRTIO_EBB_HELLO_F_LEAVE;
 *             the same for VIRTIO_EBB_F_BASELINE.
 *             A device that says VIRTIO_EBB_HELLO_F_ACCOUNT needs an agent that knows it.
 */
#endif /* _VIRTIO_EBB_LINK_H */
