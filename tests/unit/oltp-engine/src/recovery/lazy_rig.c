// SPDX-License-Identifier: GPL-2.0-or-later
/* See lazy_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lazy_rig.h"

const struct io_ops *lazy_rig_io = &fault_disk_ops;

int lazy_rig_try_open(struct rig *rig, struct fault_disk *disk, uint64_t limit_bytes,
		      bool with_disk)
{
	struct oltp_config config = {
		.node = -1,
		.txn_undo_bytes = 1 << 20,
		.blocks = &oltp_blocks_native_ops,
		.cold_dir = with_disk ? rig_dir() : NULL,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = "/disk",
		.log_segment_mib = 2,
		.log_io = lazy_rig_io,
		.log_io_ctx = disk,
	};
	int rc;

	*rig = (struct rig){ 0 };
	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &rig->blocks), 0);
	config.blocks_ctx = rig->blocks;
	rc = oltp_engine_open(&config, &rig->engine);
	if (!rc) {
		oltp_blocks_native_attach(rig->blocks, rig->engine);
		rc = oltp_table_create(rig->engine, RIG_RECORD_BYTES, LAZY_RIG_ROWS, &rig->table);
	}
	if (rc)
		rig_close(rig);
	return rc;
}

void lazy_rig_open(struct rig *rig, struct fault_disk *disk, uint64_t limit_bytes, bool with_disk)
{
	assert_int_equal(lazy_rig_try_open(rig, disk, limit_bytes, with_disk), 0);
}
