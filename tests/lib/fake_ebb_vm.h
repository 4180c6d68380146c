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
		struct ebb_cpu_list list;
		struct ebb_telemetry telemetry;
	} arg;
};

struct fake_ebb_open {
	int fd;				/* calls; -1: free */
	int notify_fd;			/* a byte makes the other end readable */
};

struct fake_ebb_cpu {
	int is_present;
	uint32_t node;
	uint32_t flags;			/* EBB_CPU_STARTUP, EBB_CPU_FORCED */
	struct fake_ebb_open *owner;	/* NULL: nobody */
};

struct fake_ebb_vm {
	pthread_mutex_t lock;
	int is_unplugged;
	uint32_t abi_version;
	uint32_t num_nodes;
	struct {
		uint32_t startup;
		uint32_t max;
		uint32_t limit;
		uint64_t deadline_ns;
	} nodes[EBB_MAX_NODES];
	int has_limits;
	int is_delayed;			/* limits_do() answers with delayed ... */
	struct ebb_limits delayed;	/* ... which is what it said before */
	uint64_t generation;
	struct fake_ebb_cpu cpus[FAKE_EBB_MAX_CPUS];
	struct fake_ebb_open opens[FAKE_EBB_MAX_OPENS];
	uint32_t num_added;
	uint32_t num_removed;
	uint32_t num_telemetry;
	struct virtio_ebb_telemetry telemetry;
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

#endif /* FAKE_EBB_VM_H */
