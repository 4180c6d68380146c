// SPDX-License-Identifier: GPL-2.0-or-later
/* The history checker: see oltp_history.h. */
#include <stdlib.h>
#include <string.h>

#include "oltp_history.h"

struct edge {
	uint32_t from, to;
};

struct graph {
	struct edge *edges;
	size_t n, room;
};

static void edge_add(struct graph *graph, uint32_t from, uint32_t to)
{
	/* What was there before all, and what a transaction did itself, orders nothing. */
	if (from == to || from == HISTORY_INITIAL)
		return;
	if (graph->n == graph->room) {
		graph->room = graph->room ? graph->room * 2 : 1024;
		graph->edges = realloc(graph->edges, graph->room * sizeof(*graph->edges));
		if (!graph->edges)
			abort();
	}
	graph->edges[graph->n++] = (struct edge){ from, to };
}

/* writers[key * stride + version]: who wrote it; UINT32_MAX: nobody. */
static enum history_verdict find_writers(const struct history_op *ops, size_t n_ops,
					 uint32_t *writers, size_t stride)
{
	for (size_t i = 0; i < n_ops; i++) {
		uint32_t *writer = &writers[ops[i].key * stride + ops[i].version];

		if (!ops[i].is_write)
			continue;
		if (*writer != UINT32_MAX)
			return HISTORY_LOST_UPDATE;
		*writer = ops[i].txn;
	}
	for (size_t i = 0; i < n_ops; i++) {
		if (ops[i].is_write &&
		    (!ops[i].version ||
		     writers[ops[i].key * stride + ops[i].version - 1] == UINT32_MAX))
			return HISTORY_LOST_UPDATE;
	}
	return HISTORY_SERIALIZABLE;
}

static enum history_verdict add_edges(const struct history_op *ops, size_t n_ops,
				      const uint32_t *writers, size_t stride, struct graph *graph)
{
	for (size_t i = 0; i < n_ops; i++) {
		const struct history_op *op = &ops[i];
		const uint32_t *here = &writers[op->key * stride + op->version];

		if (op->is_write) {
			edge_add(graph, here[-1], op->txn);
			continue;
		}
		if (*here == UINT32_MAX || *here != op->writer)
			return HISTORY_DIRTY_READ;
		edge_add(graph, *here, op->txn);
		if (here[1] != UINT32_MAX)
			edge_add(graph, op->txn, here[1]);
	}
	return HISTORY_SERIALIZABLE;
}

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Takes away transactions that nothing precedes, until none is left or each has a predecessor. */
static bool has_cycle(struct graph *graph, uint32_t n_txns)
{
	uint32_t *before = calloc(n_txns + 1, sizeof(*before));
	uint32_t *queue = calloc(n_txns + 1, sizeof(*queue));
	size_t *first = calloc(n_txns + 2, sizeof(*first));
	uint32_t head = 0, tail = 0;

	if (!before || !queue || !first)
		abort();
	if (graph->n)
		qsort(graph->edges, graph->n, sizeof(*graph->edges), compare_edges);
	for (size_t i = 0; i < graph->n; i++) {
		before[graph->edges[i].to]++;
		first[graph->edges[i].from + 1]++;
	}
	for (uint32_t t = 1; t <= n_txns + 1; t++)
		first[t] += first[t - 1];
	for (uint32_t t = 1; t <= n_txns; t++) {
		if (!before[t])
			queue[tail++] = t;
	}
	while (head < tail) {
		uint32_t t = queue[head++];

		for (size_t i = first[t]; i < first[t + 1]; i++) {
			if (!--before[graph->edges[i].to])
				queue[tail++] = graph->edges[i].to;
		}
	}
	free(before);
	free(queue);
	free(first);
	return tail < n_txns;
}

enum history_verdict history_check(const struct history_op *ops, size_t n_ops, uint32_t n_txns,
				   uint32_t n_keys)
{
	struct graph graph = { 0 };
	enum history_verdict verdict;
	uint32_t last_version = 0;
	uint32_t *writers;
	size_t stride;

	for (size_t i = 0; i < n_ops; i++) {
		if (!ops[i].txn || ops[i].txn > n_txns || ops[i].key >= n_keys)
			return HISTORY_BAD;
		if (ops[i].version > last_version)
			last_version = ops[i].version;
	}
	stride = (size_t)last_version + 2;
	writers = malloc(n_keys * stride * sizeof(*writers));
	if (!writers)
		abort();
	memset(writers, 0xff, n_keys * stride * sizeof(*writers));
	for (uint32_t key = 0; key < n_keys; key++)
		writers[key * stride] = HISTORY_INITIAL;
	verdict = find_writers(ops, n_ops, writers, stride);
	if (verdict == HISTORY_SERIALIZABLE)
		verdict = add_edges(ops, n_ops, writers, stride, &graph);
	if (verdict == HISTORY_SERIALIZABLE && has_cycle(&graph, n_txns))
		verdict = HISTORY_CYCLE;
	free(graph.edges);
	free(writers);
	return verdict;
}
