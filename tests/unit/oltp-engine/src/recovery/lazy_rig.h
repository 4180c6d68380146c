/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine of oltp_memory_rig.h with a log on a disk that fails (log_faults.h). */
#ifndef LAZY_RIG_H
#define LAZY_RIG_H

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define LAZY_RIG_ROWS	(4 * RIG_PER_BLOCK)
#define PLENTY		(64 * MIB)

/* The disk that the engine writes to; fault_disk_ops unless a test says otherwise. */
extern const struct io_ops *lazy_rig_io;

/*
 * The engine and its table, not recovered and without a worker. 0, or -errno: it is not open.
 * with_disk: records can be cold.
 */
int lazy_rig_try_open(struct rig *rig, struct fault_disk *disk, uint64_t limit_bytes,
		      bool with_disk);

/* The same; it must not fail. */
void lazy_rig_open(struct rig *rig, struct fault_disk *disk, uint64_t limit_bytes, bool with_disk);

#endif
