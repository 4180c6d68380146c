/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /dev/ebb: how programs in a guest add and remove CPUs, and learn what the
 * host offers and demands.
 *
 * Every open of the device is an owner: the CPUs that it added belong to it
 * alone, and when it is closed for the last time (or its process dies) the
 * driver returns them.  The CPUs of the startup set belong to nobody and can
 * not be removed.  Anyone who may open the device may call everything; how
 * much a VM may hold is limited by the host, not by permissions in the guest.
 *
 * Conventions: every structure starts with its own size in bytes, as the
 * caller was compiled, and flags.  Another size than that in the ioctl's
 * number, unknown flags and non-zero reserved fields give EINVAL.  Fields marked
 * [out] are ignored on input and written only on success, unless stated.
 * Numbers of CPUs and nodes are those of the guest's Linux.
 *
 * Structures grow at their end, and nothing else of them changes.  A driver takes
 * every size from the first that was published (EBB_*_SIZE_VER0) on: what an
 * older program's structure lacks counts as 0 and is not written; what the
 * driver's lacks must be 0 (E2BIG), fields marked [out] among it.  A driver that
 * does not know of this gives ENOTTY for a size other than its own; try the first
 * one then.  What else a driver can do is told by feature bits
 * (ebb_info.features), never by EBB_ABI_VERSION.
 *
 * Waiting: CPU_ADD and CPU_REMOVE wait for the host and for Linux.  The wait
 * ends with a signal (EINTR) or with the timeout (ETIMEDOUT); what the host
 * grants after that is returned by the driver.  Limits are waited for with
 * poll(): POLLIN says that they, or the flags of a CPU, changed, or that memory
 * was given back, since EBB_IOC_LIMITS was last called on this open (or that it
 * never was), POLLERR that the device is gone.
 *
 * Errors that every call can give:
 *   E2BIG   the structure is larger than the driver's and has more set
 *   EFAULT  a pointer does not point to usable memory
 *   EINVAL  size, flags or reserved fields, as above
 *   ENODEV  the virtio device is gone
 *   ENOTTY  no such ioctl
 *
 * Source: the application side of figure 2 in "A system design for elastically
 * scaling transaction processing engines in virtualized servers", PVLDB 13(12).
 */
#ifndef _LINUX_EBB_IOCTL_H
#define _LINUX_EBB_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/virtio_ebb.h>

/* Least version that has all of this.  It stays: programs must take a higher one, too. */
#define EBB_ABI_VERSION		2

#define EBB_MAX_NODES		VIRTIO_EBB_MAX_NODES
#define EBB_MAX_REQ_CPUS	VIRTIO_EBB_MAX_REQ_CPUS
#define EBB_VOM_MAX_BUCKETS	VIRTIO_EBB_VOM_MAX_BUCKETS

/* In ebb_cpu_add.node and ebb_mem_add.node: any node. */
#define EBB_NODE_ANY		0xffffffffu

/* Waits, in ms: what 0 stands for, and the most that may be asked for. */
#define EBB_TIMEOUT_DEFAULT_MS	10000
#define EBB_TIMEOUT_MAX_MS	60000

#define EBB_IOC_MAGIC		0xeb

/* Bytes of the structures as they were first published. */
#define EBB_INFO_SIZE_VER0		48
#define EBB_LIMITS_SIZE_VER0		920
#define EBB_CPU_ADD_SIZE_VER0		552
#define EBB_CPU_REMOVE_SIZE_VER0	32
#define EBB_CPU_LEND_SIZE_VER0		32
#define EBB_CPU_LIST_SIZE_VER0		536
#define EBB_TELEMETRY_SIZE_VER0		120
#define EBB_VOM_SIZE_VER0		8208
#define EBB_MEM_INFO_SIZE_VER0		656
#define EBB_MEM_ADD_SIZE_VER0		48
#define EBB_LEASE_RELEASE_SIZE_VER0	48
#define EBB_LEASE_INFO_SIZE_VER0	560

/* ---- EBB_IOC_INFO: what the device is; never waits ---- */

/* ebb_info.status */
#define EBB_INFO_AGENT_UP	(1u << 0)	/* the host agent is connected */

struct ebb_info {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 abi_version;		/* [out] EBB_ABI_VERSION */
	__u32 proto;			/* [out] VIRTIO_EBB_PROTO of the device */
	__u32 status;			/* [out] EBB_INFO_* */
	__u32 num_nodes;		/* [out] NUMA nodes, 1 to EBB_MAX_NODES */
	__u32 max_cpus;			/* [out] most CPUs that this VM can ever have */
	__u32 num_startup_cpus;		/* [out] CPUs of the startup set */
	__u32 num_hotplug_cpus;		/* [out] CPUs added since, by all owners; lent ones not counted */
	__u32 num_owned_cpus;		/* [out] of these, owned by this open */
	__u64 features;			/* [out] negotiated VIRTIO_EBB_F_* bits, as a mask */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_info, 48);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_info, status, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_info, features, 40);

/* ---- EBB_IOC_LIMITS: what this VM may hold now; never waits ---- */

struct ebb_node_limit {
	__u32 node;			/* guest node */
	__u32 tier;			/* VIRTIO_EBB_TIER_*: how the host would like CPUs to be given back */
	__u32 cpus_held;		/* as the host counts, startup set included */
	__u32 cpus_limit;		/* held < limit: offer; held > limit: demand */
	__u64 deadline_ns;		/* CLOCK_MONOTONIC by which a demand for CPUs must be met; 0: none */
	__u64 mem_held_bytes;		/* plugged in the node's pool, by all owners; as this side counts */
	__u64 mem_limit_bytes;		/* 0 without a pool; held < limit: offer; held > limit: demand */
	__u64 mem_deadline_ns;		/* as deadline_ns, for memory */
	__u64 mem_cutoff;		/* ns of time saved per second and MiB: memory of the pool that
					 * is worth less goes first to meet a demand; 0: none */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_node_limit, 56);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_node_limit, deadline_ns, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_node_limit, mem_deadline_ns, 40);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_node_limit, mem_cutoff, 48);

struct ebb_limits {
	__u32 size;
	__u32 flags;			/* 0 */
	__u64 generation;		/* [out] of the limits; 0: the host has not published any yet */
	__u32 num_nodes;		/* [out] valid entries in nodes[]; 0 as long as generation is 0 */
	__u32 vom_seq;			/* [out] the host wants the histogram of this number, once, by
					 * EBB_IOC_VOM; 0: none yet, or without VIRTIO_EBB_F_VOM */
	struct ebb_node_limit nodes[EBB_MAX_NODES]; /* [out] */
	/* Since VIRTIO_EBB_F_BASELINE; 0 without it. */
	__u32 mem_promise_mib;		/* [out] the host promises the hit ratio of a dedicated cache of
					 * so many MiB, all nodes together; 0: it promises nothing */
	__u32 reserved;			/* [out] 0 */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_limits, 928);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_limits, vom_seq, 20);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_limits, nodes, 24);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_limits, mem_promise_mib, 920);

/* ---- CPUs ---- */

/* ebb_cpu.flags */
#define EBB_CPU_STARTUP		(1u << 0)	/* of the startup set */
#define EBB_CPU_HT		(1u << 1)	/* shares its core with another thread in use */
#define EBB_CPU_FORCED		(1u << 2)	/* the host took its core away: it is slow now, remove it */
#define EBB_CPU_OWNED		(1u << 3)	/* owned by this open */
#define EBB_CPU_LEAVING		(1u << 4)	/* on its way back to the host */
#define EBB_CPU_LENT		(1u << 5)	/* nobody's: online, and without a core of its own */
#define EBB_CPU_PARKED		(1u << 6)	/* with LENT: offline, and can not be brought online */

struct ebb_cpu {
	__u32 cpu;			/* Linux CPU number */
	__u32 node;			/* Linux node */
	__u32 flags;			/* EBB_CPU_* */
	__u32 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_cpu, 16);

/*
 * EBB_IOC_CPU_ADD: add count CPUs, those that are lent first.  On return they are
 * online and owned by this open.  Fewer than count may be granted, at least one on success.
 *   EAGAIN     the host can not now: no agent, or no core free yet
 *   EDQUOT     above the limit of the node(s); wait for an offer
 *   ERANGE     above what this VM may ever have there
 *   ENXIO      no such node
 *   EIO        the host or Linux failed; the kernel log says why
 *   EINTR, ETIMEDOUT   nothing was added
 */
#define EBB_ADD_ALLOW_HT	(1u << 0)	/* hardware threads whose sibling is in use will do */

struct ebb_cpu_add {
	__u32 size;
	__u32 flags;			/* EBB_ADD_* */
	__u32 count;			/* 1 to EBB_MAX_REQ_CPUS */
	__u32 node;			/* Linux node or EBB_NODE_ANY */
	__u32 timeout_ms;		/* 0 to EBB_TIMEOUT_MAX_MS; 0: EBB_TIMEOUT_DEFAULT_MS */
	__u32 granted;			/* [out] valid entries in cpus[] */
	__u64 host_ns;			/* [out] time the host took to answer */
	__u64 online_ns;		/* [out] time Linux took from the answer to the last CPU online */
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS]; /* [out] */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_cpu_add, 552);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_cpu_add, host_ns, 24);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_cpu_add, cpus, 40);

/*
 * EBB_IOC_CPU_REMOVE: give a CPU back.  On return it is offline and the host
 * has it.  If the wait ends early or the agent is away, the CPU is offline,
 * owned by nobody and the driver goes on returning it by itself.
 *   ENOENT     no such CPU
 *   EPERM      the CPU belongs to the startup set
 *   EACCES     the CPU belongs to another open; or it is lent or parked, this open
 *              is not its last owner, and the caller lacks CAP_SYS_ADMIN
 *   EBUSY      Linux could not take it offline (it is the last one, say); still owned
 *   EINPROGRESS   the CPU is offline and no longer owned, but the host has not
 *              confirmed within the timeout (or no agent is connected)
 *   EINTR      as EINPROGRESS, ended by a signal; before the CPU went offline: still owned
 */
struct ebb_cpu_remove {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 cpu;			/* Linux CPU number */
	__u32 timeout_ms;		/* as in struct ebb_cpu_add */
	__u64 offline_ns;		/* [out] time Linux took to take it offline */
	__u64 host_ns;			/* [out] time the host took to answer */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_cpu_remove, 32);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_cpu_remove, offline_ns, 16);

/*
 * EBB_IOC_CPU_LEND: give the core of a CPU back and keep the CPU in the guest, so
 * that it can be had again by CPU_ADD without being plugged.  Without
 * EBB_LEND_PARK the CPU stays online, and the caller has moved his threads off
 * it: what still runs there runs slowly and slows the startup set down.  With it,
 * the CPU is taken offline, and nobody in the guest can bring it online.  On
 * return the host has the core, and the CPU is nobody's.  When the last file is
 * closed (or the process dies), CPUs are lent where that is possible.
 *   EOPNOTSUPP the device does not know of lending
 *   ENOENT, EPERM, EACCES, EBUSY, EINPROGRESS, EINTR   as for CPU_REMOVE; without
 *              EBB_LEND_PARK the CPU is not taken offline
 */
#define EBB_LEND_PARK		(1u << 0)	/* take it offline, and have the host hold it */

struct ebb_cpu_lend {
	__u32 size;
	__u32 flags;			/* EBB_LEND_* */
	__u32 cpu;			/* Linux CPU number */
	__u32 timeout_ms;		/* as in struct ebb_cpu_add */
	__u64 offline_ns;		/* [out] time Linux took to take it offline; 0 without EBB_LEND_PARK */
	__u64 host_ns;			/* [out] time the host took to answer */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_cpu_lend, 32);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_cpu_lend, offline_ns, 16);

/* EBB_IOC_CPU_LIST: CPUs of the VM from index start on; never waits. */
struct ebb_cpu_list {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 start;			/* index of the first to list */
	__u32 count;			/* [out] valid entries in cpus[]; 0: no more */
	__u32 total;			/* [out] CPUs of the VM */
	__u32 reserved;
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS]; /* [out] */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_cpu_list, 536);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_cpu_list, cpus, 24);

/*
 * EBB_IOC_TELEMETRY: pass a report on this guest to the host.  For the guest
 * monitor: the host keeps the newest report only.  Never waits.
 *   EAGAIN     the queue is full; this report was dropped
 *   EINVAL     also: another type than VIRTIO_EBB_TELEMETRY_TOTALS; baseline_ios,
 *              actual_ios or baseline_mib set without VIRTIO_EBB_F_BASELINE
 */
struct ebb_telemetry {
	__u32 size;
	__u32 flags;			/* 0 */
	struct virtio_ebb_telemetry report; /* little-endian, as on the wire */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_telemetry, 120);

/*
 * EBB_IOC_VOM: tell the host what the memory that this VM holds of its pools is
 * worth to it (VoM), as a histogram.  For the guest monitor, or the only program
 * where there is none: the host keeps the newest histogram only.  vom_seq of the
 * limits says when it wants one; there have to be VIRTIO_EBB_VOM_INTERVAL_MS and
 * a quarter of it between two.  Never waits.
 *   EINVAL     also: seq is 0, num_buckets above EBB_VOM_MAX_BUCKETS, a bucket
 *              with no such node or a kib of 0 or not above the one before it
 *   EOPNOTSUPP the device does not know of the value of memory
 *   EBUSY      the queue is full, or the last histogram is too recent; this one
 *              was dropped
 */
struct ebb_vom_bucket {
	__u64 value;			/* highest in it; ns of time saved per second and MiB; 0: unused */
	__u32 kib;			/* how much there is of it, 1 or more */
	__u16 node;			/* Linux node */
	__u16 reserved;
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_vom_bucket, 16);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_vom_bucket, kib, 8);

struct ebb_vom {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 seq;			/* the vom_seq that this answers */
	__u32 num_buckets;		/* valid entries in buckets[] */
	/* Nodes in the order of ebb_limits.nodes[], within each by rising value. */
	struct ebb_vom_bucket buckets[EBB_VOM_MAX_BUCKETS];
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_vom, 8208);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_vom, buckets, 16);

/*
 * ---- Memory ----
 *
 * Memory comes as leases.  A lease is a file of its own, made by
 * EBB_IOC_MEM_ADD: a run of bytes made of blocks of one node's pool, to be
 * mapped with mmap(MAP_SHARED) and read and written; mappings use pages of 2
 * MiB where address and offset are aligned to 2 MiB, which mmap() sees to
 * without MAP_FIXED.  Memory of a lease belongs to no structure of the kernel:
 * O_DIRECT, read(), write() and plain io_uring work on it, long-term pins
 * (io_uring's registered buffers) are refused.  A block is zero when granted.
 *
 * A lease lives as long as a file descriptor or a mapping of it does, whatever
 * becomes of the open of /dev/ebb that made it; then all of it is returned.
 * Blocks leave a lease by EBB_IOC_LEASE_RELEASE, or when the host revokes them;
 * those whose memory has failed count as revoked.
 * From then on touching them raises SIGBUS (si_addr is the address) and system
 * calls on them fail with EFAULT; the other blocks stay as they are.  What has
 * left never comes back to the lease; add another.
 *
 * mmap() of a lease: EINVAL for MAP_PRIVATE and for what lies past the end;
 * PROT_EXEC is refused with EPERM, by mprotect() with EACCES.  mremap() that
 * would enlarge the mapping: EFAULT.  Mappings are not inherited by fork().
 */

/* EBB_IOC_MEM_INFO: the pools; never waits. */
struct ebb_pool_info {
	__u32 node;			/* [out] Linux node */
	__u32 block_bytes;		/* [out] bytes of a block, a power of two of at least 2 MiB */
	__u64 size_bytes;		/* [out] most that the pool can ever hold */
	__u64 held_bytes;		/* [out] plugged, by all owners */
	__u64 leased_bytes;		/* [out] of these, in leases */
	__u64 draining_bytes;		/* [out] of these, left a lease and still in use by the kernel */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_pool_info, 40);

struct ebb_mem_info {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 num_pools;		/* [out] valid entries in pools[]; 0: no memory on this VM */
	__u32 reserved;
	struct ebb_pool_info pools[EBB_MAX_NODES]; /* [out] */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_mem_info, 656);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_mem_info, pools, 16);

/*
 * EBB_IOC_MEM_ADD: a new lease.  Less than asked may be granted, at least one
 * block on success.  Does not wait for the agent.
 *   EDQUOT     nothing left below the limit of the node(s); wait for an offer
 *   ERANGE     above what the pool(s) can ever hold
 *   ENXIO      no such node, or no pool there
 *   EINVAL     also: bytes is 0, or no multiple of the block size
 *   EAGAIN     the blocks below the limit are still draining or revoked, or the
 *              host is busy
 *   EMFILE, ENFILE, ENOMEM
 *   EIO        the host failed; the kernel log says why
 */
struct ebb_mem_add {
	__u32 size;
	__u32 flags;			/* 0 */
	__u64 bytes;			/* a multiple of the block size */
	__u32 node;			/* Linux node or EBB_NODE_ANY: one node that can grant most */
	__s32 lease_fd;			/* [out] O_CLOEXEC */
	__u64 granted_bytes;		/* [out] size of the lease, offsets 0 to granted_bytes - 1 */
	__u32 granted_node;		/* [out] Linux node of all of it */
	__u32 block_bytes;		/* [out] */
	__u64 host_ns;			/* [out] time the host took to plug the blocks */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_mem_add, 48);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_mem_add, lease_fd, 20);

/*
 * On a lease: EBB_IOC_LEASE_RELEASE gives a range of blocks back, from all
 * mappings at once.  It can not fail for a range that the lease holds, and the
 * blocks count as held no more when it returns, except for those that the
 * kernel still uses (a direct I/O in flight): these drain, and leave on their
 * own.
 *   EINVAL     also: offset or bytes no multiple of the block size, bytes 0
 *   ERANGE     past the end of the lease
 *   ENOENT     a block in the range was released or revoked before; nothing changed
 */
struct ebb_lease_release {
	__u32 size;
	__u32 flags;			/* 0 */
	__u64 offset;			/* in the lease */
	__u64 bytes;
	__u64 draining_bytes;		/* [out] of these, still draining */
	__u64 unmap_ns;			/* [out] time to take it from all mappings */
	__u64 host_ns;			/* [out] time the host took to unplug */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_lease_release, 48);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_lease_release, draining_bytes, 24);

/*
 * On a lease: EBB_IOC_LEASE_INFO tells which blocks it still has.  poll() of a
 * lease gives POLLPRI when blocks were revoked since the last call on this
 * file, POLLERR when the device is gone.
 *   ERANGE     there is no block start
 */
#define EBB_LEASE_INFO_BLOCKS	4096

struct ebb_lease_info {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 node;			/* [out] Linux node */
	__u32 block_bytes;		/* [out] */
	__u64 bytes;			/* [out] size of the lease when it was made */
	__u64 held_bytes;		/* [out] still in the lease */
	__u64 revoked_bytes;		/* [out] taken by the host */
	__u32 start;			/* first block to tell about */
	__u32 count;			/* [out] blocks told about, at most EBB_LEASE_INFO_BLOCKS */
	__u64 held_map[EBB_LEASE_INFO_BLOCKS / 64]; /* [out] bit i: block start + i is held */
};
VIRTIO_EBB_ASSERT_SIZE(struct ebb_lease_info, 560);
VIRTIO_EBB_ASSERT_OFFSET(struct ebb_lease_info, held_map, 48);

#define EBB_IOC_INFO		_IOWR(EBB_IOC_MAGIC, 0x00, struct ebb_info)
#define EBB_IOC_LIMITS		_IOWR(EBB_IOC_MAGIC, 0x01, struct ebb_limits)
#define EBB_IOC_TELEMETRY	_IOW(EBB_IOC_MAGIC, 0x02, struct ebb_telemetry)
#define EBB_IOC_VOM		_IOW(EBB_IOC_MAGIC, 0x03, struct ebb_vom)
#define EBB_IOC_CPU_ADD		_IOWR(EBB_IOC_MAGIC, 0x10, struct ebb_cpu_add)
#define EBB_IOC_CPU_REMOVE	_IOWR(EBB_IOC_MAGIC, 0x11, struct ebb_cpu_remove)
#define EBB_IOC_CPU_LIST	_IOWR(EBB_IOC_MAGIC, 0x12, struct ebb_cpu_list)
#define EBB_IOC_CPU_LEND	_IOWR(EBB_IOC_MAGIC, 0x13, struct ebb_cpu_lend)
#define EBB_IOC_MEM_INFO	_IOWR(EBB_IOC_MAGIC, 0x20, struct ebb_mem_info)
#define EBB_IOC_MEM_ADD		_IOWR(EBB_IOC_MAGIC, 0x21, struct ebb_mem_add)
/* Of a lease. */
#define EBB_IOC_LEASE_RELEASE	_IOWR(EBB_IOC_MAGIC, 0x30, struct ebb_lease_release)
#define EBB_IOC_LEASE_INFO	_IOWR(EBB_IOC_MAGIC, 0x31, struct ebb_lease_info)

#endif /* _LINUX_EBB_IOCTL_H */
