// SPDX-License-Identifier: GPL-2.0-or-later
/* A participant's side: one thread per connection of the peer. See node_private.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node_private.h"
#include "oltp-engine/src/base/clock.h"
#include "redo.h"

struct dist_session {
	struct dist_session *next;
	struct dist_node *node;
	pthread_t thread;
	_Atomic bool is_ended;
	struct dist_conn conn;
	struct oltp_worker *worker;	/* NULL: left to the keeper, in the middle of its work */
	struct dist_part_entry *entry;	/* one that is not in the book */
	struct dist_redo redo;
	struct dist_reply reply;
	uint8_t redo_payload[DIST_LOG_PAYLOAD_MAX];
};

static void send_frame(struct dist_part_io *io, enum dist_type type, const struct dist_gtid *gtid,
		       uint32_t n, const void *payload, size_t bytes)
{
	struct dist_frame frame = dist_frame_make(type, gtid, n, bytes);

	io->is_broken = io->is_broken || dist_conn_send(io->conn, &frame, payload);
}

static void send_vote(const struct dist_part_entry *entry, struct dist_part_io *io)
{
	if (entry->part.vote == DIST_VOTE_NO)
		send_frame(io, DIST_VOTE, &entry->gtid, DIST_VOTE_NO, &io->no_reason,
			   sizeof(io->no_reason));
	else
		send_frame(io, DIST_VOTE, &entry->gtid, entry->part.vote, io->reply->bytes,
			   (io->reply->used + 7) & ~7u);
}

/* One action. *force: up to where the log must be on disk before the machine goes on. */
static int part_act(struct dist_node *node, struct dist_part_entry *entry, enum dist_do what,
		    struct dist_part_io *io, uint64_t *force)
{
	uint64_t end;

	switch (what) {
	case DIST_SEND_VOTE:
		send_vote(entry, io);
		return 0;
	case DIST_SEND_ACK:
		send_frame(io, DIST_ACK, &entry->gtid, 0, NULL, 0);
		return 0;
	case DIST_SEND_QUERY:
		send_frame(io, DIST_QUERY, &entry->gtid, 0, NULL, 0);
		return 0;
	case DIST_LOG_PREPARE:
		return dist_log_append(node->log, DIST_RECORD_PREPARE, &entry->gtid, io->redo,
				       io->redo_bytes, force);
	case DIST_LOG_COMMIT:
		return dist_log_append(node->log, DIST_RECORD_COMMIT, &entry->gtid, NULL, 0,
				       force);
	case DIST_LOG_ABORT:
		return dist_log_append(node->log, DIST_RECORD_ABORT, &entry->gtid, NULL, 0, &end);
	case DIST_ENGINE_COMMIT:
		return oltp_txn_commit(entry->worker) ? -EOWNERDEAD : 0;
	case DIST_ENGINE_ABORT:
		oltp_txn_abort(entry->worker);
		return 0;
	default:
		return -EINVAL;
	}
}

void dist_part_run(struct dist_node *node, struct dist_part_entry *entry,
		   struct dist_actions *actions, struct dist_part_io *io)
{
	while (actions->n) {
		uint64_t force = 0;
		int rc = 0;

		for (uint32_t i = 0; i < actions->n && !rc; i++)
			rc = part_act(node, entry, actions->list[i].what, io, &force);
		if (!rc && force)
			rc = dist_log_force(node->log, force);
		actions->n = 0;
		if (rc)
			dist_node_fail(node, rc);
		if (rc || force)
			dist_part_logged(&entry->part, !rc, &node->config.times, clock_now_ns(),
					 actions);
	}
}

/* Executes the operations; *ret_vote: the vote that follows. Returns the reason of a no. */
static enum oltp_rc execute(struct dist_session *s, const struct dist_op *ops, uint32_t n,
			    enum dist_vote *ret_vote, uint32_t *ret_redo_bytes)
{
	const struct dist_app *app = &s->node->config.app;
	enum oltp_rc rc = oltp_txn_begin(s->worker);
	int bytes;

	s->redo.n = 0;
	s->redo.is_full = false;
	s->reply.used = 0;
	if (!rc && app->prefetch)
		app->prefetch(app->ctx, s->worker, ops, n);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = app->execute(app->ctx, s->worker, &ops[i], &s->reply, &s->redo);
	bytes = rc ? 0 : dist_redo_pack(&s->redo, s->redo_payload);
	if (bytes < 0)
		rc = OLTP_FULL;
	*ret_redo_bytes = rc ? 0 : (uint32_t)bytes;
	*ret_vote = rc ? DIST_VOTE_NO : s->redo.n ? DIST_VOTE_YES : DIST_VOTE_READ;
	return rc;
}

/* Waits until the decision has come, or must be asked for. */
static void wait_decision(struct dist_session *s, struct dist_part_entry *entry,
			  struct dist_part_io *io)
{
	while (!io->is_broken && !dist_part_is_done(&entry->part) &&
	       entry->part.state == DIST_PART_PREPARED) {
		const struct dist_frame *frame;
		struct dist_actions actions = { 0 };
		const void *payload;
		int rc = dist_conn_receive(&s->conn, &frame, &payload);

		if (rc == -EAGAIN) {
			io->is_broken = clock_now_ns() >= entry->part.deadline_ns ||
					atomic_load(&s->node->is_stopping);
			continue;
		}
		if (rc || !dist_gtid_is_equal(&frame->gtid, &entry->gtid) ||
		    (frame->type != DIST_COMMIT && frame->type != DIST_ABORT)) {
			io->is_broken = true;
			continue;
		}
		if (frame->type == DIST_COMMIT)
			dist_part_commit(&entry->part, &actions);
		else
			dist_part_abort(&entry->part, &actions);
		dist_part_run(s->node, entry, &actions, io);
	}
}

/* The entry and the worker with its locks are the keeper's from here on. */
static void leave_to_keeper(struct dist_session *s, struct dist_part_entry *entry)
{
	pthread_mutex_lock(&s->node->book.lock);
	dist_part_lost(&entry->part, clock_now_ns());
	entry->is_orphan = true;
	pthread_mutex_unlock(&s->node->book.lock);
	s->worker = NULL;
}

static int serve_prepare(struct dist_session *s, const struct dist_frame *frame,
			 const struct dist_op *ops)
{
	struct dist_part_entry *entry = s->entry ?: calloc(1, sizeof(*entry));
	struct dist_part_io io = { .conn = &s->conn, .redo = s->redo_payload, .reply = &s->reply };
	struct dist_actions actions;
	enum dist_vote vote;

	if (!entry)
		return -ENOMEM;
	s->entry = NULL;
	memset(entry, 0, sizeof(*entry));
	entry->gtid = frame->gtid;
	entry->worker = s->worker;
	pthread_mutex_lock(&s->node->book.lock);
	dist_book_part_add(&s->node->book, entry);
	pthread_mutex_unlock(&s->node->book.lock);
	atomic_fetch_add_explicit(&s->node->served, 1, memory_order_relaxed);

	dist_part_prepare(&entry->part, &actions);
	io.no_reason = execute(s, ops, frame->n, &vote, &io.redo_bytes);
	dist_part_executed(&entry->part, vote, &s->node->config.times, clock_now_ns(), &actions);
	dist_part_run(s->node, entry, &actions, &io);
	wait_decision(s, entry, &io);
	if (!dist_part_is_done(&entry->part)) {
		leave_to_keeper(s, entry);
		return -EPIPE;
	}
	pthread_mutex_lock(&s->node->book.lock);
	dist_book_part_remove(&s->node->book, entry);
	pthread_mutex_unlock(&s->node->book.lock);
	s->entry = entry;
	return io.is_broken ? -EPIPE : 0;
}

static int answer(struct dist_session *s, const struct dist_gtid *gtid, enum dist_type type)
{
	struct dist_frame frame = dist_frame_make(type, gtid, 0, 0);

	return dist_conn_send(&s->conn, &frame, NULL);
}

static int answer_query(struct dist_session *s, const struct dist_gtid *gtid)
{
	struct dist_coord_entry *entry;
	struct dist_actions actions = { 0 };

	pthread_mutex_lock(&s->node->book.lock);
	entry = dist_book_coord_find(&s->node->book, gtid);
	if (entry)
		dist_coord_query(&entry->coord, 0, &actions);
	pthread_mutex_unlock(&s->node->book.lock);
	/* Unknown is aborted. */
	if (!actions.n || actions.list[0].what == DIST_SEND_ABORT)
		return answer(s, gtid, DIST_ABORT);
	return answer(s, gtid, actions.list[0].what == DIST_SEND_COMMIT ? DIST_COMMIT :
									    DIST_PENDING);
}

/* A decision whose session is gone: over long ago, or the keeper is about to ask. */
static int answer_repeated(struct dist_session *s, const struct dist_gtid *gtid)
{
	bool is_in_doubt;

	pthread_mutex_lock(&s->node->book.lock);
	is_in_doubt = dist_book_part_find(&s->node->book, gtid);
	pthread_mutex_unlock(&s->node->book.lock);
	return answer(s, gtid, is_in_doubt ? DIST_PENDING : DIST_ACK);
}

static int take_message(struct dist_session *s, const struct dist_frame *frame,
			const void *payload)
{
	struct dist_gtid gtid = frame->gtid;

	switch (frame->type) {
	case DIST_PREPARE:
		return gtid.node == s->node->config.id ? -EPROTO : serve_prepare(s, frame, payload);
	case DIST_QUERY:
		return gtid.node == s->node->config.id ? answer_query(s, &gtid) : -EPROTO;
	case DIST_COMMIT:
		return answer_repeated(s, &gtid);
	case DIST_ACK:
		dist_node_confirmed(s->node, &gtid);
		return 0;
	case DIST_ABORT:
		/* It was sent before the coordinator had this node's "no". */
		return 0;
	default:
		return -EPROTO;
	}
}

static void *session_main(void *arg)
{
	struct dist_session *s = arg;
	int rc = dist_conn_accept(&s->conn, s->conn.fd, s->node->config.id);

	if (!rc)
		rc = oltp_worker_create(s->node->config.engine, &s->worker);
	while (!rc && !atomic_load(&s->node->is_stopping) && !dist_node_error(s->node)) {
		const struct dist_frame *frame;
		const void *payload;

		rc = dist_conn_receive(&s->conn, &frame, &payload);
		if (rc == -EAGAIN)
			rc = 0;
		else if (!rc)
			rc = take_message(s, frame, payload);
	}
	oltp_worker_destroy(s->worker);
	free(s->entry);
	/* The descriptor stays open until this thread has been joined. */
	shutdown(s->conn.fd, SHUT_RDWR);
	atomic_store(&s->is_ended, true);
	return NULL;
}

int dist_session_start(struct dist_node *node, int fd)
{
	struct dist_session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->node = node;
	s->conn.fd = fd;
	rc = -pthread_create(&s->thread, NULL, session_main, s);
	if (rc) {
		free(s);
		return rc;
	}
	pthread_mutex_lock(&node->sessions_lock);
	s->next = node->sessions;
	node->sessions = s;
	pthread_mutex_unlock(&node->sessions_lock);
	return 0;
}

void dist_sessions_reap(struct dist_node *node, bool end_all)
{
	struct dist_session **at = &node->sessions;

	pthread_mutex_lock(&node->sessions_lock);
	while (*at) {
		struct dist_session *s = *at;

		if (!end_all && !atomic_load(&s->is_ended)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		pthread_join(s->thread, NULL);
		close(s->conn.fd);
		free(s);
	}
	pthread_mutex_unlock(&node->sessions_lock);
}
