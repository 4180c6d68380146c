/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QEMU process of a domain and the threads of its vCPUs, as /proc shows them.  `proc` is the
 * folder to look in, "/proc" but for tests.
 */
#ifndef EBB_IO_QEMUPROC_H
#define EBB_IO_QEMUPROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ebb_qemuproc_thread {
	uint16_t vcpu;
	pid_t tid;
};

/*
 * The QEMU of a domain: the process that libvirt's pid file names, if it was started with the
 * domain's uuid; without a pid file the only process that was.  A name alone proves nothing, and a
 * command line alone only while nobody else claims the same.  Returns the pid, -ESRCH when there is
 * none, -ENOTUNIQ when there are several.
 */
pid_t ebb_qemuproc_find(const char *proc, const char *libvirt_run_dir, const char *name,
			const uint8_t uuid[16]);

/* Threads of vCPUs, in no order; at most size of them.  Returns their number or -errno. */
int ebb_qemuproc_vcpus(const char *proc, pid_t pid, struct ebb_qemuproc_thread *ret, size_t size);

/*
 * Time that a thread has spent on CPUs, in microseconds, how often it was put on one, and
 * how long it could have run while something else did.
 * -EOPNOTSUPP: this kernel does not say (it needs CONFIG_SCHED_INFO).
 */
int ebb_qemuproc_usage(const char *proc, pid_t pid, pid_t tid, uint64_t *ret_cpu_usec,
		       uint64_t *ret_num_runs, uint64_t *ret_wait_usec);

/* The thread of one vCPU, or -ESRCH.  guess: a thread to try first, or 0. */
pid_t ebb_qemuproc_vcpu(const char *proc, pid_t pid, uint16_t vcpu, pid_t guess);

#endif
