/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libebb: what a database engine needs to grow and shrink with its VM.
 *
 * A handle stands for one application.  It owns the CPUs and the memory that it
 * added; they go back to the host when the handle is closed or the process ends.
 * With ebb-monitord running in the guest the applications of a VM share what the
 * host offers and demands, and their statistics reach the host; without it, the
 * handle sees the VM's own limits and everything but ebb_report() and
 * ebb_stats_get() works.
 *
 * Threads: one thread may use a handle for ebb_dispatch() and one for the
 * calls that wait (ebb_cpu_add, ebb_cpu_remove, ebb_cpu_lend) at a time; ebb_report(),
 * ebb_stats_get() and everything about memory and its value may be called from any
 * thread, by several at once.  Callbacks run inside ebb_dispatch() and may call everything
 * but ebb_close() and ebb_dispatch().
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
	unsigned int tier;		/* VIRTIO_EBB_TIER_*: how the host would like CPUs back */
	unsigned int cpus_held;		/* of the VM, startup set included */
	unsigned int cpus_limit;	/* of the VM */
	unsigned int cpus_owned;	/* added by this handle, neither forced nor lent */
	unsigned int cpus_offered;	/* this application may ask for so many more */
	unsigned int reserved;		/* 0 */
	unsigned int cpus_demanded;	/* this application must give back so many ... */
	uint64_t deadline_ns;		/* ... by then (CLOCK_MONOTONIC); 0: no demand */
	/* The same of the node's pool of memory; all 0 without one.  Whole blocks. */
	uint64_t mem_held_bytes;	/* of the VM */
	uint64_t mem_limit_bytes;	/* of the VM; not always whole blocks */
	uint64_t mem_owned_bytes;	/* in leases of this handle, neither released nor revoked */
	uint64_t mem_offered_bytes;	/* this application may ask for so many more */
	uint64_t mem_demanded_bytes;	/* this application must release so many ... */
	uint64_t mem_deadline_ns;	/* ... by then (CLOCK_MONOTONIC); 0: no demand */
	/*
	 * Cut-off: what is worth less than this goes first to meet a demand for memory, so that
	 * of all VMs of the host the least valuable goes.  ns of time saved per second and MiB, as
	 * in struct ebb_vom_object; 0: none.  Always the VM's.
	 */
	uint64_t mem_cutoff;
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

/*
 * Accepts NULL.  Returns all CPUs of the handle, and all memory: the leases are
 * unmapped, so nothing may touch them any more.
 */
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
 * Gives the core of one CPU back and leaves the CPU in the guest, so that the next
 * ebb_cpu_add() has it again without plugging; the CPU is nobody's then.  flags 0:
 * it stays online, and the caller has moved all his threads off it, for what runs
 * there now takes time from the startup set.  EBB_LEND_PARK: it goes offline, and
 * threads are moved as for ebb_cpu_remove().  ebb_node_share.tier says which of the
 * three ways suits the host best; any of them meets a demand.  Errors: see
 * EBB_IOC_CPU_LEND, among them
 *   -EOPNOTSUPP   driver or device do not lend (VIRTIO_EBB_F_LEND is not in
 *                 ebb_info.features): use ebb_cpu_remove(); nothing has changed
 */
int ebb_cpu_lend(struct ebb *ebb, unsigned int cpu, unsigned int flags, unsigned int timeout_ms,
		 struct ebb_times *ret_times);

/*
 * Lists CPUs of the VM, startup set first, into ret_cpus[max]; returns how many
 * there are, which may be more than max.
 */
int ebb_cpu_list(struct ebb *ebb, struct ebb_cpu *ret_cpus, unsigned int max);

/*
 * ---- Memory ----
 *
 * Memory comes as leases, each a mapping of its own of zeroed blocks of one
 * node's pool, and goes back block by block, in any order.  An allocator sits on
 * it as on any other pages, except for three things:
 *
 *  - When the deadline of a demand passes, the host takes blocks of its choice
 *    (revokes them).  Their content is lost; to touch them is a SIGBUS, to pass
 *    them to a system call is EFAULT.  A released block is gone in the same way.
 *  - Long-term pins (io_uring's registered buffers, RDMA) are refused.
 *  - A child of fork() has none of it.
 *
 * A lease takes a file descriptor and as much address space as it has bytes
 * until it is closed, however few blocks are left in it: a few large leases are
 * better than many small ones.
 */
struct ebb_lease {
	void *addr;			/* of the mapping; a multiple of block_bytes */
	uint64_t bytes;			/* of the mapping; a multiple of block_bytes */
	unsigned int node;		/* Linux node of all of it */
	unsigned int block_bytes;	/* a power of two of at least 2 MiB */
	int fd;				/* belongs to the handle; not for closing */
};

/* The pools of the VM; num_pools 0: there is no memory to be had. */
int ebb_mem_info_get(struct ebb *ebb, struct ebb_mem_info *ret);

/*
 * Adds memory on a node or EBB_NODE_ANY as a new lease, mapped for reading and
 * writing.  bytes is a multiple of the block size.  Less may be granted, at least
 * one block: see ret->bytes.  Does not wait.  The pages are there when they are
 * first touched, which is when the host zeroes them.  Errors: see EBB_IOC_MEM_ADD,
 * and
 *   -ENOMEM   also: no address space left, or too many mappings
 *   -EIO      also: the driver's answer makes no sense
 */
int ebb_mem_add(struct ebb *ebb, uint64_t bytes, unsigned int node, struct ebb_lease *ret);

/*
 * Gives a range of blocks of one lease back, whichever lease of the handle it is.
 * Nothing may use it any more: what was there is lost.  Blocks of the range that
 * the host has revoked but the callback has not been told of count as released,
 * and it is not told of them any more.
 *
 * With its last block released, a lease is closed and unmapped, and its
 * addresses may come to be used for something else, such as another lease.  Not
 * so if the callback was told of blocks of it (or there was none to tell): a
 * thread that does not know yet must find SIGBUS there and nothing else.  Such a
 * lease stays until ebb_lease_close().
 *   -EINVAL   bytes is 0, the range wraps around, or is not made of whole blocks
 *   -ENOENT   addr is in no lease of this handle, or a block of the range was released before,
 *             or revoked and told of; nothing has changed
 *   -ERANGE   the range goes past the end of the lease
 *   -ENODEV   the device is gone, and all memory with it
 *   -EIO      the driver's answer makes no sense
 */
int ebb_mem_release(struct ebb *ebb, void *addr, uint64_t bytes);

/*
 * The lease that an address is in, as it was added; takes O(log n).
 *   -ENOENT   in none of this handle
 */
int ebb_lease_find(struct ebb *ebb, const void *addr, struct ebb_lease *ret);

/*
 * Asks the driver which blocks the lease at an address still has, from block start
 * of it on; at most EBB_LEASE_INFO_BLOCKS of them.  Errors: see
 * EBB_IOC_LEASE_INFO, and
 *   -ENOENT   in no lease of this handle
 */
int ebb_lease_info_get(struct ebb *ebb, const void *addr, uint32_t start,
		       struct ebb_lease_info *ret);

/*
 * Gives all that is left in the lease at an address back, closes and unmaps it.
 * Nothing may touch its addresses any more, not even in a guarded section.
 *   -ENOENT   in no lease of this handle
 *   -EBUSY    another thread is releasing blocks of it; nothing has changed
 */
int ebb_lease_close(struct ebb *ebb, void *addr);

/*
 * Called from ebb_dispatch(), before the callback for shares, for every run of
 * blocks that the host has revoked; the range lies in one lease.  The blocks are
 * gone since before the call, and owned no more.  Other threads may have met them
 * already, see ebb_mem_guard_run().
 */
typedef void (*ebb_revoked_fn)(void *arg, void *addr, uint64_t bytes);

/* Runs that come while there is no callback (fn is NULL) are not told of later. */
void ebb_set_revoked_callback(struct ebb *ebb, ebb_revoked_fn fn, void *arg);

/*
 * Runs fn(arg) such that touching a block that is gone ends fn instead of the
 * process.  Returns 0 when fn has returned.  Costs about as much as a call of
 * sigsetjmp() that saves no signals; may be nested, the innermost is ended.
 *   -EFAULT   fn touched a block that had left its lease; *ret_addr, unless ret_addr is
 *             NULL, is the address.  fn was left where it was by siglongjmp(): locks that it
 *             took are held, and what it allocated is allocated.
 *   other     of sigaction(), the first time
 *
 * Works for leases of all handles of the process, and only in the thread that
 * called it.  SIGBUS for any other reason goes to the handler that was there
 * before, or kills as if there were none.
 *
 * Limits: the handler is set for the whole process with the first call (or
 * ebb_mem_guard_install()), and stays.  A program that sets a handler of its own later has to call
 * this one for each SIGBUS that its handler does not know.  If an earlier handler had SA_RESETHAND,
 * it is called more than once.  fn must not block SIGBUS, for then the kernel kills the process; it
 * must not be left by longjmp() or an exception; and it must not touch a lease while a function
 * that is not async-signal-safe works on its behalf in a state that can not be left (malloc() with
 * its bookkeeping in a lease, say).
 */
int ebb_mem_guard_run(void (*fn)(void *arg), void *arg, void **ret_addr);

/*
 * Sets the handler now, for programs that want the order of handlers to be known:
 * before other threads run, and after handlers of others were set.  Called again,
 * it goes before what was set since, which must not pass on to this one.
 */
int ebb_mem_guard_install(void);

/*
 * ---- The value of memory ----
 *
 * A host that needs memory back takes what is worth least, if it knows.  The value of memory is the
 * time that having it saves: what it costs to make its content again (STS) times how often that is
 * used, per MiB.  An engine registers its caches; when the host asks, at most once a second,
 * ebb_dispatch() reads them and sends a histogram of values, of EBB_VOM_MAX_BUCKETS buckets at
 * most.  Unless the host asks, nothing is read.
 *
 * Only memory of leases counts.  Memory that an application holds on a node, but that no cache
 * accounts for, counts with the middle value of the memory that is accounted for, or as unused if
 * no cache accounts for any there; if the application has registered no cache, the value of its
 * memory is not known.
 */

/* Not known: of ages; and of sts_ns for what can not be made again, which goes last. */
#define EBB_VOM_UNKNOWN		UINT64_MAX

#define EBB_VOM_MAX_CACHES	64
#define EBB_VOM_MAX_SAMPLES	4096
#define EBB_VOM_MAX_OBJECTS	65536

enum ebb_vom_kind {
	/* Some hundred objects, chosen uniformly, which stand for all. */
	EBB_VOM_SAMPLED = 1,
	/* All there are, or groups of them that are alike, because looking at all is cheap. */
	EBB_VOM_SWEPT,
	/* Memory that holds nothing: its value is 0.  Of objects only the size counts. */
	EBB_VOM_FREE,
};

struct ebb_vom_object {
	uint64_t bytes;			/* of it */
	uint64_t stands_for_bytes;	/* of memory, itself included; 0: itself alone */
	uint64_t sts_ns;		/* measured cost to make it again, or EBB_VOM_UNKNOWN */
	uint64_t last_ns;		/* how long ago it was used, or EBB_VOM_UNKNOWN ... */
	uint64_t before_ns;		/* ... and the time before that */
	double rate;			/* uses per second, if known better; else 0 */
	uint32_t node;			/* of a cache that has EBB_NODE_ANY */
	uint32_t reserved;
};

/*
 * Fills in objects, at most max, zeroed before; returns how many, or a negative number if it can
 * not say what they are worth: the host's question is left unanswered then.  Called from
 * ebb_dispatch().  It may call ebb_vom_register(), and ebb_vom_unregister() for other caches.
 */
typedef int (*ebb_vom_read_fn)(void *arg, struct ebb_vom_object *ret_objects, unsigned int max);

struct ebb_vom_cache {
	enum ebb_vom_kind kind;
	uint32_t node;			/* guest node, or EBB_NODE_ANY: the objects say */
	/* At most EBB_VOM_MAX_SAMPLES, _MAX_OBJECTS, or EBB_MAX_NODES by kind; 0: 4096, 4096, 16 */
	uint32_t max_objects;
	uint32_t reserved;		/* 0 */
	ebb_vom_read_fn read;
	void *arg;
};

/*
 * From any thread.
 *   -EINVAL   no such kind, no function, or max_objects above what the kind may have
 *   -ENXIO    there can be no such node
 *   -ENOSPC   EBB_VOM_MAX_CACHES are registered
 */
int ebb_vom_register(struct ebb *ebb, const struct ebb_vom_cache *cache, unsigned int *ret_id);

/*
 * From any thread.  When it returns the function is not running and will not be called.
 *   -ENOENT   nothing is registered by that number
 *   -EDEADLK  called by the cache's own function; nothing has changed
 */
int ebb_vom_unregister(struct ebb *ebb, unsigned int id);

/*
 * ---- Promised memory ----
 *
 * The host may promise an engine the hit ratio of a dedicated cache of so many MiB, and lets memory
 * move all the same.  The engine simulates that cache beside its real one and says how often it had
 * to read a record or page from disk, and how often the simulated cache would have had to.  The
 * host gives it memory until it reads no more often than that, and its ledger says where it could
 * not.  An engine that simulates nothing is given as much memory as the promise is worth.
 * Source: "SQLVM", section 2.3.
 */

/*
 * The size of that cache in MiB, as of the last ebb_dispatch(); 0: nothing is promised.  From any
 * thread; the callback for shares is called when it changes, too.  The promise to a VM is divided
 * evenly among those of its applications that own memory.
 */
unsigned int ebb_mem_promise(const struct ebb *ebb);

/*
 * For the reports that follow: the size of the simulated cache in MiB (0: there is none), the reads
 * from disk that it would have needed, and those that were made.  Both counters count from the
 * start of the application and never decrease, whatever happens to the size.  From any thread.
 */
void ebb_baseline_set(struct ebb *ebb, uint32_t mib, uint64_t baseline_ios, uint64_t actual_ios);

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
