// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cycles, from the worst kind to the mildest: by ww alone, by ww and wr, by all dependencies; then
 * the same with the order of processes, then with that of time. Of every strongly connected
 * component one cycle is shown, a short one; what a worse kind was found in is not looked at again.
 */
#include <string.h>

#include "versions.h"

#define WW	GRAPH_MASK(CHECK_WW)
#define WR	GRAPH_MASK(CHECK_WR)
#define RW	(GRAPH_MASK(CHECK_RW) | GRAPH_MASK(CHECK_RW_PREDICATE))
#define SESSION	GRAPH_MASK(CHECK_SESSION)
#define TIME	GRAPH_MASK(CHECK_TIME)

/* Edges looked at to find a shorter cycle of one component, and of all, and a cycle with one rw. */
#define EFFORT_ONE	2000000ull
#define EFFORT_ALL	400000000ull

static const unsigned int levels[] = {
	WW, WW | WR, WW | WR | RW,
	WW | SESSION, WW | WR | SESSION, WW | WR | RW | SESSION,
	WW | SESSION | TIME, WW | WR | SESSION | TIME, WW | WR | RW | SESSION | TIME,
};

struct finder {
	struct checker *c;
	const struct graph *graph;
	uint32_t *component;
	bool *is_done;		/* by node: in a component of which a cycle was shown */
	uint32_t *members;	/* nodes by component */
	size_t *first;		/* of each component among them */
	/* Breadth-first search. */
	uint32_t *queue;
	uint32_t *visited;	/* number of the search */
	size_t *came_by;	/* edge */
	uint32_t n_searches;
	uint64_t effort;	/* edges looked at, of all searches */
	/* Shortest so far, backwards. */
	VEC(size_t) best, path;
};

static int keep_path(struct finder *f, uint32_t from, uint32_t to, const size_t *closing)
{
	int rc = 0;

	f->path.n = 0;
	if (closing)
		rc = vec_push(&f->path, *closing);
	for (uint32_t node = to; !rc && (node != from || !f->path.n);) {
		rc = vec_push(&f->path, f->came_by[node]);
		node = f->graph->edges[f->came_by[node]].from;
	}
	if (!rc && (!f->best.n || f->path.n < f->best.n)) {
		__typeof__(f->best) best = f->best;

		f->best = f->path;
		f->path = best;
	}
	return rc;
}

/*
 * From one node of a component to another, or around to itself, by edges in mask. *ret_found:
 * came_by leads back.
 */
static void search(struct finder *f, unsigned int mask, uint32_t from, uint32_t to,
		   bool *ret_found)
{
	const struct graph *g = f->graph;
	size_t head = 0, tail = 0;

	*ret_found = false;
	if (++f->n_searches == 0) {
		memset(f->visited, 0, g->n_nodes * sizeof(*f->visited));
		f->n_searches = 1;
	}
	f->queue[tail++] = from;
	while (head < tail) {
		uint32_t node = f->queue[head++];

		for (size_t i = g->first[node]; i < g->first[node + 1]; i++) {
			uint32_t next = g->edges[i].to;

			f->effort++;
			if (!(mask & GRAPH_MASK(g->edges[i].kind)) ||
			    f->component[next] != f->component[from] ||
			    f->visited[next] == f->n_searches)
				continue;
			f->visited[next] = f->n_searches;
			f->came_by[next] = i;
			if (next == to) {
				*ret_found = true;
				return;
			}
			f->queue[tail++] = next;
		}
	}
}

/* False: enough has been looked at for this component. */
static bool may_go_on(const struct finder *f, uint64_t effort_before)
{
	return f->effort - effort_before < EFFORT_ONE && f->effort < EFFORT_ALL;
}

/* One rw and a way back without any. */
static int find_single(struct finder *f, unsigned int mask, uint32_t number)
{
	const struct graph *g = f->graph;
	uint64_t before = f->effort;
	int rc = 0;

	for (size_t m = f->first[number]; !rc && m < f->first[number + 1]; m++) {
		uint32_t node = f->members[m];

		for (size_t i = g->first[node]; !rc && i < g->first[node + 1]; i++) {
			const struct graph_edge *edge = &g->edges[i];
			bool is_found;

			if (!(RW & GRAPH_MASK(edge->kind)) || f->component[edge->to] != number)
				continue;
			if (!may_go_on(f, before))
				return 0;
			search(f, mask & ~RW, edge->to, node, &is_found);
			if (is_found)
				rc = keep_path(f, edge->to, node, &i);
			if (f->best.n == 2)
				return rc;
		}
	}
	return rc;
}

static int find_any(struct finder *f, unsigned int mask, uint32_t number)
{
	uint64_t before = f->effort;
	int rc = 0;

	for (size_t m = f->first[number]; !rc && m < f->first[number + 1]; m++) {
		bool is_found;

		/* The first one is always looked for: there is a cycle through every member. */
		if (m > f->first[number] && !may_go_on(f, before))
			break;
		search(f, mask, f->members[m], f->members[m], &is_found);
		if (is_found)
			rc = keep_path(f, f->members[m], f->members[m], NULL);
		if (f->best.n == 2)
			break;
	}
	return rc;
}

static enum check_kind kind_of(const unsigned int n[CHECK_EDGES])
{
	unsigned int n_rw = n[CHECK_RW] + n[CHECK_RW_PREDICATE];

	if (!n_rw)
		return n[CHECK_WR] ? CHECK_G1C : CHECK_G0;
	if (n_rw == 1)
		return CHECK_G_SINGLE;
	return n[CHECK_RW_PREDICATE] ? CHECK_G2 : CHECK_G2_ITEM;
}

static int add_step(struct finder *f, const struct graph_edge *edge, uint32_t to)
{
	const struct checker *c = f->c;
	struct check_step step = { .from = edge->from, .to = to, .edge = edge->kind,
				   .value = HISTORY_ABSENT, .next_value = HISTORY_ABSENT };

	if (edge->version != NO_VERSION) {
		const struct version *v = &c->versions.at[edge->version];

		step.is_list = c->objects.at[v->object].is_list;
		step.key = c->objects.at[v->object].key;
		step.value = v->value;
		if (edge->next != NO_VERSION)
			step.next_value = c->versions.at[edge->next].value;
	}
	return vec_push(&c->result->steps, step);
}

/* The path is from its end to its beginning; moments (order.c) are left out. */
static int report(struct finder *f)
{
	struct check_result *r = f->c->result;
	uint32_t n_txns = (uint32_t)f->c->history->txns.n;
	struct check_anomaly anomaly = { .first_step = r->steps.n };
	unsigned int n[CHECK_EDGES] = { 0 };
	size_t start = f->best.n;
	int rc = 0;

	while (start && f->graph->edges[f->best.at[start - 1]].from >= n_txns)
		start--;
	for (size_t i = 0; !rc && i < f->best.n; i++) {
		size_t at = (start + f->best.n - 1 - i) % f->best.n;
		const struct graph_edge *edge = &f->graph->edges[f->best.at[at]];

		n[edge->kind]++;
		if (edge->from >= n_txns) {
			r->steps.at[r->steps.n - 1].to = edge->to;
			continue;
		}
		rc = add_step(f, edge, edge->to);
		anomaly.n_steps++;
	}
	anomaly.kind = kind_of(n);
	anomaly.is_timed = n[CHECK_TIME];
	anomaly.is_in_session = n[CHECK_SESSION] && !n[CHECK_TIME];
	if (!rc && r->n_kind[anomaly.kind] >= f->c->options->anomalies_max)
		r->steps.n = anomaly.first_step;
	return rc ?: checker_report(f->c, &anomaly);
}

/* Members of each component, by counting. */
static void sort_members(struct finder *f, uint32_t n_components)
{
	memset(f->first, 0, ((size_t)n_components + 3) * sizeof(*f->first));
	for (uint32_t node = 0; node < f->graph->n_nodes; node++)
		f->first[f->component[node] + 2]++;
	for (uint32_t number = 2; number <= n_components + 2; number++)
		f->first[number] += f->first[number - 1];
	for (uint32_t node = 0; node < f->graph->n_nodes; node++)
		f->members[f->first[f->component[node] + 1]++] = node;
}

static int show_component(struct finder *f, unsigned int mask, uint32_t number)
{
	size_t first = f->first[number], end = f->first[number + 1];
	int rc = 0;

	for (size_t m = first; m < end; m++) {
		if (f->is_done[f->members[m]])
			return 0;
	}
	for (size_t m = first; m < end; m++)
		f->is_done[f->members[m]] = true;
	f->best.n = 0;
	if (mask & RW)
		rc = find_single(f, mask, number);
	if (!rc && !f->best.n)
		rc = find_any(f, mask, number);
	return rc ?: report(f);
}

static int find_at(struct finder *f, unsigned int mask, uint32_t *ret_n)
{
	int rc = graph_components(f->graph, mask, f->component, ret_n);

	if (rc)
		return rc;
	sort_members(f, *ret_n);
	for (uint32_t number = 1; !rc && number <= *ret_n; number++) {
		checker_progress(f->c, "cycles", number, *ret_n);
		rc = show_component(f, mask, number);
	}
	return rc;
}

static int find_all(struct finder *f)
{
	uint32_t n_components;
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(levels) / sizeof(*levels); i++)
		rc = find_at(f, levels[i], &n_components);
	return rc;
}

int cycles_find(struct checker *c)
{
	size_t n = (size_t)c->graph.n_nodes + 3;
	struct finder f = {
		.c = c,
		.graph = &c->graph,
		.component = malloc(n * sizeof(*f.component)),
	};
	uint32_t n_components;
	int rc = f.component ? 0 : -ENOMEM;

	rc = rc ?: graph_components(f.graph, levels[sizeof(levels) / sizeof(*levels) - 1],
				    f.component, &n_components);
	/* As it should be: there is nothing to look for. */
	if (rc || !n_components) {
		free(f.component);
		return rc;
	}
	f.is_done = calloc(n, sizeof(*f.is_done));
	f.members = malloc(n * sizeof(*f.members));
	f.first = malloc(n * sizeof(*f.first));
	f.queue = malloc(n * sizeof(*f.queue));
	f.visited = calloc(n, sizeof(*f.visited));
	f.came_by = malloc(n * sizeof(*f.came_by));
	rc = -ENOMEM;
	if (f.is_done && f.members && f.first && f.queue && f.visited && f.came_by)
		rc = find_all(&f);
	free(f.component);
	free(f.is_done);
	free(f.members);
	free(f.first);
	free(f.queue);
	free(f.visited);
	free(f.came_by);
	vec_free(&f.best);
	vec_free(&f.path);
	return rc;
}
