/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads in the background what a lazy recovery left in the checkpoint (recover_lazy.h), block after
 * block in the order of the file. Rows come in as records that were not used for long: those that
 * transactions wanted stay when memory is short, and these go to disk, as after an ordinary
 * recovery. If there is no room at all it waits. While transactions read records themselves it
 * leaves the disk to them after each block, for a third of the time that this took: a quarter of
 * all.
 *
 * A block of which something cannot be read is passed over: who wants the record meets the error,
 * and so do checkpoints.
 *
 * The checkpoint's thread calls this between its other work.
 */
#ifndef OLTP_LAZY_LOAD_H
#define OLTP_LAZY_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp_durable.h"

struct cold_block;
struct oltp_engine;
struct oltp_worker;

/* Without another bound: so much that a disk has time for transactions. */
#define LAZY_LOAD_BYTES_PER_S	(128ull << 20)
#define LAZY_LOAD_NOTHING	((uint64_t)OLTP_LAZY_NO_LOAD << 20)
#define LAZY_LOAD_TO_OTHERS		3u

struct lazy_load {
	struct oltp_engine *engine;	/* NULL: there is nothing to load */
	uint64_t bytes_per_s;
	uint64_t next_ns;		/* not before */
	uint64_t fetches;		/* of transactions, when a block was read last */
	uint64_t next;			/* for cold_checkpoint_take */
	bool has_found;			/* a block, since next was 0 */
	struct oltp_worker *worker;
	uint8_t *buffer;
	uint64_t offset;		/* of what is in it */
	struct cold_block *block;	/* the one that is read, pinned; NULL: none */
};

/* bytes_per_s: 0 means LAZY_LOAD_BYTES_PER_S; with LAZY_LOAD_NOTHING it is never due. */
void lazy_load_begin(struct lazy_load *load, struct oltp_engine *engine, uint64_t bytes_per_s);

static inline bool lazy_load_is_due(const struct lazy_load *load, uint64_t now_ns)
{
	return load->engine && now_ns >= load->next_ns;
}

/* When it is due: loads a block, or tries to. */
void lazy_load_step(struct lazy_load *load);

/* Done, or given up. */
void lazy_load_end(struct lazy_load *load);

#endif
