/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated /dev/ebb with host and all, for tests of what sits above it.
 *
 * A thread keeps the state of one VM and serves it on a unix socket, so that
 * several processes (a monitor and applications, which may be killed) use the
 * same device, each through fake_ebb_dev_ops.  It follows ebb_ioctl.h: sizes,
 * flags, ownership, limits, errors.  It neither waits nor fails by itself.
 *
 * Leases are memory files.  Blocks that have left one raise SIGBUS where the
 * process that made them leave has mapped them.
 */
#ifndef FAKE_EBB_DEV_H
#define FAKE_EBB_DEV_H

#include "guest-monitor/libebb/dev.h"

#define FAKE_EBB_MAX_CPUS	64
#define FAKE_EBB_BLOCK_BYTES	(2ull << 20)

struct fake_ebb_dev;

/*
 * A VM with num_nodes nodes; startup[] and max[] CPUs on each, at most
 * FAKE_EBB_MAX_CPUS together.  The host has published no limits yet.  Serves on
 * path.  Aborts the test if it can not be set up.
 */
struct fake_ebb_dev *fake_ebb_dev_create(const char *path, uint32_t num_nodes,
					 const uint32_t *startup, const uint32_t *max);
void fake_ebb_dev_destroy(struct fake_ebb_dev *dev);

/* What an application opens; the path is that of the device. */
extern const struct ebb_dev_ops fake_ebb_dev_ops;

/* The host's side. */
void fake_ebb_dev_set_limit(struct fake_ebb_dev *dev, uint32_t node, uint32_t limit,
			    uint64_t deadline_ns);
/*
 * From now on the limits say what they say now, whatever is added or removed, until
 * they are let go: the host's word on it is on its way.
 */
void fake_ebb_dev_delay_limits(struct fake_ebb_dev *dev, int is_delayed);
/* Whether the device knows of lending (it does not at first), and how it would like CPUs back. */
void fake_ebb_dev_set_lend(struct fake_ebb_dev *dev, int can_lend);
void fake_ebb_dev_set_tier(struct fake_ebb_dev *dev, uint32_t node, uint32_t tier);
/* Takes the core of a CPU away; -ENOENT. */
int fake_ebb_dev_force(struct fake_ebb_dev *dev, uint32_t cpu);
/* From now on the node has a pool of that size; limits are 0 until they are set. */
void fake_ebb_dev_set_pool(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes);
void fake_ebb_dev_set_mem_limit(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes,
				uint64_t deadline_ns);
/* So many bytes have left their leases and are still in use by the kernel. */
void fake_ebb_dev_set_draining(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes);
/*
 * Revokes blocks of a node, the last ones of the last leases first; returns bytes.
 * Where this process maps them they raise SIGBUS when it returns; other processes
 * go on seeing them.
 */
uint64_t fake_ebb_dev_revoke(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes);
/* Revokes the blocks that this process has mapped there; -ENOENT if one is not held. */
int fake_ebb_dev_revoke_at(struct fake_ebb_dev *dev, const void *addr, uint64_t bytes);
/* The device is gone for all who have it open, and can not be opened. */
void fake_ebb_dev_unplug(struct fake_ebb_dev *dev);
/* Opens work again, with the startup set only. */
void fake_ebb_dev_replug(struct fake_ebb_dev *dev);

/* What the next opens are told as the driver's version. */
void fake_ebb_dev_set_abi(struct fake_ebb_dev *dev, uint32_t abi_version);

/* Observation. */
uint32_t fake_ebb_dev_held(struct fake_ebb_dev *dev, uint32_t node);
uint64_t fake_ebb_dev_leased_bytes(struct fake_ebb_dev *dev, uint32_t node);
uint32_t fake_ebb_dev_num_leases(struct fake_ebb_dev *dev);
uint32_t fake_ebb_dev_num_opens(struct fake_ebb_dev *dev);
/* CPUs added and removed since the start, by anybody. */
void fake_ebb_dev_traffic(struct fake_ebb_dev *dev, uint32_t *ret_added, uint32_t *ret_removed);
/* How often a CPU was lent or parked, by anybody. */
uint32_t fake_ebb_dev_num_lent(struct fake_ebb_dev *dev);
/* How many reports there were, and the last one. */
uint32_t fake_ebb_dev_telemetry(struct fake_ebb_dev *dev, struct virtio_ebb_telemetry *ret);

/* The host promises a dedicated cache; without a promise the device knows of no such thing. */
void fake_ebb_dev_promise(struct fake_ebb_dev *dev, uint32_t mib);

/* The host asks what memory is worth, and says what it made of the answers. */
void fake_ebb_dev_ask_vom(struct fake_ebb_dev *dev, uint32_t seq);
void fake_ebb_dev_set_cutoff(struct fake_ebb_dev *dev, uint32_t node, uint64_t cutoff);
/* What EBB_IOC_VOM says from now on; 0: it accepts. */
void fake_ebb_dev_set_vom_error(struct fake_ebb_dev *dev, int error);
/* How often it was called, and what was accepted last. */
uint32_t fake_ebb_dev_vom(struct fake_ebb_dev *dev, struct ebb_vom *ret);

#endif /* FAKE_EBB_DEV_H */
