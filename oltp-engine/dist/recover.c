// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A node's start. The committed writes in the log go into the table in the order of their commits.
 * Transactions that were prepared and have no outcome are made and locked again, and their outcome
 * will be asked for. Decisions of this node that the peer has not confirmed are remembered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node_private.h"
#include "oltp-engine/src/base/clock.h"
#include "redo.h"

struct prepared {
	struct prepared *next;
	struct dist_gtid gtid;
	size_t bytes;
	uint8_t payload[];
};

struct recovery {
	struct dist_node *node;
	struct oltp_worker *worker;
	struct prepared *prepared;	/* without an outcome so far */
};

static int apply(struct recovery *r, const void *payload, size_t bytes)
{
	enum oltp_rc rc = oltp_txn_begin(r->worker);

	if (!rc)
		rc = dist_redo_apply(r->worker, r->node->config.app.table, payload, bytes);
	if (!rc)
		rc = oltp_txn_commit(r->worker);
	if (rc)
		oltp_txn_abort(r->worker);
	else
		r->node->recovered++;
	return rc ? -EBADMSG : 0;
}

static int take_prepare(struct recovery *r, const struct dist_gtid *gtid, const void *payload,
			size_t bytes)
{
	struct prepared *p = malloc(sizeof(*p) + bytes);

	if (!p)
		return -ENOMEM;
	p->gtid = *gtid;
	p->bytes = bytes;
	memcpy(p->payload, payload, bytes);
	p->next = r->prepared;
	r->prepared = p;
	return 0;
}

static int take_outcome(struct recovery *r, const struct dist_gtid *gtid, bool is_commit)
{
	struct prepared **at = &r->prepared, *p;
	int rc;

	while (*at && !dist_gtid_is_equal(&(*at)->gtid, gtid))
		at = &(*at)->next;
	p = *at;
	if (!p)
		return -EBADMSG;
	*at = p->next;
	rc = is_commit ? apply(r, p->payload, p->bytes) : 0;
	free(p);
	return rc;
}

static int take_decided(struct recovery *r, const struct dist_gtid *gtid, const void *payload,
			size_t bytes)
{
	struct dist_coord_entry *entry = dist_book_coord_add(&r->node->book, gtid);
	struct dist_actions none;

	if (!entry)
		return -ENOMEM;
	dist_coord_restart(&entry->coord, 1, clock_now_ns(), &none);
	return apply(r, payload, bytes);
}

static int take_record(void *ctx, enum dist_record kind, const struct dist_gtid *gtid,
		       const void *payload, size_t bytes)
{
	struct recovery *r = ctx;
	struct dist_coord_entry *entry;

	switch (kind) {
	case DIST_RECORD_START:
		/* Another node's log. */
		if (gtid->node != r->node->config.id)
			return -EBADMSG;
		r->node->incarnation = gtid->incarnation;
		return 0;
	case DIST_RECORD_PREPARE:
		return take_prepare(r, gtid, payload, bytes);
	case DIST_RECORD_COMMIT:
	case DIST_RECORD_ABORT:
		return take_outcome(r, gtid, kind == DIST_RECORD_COMMIT);
	case DIST_RECORD_DECIDED:
		return take_decided(r, gtid, payload, bytes);
	case DIST_RECORD_END:
		entry = dist_book_coord_find(&r->node->book, gtid);
		if (!entry)
			return -EBADMSG;
		dist_book_coord_remove(&r->node->book, entry);
		return 0;
	}
	return -EBADMSG;
}

/* Locks cannot be in the way: transactions that were in doubt at one time held them all. */
static int lock_again(struct dist_node *node, const struct prepared *p)
{
	struct dist_part_entry *entry = calloc(1, sizeof(*entry));
	struct dist_actions none;
	int rc;

	if (!entry)
		return -ENOMEM;
	rc = oltp_worker_create(node->config.engine, &entry->worker);
	if (!rc && (oltp_txn_begin(entry->worker) ||
		    dist_redo_apply(entry->worker, node->config.app.table, p->payload, p->bytes)))
		rc = -EBADMSG;
	if (rc) {
		oltp_worker_destroy(entry->worker);
		free(entry);
		return rc;
	}
	entry->gtid = p->gtid;
	entry->is_orphan = true;
	dist_part_restart(&entry->part, clock_now_ns(), &none);
	dist_book_part_add(&node->book, entry);
	node->recovered_in_doubt++;
	return 0;
}

static int begin_incarnation(struct dist_node *node)
{
	struct dist_gtid self = { .node = node->config.id };
	uint64_t end;
	int rc;

	self.incarnation = ++node->incarnation;
	rc = dist_log_append(node->log, DIST_RECORD_START, &self, NULL, 0, &end);
	return rc ?: dist_log_force(node->log, end);
}

int dist_node_recover(struct dist_node *node)
{
	struct recovery r = { .node = node };
	int rc = oltp_worker_create(node->config.engine, &r.worker);

	if (rc)
		return rc;
	rc = dist_log_open(node->config.log_path, take_record, &r, &node->log);
	oltp_worker_destroy(r.worker);
	while (r.prepared) {
		struct prepared *p = r.prepared;

		if (!rc)
			rc = lock_again(node, p);
		r.prepared = p->next;
		free(p);
	}
	return rc ?: begin_incarnation(node);
}
