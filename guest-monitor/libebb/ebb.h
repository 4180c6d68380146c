/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libebb: what a database engine needs to grow and shrink with its VM.
 *
 * A handle stands for one application.  It owns the CPUs that it added; they
 * go back to the host when the handle is closed or the process ends.  With
 * ebb-monitord running in the guest the applications of a VM share what the
 * host offers and demands, and their statistics reach the host; without it, the
 * handle sees the VM's own limits and everything but ebb_stats_get() works.
 *
 * Threads: one thread may use a handle for ebb_dispatch() and one for the
 * calls that wait (ebb_cpu_add, ebb_cpu_remove) at a time; ebb_report() and
 * ebb_stats_get() may be called from any thread.  Callbacks run inside
 * ebb_dispatch() and may call everything but ebb_close().
 *
 * Errors: functions return 0 or more on success and -errno on failure.  Each
 * says which errors to expect beyond those of <linux/ebb_ioctl.h>.
 */
#ifndef EBB_H
#define EBB_H

#include <stddef.h>
#include <stdint.h>
#include <linux/ebb_ioctl.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ebb;

/* ebb_options.flags */
#define EBB_OPEN_NO_MONITOR	(1u << 0)	/* do not look for ebb-monitord */

/* Zero or NULL fields stand for the default. */
struct ebb_options {
	/* 1 to 31 bytes of [A-Za-z0-9._-], unique in the guest; default: program's name and pid */
	const char *app_name;
	const char *device;		/* default: $EBB_DEVICE, else "/dev/ebb" */
	const char *monitor_socket;	/* default: $EBB_MONITOR, else "/run/ebb/monitor.sock" */
	unsigned int flags;		/* EBB_OPEN_* */
};

/*
 * What one application may do on one node.  With the monitor, offers and
 * demands of the VM are divided among its applications.
 */
struct ebb_node_share {
	unsigned int node;		/* guest node */
	unsigned int cpus_held;		/* of the VM, startup set included */
	unsigned int cpus_limit;	/* of the VM */
	unsigned int cpus_owned;	/* added by this handle and not forced */
	unsigned int cpus_offered;	/* this application may ask for so many more */
	unsigned int cpus_demanded;	/* this application must give back so many ... */
	uint64_t deadline_ns;		/* ... by then (CLOCK_MONOTONIC); 0: no demand */
};

struct ebb_shares {
	uint64_t generation;		/* changes whenever anything below did */
	unsigned int num_nodes;		/* 0: the host has not said anything yet */
	struct ebb_node_share nodes[EBB_MAX_NODES];
};

/*
 * Called from ebb_dispatch() when shares changed (also for the first time).
 * shares is valid during the call.  A demand stays in the shares until it is
 * met or withdrawn: the callback need not act at once.
 */
typedef void (*ebb_shares_fn)(void *arg, const struct ebb_shares *shares);

/* Counters count from the start of the application and never decrease. */
struct ebb_stats {
	uint64_t committed;		/* transactions */
	uint64_t aborted;		/* attempts undone and retried */
	uint64_t failed;		/* transactions given up */
	uint64_t accesses;		/* record accesses */
	uint32_t p50_us;		/* latency over the last interval */
	uint32_t p95_us;
	uint32_t p99_us;
	uint32_t workers;		/* threads that run transactions now */
	uint32_t interval_ms;		/* what the latencies cover */
	uint32_t reserved;
	/* From here on filled in by the monitor, ignored by ebb_report(). */
	double committed_ps;		/* rates over the last two reports, per second */
	double aborted_ps;
	double accesses_ps;
	uint32_t cpu_permille;		/* CPU time of the guest, last second; 1000 is one CPU */
	uint32_t cpus_online;
	uint64_t mem_total_bytes;
	uint64_t mem_available_bytes;
};

/*
 * Opens the device and, if it is there, the monitor.
 *   -ENOENT, -EACCES   no device, or no right to open it (or to connect to the monitor)
 *   -EPROTO            the driver or the monitor speaks another version
 *   -EEXIST            an application of that name is registered
 *   -EUSERS            the monitor serves as many applications as it can
 *   -EINVAL            a bad name or flag, or too long a socket path
 */
int ebb_open(const struct ebb_options *options, struct ebb **ret);

/* Accepts NULL.  Returns all CPUs of the handle. */
void ebb_close(struct ebb *ebb);

/*
 * A file descriptor that polls readable when ebb_dispatch() has something to
 * do.  It belongs to the handle.
 */
int ebb_fd(const struct ebb *ebb);

/*
 * Does what is due, without waiting, and calls the callback if shares changed.
 * Also finds and loses the monitor as it comes and goes.
 *   -ENODEV   the device is gone for good
 */
int ebb_dispatch(struct ebb *ebb);

void ebb_set_shares_callback(struct ebb *ebb, ebb_shares_fn fn, void *arg);

/* The shares as of the last ebb_dispatch(). */
void ebb_shares_get(const struct ebb *ebb, struct ebb_shares *ret);

int ebb_info_get(struct ebb *ebb, struct ebb_info *ret);

/* Is the monitor connected? */
int ebb_has_monitor(const struct ebb *ebb);

/*
 * Times of an operation, for statistics.  host: the host's answer; kernel: CPU
 * brought online or taken offline.
 */
struct ebb_times {
	uint64_t host_ns;
	uint64_t kernel_ns;
};

/*
 * Adds up to count (1 to EBB_MAX_REQ_CPUS) CPUs on a node or EBB_NODE_ANY;
 * flags EBB_ADD_*; timeout_ms as in the ioctl.  Returns how many were added, at
 * least 1, with ret_cpus[] filled; ret_times may be NULL.  Errors: see
 * EBB_IOC_CPU_ADD.  Waits; starts no thread: pinning work to the CPUs is the
 * caller's job.
 */
int ebb_cpu_add(struct ebb *ebb, unsigned int count, unsigned int node, unsigned int flags,
		unsigned int timeout_ms, struct ebb_cpu *ret_cpus, struct ebb_times *ret_times);

/*
 * Gives one CPU back.  The caller has stopped running on it; threads that have
 * not are moved elsewhere by Linux.  Errors: see EBB_IOC_CPU_REMOVE.
 */
int ebb_cpu_remove(struct ebb *ebb, unsigned int cpu, unsigned int timeout_ms,
		   struct ebb_times *ret_times);

/*
 * Lists CPUs of the VM, startup set first, into ret_cpus[max]; returns how many
 * there are, which may be more than max.
 */
int ebb_cpu_list(struct ebb *ebb, struct ebb_cpu *ret_cpus, unsigned int max);

/*
 * Stores this application's statistics in the monitor.
 *   -ENOTCONN   no monitor; nothing was stored
 *   -EAGAIN     the monitor does not keep up; nothing was stored
 */
int ebb_report(struct ebb *ebb, const struct ebb_stats *stats);

/*
 * Reads the statistics of an application back, or of this one with name NULL.
 *   -ENOTCONN   no monitor
 *   -ENOENT     no such application
 *   -ETIMEDOUT  the monitor did not answer within a second
 */
int ebb_stats_get(struct ebb *ebb, const char *name, struct ebb_stats *ret);

#ifdef __cplusplus
}
#endif
#endif /* EBB_H */
