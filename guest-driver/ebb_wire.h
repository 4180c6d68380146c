/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what the device says and believes none of it before it was checked
 * against virtio_ebb.h.  Pure, as ebb_cpuset.h.  Everything returns 0, or
 * -EPROTO if the device broke the protocol, unless stated.
 */
#ifndef EBB_WIRE_H
#define EBB_WIRE_H

#include "ebb_cpuset.h"

#include <linux/virtio_ebb.h>

/* More than any Linux for x86 can number; a device that claims more is broken. */
#define EBB_WIRE_MAX_CPUS	8192

/* Longest that a device may take to answer, in ms. */
#define EBB_WIRE_MAX_TIMEOUT_MS	3600000

struct ebb_wire_config {
	u32 proto;
	u32 num_nodes;
	u32 max_cpus;
	u32 num_startup_cpus;
	u32 request_timeout_ms;
};

/* An answer whose form is right; the CPUs in it are read with ebb_wire_read_cpu(). */
struct ebb_wire_answer {
	u16 status;
	u16 reason;
	u16 count;
	u32 total;
};

struct ebb_wire_limit {
	u32 deadline_ms;
	u32 cpus_held;
	u32 cpus_limit;
};

struct ebb_wire_event {
	u16 type;
	u64 generation;				/* LIMITS */
	struct ebb_cpu_desc cpu;		/* CPU */
	struct ebb_wire_limit limits[VIRTIO_EBB_MAX_NODES]; /* LIMITS, by proximity domain */
};

int ebb_wire_check_config(const struct ebb_wire_config *cfg);

/* len: bytes that the device wrote. */
int ebb_wire_read_answer(const struct virtio_ebb_req *req, const struct virtio_ebb_resp *resp,
			 u32 len, struct ebb_wire_answer *ret);

int ebb_wire_read_cpu(const struct virtio_ebb_cpu *wire, const struct ebb_wire_config *cfg,
		      struct ebb_cpu_desc *ret);

/* A CPU granted in answer to this request; beyond ebb_wire_read_cpu(): node and flags fit it. */
int ebb_wire_check_grant(const struct virtio_ebb_req *req, const struct ebb_cpu_desc *cpu);

int ebb_wire_read_event(const struct virtio_ebb_event *event, u32 len,
			const struct ebb_wire_config *cfg, struct ebb_wire_event *ret);

/* From a program in the guest: 0 or -EINVAL. */
int ebb_wire_check_telemetry(const struct virtio_ebb_telemetry *report);

/* What an answer means to the caller of EBB_IOC_CPU_ADD: 0 or an error of that ioctl. */
int ebb_wire_add_errno(const struct ebb_wire_answer *answer);

/* The host has the CPU of this CPU_REMOVE, or never knew of it. */
bool ebb_wire_is_removed(const struct ebb_wire_answer *answer);

/*
 * Linux nodes for the proximity domains: linux_node[] comes with what ACPI
 * says, negative where it says nothing (a kernel without NUMA), and there gets
 * a number that no other has.
 */
void ebb_wire_fill_nodes(int *linux_node, unsigned int num_nodes);

#endif /* EBB_WIRE_H */
