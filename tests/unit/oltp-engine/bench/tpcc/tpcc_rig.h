/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TPC-C-like workload at a tiny scale, and ways to look at its tables, for tests. */
#ifndef TPCC_RIG_H
#define TPCC_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/bench/tpcc/tpcc_private.h"

#define RIG_CUSTOMERS	40u	/* of a district */
#define RIG_ITEMS	120u
#define RIG_WAREHOUSES	2u
#define RIG_DELIVERED	(RIG_CUSTOMERS * 7 / 10)	/* of the orders to begin with */

struct tpcc_rig {
	struct oltp_engine *engine;
	struct tpcc *tpcc;
	struct oltp_worker *worker;
	struct oltp_workload workload;
	struct tpcc_worker *tw;	/* attached, for worker */
};

struct tpcc_config tpcc_rig_config(void);

/* Of cmocka: a rig as *state, under NO_WAIT. */
int tpcc_rig_setup(void **state);
int tpcc_rig_teardown(void **state);

/* Loaded, with two threads. */
void tpcc_rig_open(struct tpcc_rig *rig, const struct tpcc_config *config, enum oltp_cc cc);
void tpcc_rig_close(struct tpcc_rig *rig);

/* The worker's books are written, and tw is gone. */
void tpcc_rig_detach(struct tpcc_rig *rig);

/* Copies the row; false: there is none. */
bool tpcc_rig_get(struct tpcc_rig *rig, enum tpcc_table table, uint64_t key, void *ret_row,
		  size_t bytes);

/* Over what is there; for columns that are not of a sort key. */
void tpcc_rig_put(struct tpcc_rig *rig, enum tpcc_table table, uint64_t key, uint32_t offset,
		  const void *bytes, uint32_t n);
void tpcc_rig_delete(struct tpcc_rig *rig, enum tpcc_table table, uint64_t key);

uint64_t tpcc_rig_count(struct tpcc_rig *rig, enum tpcc_table table);

/* Changes if any byte of any row of any table does, or what an ordered index has. */
uint64_t tpcc_rig_content(struct tpcc_rig *rig);

/* begin, ops->run, then commit if that was OLTP_OK, else abort. */
enum oltp_rc tpcc_rig_run(struct tpcc_rig *rig, const struct tpcc_kind_ops *ops,
			  const struct tpcc_txn *txn);

/* Fails with the whole verdict printed. */
void tpcc_rig_assert_good(struct tpcc_rig *rig);

#endif
