/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces from the history of ebbd: two passes over its decisions, one for what VMs there were and
 * of what size, one for what they did.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "simulate/simulate.h"

/* As daemon/history-db.c writes it. */
#define VERSION		2

static const char query[] =
	"SELECT ts, vm, event, node, cpus, asked, reason FROM decisions WHERE vm != '' ORDER BY id";

struct row {
	double ts;
	const char *vm, *event, *reason;
	int node;			/* -1: none, or any */
	uint16_t cpus, asked;
};

/* A guest node as the history shows it. */
struct past_node {
	bool is_seen;
	uint16_t lowest, highest;	/* limits */
	uint16_t held, want, limit;
};

struct past {
	bool is_running;
	struct past_node nodes[EBB_MAX_GUEST_NODES];
	unsigned ceiling, num_nodes;	/* as the SLA says, 0: not known */
};

struct replay {
	const struct ebb_host *host;
	struct sim_trace trace;
	struct past *pasts;		/* EBB_MAX_VMS, as the VMs of the trace */
	double first_ts, last_ts;
	bool has_rows;
};

static int find_vm(struct replay *r, const char *name)
{
	struct sim_trace *t = &r->trace;
	uint32_t i = 0;

	while (i < t->num_vms && strcmp(t->vms[i].name, name) != 0)
		i++;
	if (i == EBB_MAX_VMS)
		return -ENOSPC;
	if (i == t->num_vms) {
		snprintf(t->vms[i].name, sizeof(t->vms[i].name), "%s", name);
		t->vms[i].sla = (struct ebb_sla){
			.class = EBB_CLASS_RESERVED, .priority = EBB_PRIORITY_DEFAULT,
			.weight = EBB_WEIGHT_DEFAULT, .deadline_ms = EBB_DEADLINE_MS_DEFAULT,
			.mem_weight = EBB_WEIGHT_DEFAULT,
			.mem_deadline_ms = EBB_DEADLINE_MS_DEFAULT,
		};
		t->num_vms++;
	}
	return (int)i;
}

/* The limit of a node changed to `cpus`. */
static bool is_limit(const struct row *row)
{
	return strcmp(row->event, "offer") == 0 || strcmp(row->event, "demand") == 0;
}

/* The number after a word of the reason, or what it was. */
static uint32_t number_after(const char *reason, const char *word, uint32_t otherwise, uint32_t min,
			     uint32_t max)
{
	const char *at = strstr(reason, word);
	unsigned n;

	if (!at || sscanf(at + strlen(word), "%u", &n) != 1 || n < min || n > max)
		return otherwise;
	return n;
}

/* "... class spot, weight 100, deadline 2000 ms, 1 to 4 CPUs on 2 nodes, ..." */
static void read_sla(struct past *p, struct ebb_sla *sla, const char *reason)
{
	const char *class = strstr(reason, "class "), *cpus = strstr(reason, " CPUs on ");
	unsigned nodes;

	if (!class || !cpus)
		return;
	sla->class = strncmp(class, "class spot", strlen("class spot")) == 0 ? EBB_CLASS_SPOT :
									       EBB_CLASS_RESERVED;
	sla->weight = number_after(reason, "weight ", sla->weight, EBB_WEIGHT_MIN, EBB_WEIGHT_MAX);
	sla->priority = (uint16_t)number_after(reason, "priority ", sla->priority, 0,
					       EBB_PRIORITY_MAX);
	sla->deadline_ms = number_after(reason, "deadline ", sla->deadline_ms, EBB_DEADLINE_MS_MIN,
					EBB_DEADLINE_MS_MAX);
	if (sscanf(cpus, " CPUs on %u nodes", &nodes) == 1 && nodes <= EBB_MAX_GUEST_NODES &&
	    nodes > p->num_nodes)
		p->num_nodes = nodes;
	while (cpus > reason && cpus[-1] >= '0' && cpus[-1] <= '9')
		cpus--;
	if (sscanf(cpus, "%u", &nodes) == 1 && nodes <= EBB_MAX_VCPUS && nodes > p->ceiling)
		p->ceiling = nodes;
}

/* ---- first pass: sizes ---- */

static int note_size(struct replay *r, const struct row *row)
{
	const int vm = find_vm(r, row->vm);
	struct past_node *n;
	unsigned used;
	struct past *p;

	if (vm < 0)
		return vm;
	p = &r->pasts[vm];
	if (strcmp(row->event, "sla") == 0)
		read_sla(p, &r->trace.vms[vm].sla, row->reason);
	if (row->node < 0 || !is_limit(row))
		return 0;
	n = &p->nodes[row->node];
	if (p->num_nodes <= (unsigned)row->node)
		p->num_nodes = (unsigned)row->node + 1;
	/* Neither limit nor use falls below the startup set; at first they are that. */
	if (!n->is_seen || row->cpus < n->lowest)
		n->lowest = row->cpus;
	if (sscanf(row->reason, "limit %*u -> %*u: %u used", &used) == 1 && used < n->lowest)
		n->lowest = (uint16_t)used;
	n->highest = n->highest > row->cpus ? n->highest : row->cpus;
	n->is_seen = true;
	return 0;
}

/* What no limit shows of the ceiling is spread over the nodes. */
static void settle_size(struct replay *r, uint32_t vm)
{
	struct ebb_sla *sla = &r->trace.vms[vm].sla;
	struct past *p = &r->pasts[vm];
	unsigned seen = 0, floor = 0, rest;

	if (p->num_nodes == 0)
		p->num_nodes = 1;
	for (unsigned g = 0; g < p->num_nodes; g++) {
		seen += p->nodes[g].highest;
		floor += p->nodes[g].lowest;
	}
	rest = p->ceiling > seen ? p->ceiling - seen : 0;
	sla->num_nodes = (uint16_t)p->num_nodes;
	for (unsigned g = 0; g < p->num_nodes; g++) {
		struct ebb_sla_node *n = &sla->nodes[g];

		n->startup = p->nodes[g].lowest;
		n->max = (uint16_t)(p->nodes[g].highest +
				    (rest + p->num_nodes - 1 - g) / p->num_nodes);
		n->host_node = (uint16_t)(g % r->host->num_nodes);
		if (g == 0 && floor == 0)
			n->startup = 1;
		if (n->max < n->startup)
			n->max = n->startup;
		n->reserved = sla->class == EBB_CLASS_SPOT ? n->startup : n->max;
	}
}

/* ---- second pass: what happened ---- */

static int add(struct replay *r, const struct row *row, enum sim_event_type type, uint32_t vm,
	       uint16_t node)
{
	const double at = row->ts > r->first_ts ? row->ts - r->first_ts : 0;
	const struct sim_event e = {
		.at = (usec_t)(at * (double)EBB_USEC_PER_SEC), .type = type, .vm = vm,
		.node = node, .cpus = r->pasts[vm].nodes[node].want,
	};

	return sim_trace_add(&r->trace, &e);
}

static int start(struct replay *r, const struct row *row, uint32_t vm)
{
	const struct ebb_sla *sla = &r->trace.vms[vm].sla;
	struct past *p = &r->pasts[vm];
	int rc = 0;

	/* An agent that was restarted found it running: it has been all the time. */
	if (p->is_running)
		return 0;
	p->is_running = true;
	rc = add(r, row, SIM_START, vm, 0);
	for (uint16_t g = 0; rc == 0 && g < sla->num_nodes; g++) {
		struct past_node *n = &p->nodes[g];

		n->held = n->want = n->limit = sla->nodes[g].startup;
		rc = add(r, row, SIM_WANT, vm, g);
	}
	return rc;
}

/* The node that a request was about: with any, the first that has room. */
static uint16_t node_of(const struct replay *r, const struct row *row, uint32_t vm)
{
	const struct ebb_sla *sla = &r->trace.vms[vm].sla;

	if (row->node >= 0)
		return (uint16_t)row->node;
	for (uint16_t g = 0; g < sla->num_nodes; g++)
		if (r->pasts[vm].nodes[g].held < sla->nodes[g].max)
			return g;
	return 0;
}

static int want_at_least(struct replay *r, const struct row *row, uint32_t vm, uint16_t g,
			 uint32_t cpus)
{
	const uint16_t max = r->trace.vms[vm].sla.nodes[g].max;
	struct past_node *n = &r->pasts[vm].nodes[g];

	if (cpus > max)
		cpus = max;
	if (cpus <= n->want)
		return 0;
	n->want = (uint16_t)cpus;
	return add(r, row, SIM_WANT, vm, g);
}

/* What is given back beyond a demand is not wanted any more. */
static int given_back(struct replay *r, const struct row *row, uint32_t vm, uint16_t g)
{
	struct past_node *n = &r->pasts[vm].nodes[g];
	const bool is_demanded = n->held > n->limit;

	if (n->held > r->trace.vms[vm].sla.nodes[g].startup)
		n->held--;
	if (is_demanded || n->want <= n->held)
		return 0;
	n->want = n->held;
	return add(r, row, SIM_WANT, vm, g);
}

static int note_event(struct replay *r, const struct row *row)
{
	const int found = find_vm(r, row->vm);
	struct past *p;
	uint32_t vm;
	uint16_t g;

	if (found < 0)
		return found;
	vm = (uint32_t)found;
	p = &r->pasts[vm];
	if (strcmp(row->event, "join") == 0)
		return start(r, row, vm);
	if (!p->is_running)
		return 0;
	if (strcmp(row->event, "leave") == 0) {
		p->is_running = false;
		return add(r, row, SIM_STOP, vm, 0);
	}
	g = node_of(r, row, vm);
	if (strcmp(row->event, "request") == 0)
		return want_at_least(r, row, vm, g, p->nodes[g].held + row->asked);
	if (strcmp(row->event, "grant") == 0) {
		p->nodes[g].held += row->cpus;
		return want_at_least(r, row, vm, g, p->nodes[g].held);
	}
	if (strcmp(row->event, "release") == 0 || strcmp(row->event, "lend") == 0)
		return given_back(r, row, vm, g);
	if (strcmp(row->event, "force") == 0 && row->node >= 0)
		p->nodes[g].held -= p->nodes[g].held > row->cpus ? row->cpus : p->nodes[g].held;
	if (is_limit(row))
		p->nodes[g].limit = row->cpus;
	return 0;
}

/* ---- reading ---- */

static const char *text_of(sqlite3_stmt *s, int i)
{
	const char *text = (const char *)sqlite3_column_text(s, i);

	return text ? text : "";
}

static uint16_t cpus_of(sqlite3_stmt *s, int i)
{
	const int n = sqlite3_column_int(s, i);

	return n < 0 ? 0 : n > EBB_MAX_VCPUS ? EBB_MAX_VCPUS : (uint16_t)n;
}

static int each_row(struct replay *r, sqlite3 *sql,
		    int (*take)(struct replay *r, const struct row *row))
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(sql, query, -1, &s, NULL) == SQLITE_OK ? 0 : -EIO;
	int step = SQLITE_DONE;

	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		struct row row = {
			.ts = sqlite3_column_double(s, 0), .vm = text_of(s, 1),
			.event = text_of(s, 2), .node = sqlite3_column_int(s, 3),
			.cpus = cpus_of(s, 4), .asked = cpus_of(s, 5), .reason = text_of(s, 6),
		};

		if (sqlite3_column_type(s, 3) == SQLITE_NULL || row.node < 0 ||
		    row.node >= EBB_MAX_GUEST_NODES)
			row.node = -1;
		if (!r->has_rows)
			r->first_ts = r->last_ts = row.ts;
		r->has_rows = true;
		r->last_ts = row.ts > r->last_ts ? row.ts : r->last_ts;
		rc = take(r, &row);
	}
	sqlite3_finalize(s);
	return rc == 0 && step != SQLITE_DONE ? -EIO : rc;
}

static int check_version(sqlite3 *sql, const char *path, struct ebb_err *err)
{
	sqlite3_stmt *s = NULL;
	int version = -1;

	if (sqlite3_prepare_v2(sql, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		version = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	if (version < 0)
		return ebb_err_set(err, -EIO, "%s: %s", path, sqlite3_errmsg(sql));
	if (version < VERSION)
		return ebb_err_set(err, -EPROTO, "%s is no history of ebbd, or of an old one: its "
				   "version is %d, %d is needed", path, version, VERSION);
	return 0;
}

static int load(struct replay *r, sqlite3 *sql, const char *path, struct ebb_err *err)
{
	int rc = check_version(sql, path, err);

	if (rc < 0)
		return rc;
	rc = each_row(r, sql, note_size);
	for (uint32_t i = 0; rc == 0 && i < r->trace.num_vms; i++)
		settle_size(r, i);
	if (rc == 0)
		rc = each_row(r, sql, note_event);
	if (rc == -EIO)
		return ebb_err_set(err, rc, "%s: %s", path, sqlite3_errmsg(sql));
	if (rc == -ENOSPC)
		return ebb_err_set(err, rc, "%s has more than %u VMs", path, EBB_MAX_VMS);
	if (rc < 0)
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	if (r->trace.num_events == 0)
		return ebb_err_set(err, -ENODATA, "%s: no VM has started in it", path);
	r->trace.length = (usec_t)((r->last_ts - r->first_ts) * (double)EBB_USEC_PER_SEC) + 1;
	return sim_trace_sort(&r->trace);
}

int sim_trace_load(const char *path, const struct ebb_host *host, struct sim_trace *ret,
		   struct ebb_err *err)
{
	struct replay r = {
		.host = host,
		.trace = { .vms = calloc(EBB_MAX_VMS, sizeof(struct sim_vm)) },
		.pasts = calloc(EBB_MAX_VMS, sizeof(struct past)),
	};
	sqlite3 *sql = NULL;
	int rc;

	if (!r.trace.vms || !r.pasts)
		rc = ebb_err_set(err, -ENOMEM, "out of memory");
	else if (sqlite3_open_v2(path, &sql, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		rc = ebb_err_set(err, -EIO, "%s: %s", path,
				 sql ? sqlite3_errmsg(sql) : "out of memory");
	else
		rc = load(&r, sql, path, err);
	sqlite3_close(sql);
	free(r.pasts);
	if (rc < 0)
		sim_trace_finish(&r.trace);
	else
		*ret = r.trace;
	return rc;
}
