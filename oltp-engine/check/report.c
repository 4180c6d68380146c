// SPDX-License-Identifier: GPL-2.0-or-later
/* See report.h: the lines for people. */
#include <inttypes.h>

#include "report.h"

/* Longer operations and transactions are cut. */
#define OP_CHARS	160u
#define OPS_SHOWN	12u

static void print_txn(const struct report *report, uint32_t txn, FILE *out)
{
	const struct history_txn *t = &report->history->txns.at[txn];
	char text[OP_CHARS];

	fprintf(out, "    T%" PRIu32 " (process %" PRIu64 ", %s line %" PRIu32 ")%s:", txn,
		t->process, report->files[t->file], t->line,
		t->outcome == HISTORY_FAIL ? " aborted" :
		t->outcome == HISTORY_INFO ? " of unknown outcome" : "");
	for (uint32_t i = 0; i < t->n_ops && i < OPS_SHOWN; i++) {
		size_t n = history_op_print(report->history,
					    &report->history->ops.at[t->first_op + i], text,
					    sizeof(text));

		fprintf(out, " %s%s", text, n >= sizeof(text) ? "..." : "");
	}
	fprintf(out, "%s\n", t->n_ops > OPS_SHOWN ? " ..." : "");
}

/* "row 7 at 12", "list 7 up to 12". */
static void print_version(const struct check_step *s, FILE *out)
{
	if (s->is_list && s->value == HISTORY_ABSENT)
		fprintf(out, "list %" PRIu64 " empty", s->key);
	else if (s->is_list)
		fprintf(out, "list %" PRIu64 " up to %" PRIu64, s->key, s->value);
	else if (s->value == HISTORY_ABSENT)
		fprintf(out, "no row %" PRIu64, s->key);
	else
		fprintf(out, "row %" PRIu64 " as %" PRIu64, s->key, s->value);
}

static void print_write(const struct check_step *s, uint64_t value, FILE *out)
{
	if (s->is_list)
		fprintf(out, "appended %" PRIu64 " to list %" PRIu64, value, s->key);
	else if (value == HISTORY_ABSENT)
		fprintf(out, "deleted row %" PRIu64, s->key);
	else
		fprintf(out, "wrote %" PRIu64 " to row %" PRIu64, value, s->key);
}

static void print_step(const struct report *report, const struct check_step *s, FILE *out)
{
	const struct history_txn *from = &report->history->txns.at[s->from];
	const struct history_txn *to = &report->history->txns.at[s->to];

	fprintf(out, "    T%" PRIu32 " -> T%" PRIu32 " %s: T%" PRIu32 " ", s->from, s->to,
		check_edge_name(s->edge), s->from);
	switch (s->edge) {
	case CHECK_WW:
		print_write(s, s->value, out);
		fprintf(out, ", over which T%" PRIu32 " ", s->to);
		print_write(s, s->next_value, out);
		break;
	case CHECK_WR:
		print_write(s, s->value, out);
		fprintf(out, ", and T%" PRIu32 " saw that", s->to);
		break;
	case CHECK_RW:
	case CHECK_RW_PREDICATE:
		fprintf(out, s->edge == CHECK_RW ? "saw " : "scanned and saw ");
		print_version(s, out);
		fprintf(out, ", before T%" PRIu32 " ", s->to);
		print_write(s, s->next_value, out);
		break;
	case CHECK_SESSION:
		fprintf(out, "was run by the same process before");
		break;
	case CHECK_TIME:
		fprintf(out, "had ended at %" PRIu64 ", before the other was invoked at %" PRIu64,
			from->end_time, to->invoke_time);
		break;
	}
	fputc('\n', out);
}

static void print_cycle(const struct report *report, const struct check_anomaly *a, FILE *out)
{
	const struct check_step *steps = VEC_PLACE(report->result->steps, a->first_step);

	fprintf(out, "  a cycle of %" PRIu32 "%s:\n", a->n_steps,
		a->is_timed ? ", by the order of time" :
		a->is_in_session ? ", by the order of a process" : "");
	for (uint32_t i = 0; i < a->n_steps; i++)
		print_txn(report, steps[i].from, out);
	for (uint32_t i = 0; i < a->n_steps; i++)
		print_step(report, &steps[i], out);
}

static void print_read(const struct report *report, const struct check_anomaly *a, FILE *out)
{
	fprintf(out, "  %s %" PRIu64, a->is_list ? "list" : "row", a->key);
	if (a->value != HISTORY_ABSENT)
		fprintf(out, ", value %" PRIu64, a->value);
	fprintf(out, ":\n");
	print_txn(report, a->txn, out);
	if (a->other != UINT32_MAX && a->other != a->txn)
		print_txn(report, a->other, out);
}

static void print_unknown(const char *what, uint64_t n, FILE *out)
{
	if (n)
		fprintf(out, "not known: %" PRIu64 " %s\n", n, what);
}

void report_text(const struct report *report, FILE *out)
{
	const struct check_result *r = report->result;

	fprintf(out, "transactions: %" PRIu64 " committed, %" PRIu64 " aborted, %" PRIu64
		" of unknown outcome\n", r->n_txns[HISTORY_OK], r->n_txns[HISTORY_FAIL],
		r->n_txns[HISTORY_INFO]);
	fprintf(out, "edges:");
	for (unsigned int i = 0; i < CHECK_EDGES; i++)
		fprintf(out, " %s %" PRIu64, check_edge_name(i), r->n_edges[i]);
	fputc('\n', out);
	if (report->history->torn_lines)
		fprintf(out, "lines without an end, left out: %" PRIu64 "\n",
			report->history->torn_lines);
	if (report->history->n_lost)
		fprintf(out, "lost in crashes: %" PRIu64 " of the aborted had committed, of %"
			PRIu64 " epochs at most each time\n", report->history->n_lost,
			report->history->lost_epochs);
	print_unknown("writes of rows whose transaction had not read them, not put in order",
		      r->unknown.writes, out);
	print_unknown("reads that found no row, before it was added or after it was deleted",
		      r->unknown.absent_reads, out);
	print_unknown("rows added more than once, in which order", r->unknown.rows, out);
	print_unknown("appends that no read saw, not put in order", r->unknown.appends, out);
	print_unknown("transactions of unknown outcome, none of whose writes was seen",
		      r->unknown.outcomes, out);
	for (unsigned int kind = 0; kind < CHECK_KINDS; kind++) {
		if (!r->n_kind[kind])
			continue;
		fprintf(out, "%s (%s): %" PRIu64 "\n", check_kind_name(kind),
			check_kind_text(kind), r->n_kind[kind]);
		for (size_t i = 0; i < r->anomalies.n; i++) {
			const struct check_anomaly *a = &r->anomalies.at[i];

			if (a->kind == kind && a->n_steps)
				print_cycle(report, a, out);
			else if (a->kind == kind)
				print_read(report, a, out);
		}
	}
	if (r->n_anomalies)
		fprintf(out, "oltp-check: not %s: %" PRIu64 " anomalies\n",
			check_model_name(report->model), r->n_anomalies);
	else
		fprintf(out, "oltp-check: no anomaly, as far as it is known: %s\n",
			check_model_name(report->model));
}
