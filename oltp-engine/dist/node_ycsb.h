/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * YCSB over two partitions of the same size: each transaction has a number of its operations on the
 * partition that is not its node's own. That is either a node of its own, reached by two-phase
 * commit, or a second table in the same engine.
 */
#ifndef DIST_NODE_YCSB_H
#define DIST_NODE_YCSB_H

#include "dist.h"
#include "oltp-engine/bench/ycsb/ycsb.h"

struct node_ycsb;

/* Creates and loads the tables; has_second: also the other partition, in this engine. */
struct node_ycsb_config {
	struct ycsb_config ycsb;
	bool has_second;
	uint32_t second_cpu;	/* the second table is loaded on this CPU, so lies on its node */
	bool is_second_placed;	/* second_cpu counts */
};

/* Errors: those of ycsb_create and ycsb_load, -EINVAL (no such CPU). */
int node_ycsb_create(struct oltp_engine *engine, const struct node_ycsb_config *config,
		     struct node_ycsb **ret_work);
void node_ycsb_destroy(struct node_ycsb *work);

/* For dist_node_open. */
struct dist_app node_ycsb_app(struct node_ycsb *work);

/*
 * The pool's workload from now on: `remote` operations of each transaction go to the other
 * partition, through node if that is not NULL. No worker may be attached.
 */
struct oltp_workload node_ycsb_workload(struct node_ycsb *work, struct dist_node *node,
					uint32_t remote);

/*
 * Counts of committed transactions that workers began here, since the start. Workers add theirs
 * when they end.
 */
struct node_ycsb_books {
	uint64_t own_updates;
	uint64_t other_updates;
	uint64_t inconsistent_reads;	/* saw a field newer than its record */
};

void node_ycsb_books_read(struct node_ycsb *work, struct node_ycsb_books *ret_books);

/* second: of the other partition; there must be one. */
void node_ycsb_audit(struct node_ycsb *work, bool second, struct ycsb_audit *ret_audit);

#endif
