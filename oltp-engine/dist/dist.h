/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine as one of two nodes: transactions that also read and write records of the other node,
 * by two-phase commit over a socket (twophase.h says how, message.h what goes over the wire).
 *
 * A node coordinates the transactions of its own workers and takes part in those of its peer's.
 * What it promises:
 *
 *   - A distributed transaction commits on both nodes or on none, whatever crashes when.
 *   - Serializable over both nodes: all locks are taken before the first is released. Exception:
 *     the read locks of a node that crashes are gone.
 *   - No deadlock between nodes: the engine must run under OLTP_CC_NO_WAIT, so nobody waits for a
 *     lock.
 *   - Its log brings back, over the table as first loaded, every distributed transaction that
 *     committed. It is no log for transactions on one node alone: those are lost in a crash.
 *
 * The engine's memory must not be revocable and its records must stay in memory: between its vote
 * and the decision a transaction must not fail.
 *
 * From its vote to the decision a participant stays in its transaction (oltp_txn_begin), however
 * long the coordinator is away. Meanwhile the engine can neither use again nor give back what any
 * transaction has deleted since the participant's began: slots of records, nodes of indexes, and
 * the blocks that they are in. Deletes and inserts beside a transaction in doubt need more memory,
 * and a limit of the pool that falls is not met.
 */
#ifndef DIST_H
#define DIST_H

#include <stdint.h>

#include "message.h"
#include "oltp.h"
#include "twophase.h"

struct dist_node;
struct dist_client;
struct dist_redo;

/* The results of reads. */
struct dist_reply {
	uint32_t used;
	uint8_t bytes[DIST_PAYLOAD_MAX];
};

/* Says what operations mean. Called on either node, for operations on its own table. */
struct dist_app {
	/*
	 * Executes one operation in the worker's running transaction. Reads append to the reply
	 * (OLTP_FULL if there is no room), writes are told to dist_redo_note. Any result but
	 * OLTP_OK aborts the whole transaction.
	 */
	enum oltp_rc (*execute)(void *ctx, struct oltp_worker *worker, const struct dist_op *op,
				struct dist_reply *reply, struct dist_redo *redo);
	/* May be NULL. */
	void (*prefetch)(void *ctx, struct oltp_worker *worker, const struct dist_op *ops,
			 uint32_t n);
	void *ctx;
	struct oltp_table *table;	/* that all writes go to */
};

/* Bytes [offset, offset + bytes) of the record were written, or will be before execute ends. */
void dist_redo_note(struct dist_redo *redo, uint64_t key, const void *record, uint32_t offset,
		    uint32_t bytes);

struct dist_node_config {
	uint32_t id;			/* differs from the peer's */
	struct oltp_engine *engine;
	struct dist_app app;
	const char *listen;		/* "unix:PATH" or "tcp:A.B.C.D:PORT" */
	const char *peer;
	const char *log_path;
	struct dist_times times;
};

extern const struct dist_times dist_times_default;

/*
 * Recovers from the log, then serves the peer on threads of its own. The table must be as it was
 * when the node first ran, and no worker may run yet. Errors: -EINVAL, -ENOMEM, -EBUSY (the log is
 * in use),
 * -EADDRINUSE and others of sockets and files, -EBADMSG (the log does not fit the table).
 */
int dist_node_open(const struct dist_node_config *config, struct dist_node **ret_node);

/*
 * Stops serving; all clients must be gone. Transactions in doubt stay so, in the log. Accepts NULL.
 */
void dist_node_close(struct dist_node *node);

/* 0, or why this node can no longer go on (its log failed): end the process and start again. */
int dist_node_error(const struct dist_node *node);

struct dist_node_stats {
	uint64_t served;		/* PREPAREs of the peer */
	uint64_t recovered;		/* distributed transactions that the log brought back */
	uint64_t recovered_in_doubt;	/* those among them whose outcome was asked for */
	uint64_t in_doubt;		/* now */
	uint64_t asked_commits;		/* in doubt, asked, and the answer was this */
	uint64_t asked_aborts;
	uint64_t unconfirmed;		/* commits that the peer has not confirmed yet, now */
};

void dist_node_stats_read(struct dist_node *node, struct dist_node_stats *ret_stats);

/* One per worker, used by its thread alone. Errors: -ENOMEM. */
int dist_client_create(struct dist_node *node, struct oltp_worker *worker,
		       struct dist_client **ret_client);
void dist_client_destroy(struct dist_client *client);

/* Begins a transaction: forgets the writes of the one before. */
void dist_client_begin(struct dist_client *client);

/* For dist_redo_note, of what the transaction writes on this node. */
struct dist_redo *dist_client_redo(struct dist_client *client);

/*
 * Ends the worker's running transaction together with operations on the other node: both or none.
 * OLTP_OK: committed, and *ret_reply (valid until the next call) is what the reads there returned.
 * Else it was aborted here, and is or will be there: OLTP_CONFLICT (run it again), what an
 * operation said there, OLTP_FULL (too many bytes written), or OLTP_IO: the peer cannot be reached,
 * did not vote in time, or this node's log failed (then the outcome is not known, see
 * dist_node_error).
 */
enum oltp_rc dist_client_commit(struct dist_client *client, const struct dist_op *ops, uint32_t n,
				const struct dist_reply **ret_reply);

#endif
