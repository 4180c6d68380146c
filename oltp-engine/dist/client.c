// SPDX-License-Identifier: GPL-2.0-or-later
/* The coordinator's side, on the worker's own thread. See node_private.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node_private.h"
#include "oltp-engine/src/base/clock.h"
#include "redo.h"

#define RECONNECT_NS	50000000ull
/* How long a transaction takes while the peer cannot be reached, so that workers do not spin. */
#define REFUSED_US	2000u

struct dist_client {
	struct dist_node *node;
	struct oltp_worker *worker;
	struct dist_conn conn;
	uint64_t retry_ns;		/* no attempt to connect before */
	struct dist_redo redo;
	struct dist_reply reply;
	uint8_t redo_payload[DIST_LOG_PAYLOAD_MAX];
	uint32_t redo_bytes;
	/* The transaction at hand. */
	struct dist_coord_entry *entry;	/* not to be looked at once the decision is out */
	uint8_t state;			/* of the machine, after the last step made here */
	struct dist_gtid gtid;
	const struct dist_op *ops;
	uint32_t n_ops;
	enum oltp_rc no_reason;
};

int dist_client_create(struct dist_node *node, struct oltp_worker *worker,
		       struct dist_client **ret_client)
{
	struct dist_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->node = node;
	client->worker = worker;
	client->conn.fd = -1;
	*ret_client = client;
	return 0;
}

void dist_client_destroy(struct dist_client *client)
{
	if (!client)
		return;
	dist_conn_close(&client->conn);
	free(client);
}

struct dist_redo *dist_client_redo(struct dist_client *client)
{
	return &client->redo;
}

void dist_client_begin(struct dist_client *client)
{
	client->redo.n = 0;
	client->redo.is_full = false;
}

static bool is_connected(struct dist_client *client)
{
	uint64_t now_ns;

	if (client->conn.fd >= 0)
		return true;
	now_ns = clock_now_ns();
	if (now_ns >= client->retry_ns) {
		client->retry_ns = now_ns + RECONNECT_NS;
		if (!dist_conn_open(&client->conn, client->node->peer, client->node->config.id))
			return true;
	}
	usleep(REFUSED_US);
	return false;
}

static int send_message(struct dist_client *client, enum dist_type type)
{
	bool is_prepare = type == DIST_PREPARE;
	size_t bytes = is_prepare ? client->n_ops * sizeof(*client->ops) : 0;
	struct dist_frame frame = dist_frame_make(type, &client->gtid,
						  is_prepare ? client->n_ops : 0, bytes);

	return client->conn.fd < 0 ? -EPIPE : dist_conn_send(&client->conn, &frame, client->ops);
}

static int log_decision(struct dist_client *client)
{
	uint64_t end;
	int rc = dist_log_append(client->node->log, DIST_RECORD_DECIDED, &client->gtid,
				 client->redo_payload, client->redo_bytes, &end);

	return rc ?: dist_log_force(client->node->log, end);
}

/* A step of the machine, which others look at. */
#define STEP(client, call) do { \
	pthread_mutex_lock(&(client)->node->book.lock); \
	call; \
	(client)->state = (client)->entry->coord.state; \
	pthread_mutex_unlock(&(client)->node->book.lock); \
} while (0)

static void break_off(struct dist_client *client, struct dist_actions *actions)
{
	dist_conn_close(&client->conn);
	STEP(client, dist_coord_lost(&client->entry->coord, 0, actions));
}

/* One action; *actions is replaced where another step follows from it. */
static void act(struct dist_client *client, enum dist_do what, struct dist_actions *actions)
{
	const struct dist_times *times = &client->node->config.times;
	int rc;

	switch (what) {
	case DIST_SEND_PREPARE:
		if (send_message(client, DIST_PREPARE))
			break_off(client, actions);
		break;
	case DIST_SEND_COMMIT:
		/* If it does not arrive, the participant asks for it. */
		if (send_message(client, DIST_COMMIT))
			dist_conn_close(&client->conn);
		break;
	case DIST_SEND_ABORT:
		if (send_message(client, DIST_ABORT))
			dist_conn_close(&client->conn);
		break;
	case DIST_LOG_COMMIT:
		rc = log_decision(client);
		if (rc)
			dist_node_fail(client->node, rc);
		STEP(client, dist_coord_logged(&client->entry->coord, !rc, times, clock_now_ns(),
					       actions));
		break;
	case DIST_ENGINE_COMMIT:
		if (oltp_txn_commit(client->worker))
			dist_node_fail(client->node, -EOWNERDEAD);
		break;
	case DIST_ENGINE_ABORT:
		oltp_txn_abort(client->worker);
		break;
	default:
		break;
	}
}

/* Actions that lead to another step are the last of their list. */
static void run(struct dist_client *client, struct dist_actions *actions)
{
	while (actions->n) {
		struct dist_actions now = *actions;

		actions->n = 0;
		for (uint32_t i = 0; i < now.n; i++)
			act(client, now.list[i].what, actions);
	}
}

static void take_vote(struct dist_client *client, const struct dist_frame *frame,
		      const void *payload, struct dist_actions *actions)
{
	uint64_t reason;

	if (!dist_gtid_is_equal(&frame->gtid, &client->gtid))
		return;
	if (frame->n == DIST_VOTE_NO) {
		memcpy(&reason, payload, sizeof(reason));
		client->no_reason = reason >= OLTP_CONFLICT && reason <= OLTP_LOST ?
					    (enum oltp_rc)reason : OLTP_IO;
	} else {
		client->reply.used = frame->bytes - DIST_FRAME_BYTES;
		memcpy(client->reply.bytes, payload, client->reply.used);
	}
	STEP(client, dist_coord_vote(&client->entry->coord, 0, frame->n, actions));
}

/* Takes the next message, or notes that there is none. */
static void listen_once(struct dist_client *client, struct dist_actions *actions)
{
	const struct dist_times *times = &client->node->config.times;
	const struct dist_frame *frame;
	const void *payload;
	int rc = dist_conn_receive(&client->conn, &frame, &payload);

	actions->n = 0;
	if (rc == -EAGAIN)
		STEP(client, dist_coord_tick(&client->entry->coord, times, clock_now_ns(),
					     actions));
	else if (rc)
		break_off(client, actions);
	else if (frame->type == DIST_VOTE)
		take_vote(client, frame, payload, actions);
	else if (frame->type == DIST_ACK)
		dist_node_confirmed(client->node, &frame->gtid);
	else
		break_off(client, actions);
}

static bool begin(struct dist_client *client, struct dist_actions *actions)
{
	struct dist_node *node = client->node;
	bool is_added;

	client->gtid = (struct dist_gtid){
		.node = node->config.id,
		.incarnation = node->incarnation,
		.seq = atomic_fetch_add_explicit(&node->seq, 1, memory_order_relaxed),
	};
	client->no_reason = OLTP_IO;
	client->reply.used = 0;
	client->state = DIST_COORD_PREPARING;
	pthread_mutex_lock(&node->book.lock);
	client->entry = dist_book_coord_add(&node->book, &client->gtid);
	is_added = client->entry;
	if (is_added)
		dist_coord_start(&client->entry->coord, 1, &node->config.times, clock_now_ns(),
				 actions);
	pthread_mutex_unlock(&node->book.lock);
	return is_added;
}

/* Returns the outcome. A decision that is not confirmed stays in the book. */
static enum oltp_rc finish(struct dist_client *client)
{
	struct dist_book *book = &client->node->book;
	struct dist_coord_entry *entry;
	enum oltp_rc rc = OLTP_IO;

	pthread_mutex_lock(&book->lock);
	/* It may have been confirmed, and be gone, by way of another connection. */
	entry = dist_book_coord_find(book, &client->gtid);
	if (!entry || entry->coord.state == DIST_COORD_COMMITTING ||
	    entry->coord.state == DIST_COORD_COMMITTED)
		rc = OLTP_OK;
	else if (entry->coord.state == DIST_COORD_ABORTED)
		rc = client->no_reason;
	if (entry && dist_coord_is_done(&entry->coord))
		dist_book_coord_remove(book, entry);
	pthread_mutex_unlock(&book->lock);
	return rc;
}

enum oltp_rc dist_client_commit(struct dist_client *client, const struct dist_op *ops, uint32_t n,
				const struct dist_reply **ret_reply)
{
	struct dist_actions actions;
	enum oltp_rc rc = OLTP_OK;
	int bytes = dist_redo_pack(&client->redo, client->redo_payload);

	if (n < 1 || n > DIST_OPS_MAX)
		rc = OLTP_INVALID;
	else if (bytes < 0)
		rc = OLTP_FULL;
	else if (dist_node_error(client->node) || !is_connected(client))
		rc = OLTP_IO;
	client->redo_bytes = (uint32_t)bytes;
	client->ops = ops;
	client->n_ops = n;
	if (!rc && !begin(client, &actions))
		rc = OLTP_NO_MEMORY;
	if (rc) {
		oltp_txn_abort(client->worker);
		return rc;
	}
	run(client, &actions);
	while (client->state == DIST_COORD_PREPARING) {
		listen_once(client, &actions);
		run(client, &actions);
	}
	rc = finish(client);
	*ret_reply = &client->reply;
	return rc;
}
