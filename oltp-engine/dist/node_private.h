/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node's inside. Threads: one per connection of the peer (session.c), one that finishes what
 * sessions and clients had to leave (keeper.c), one that accepts (node.c); and the workers, each
 * with its client (client.c).
 */
#ifndef DIST_NODE_PRIVATE_H
#define DIST_NODE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "book.h"
#include "conn.h"
#include "dist.h"
#include "log.h"

struct dist_session;

struct dist_node {
	struct dist_node_config config;
	char *listen, *peer;		/* copies */
	struct dist_log *log;
	struct dist_book book;
	uint32_t incarnation;
	_Atomic uint64_t seq;
	_Atomic int error;		/* sticky */
	_Atomic bool is_stopping;
	_Atomic uint64_t served, asked_commits, asked_aborts;
	uint64_t recovered, recovered_in_doubt;	/* written before any thread runs */
	int listen_fd;
	pthread_t accepter, keeper;
	pthread_mutex_t sessions_lock;
	struct dist_session *sessions;
};

/* The node cannot go on; the first reason counts. */
void dist_node_fail(struct dist_node *node, int rc);

/* A participant says that it has committed: nobody will ask any more. */
void dist_node_confirmed(struct dist_node *node, const struct dist_gtid *gtid);

/* recover.c: brings the table and the book to what the log says, and opens it. */
int dist_node_recover(struct dist_node *node);

/* session.c: serves a connection, and closes it at its end. Errors: -ENOMEM, -EAGAIN. */
int dist_session_start(struct dist_node *node, int fd);
/* Waits for those that have ended, or tells all to end and waits for them. */
void dist_sessions_reap(struct dist_node *node, bool end_all);

/* What a participant needs to carry its actions out; all but the first two for a PREPARE only. */
struct dist_part_io {
	struct dist_conn *conn;
	bool is_broken;			/* the connection: what was sent may not have come */
	const uint8_t *redo;
	uint32_t redo_bytes;
	const struct dist_reply *reply;
	uint64_t no_reason;		/* enum oltp_rc of a "no" */
};

/* Carries out the actions of the participant's machine, and those that follow from them. */
void dist_part_run(struct dist_node *node, struct dist_part_entry *entry,
		   struct dist_actions *actions, struct dist_part_io *io);

/* keeper.c: runs until the node stops. */
void *dist_keeper_main(void *node);

#endif
