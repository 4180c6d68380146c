// SPDX-License-Identifier: GPL-2.0-or-later
/* See report.h: the object for programs. Numbers and fixed words alone: nothing to quote. */
#include <inttypes.h>

#include "report.h"

static void print_value(const char *name, uint64_t value, FILE *out)
{
	if (value == HISTORY_ABSENT)
		fprintf(out, ",\"%s\":null", name);
	else
		fprintf(out, ",\"%s\":%" PRIu64, name, value);
}

static void print_txn(const struct report *report, const char *name, uint32_t txn, FILE *out)
{
	const struct history_txn *t = &report->history->txns.at[txn];

	fprintf(out, "\"%s\":{\"txn\":%" PRIu32 ",\"process\":%" PRIu64 ",\"file\":%" PRIu32
		",\"line\":%" PRIu32 "}", name, txn, t->process, t->file, t->line);
}

static void print_step(const struct report *report, const struct check_step *s, FILE *out)
{
	fputc('{', out);
	print_txn(report, "from", s->from, out);
	fputc(',', out);
	print_txn(report, "to", s->to, out);
	fprintf(out, ",\"edge\":\"%s\"", check_edge_name(s->edge));
	if (s->edge < CHECK_SESSION) {
		fprintf(out, ",\"object\":\"%s\",\"key\":%" PRIu64, s->is_list ? "list" : "row",
			s->key);
		print_value("value", s->value, out);
		if (s->edge != CHECK_WR)
			print_value("next_value", s->next_value, out);
	}
	fputc('}', out);
}

static void print_anomaly(const struct report *report, const struct check_anomaly *a, FILE *out)
{
	fprintf(out, "{\"kind\":\"%s\",", check_kind_name(a->kind));
	if (!a->n_steps) {
		print_txn(report, "txn", a->txn, out);
		if (a->other != UINT32_MAX) {
			fputc(',', out);
			print_txn(report, "other", a->other, out);
		}
		fprintf(out, ",\"object\":\"%s\",\"key\":%" PRIu64, a->is_list ? "list" : "row",
			a->key);
		print_value("value", a->value, out);
		fputc('}', out);
		return;
	}
	fprintf(out, "\"by_time\":%s,\"by_session\":%s,\"cycle\":[", a->is_timed ? "true" : "false",
		a->is_in_session ? "true" : "false");
	for (uint32_t i = 0; i < a->n_steps; i++) {
		if (i)
			fputc(',', out);
		print_step(report, &report->result->steps.at[a->first_step + i], out);
	}
	fputs("]}", out);
}

void report_json(const struct report *report, FILE *out)
{
	const struct check_result *r = report->result;

	fprintf(out, "{\"model\":\"%s\",\"clean\":%s,\"anomalies_found\":%" PRIu64
		",\"committed\":%" PRIu64 ",\"aborted\":%" PRIu64 ",\"unknown_outcome\":%" PRIu64
		",\"lost\":%" PRIu64 ",\"lost_epochs\":%" PRIu64 ",\"torn_lines\":%" PRIu64
		",\"seconds\":%.3f,\"edges\":{",
		check_model_name(report->model), r->n_anomalies ? "false" : "true",
		r->n_anomalies, r->n_txns[HISTORY_OK], r->n_txns[HISTORY_FAIL],
		r->n_txns[HISTORY_INFO], report->history->n_lost, report->history->lost_epochs,
		report->history->torn_lines, report->seconds);
	for (unsigned int i = 0; i < CHECK_EDGES; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", check_edge_name(i),
			r->n_edges[i]);
	fprintf(out, "},\"not_known\":{\"writes\":%" PRIu64 ",\"absent_reads\":%" PRIu64
		",\"rows\":%" PRIu64 ",\"appends\":%" PRIu64 ",\"outcomes\":%" PRIu64
		"},\"kinds\":{",
		r->unknown.writes, r->unknown.absent_reads, r->unknown.rows, r->unknown.appends,
		r->unknown.outcomes);
	for (unsigned int i = 0; i < CHECK_KINDS; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", check_kind_name(i), r->n_kind[i]);
	fputs("},\"anomalies\":[", out);
	for (size_t i = 0; i < r->anomalies.n; i++) {
		if (i)
			fputc(',', out);
		print_anomaly(report, &r->anomalies.at[i], out);
	}
	fputs("]}\n", out);
}
