/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp_durable.h - what of the engine outlives its process. Included by oltp.h.
 *
 * Every transaction that changes anything adds what it changed to a log. The log is written in
 * groups: once per group interval a thread of the engine closes an epoch, writes what was
 * committed in it, and waits until it is on disk. Locks are not held for that: whoever has seen
 * what a transaction wrote is in the same epoch or a later one, and so is not durable before it.
 *
 * Guarantees (with struct oltp_config.durability):
 *
 *   D1  commit: what was acknowledged (oltp_durable_wait returned 0; the worker pool counted it as
 *       committed) is there after a crash or loss of power.
 *   D2  async: of what was committed, what is older than two group intervals and one write of the
 *       log is there afterwards. Both: what is there is a prefix: all that each transaction that
 *       is there has seen is there as well.
 *   D3  When the log cannot be written the engine says so and stops: nothing is acknowledged that
 *       is not on disk, and transactions get OLTP_IO. It is never tried again, since what a disk
 *       has of a failed sync is not known.
 *
 * Caveat, mode commit: oltp_txn_commit returns before anything is on disk. A result, of a
 * transaction that only read as well, must not be shown to anybody before oltp_durable_wait.
 */
#ifndef OLTP_DURABLE_PUBLIC_H
#define OLTP_DURABLE_PUBLIC_H

#include "oltp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "off", "async", "commit"; never NULL. Error of parsing: -EINVAL. */
const char *oltp_durability_name(enum oltp_durability durability);
int oltp_durability_parse(const char *name, enum oltp_durability *ret_durability);

/*
 * The epoch of the worker's last committed transaction; 0: there was none, or durability is off.
 * The worker's thread only.
 */
uint64_t oltp_worker_epoch(const struct oltp_worker *worker);

/* The newest epoch of which everything is on disk; UINT64_MAX with durability off. Any thread. */
uint64_t oltp_durable_epoch(const struct oltp_engine *engine);

/*
 * Waits until everything of the epoch is on disk. Any thread, but not one whose transaction holds
 * locks: others would wait for the disk with it. Errors: -EIO, -ENOSPC, ... (why the log failed;
 * whether the epoch is on disk is not known), -EINVAL (nothing was recovered yet). 0 at once with
 * durability off.
 */
int oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch);

/* Since the engine was opened. */
struct oltp_durable_stats {
	bool has_failed;
	int error;		/* -errno of what failed; 0: nothing did */
	bool is_direct;		/* written around the page cache (O_DIRECT) */
	bool is_uring;		/* written with io_uring */
	uint64_t epoch;		/* of now */
	uint64_t durable_epoch;
	uint64_t groups;	/* written */
	uint64_t bytes;		/* of them, headers and padding included */
	uint64_t entries;	/* transactions in them */
	uint64_t segments;	/* files in use */
	uint64_t waits;		/* times that a worker had to wait for room before it began */
	/* Of the writes of groups, sync included; 0: there was none. */
	double write_p50_us, write_p99_us;
};

/* Any thread. All 0 with durability off. */
void oltp_durable_stats_read(struct oltp_engine *engine, struct oltp_durable_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
