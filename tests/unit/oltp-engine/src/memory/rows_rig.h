/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows with ordered indexes, of which some are being changed, in an engine that loses memory. */
#ifndef ROWS_RIG_H
#define ROWS_RIG_H

#include "oltp_memory_rig.h"
#include "tests/unit/oltp-engine/src/index/ordered_rig.h"

/* What the last scan showed. */
extern struct ordered_seen rows_seen;

/* A row of the rig's table; its group is a tenth of its key, its number the complement. */
enum oltp_rc rows_insert(struct rig *rig, uint64_t key);

/*
 * Indexes for the rig's table, and rows 0 to n - 1, of which the last ten are deleted again. The
 * transaction of rig->w that is open then adds rows 9000 to 9004, and deletes row 2500 and adds it
 * again.
 */
void rows_fill(struct rig *rig, struct ordered_rig *ret_rows, uint64_t n);

/* Sort keys from first to last, in a transaction of its own. */
enum oltp_rc rows_scan(struct rig *rig, struct oltp_index *index, uint64_t first, uint64_t last);

#endif
