// SPDX-License-Identifier: GPL-2.0-or-later
/* See graph.h. Nothing here is recursive: a cycle may have as many nodes as the history. */
#include <string.h>

#include "graph.h"

int graph_add(struct graph *graph, const struct graph_edge *edge)
{
	return edge->from == edge->to ? 0 : vec_push(&graph->added, *edge);
}

int graph_sort(struct graph *graph)
{
	size_t *first = calloc((size_t)graph->n_nodes + 2, sizeof(*first));
	struct graph_edge *edges = malloc((graph->added.n + 1) * sizeof(*edges));

	if (!first || !edges) {
		free(first);
		free(edges);
		return -ENOMEM;
	}
	for (size_t i = 0; i < graph->added.n; i++)
		first[graph->added.at[i].from + 2]++;
	for (size_t node = 2; node <= (size_t)graph->n_nodes + 1; node++)
		first[node] += first[node - 1];
	/* Slot from + 1: where its next edge goes, and in the end where those of from + 1 begin. */
	for (size_t i = 0; i < graph->added.n; i++)
		edges[first[graph->added.at[i].from + 1]++] = graph->added.at[i];
	graph->edges = edges;
	graph->first = first;
	graph->n_edges = graph->added.n;
	vec_free(&graph->added);
	return 0;
}

void graph_finish(struct graph *graph)
{
	vec_free(&graph->added);
	free(graph->edges);
	free(graph->first);
	*graph = (struct graph){ 0 };
}

/* After R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972. */
struct search {
	const struct graph *graph;
	unsigned int mask;
	uint32_t *index;	/* 0: not visited yet */
	uint32_t *low;
	size_t *next_edge;
	uint32_t *path, n_path;	/* from the root to where the search is */
	uint32_t *stack, n_stack;	/* visited, of no finished component */
	uint32_t *component;	/* STACKED while on the stack */
	uint32_t n_indexes, n_components;
};

#define STACKED	UINT32_MAX

static void enter(struct search *s, uint32_t node)
{
	s->index[node] = s->low[node] = ++s->n_indexes;
	s->next_edge[node] = s->graph->first[node];
	s->component[node] = STACKED;
	s->stack[s->n_stack++] = node;
	s->path[s->n_path++] = node;
}

static void leave(struct search *s, uint32_t node)
{
	uint32_t number = 0, member;

	s->n_path--;
	if (s->n_path) {
		uint32_t parent = s->path[s->n_path - 1];

		if (s->low[node] < s->low[parent])
			s->low[parent] = s->low[node];
	}
	if (s->low[node] != s->index[node])
		return;
	if (s->stack[s->n_stack - 1] != node)
		number = ++s->n_components;
	do {
		member = s->stack[--s->n_stack];
		s->component[member] = number;
	} while (member != node);
}

static void search_from(struct search *s, uint32_t root)
{
	enter(s, root);
	while (s->n_path) {
		uint32_t node = s->path[s->n_path - 1];
		const struct graph_edge *edge;

		if (s->next_edge[node] == s->graph->first[node + 1]) {
			leave(s, node);
			continue;
		}
		edge = &s->graph->edges[s->next_edge[node]++];
		if (!(s->mask & GRAPH_MASK(edge->kind)))
			continue;
		if (!s->index[edge->to])
			enter(s, edge->to);
		else if (s->component[edge->to] == STACKED && s->index[edge->to] < s->low[node])
			s->low[node] = s->index[edge->to];
	}
}

int graph_components(const struct graph *graph, unsigned int mask, uint32_t *ret_component,
		     uint32_t *ret_n)
{
	size_t n = (size_t)graph->n_nodes + 1;
	struct search s = {
		.graph = graph,
		.mask = mask,
		.index = calloc(n, sizeof(*s.index)),
		.low = malloc(n * sizeof(*s.low)),
		.next_edge = malloc(n * sizeof(*s.next_edge)),
		.path = malloc(n * sizeof(*s.path)),
		.stack = malloc(n * sizeof(*s.stack)),
		.component = ret_component,
	};
	int rc = s.index && s.low && s.next_edge && s.path && s.stack ? 0 : -ENOMEM;

	for (uint32_t node = 0; !rc && node < graph->n_nodes; node++) {
		if (!s.index[node])
			search_from(&s, node);
	}
	free(s.index);
	free(s.low);
	free(s.next_edge);
	free(s.path);
	free(s.stack);
	*ret_n = s.n_components;
	return rc;
}
