/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph of a history: which transaction has to come before which, and why. */
#ifndef OLTP_CHECK_GRAPH_H
#define OLTP_CHECK_GRAPH_H

#include "check.h"

#define GRAPH_MASK(edge)	(1u << (edge))

struct graph_edge {
	uint32_t from, to;
	uint32_t version, next;	/* see versions.h; ONE_VERSION: of no use */
	enum check_edge kind;
};

struct graph {
	uint32_t n_nodes;
	VEC(struct graph_edge) added;	/* until graph_sort */
	struct graph_edge *edges;	/* by from */
	size_t n_edges;
	size_t *first;		/* of each node, n_nodes + 1 */
};

/* from == to is left out. Error: -ENOMEM. */
int graph_add(struct graph *graph, const struct graph_edge *edge);

/* Once all are added. Error: -ENOMEM. */
int graph_sort(struct graph *graph);

void graph_finish(struct graph *graph);

/*
 * Strongly connected components of more than one node, by the kinds of edges in mask alone:
 * *ret_n of them, ret_component[node] = 1 to n, or 0 for a node in none. Error: -ENOMEM.
 */
int graph_components(const struct graph *graph, unsigned int mask, uint32_t *ret_component,
		     uint32_t *ret_n);

#endif
