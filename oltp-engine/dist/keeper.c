// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finishes transactions that were left unfinished because a connection broke or a node crashed:
 * asks for the outcome of those that this node takes part in and is in doubt about, and repeats
 * decisions that the peer has not confirmed. One thread, one connection, one transaction at a time.
 * See node_private.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "node_private.h"
#include "oltp-engine/src/base/clock.h"

#define ANSWER_WAITS	(400u / DIST_CONN_WAIT_MS)

struct keeper {
	struct dist_node *node;
	struct dist_conn conn;
};

static bool is_connected(struct keeper *k)
{
	return k->conn.fd >= 0 ||
	       !dist_conn_open(&k->conn, k->node->peer, k->node->config.id);
}

/* The peer's answer about the transaction; DIST_PENDING also if there is none. */
static enum dist_type hear(struct keeper *k, const struct dist_gtid *gtid)
{
	const struct dist_frame *frame;
	const void *payload;
	int rc = -EAGAIN;

	for (uint32_t i = 0; rc == -EAGAIN && i < ANSWER_WAITS; i++) {
		if (atomic_load(&k->node->is_stopping))
			break;
		rc = dist_conn_receive(&k->conn, &frame, &payload);
	}
	if (!rc && dist_gtid_is_equal(&frame->gtid, gtid))
		return frame->type;
	/* A late answer must not be taken for that to another question. */
	dist_conn_close(&k->conn);
	return DIST_PENDING;
}

static struct dist_part_entry *orphan_due(struct dist_node *node, uint64_t now_ns)
{
	struct dist_part_entry *entry;

	pthread_mutex_lock(&node->book.lock);
	for (entry = node->book.parts; entry; entry = entry->next) {
		if (entry->is_orphan && entry->part.deadline_ns <= now_ns)
			break;
	}
	pthread_mutex_unlock(&node->book.lock);
	return entry;
}

static void resolve(struct keeper *k, struct dist_part_entry *entry)
{
	struct dist_node *node = k->node;
	struct dist_part_io io = { .conn = &k->conn };
	struct dist_actions actions;

	dist_part_tick(&entry->part, &node->config.times, clock_now_ns(), &actions);
	if (!is_connected(k))
		return;
	dist_part_run(node, entry, &actions, &io);
	switch (hear(k, &entry->gtid)) {
	case DIST_COMMIT:
		dist_part_commit(&entry->part, &actions);
		atomic_fetch_add(&node->asked_commits, 1);
		break;
	case DIST_ABORT:
		dist_part_abort(&entry->part, &actions);
		atomic_fetch_add(&node->asked_aborts, 1);
		break;
	default:
		return;
	}
	dist_part_run(node, entry, &actions, &io);
	if (!dist_part_is_done(&entry->part))
		return;
	pthread_mutex_lock(&node->book.lock);
	dist_book_part_remove(&node->book, entry);
	pthread_mutex_unlock(&node->book.lock);
	oltp_worker_destroy(entry->worker);
	free(entry);
}

/* True: *ret_gtid is a decision to be repeated now. */
static bool commit_due(struct dist_node *node, uint64_t now_ns, struct dist_gtid *ret_gtid)
{
	struct dist_actions actions = { 0 };

	pthread_mutex_lock(&node->book.lock);
	for (uint32_t i = 0; i < DIST_BOOK_BUCKETS && !actions.n; i++) {
		struct dist_coord_entry *entry = node->book.buckets[i];

		for (; entry && !actions.n; entry = entry->next) {
			/* Others are in their workers' hands. */
			if (entry->coord.state != DIST_COORD_COMMITTING)
				continue;
			dist_coord_tick(&entry->coord, &node->config.times, now_ns, &actions);
			*ret_gtid = entry->gtid;
		}
	}
	pthread_mutex_unlock(&node->book.lock);
	return actions.n;
}

static void repeat(struct keeper *k, const struct dist_gtid *gtid)
{
	struct dist_frame frame = dist_frame_make(DIST_COMMIT, gtid, 0, 0);

	if (!is_connected(k))
		return;
	if (dist_conn_send(&k->conn, &frame, NULL))
		dist_conn_close(&k->conn);
	else if (hear(k, gtid) == DIST_ACK)
		dist_node_confirmed(k->node, gtid);
}

void *dist_keeper_main(void *arg)
{
	struct keeper *k = calloc(1, sizeof(*k));
	struct dist_node *node = arg;

	if (!k) {
		dist_node_fail(node, -ENOMEM);
		return NULL;
	}
	k->node = node;
	k->conn.fd = -1;
	while (!atomic_load(&node->is_stopping)) {
		uint64_t now_ns = clock_now_ns();
		struct dist_part_entry *entry = orphan_due(node, now_ns);
		struct dist_gtid gtid;

		if (entry)
			resolve(k, entry);
		else if (commit_due(node, now_ns, &gtid))
			repeat(k, &gtid);
		else
			usleep(DIST_CONN_WAIT_MS * 1000);
	}
	dist_conn_close(&k->conn);
	free(k);
	return NULL;
}
