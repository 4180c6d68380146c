/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc says of the guest.  The path is an argument: tests have their own
 * files.
 */
#ifndef EBB_PROC_H
#define EBB_PROC_H

#include <stddef.h>
#include <stdint.h>

struct ebb_proc_cpu {
	uint64_t busy_ticks;		/* of all CPUs: user, nice, system, irq, softirq */
	uint32_t cpus_online;
};

struct ebb_proc_mem {
	uint64_t total_bytes;
	uint64_t available_bytes;
};

/* /proc/stat and /proc/meminfo.  -errno of opening; -ENODATA if what is needed is not there. */
int ebb_proc_cpu_read(const char *path, struct ebb_proc_cpu *ret);
int ebb_proc_mem_read(const char *path, struct ebb_proc_mem *ret);

/*
 * CPU time used over a while: keeps what was read lately.  Pure; zeroed at the
 * start.
 */
#define EBB_USAGE_SAMPLES	128

struct ebb_usage {
	struct {
		uint64_t at_ns;
		uint64_t busy_ticks;
	} samples[EBB_USAGE_SAMPLES];	/* a ring */
	size_t num;
	size_t newest;
};

void ebb_usage_add(struct ebb_usage *usage, uint64_t now_ns, uint64_t busy_ticks);

/*
 * Between the newest sample and the youngest one that is at least window_ns
 * older (else the oldest there is); 1000 is one CPU.  0 with fewer than two.
 */
uint32_t ebb_usage_permille(const struct ebb_usage *usage, uint64_t window_ns,
			    uint64_t ticks_per_sec);

#endif /* EBB_PROC_H */
