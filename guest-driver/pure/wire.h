/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what the device says and believes none of it before it was checked
 * against virtio_ebb.h.  Pure, as cpuset.h.  Everything returns 0, or
 * -EPROTO if the device broke the protocol, unless stated.
 */
#ifndef EBB_WIRE_H
#define EBB_WIRE_H

#include "cpuset.h"

#include <linux/ebb_ioctl.h>
#include <linux/virtio_ebb.h>

/* More than any Linux for x86 can number; a device that claims more is broken. */
#define EBB_WIRE_MAX_CPUS	8192

/* Longest that a device may take to answer, in ms. */
#define EBB_WIRE_MAX_TIMEOUT_MS	3600000

/* Mappings are made of 2 MiB, so a block of a pool that is used has at least as much. */
#define EBB_WIRE_MIN_BLOCK_BYTES	(2u << 20)

/* No virtio-mem device has smaller blocks than pages. */
#define EBB_WIRE_PAGE_BYTES		4096u

struct ebb_wire_pool {
	u64 addr;
	u64 size_bytes;
	u32 block_bytes;
	u16 pxm;
};

struct ebb_wire_config {
	u32 proto;
	u32 num_nodes;
	u32 max_cpus;
	u32 num_startup_cpus;
	u32 request_timeout_ms;
	u32 num_pools;				/* 0 without VIRTIO_EBB_F_MEM */
	bool can_lend;				/* VIRTIO_EBB_F_LEND is negotiated */
	bool has_vom;				/* VIRTIO_EBB_F_VOM is, and VIRTIO_EBB_F_MEM */
	bool can_leave;				/* VIRTIO_EBB_F_LEAVE is, and VIRTIO_EBB_F_MEM */
	bool has_baseline;			/* VIRTIO_EBB_F_BASELINE is, and VIRTIO_EBB_F_MEM */
	struct ebb_wire_pool pools[VIRTIO_EBB_MAX_NODES];
	int linux_node[VIRTIO_EBB_MAX_NODES];	/* by proximity domain; not of the device */
};

/*
 * An answer whose form is right; the CPUs in it are read with
 * ebb_wire_read_cpu(), but for the one of CPU_LEND, which is checked already.
 */
struct ebb_wire_answer {
	u16 status;
	u16 reason;
	u16 count;
	u16 lent_flags;				/* CPU_LEND with ACK: VIRTIO_EBB_CPU_F_* */
	u32 total;
};

struct ebb_wire_limit {
	u16 tier;				/* VIRTIO_EBB_TIER_* */
	u32 deadline_ms;
	u32 cpus_held;
	u32 cpus_limit;
	u32 mem_deadline_ms;			/* of memory: 0 where the pool can not be used */
	u64 mem_limit_bytes;
	u64 mem_cutoff;
};

/* Blocks of one pool. */
struct ebb_wire_range {
	u64 addr;
	u64 size_bytes;
};

struct ebb_wire_event {
	u16 type;
	u64 generation;				/* LIMITS */
	u32 vom_seq;				/* LIMITS; otherwise 0 */
	u32 mem_promise_mib;			/* LIMITS: of all nodes together; otherwise 0 */
	struct ebb_cpu_desc cpu;		/* CPU */
	u32 num_ranges;				/* MEM_REVOKED, MEM_LEAVING; otherwise 0 */
	union {
		struct ebb_wire_limit limits[VIRTIO_EBB_MAX_NODES]; /* LIMITS, by domain */
		struct ebb_wire_range ranges[VIRTIO_EBB_MAX_RANGES];
	};
};

int ebb_wire_read_pool(const struct virtio_ebb_pool *wire, struct ebb_wire_pool *ret);

/* Can the driver use it?  One with blocks that are too small is well-formed all the same. */
bool ebb_wire_is_usable_pool(const struct ebb_wire_pool *pool);

/* The whole configuration, pools included. */
int ebb_wire_check_config(const struct ebb_wire_config *cfg);

/* Index in cfg->pools of the pool of a node, or -1. */
int ebb_wire_pool_of_node(const struct ebb_wire_config *cfg, u32 pxm);

/* len: bytes that the device wrote. */
int ebb_wire_read_answer(const struct virtio_ebb_req *req, const struct virtio_ebb_resp *resp,
			 u32 len, const struct ebb_wire_config *cfg, struct ebb_wire_answer *ret);

int ebb_wire_read_cpu(const struct virtio_ebb_cpu *wire, const struct ebb_wire_config *cfg,
		      struct ebb_cpu_desc *ret);

/* A CPU granted in answer to this request; beyond ebb_wire_read_cpu(): node and flags fit it. */
int ebb_wire_check_grant(const struct virtio_ebb_req *req, const struct ebb_cpu_desc *cpu);

int ebb_wire_read_event(const struct virtio_ebb_event *event, u32 len,
			const struct ebb_wire_config *cfg, struct ebb_wire_event *ret);

/* From a program in the guest: 0 or -EINVAL. */
int ebb_wire_check_telemetry(const struct virtio_ebb_telemetry *report,
			     const struct ebb_wire_config *cfg);

/*
 * The message for a histogram of a program in the guest, but for its size and
 * flags: 0 or -EINVAL.  linux_node[] tells the node of each proximity domain;
 * ret has room for all buckets, *ret_len is how many bytes are sent.
 */
int ebb_wire_make_vom(const struct ebb_vom *arg, const int *linux_node, unsigned int num_nodes,
		      struct virtio_ebb_vom *ret, u32 *ret_len);

/* The longest of these messages. */
#define EBB_WIRE_MAX_VOM_BYTES	(sizeof(struct virtio_ebb_vom) + \
	VIRTIO_EBB_VOM_MAX_BUCKETS * sizeof(struct virtio_ebb_vom_bucket))

/* What an answer means to the caller of EBB_IOC_CPU_ADD: 0 or an error of that ioctl. */
int ebb_wire_add_errno(const struct ebb_wire_answer *answer);

/* Of MEM_CONFIRM: 0, -ENOENT (not all of it was revoked), -EAGAIN or -EIO. */
int ebb_wire_confirm_errno(const struct ebb_wire_answer *answer);

/* The host has the CPU of this CPU_REMOVE, or never knew of it. */
bool ebb_wire_is_removed(const struct ebb_wire_answer *answer);

/* Of CPU_LEND with PARK: the CPU does not rest. */
bool ebb_wire_is_running(const struct ebb_wire_answer *answer);

/* Proximity domain of a Linux node; VIRTIO_EBB_NODE_ANY if it is none of the VM's. */
u16 ebb_wire_pxm_of_node(const struct ebb_wire_config *cfg, u32 linux_node);

/*
 * Linux nodes for the proximity domains: linux_node[] comes with what ACPI
 * says, negative where it says nothing (a kernel without NUMA), and there gets
 * a number that no other has.
 */
void ebb_wire_fill_nodes(int *linux_node, unsigned int num_nodes);

#endif /* EBB_WIRE_H */
