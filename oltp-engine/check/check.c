// SPDX-License-Identifier: GPL-2.0-or-later
/* The checker from beginning to end: see check.h, and versions.h for its parts. */
#include <string.h>

#include "versions.h"

/* Between two words about how far it is. */
#define PROGRESS_EVERY	16384u

void checker_progress(const struct checker *c, const char *phase, uint64_t i, uint64_t total)
{
	if (i % PROGRESS_EVERY == 0 && c->options->progress)
		c->options->progress(c->options->ctx, phase, i, total);
}

int checker_report(struct checker *c, const struct check_anomaly *anomaly)
{
	c->result->n_anomalies++;
	if (c->result->n_kind[anomaly->kind]++ >= c->options->anomalies_max)
		return 0;
	return vec_push(&c->result->anomalies, *anomaly);
}

int checker_report_read(struct checker *c, enum check_kind kind, uint32_t txn, uint32_t other,
			uint32_t object, uint64_t value)
{
	const struct check_anomaly anomaly = {
		.kind = kind,
		.txn = txn,
		.other = other,
		.is_list = c->objects.at[object].is_list,
		.key = c->objects.at[object].key,
		.value = value,
	};

	return checker_report(c, &anomaly);
}

static int check(struct checker *c)
{
	int rc = versions_index(c);

	rc = rc ?: lists_order(c);
	rc = rc ?: versions_observe(c);
	rc = rc ?: lists_edges(c);
	rc = rc ?: rows_order(c);
	rc = rc ?: lives_find(c);
	rc = rc ?: row_edges(c);
	rc = rc ?: order_edges(c);
	if (rc)
		return rc;
	for (size_t i = 0; i < c->graph.added.n; i++)
		c->result->n_edges[c->graph.added.at[i].kind]++;
	rc = graph_sort(&c->graph);
	return rc ?: cycles_find(c);
}

int check_history(const struct history *history, const struct check_options *options,
		  struct check_result *ret_result)
{
	struct checker c = {
		.history = history,
		.options = options,
		.result = ret_result,
		.is_committed = calloc(history->txns.n + 1, sizeof(*c.is_committed)),
	};
	int rc;

	c.graph.n_nodes = (uint32_t)history->txns.n;
	rc = c.is_committed ? check(&c) : -ENOMEM;
	map_free(&c.objects_by_key);
	map_free(&c.versions_by_value);
	vec_free(&c.objects);
	vec_free(&c.versions);
	vec_free(&c.orders);
	vec_free(&c.lives);
	vec_free(&c.rows);
	free(c.is_committed);
	graph_finish(&c.graph);
	return rc;
}

void check_result_finish(struct check_result *result)
{
	vec_free(&result->anomalies);
	vec_free(&result->steps);
}

static const struct {
	const char *name, *text;
} kinds[CHECK_KINDS] = {
	[CHECK_G0] = { "G0", "dirty write" },
	[CHECK_G1C] = { "G1c", "circular information flow" },
	[CHECK_G_SINGLE] = { "G-single", "read skew or lost update" },
	[CHECK_G2_ITEM] = { "G2-item", "write skew" },
	[CHECK_G2] = { "G2", "phantom" },
	[CHECK_G1A] = { "G1a", "aborted read" },
	[CHECK_G1B] = { "G1b", "intermediate read" },
	[CHECK_UNWRITTEN] = { "unwritten-read", "a value was read that nobody wrote" },
	[CHECK_INTERNAL] = { "internal", "a transaction contradicts itself" },
	[CHECK_DUPLICATE] = { "duplicate", "a value is in a list twice" },
	[CHECK_ORDER] = { "incompatible-order", "two reads of a list, neither the beginning of "
						"the other" },
	[CHECK_LOST_UPDATE] = { "lost-update", "two transactions changed the same version" },
};

const char *check_kind_name(enum check_kind kind)
{
	return (unsigned int)kind < CHECK_KINDS ? kinds[kind].name : "unknown";
}

const char *check_kind_text(enum check_kind kind)
{
	return (unsigned int)kind < CHECK_KINDS ? kinds[kind].text : "unknown";
}

const char *check_edge_name(enum check_edge edge)
{
	static const char *const names[CHECK_EDGES] = {
		[CHECK_WW] = "ww", [CHECK_WR] = "wr", [CHECK_RW] = "rw",
		[CHECK_RW_PREDICATE] = "rw-scan", [CHECK_SESSION] = "session",
		[CHECK_TIME] = "time",
	};

	return (unsigned int)edge < CHECK_EDGES ? names[edge] : "unknown";
}

static const char *const models[] = {
	[CHECK_SERIALIZABLE] = "serializable",
	[CHECK_STRONG_SESSION] = "strong-session",
	[CHECK_STRICT_SERIALIZABLE] = "strict-serializable",
};

const char *check_model_name(enum check_model model)
{
	return (unsigned int)model < 3 ? models[model] : "unknown";
}

int check_model_parse(const char *name, enum check_model *ret_model)
{
	for (unsigned int i = 0; i < 3; i++) {
		if (!strcmp(name, models[i])) {
			*ret_model = (enum check_model)i;
			return 0;
		}
	}
	return -EINVAL;
}
