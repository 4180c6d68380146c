// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Edges of time and of processes. A transaction follows all that had ended before it was invoked;
 * edges are needed only from those which no other one of them follows: the frontier. It has no more
 * members than transactions ran at once. If those are many, a moment takes their place: a node that
 * is no transaction, after all of them.
 */
#include "versions.h"

#define FRONTIER_MAX	64u

struct event {
	uint64_t time;
	uint32_t txn;
	bool is_end;
};

struct member {
	uint32_t node;
	uint64_t end_time;
};

struct frontier {
	struct member members[FRONTIER_MAX];
	uint32_t n;
};

/* At the same time nothing comes before anything: those that begin are looked at first. */
static int compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (int)x->is_end - (int)y->is_end;
}

static int follow(struct checker *c, const struct frontier *f, uint32_t node)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < f->n; i++)
		rc = edge_add(c, f->members[i].node, node, NO_VERSION, NO_VERSION, CHECK_TIME);
	return rc;
}

/* All members have ended, so whatever is invoked later than now follows the moment. */
static int put_moment(struct checker *c, struct frontier *f, uint64_t now)
{
	uint32_t node = c->graph.n_nodes;
	int rc;

	if (node >= NO_TXN - 1)
		return -E2BIG;
	rc = follow(c, f, node);
	c->graph.n_nodes++;
	f->members[0] = (struct member){ node, now };
	f->n = 1;
	return rc;
}

static int has_ended(struct checker *c, struct frontier *f, uint32_t txn)
{
	const struct history_txn *t = &c->history->txns.at[txn];
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		if (f->members[i].end_time >= t->invoke_time)
			f->members[n++] = f->members[i];
	}
	f->n = n;
	if (n == FRONTIER_MAX)
		rc = put_moment(c, f, t->end_time);
	f->members[f->n++] = (struct member){ txn, t->end_time };
	return rc;
}

static int time_edges(struct checker *c, struct event *events)
{
	const struct history *h = c->history;
	struct frontier frontier = { .n = 0 };
	size_t n = 0;
	int rc = 0;

	for (uint32_t txn = 0; txn < h->txns.n; txn++) {
		const struct history_txn *t = &h->txns.at[txn];

		if (!c->is_committed[txn])
			continue;
		events[n++] = (struct event){ t->invoke_time, txn, false };
		if (t->end_time != HISTORY_NEVER)
			events[n++] = (struct event){ t->end_time, txn, true };
	}
	if (n)
		qsort(events, n, sizeof(*events), compare);
	for (size_t i = 0; !rc && i < n; i++) {
		checker_progress(c, "edges of time", i, n);
		rc = events[i].is_end ? has_ended(c, &frontier, events[i].txn) :
					follow(c, &frontier, events[i].txn);
	}
	return rc;
}

static int session_edges(struct checker *c)
{
	const struct history *h = c->history;
	struct map last = { 0 };
	int rc = 0;

	for (uint32_t txn = 0; !rc && txn < h->txns.n; txn++) {
		const struct history_txn *t = &h->txns.at[txn];
		uint32_t *before;

		if (!c->is_committed[txn])
			continue;
		before = map_get(&last, t->process, 0);
		/* A process in several files: they may be in any order. */
		if (before && h->txns.at[*before].end_time <= t->invoke_time)
			rc = edge_add(c, *before, txn, NO_VERSION, NO_VERSION,
				      CHECK_SESSION);
		/* It may take effect at any time, so the next one follows the one before it. */
		if (t->end_time == HISTORY_NEVER)
			continue;
		if (before)
			*before = txn;
		else
			rc = map_put(&last, t->process, 0, txn, NULL);
	}
	map_free(&last);
	return rc;
}

int order_edges(struct checker *c)
{
	struct event *events;
	int rc;

	if (c->options->model == CHECK_SERIALIZABLE)
		return 0;
	rc = session_edges(c);
	if (rc || c->options->model != CHECK_STRICT_SERIALIZABLE)
		return rc;
	events = malloc((c->history->txns.n * 2 + 1) * sizeof(*events));
	if (!events)
		return -ENOMEM;
	rc = time_edges(c, events);
	free(events);
	return rc;
}
