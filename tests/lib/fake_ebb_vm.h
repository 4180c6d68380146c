/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the simulated device: the state of its VM, and what goes over the
 * socket between an opener and the device.  Everything of the VM is used with
 * its lock held.
 */
#ifndef FAKE_EBB_VM_H
#define FAKE_EBB_VM_H

#include <pthread.h>

#include "fake_ebb_dev.h"

#define FAKE_EBB_MAX_OPENS	40
#define FAKE_EBB_MAX_LEASES	128

/* What EBB_IOC_MEM_ADD's answer carries: to map, to call, to poll. */
#define FAKE_EBB_LEASE_FDS	3

/* First message of the device; with error 0 it carries the fd to poll. */
struct fake_ebb_hello {
	int error;
};

/* An ioctl and, on the way back, its result. */
struct fake_ebb_call {
	unsigned long cmd;
	int result;
	union {
		__u32 size;		/* every argument starts with it */
		struct ebb_info info;
		struct ebb_limits limits;
		struct ebb_cpu_add add;
		struct ebb_cpu_remove remove;
		struct ebb_cpu_lend lend;
		struct ebb_cpu_list list;
		struct ebb_telemetry telemetry;
		struct ebb_vom vom;
		struct ebb_mem_info mem_info;
		struct ebb_mem_add mem_add;
		struct ebb_lease_release release;
		struct ebb_lease_info lease_info;
	} arg;
};

struct fake_ebb_open {
	int fd;				/* calls; -1: free */
	int notify_fd;			/* a byte makes the other end readable */
};

struct fake_ebb_lease {
	int fd;				/* calls; -1: free */
	int notify_fd;			/* a byte makes the other end readable; -1: hung up */
	int memory_fd;
	uint32_t node;
	uint32_t num_blocks;
	uint32_t num_held;
	uint32_t num_revoked;
	unsigned char *is_held;		/* of each block */
};

struct fake_ebb_cpu {
	int is_present;
	uint32_t node;
	uint32_t flags;			/* EBB_CPU_STARTUP, FORCED, LENT, PARKED */
	struct fake_ebb_open *owner;	/* NULL: nobody */
};

struct fake_ebb_vm {
	pthread_mutex_t lock;
	int is_unplugged;
	int can_lend;			/* VIRTIO_EBB_F_LEND is negotiated */
	uint32_t abi_version;
	uint32_t num_nodes;
	struct {
		uint32_t startup;
		uint32_t max;
		uint32_t limit;
		uint32_t tier;
		uint64_t deadline_ns;
		uint64_t pool_bytes;
		uint64_t mem_limit_bytes;
		uint64_t mem_deadline_ns;
		uint64_t mem_cutoff;
		uint64_t draining_bytes;
	} nodes[EBB_MAX_NODES];
	struct fake_ebb_lease leases[FAKE_EBB_MAX_LEASES];
	int has_limits;
	int is_delayed;			/* limits_do() answers with delayed ... */
	struct ebb_limits delayed;	/* ... which is what it said before */
	uint64_t generation;
	struct fake_ebb_cpu cpus[FAKE_EBB_MAX_CPUS];
	struct fake_ebb_open opens[FAKE_EBB_MAX_OPENS];
	uint32_t num_added;
	uint32_t num_removed;
	uint32_t num_lent;
	uint32_t num_telemetry;
	struct virtio_ebb_telemetry telemetry;
	uint32_t vom_seq;
	uint32_t mem_promise_mib;	/* not 0: the device knows of VIRTIO_EBB_F_BASELINE */
	int vom_error;			/* what EBB_IOC_VOM says */
	uint32_t num_vom;		/* calls of it, refused ones included */
	struct ebb_vom vom;		/* as last accepted */
};

void fake_ebb_vm_init(struct fake_ebb_vm *vm, uint32_t num_nodes, const uint32_t *startup,
		      const uint32_t *max);
void fake_ebb_vm_finish(struct fake_ebb_vm *vm);

uint32_t fake_ebb_vm_held(const struct fake_ebb_vm *vm, uint32_t node);

/* Something in the limits changed: next generation, everybody is told. */
void fake_ebb_vm_publish(struct fake_ebb_vm *vm);

/* What EBB_IOC_LIMITS says now. */
void fake_ebb_vm_limits(const struct fake_ebb_vm *vm, struct ebb_limits *ret);

/* The CPUs of the open go back; the slot is free. */
void fake_ebb_vm_close(struct fake_ebb_vm *vm, struct fake_ebb_open *open);

/* Hangs up on everybody and takes all hotplugged CPUs. */
void fake_ebb_vm_hang_up(struct fake_ebb_vm *vm);

void fake_ebb_open_notify(struct fake_ebb_open *open);

/* 0 or -errno, as ebb_ioctl.h says. */
int fake_ebb_vm_ioctl(struct fake_ebb_vm *vm, struct fake_ebb_open *open, unsigned long cmd,
		      void *arg);

/* ---- memory: fake_ebb_mem.c ---- */

void fake_ebb_mem_init(struct fake_ebb_vm *vm);
void fake_ebb_mem_finish(struct fake_ebb_vm *vm);
uint64_t fake_ebb_mem_leased_bytes(const struct fake_ebb_vm *vm, uint32_t node);
void fake_ebb_mem_limits(const struct fake_ebb_vm *vm, struct ebb_limits *limits);

int fake_ebb_mem_info_do(const struct fake_ebb_vm *vm, struct ebb_mem_info *info);
/* On success ret_fds are for the caller to pass on and close. */
int fake_ebb_mem_add_do(struct fake_ebb_vm *vm, struct ebb_mem_add *add,
			int ret_fds[FAKE_EBB_LEASE_FDS]);
int fake_ebb_lease_ioctl(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease, unsigned long cmd,
			 void *arg);
void fake_ebb_lease_close(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease);
void fake_ebb_mem_hang_up(struct fake_ebb_vm *vm);

/* Takes up to bytes of held blocks on a node, the last ones first, or those of a range. */
uint64_t fake_ebb_mem_revoke(struct fake_ebb_vm *vm, uint32_t node, uint64_t bytes);
int fake_ebb_lease_revoke(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease, uint32_t first,
			  uint32_t count);

/* ---- mappings: fake_ebb_map.c ---- */

/* Touching that part of the memory is a SIGBUS from now on, wherever this process maps it. */
void fake_ebb_map_take(int memory_fd, uint64_t offset, uint64_t bytes);

/* Which memory is mapped there, and at what offset?  -ENOENT. */
int fake_ebb_map_find(const void *addr, uint64_t *ret_inode, uint64_t *ret_offset);

/* How a lease is told from others in every process: the inode of its memory. */
uint64_t fake_ebb_map_inode(int memory_fd);

#endif /* FAKE_EBB_VM_H */
