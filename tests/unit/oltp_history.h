/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A checker for histories of committed transactions: is there a serial order that explains them?
 *
 * Every record carries the number of its version, counted up by each write, and the transaction
 * that wrote it. A history lists what each committed transaction read and wrote. What follows from
 * it: writer of v before reader of v, reader of v before writer of v + 1, writer of v before writer
 * of v + 1. The history is serializable if the graph of these has no cycle.
 */
#ifndef OLTP_HISTORY_H
#define OLTP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_INITIAL		0u	/* the transaction that wrote version 0 of everything */

struct history_op {
	uint32_t txn;		/* 1 to n_txns */
	uint32_t key;		/* 0 to n_keys - 1 */
	uint32_t version;	/* read, or written (the one read plus one) */
	uint32_t writer;	/* read: who, as the record says, wrote that version */
	bool is_write;
};

enum history_verdict {
	HISTORY_SERIALIZABLE,
	HISTORY_CYCLE,
	HISTORY_LOST_UPDATE,	/* two committed transactions wrote the same version, or a gap */
	HISTORY_DIRTY_READ,	/* a version read that no committed transaction wrote */
	HISTORY_BAD,		/* numbers out of range */
};

enum history_verdict history_check(const struct history_op *ops, size_t n_ops, uint32_t n_txns,
				   uint32_t n_keys);

#endif
