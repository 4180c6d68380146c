/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine with a log whose memory can be taken by force, for tests. */
#ifndef RESTORE_RIG_H
#define RESTORE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "tests/unit/oltp-engine/src/memory/taker_rig.h"

#define ROWS	(4 * RIG_PER_BLOCK)

struct restore_setup {
	struct fault_disk *disk;
	enum oltp_durability durability;
	uint32_t n_blocks;
	bool with_disk;		/* for cold records */
	bool is_small;		/* the index: many keys look like others */
};

/* The table, before the database is recovered; no worker. */
void restore_open_empty(struct taker *t, struct rig *rig, const struct restore_setup *setup);

/* Recovered, and a worker. */
void restore_open(struct taker *t, struct rig *rig, const struct restore_setup *setup);

/* By force, and tells. */
void restore_take(struct taker *t, struct rig *rig, uint32_t block);

struct oltp_restore_stats restore_stats(struct rig *rig);

/*
 * Calls fn once, at that read of any file, or write of a checkpoint, from now on (the first one is
 * 1), on the thread that makes it.
 */
void event_set(uint32_t call, void (*fn)(void *ctx), void *ctx);
bool event_has_come(void);

#endif
