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
#include "model/sla.h"
#include "simulate/simulate.h"
#include "util/text.h"
#include "util/uuid.h"

/* As daemon/history-db.c writes it: the first that will do, and the first with SLAs. */
#define VERSION		2
#define VERSION_SLA	4
/* CPUs given back so soon after others belong to the same change of demand. */
#define ONE_MIND_USEC	EBB_USEC_PER_SEC

static const char query[] =
	"SELECT ts, vm, event, node, cpus, asked, reason, code, sla, uuid FROM decisions "
	"WHERE vm != '' ORDER BY id";
static const char query_without_sla[] =
	"SELECT ts, vm, event, node, cpus, asked, reason, code, NULL, uuid FROM decisions "
	"WHERE vm != '' ORDER BY id";

struct row {
	double ts;
	const char *vm, *uuid, *event, *reason, *code, *sla;
	int node;			/* -1: none, or any */
	uint16_t cpus, asked;
};

/* A guest node as the history shows it. */
struct past_node {
	bool is_seen;
	uint16_t lowest, highest;	/* limits */
	uint16_t held, want, limit;
	uint32_t asked;			/* and not answered yet */
	size_t less;			/* index + 1 of the event that made it give back; 0: none */
	double refused_ts;		/* when it last asked for more than its limit; 0: did not */
	double lapse_ts;		/* then, or when something was taken from it since */
};

struct past {
	char uuid[EBB_UUID_TEXT_SIZE];
	bool is_running;
	struct past_node nodes[EBB_MAX_GUEST_NODES];
	unsigned ceiling, num_nodes;	/* as the SLA says, 0: not known */
	bool has_sla;			/* that of the trace is exact */
	bool has_joined;
};

struct replay {
	const struct ebb_host *host;
	struct sim_trace trace;
	struct past *pasts;		/* EBB_MAX_VMS, as the VMs of the trace */
	double first_ts, last_ts;
	bool has_rows;
	const char *query;
};

/* By uuid, as a name may change, and be another VM's then; the last name is kept. */
static int find_vm(struct replay *r, const struct row *row)
{
	struct sim_trace *t = &r->trace;
	uint32_t i = 0;

	while (i < t->num_vms && strcmp(r->pasts[i].uuid, row->uuid) != 0)
		i++;
	if (i == EBB_MAX_VMS)
		return -ENOSPC;
	if (i == t->num_vms) {
		ebb_text_copy(r->pasts[i].uuid, sizeof(r->pasts[i].uuid), row->uuid);
		ebb_sla_default(&t->vms[i].sla);
		t->num_vms++;
	}
	ebb_text_copy(t->vms[i].name, sizeof(t->vms[i].name), row->vm);
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

static bool scan_nodes(const char *text, struct ebb_sla *sla)
{
	unsigned startup, reserved, max, host;
	int used;

	for (; *text; text += used) {
		if (sscanf(text, "%u/%u/%u@%u%n", &startup, &reserved, &max, &host, &used) != 4 ||
		    startup > EBB_MAX_VCPUS || reserved > EBB_MAX_VCPUS || max > EBB_MAX_VCPUS ||
		    host >= EBB_MAX_NODES || sla->num_nodes == EBB_MAX_GUEST_NODES)
			return false;
		sla->nodes[sla->num_nodes++] = (struct ebb_sla_node){
			.startup = (uint16_t)startup, .reserved = (uint16_t)reserved,
			.max = (uint16_t)max, .host_node = (uint16_t)host,
		};
		used += text[used] == ',';
	}
	return sla->num_nodes > 0;
}

/* As ebb_sla_print() writes it, in any order; false if it is something else. */
static bool scan_sla(const char *text, struct ebb_sla *ret)
{
	char name[32], value[32];
	struct ebb_sla sla;
	int used = 0;

	ebb_sla_default(&sla);
	for (; strncmp(text, "nodes=", strlen("nodes=")) != 0; text += used) {
		const struct ebb_sla_key *key;
		uint64_t n;

		if (sscanf(text, "%31[^= ]=%31[^ ] %n", name, value, &used) != 2)
			return false;
		/* An agent that is newer may have written attributes that are not known here. */
		key = ebb_sla_key_find(name);
		if (key && ebb_sla_value(key, value, &n) < 0)
			return false;
		if (key)
			ebb_sla_put(&sla, key, n);
	}
	if (!scan_nodes(text + strlen("nodes="), &sla))
		return false;
	*ret = sla;
	return true;
}

/* ---- first pass: sizes ---- */

static int note_size(struct replay *r, const struct row *row)
{
	const int vm = find_vm(r, row);
	struct past_node *n;
	unsigned used;
	struct past *p;

	if (vm < 0)
		return vm;
	p = &r->pasts[vm];
	p->has_joined = p->has_joined || strcmp(row->event, "join") == 0;
	if (!p->has_joined && scan_sla(row->sla, &r->trace.vms[vm].sla))
		p->has_sla = true;
	if (p->has_sla)
		return 0;
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

/* The part of the ceiling that no limit shows is spread over the nodes. */
static void settle_size(struct replay *r, uint32_t vm)
{
	struct ebb_sla *sla = &r->trace.vms[vm].sla;
	struct past *p = &r->pasts[vm];
	unsigned seen = 0, floor = 0, rest;

	if (p->has_sla)
		return;
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

static usec_t time_of(const struct replay *r, double ts)
{
	return ts > r->first_ts ? (usec_t)((ts - r->first_ts) * 1e6 + 0.5) : 0;
}

static int add(struct replay *r, double ts, enum sim_event_type type, uint32_t vm, uint16_t node)
{
	const struct sim_event e = {
		.at = time_of(r, ts), .type = type, .vm = vm, .node = node,
		.cpus = r->pasts[vm].nodes[node].want,
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
	rc = add(r, row->ts, SIM_START, vm, 0);
	for (uint16_t g = 0; rc == 0 && g < sla->num_nodes; g++) {
		struct past_node *n = &p->nodes[g];

		*n = (struct past_node){ .held = sla->nodes[g].startup };
		n->want = n->limit = n->held;
		rc = add(r, row->ts, SIM_WANT, vm, g);
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

static int want_now(struct replay *r, double ts, uint32_t vm, uint16_t g, uint32_t cpus)
{
	const struct ebb_sla_node *sla = &r->trace.vms[vm].sla.nodes[g];
	struct past_node *n = &r->pasts[vm].nodes[g];

	cpus = cpus > sla->max ? sla->max : cpus;
	if (cpus == n->want)
		return 0;
	n->want = (uint16_t)cpus;
	n->less = 0;
	return add(r, ts, SIM_WANT, vm, g);
}

static int want_at_least(struct replay *r, const struct row *row, uint32_t vm, uint16_t g,
			 uint32_t cpus)
{
	return cpus > r->pasts[vm].nodes[g].want ? want_now(r, row->ts, vm, g, cpus) : 0;
}

/*
 * A request that was refused because of the limit says all that the VM wants, and counts for as
 * long as policies count it: a VM that does not repeat it by then no longer wants it.
 */
static int forget_wish(struct replay *r, double ts, uint32_t vm, uint16_t g)
{
	struct past_node *n = &r->pasts[vm].nodes[g];

	if (n->refused_ts == 0 || ts < n->refused_ts + (double)EBB_WANT_USEC / 1e6)
		return 0;
	n->refused_ts = 0;
	return n->want > n->held ? want_now(r, n->lapse_ts, vm, g, n->held) : 0;
}

static int note_wish(struct replay *r, const struct row *row, uint32_t vm, uint16_t g,
		     uint32_t missing)
{
	struct past_node *n = &r->pasts[vm].nodes[g];

	if (strcmp(row->code, "limit") != 0 || missing == 0)
		return 0;
	n->refused_ts = n->lapse_ts = row->ts;
	/* CPUs beyond the limit are on their way back. */
	return want_now(r, row->ts, vm, g, n->limit + missing);
}

/* It wants less from now on, or from a moment ago on. */
static int want_less(struct replay *r, const struct row *row, uint32_t vm, uint16_t g)
{
	struct past_node *n = &r->pasts[vm].nodes[g];
	int rc;

	n->want = n->held;
	n->refused_ts = 0;
	if (n->less > 0 &&
	    time_of(r, row->ts) < r->trace.events[n->less - 1].at + ONE_MIND_USEC) {
		r->trace.events[n->less - 1].cpus = n->want;
		return 0;
	}
	rc = add(r, row->ts, SIM_WANT, vm, g);
	n->less = r->trace.num_events;
	return rc;
}

/* A request was answered. */
static void answered(struct past_node *n, const struct row *row)
{
	n->asked -= n->asked > row->asked ? row->asked : n->asked;
}

/* CPUs given back beyond a demand are not wanted any more. */
static int given_back(struct replay *r, const struct row *row, uint32_t vm, uint16_t g)
{
	struct past_node *n = &r->pasts[vm].nodes[g];
	const bool is_demanded = n->held > n->limit;

	/* It had no core then, and was counted out before. */
	if (row->cpus == 0)
		return 0;
	if (n->held > r->trace.vms[vm].sla.nodes[g].startup)
		n->held--;
	if (is_demanded || n->want <= n->held) {
		n->lapse_ts = row->ts;
		return 0;
	}
	return want_less(r, row, vm, g);
}

static int note_event(struct replay *r, const struct row *row)
{
	const int found = find_vm(r, row);
	struct past *p;
	uint32_t vm;
	uint16_t g;
	int rc = 0;

	if (found < 0)
		return found;
	vm = (uint32_t)found;
	p = &r->pasts[vm];
	if (strcmp(row->event, "join") == 0)
		return start(r, row, vm);
	if (!p->is_running)
		return 0;
	for (g = 0; rc == 0 && g < r->trace.vms[vm].sla.num_nodes; g++)
		rc = forget_wish(r, row->ts, vm, g);
	if (rc < 0)
		return rc;
	if (strcmp(row->event, "leave") == 0) {
		p->is_running = false;
		return add(r, row->ts, SIM_STOP, vm, 0);
	}
	g = node_of(r, row, vm);
	if (strcmp(row->event, "request") == 0) {
		p->nodes[g].asked += row->asked;
		p->nodes[g].refused_ts = 0;
		return want_at_least(r, row, vm, g, p->nodes[g].held + p->nodes[g].asked);
	}
	if (strcmp(row->event, "refuse") == 0) {
		answered(&p->nodes[g], row);
		return note_wish(r, row, vm, g, row->asked);
	}
	if (strcmp(row->event, "grant") == 0) {
		answered(&p->nodes[g], row);
		p->nodes[g].held += row->cpus;
		rc = want_at_least(r, row, vm, g, p->nodes[g].held);
		return rc < 0 ? rc : note_wish(r, row, vm, g, row->asked - row->cpus);
	}
	if (strcmp(row->event, "release") == 0 || strcmp(row->event, "lend") == 0)
		return given_back(r, row, vm, g);
	if (strcmp(row->event, "force") == 0 && row->node >= 0)
		p->nodes[g].held -= p->nodes[g].held > row->cpus ? row->cpus : p->nodes[g].held;
	if (strcmp(row->event, "unforce") == 0)
		p->nodes[g].held += row->cpus;
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
	int rc = sqlite3_prepare_v2(sql, r->query, -1, &s, NULL) == SQLITE_OK ? 0 : -EIO;
	int step = SQLITE_DONE;

	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		struct row row = {
			.ts = sqlite3_column_double(s, 0), .vm = text_of(s, 1),
			.event = text_of(s, 2), .node = sqlite3_column_int(s, 3),
			.cpus = cpus_of(s, 4), .asked = cpus_of(s, 5), .reason = text_of(s, 6),
			.code = text_of(s, 7), .sla = text_of(s, 8),
			.uuid = text_of(s, 9),
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

static int check_version(struct replay *r, sqlite3 *sql, const char *path, struct ebb_err *err)
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
	r->query = version < VERSION_SLA ? query_without_sla : query;
	return 0;
}

static int load(struct replay *r, sqlite3 *sql, const char *path, struct ebb_err *err)
{
	int rc = check_version(r, sql, path, err);

	if (rc < 0)
		return rc;
	rc = each_row(r, sql, note_size);
	for (uint32_t i = 0; rc == 0 && i < r->trace.num_vms; i++)
		settle_size(r, i);
	if (rc == 0)
		rc = each_row(r, sql, note_event);
	for (uint32_t i = 0; rc == 0 && i < r->trace.num_vms; i++)
		for (uint16_t g = 0; rc == 0 && g < r->trace.vms[i].sla.num_nodes; g++)
			rc = forget_wish(r, r->last_ts, i, g);
	if (rc == -EIO)
		return ebb_err_set(err, rc, "%s: %s", path, sqlite3_errmsg(sql));
	if (rc == -ENOSPC)
		return ebb_err_set(err, rc, "%s has more than %u VMs", path, EBB_MAX_VMS);
	if (rc < 0)
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	if (r->trace.num_events == 0)
		return ebb_err_set(err, -ENODATA, "%s: no VM has started in it", path);
	r->trace.length = (usec_t)((r->last_ts - r->first_ts) * (double)EBB_USEC_PER_SEC + 0.5) + 1;
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
