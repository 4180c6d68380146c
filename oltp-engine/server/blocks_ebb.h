/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory for records from the host's pools, through libebb: a provider of blocks (oltp.h). Sets the
 * handle's callbacks for shares and for revoked blocks, so ebb_dispatch() sets the engine's limits,
 * on the thread that calls it.
 */
#ifndef OLTP_BLOCKS_EBB_H
#define OLTP_BLOCKS_EBB_H

#include "ebb.h"
#include "oltp.h"

struct blocks_ebb;

extern const struct oltp_block_ops blocks_ebb_ops;

/* max_bytes: take no more than that, all nodes together; 0: no bound. Error: -ENOMEM. */
int blocks_ebb_create(struct ebb *ebb, uint64_t max_bytes, struct blocks_ebb **ret_blocks);

/* After the engine is closed, before the handle is. Accepts NULL. */
void blocks_ebb_destroy(struct blocks_ebb *blocks);

/*
 * Sets the engine that uses the blocks; NULL, before it is closed: none any more. When the host
 * asks, it is told what the engine's memory is worth (vom_ebb.h). The engine's SIGBUS handler is
 * set, so that it outlives revokes; if another engine of the process has it, a revoke kills, as
 * libebb says. From here on a thread dispatches the handle, for a table may take long to load,
 * until blocks_ebb_pump_stop.
 */
void blocks_ebb_attach(void *blocks, struct oltp_engine *engine);
void blocks_ebb_pump_stop(struct blocks_ebb *blocks);

/* Starts that thread again, with an engine attached, when nobody else dispatches any more. */
void blocks_ebb_pump_start(struct blocks_ebb *blocks);

/*
 * For the reports that follow (ebb_report): how often the engine has read from disk, and how often
 * it would have with the memory that the host promises (oltp_set_mem_promise), which is told the
 * engine as it comes. With an engine attached; from any thread. Returns the size of that memory in
 * MiB as the engine simulates it; 0: none.
 */
uint32_t blocks_ebb_count_ios(struct blocks_ebb *blocks);

/*
 * Dispatches the handle until the host has said something of memory, at most timeout_ms. Errors:
 * -ETIME, -ENODEV, those of poll(2).
 */
int blocks_ebb_wait(struct blocks_ebb *blocks, uint32_t timeout_ms);

#endif
