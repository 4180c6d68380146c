// SPDX-License-Identifier: GPL-2.0-or-later
/* See report.h. */
#include <errno.h>

#include "oltp-engine/bench/fields.h"
#include "oltp-engine/bench/report.h"
#include "report.h"

static const char *const failures[LOAD_FAILURES] = {
	[LOAD_FAIL_QUEUE] = "queue", [LOAD_FAIL_BROKEN] = "broken", [LOAD_FAIL_TIMEOUT] = "timeout",
	[LOAD_FAIL_ERROR] = "error", [LOAD_FAIL_WRONG] = "wrong",
};
static const char *const numbers[LOAD_NODES_MAX] = {
	"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
};

static void print_times(struct fields *f, const struct load_times *times)
{
	fields_u64(f, "done", times->done);
	fields_number(f, "mean_us", 1, load_times_mean_us(times));
	fields_number(f, "p50_us", 1, load_times_quantile_us(times, 0.5));
	fields_number(f, "p95_us", 1, load_times_quantile_us(times, 0.95));
	fields_number(f, "p99_us", 1, load_times_quantile_us(times, 0.99));
	fields_number(f, "max_us", 1, (double)times->max_ns / 1e3);
	fields_number(f, "service_mean_us", 1, load_times_service_us(times));
}

static void print_observed(struct fields *f, const char *name, uint32_t decimals, bool is_known,
			   double value)
{
	if (is_known && value >= 0)
		fields_number(f, name, decimals, value);
	else
		fields_null(f, name);
}

static void print_observation(struct fields *f, const struct observe *observe, uint32_t node)
{
	struct observation seen = { 0 };
	bool is_known = observe_read(observe, node, &seen);

	print_observed(f, "cpu_s", 6, is_known, seen.cpu_s);
	print_observed(f, "resident_bytes", 0, is_known, seen.resident_bytes);
	print_observed(f, "cold_bytes", 0, is_known, seen.cold_bytes);
	print_observed(f, "link_sent_bytes", 0, is_known, seen.link_sent_bytes);
	print_observed(f, "link_received_bytes", 0, is_known, seen.link_received_bytes);
}

static void print_kinds(struct fields *f, const struct load_report *r)
{
	fields_object_begin(f, "kinds");
	for (uint32_t i = 0; i < LOAD_MIX_KINDS; i++) {
		if (!r->mix->weights[i])
			continue;
		fields_object_begin(f, load_kind_name((enum load_kind)i));
		fields_u64(f, "failures", r->figures->kinds[i].failed);
		print_times(f, &r->figures->kinds[i]);
		fields_object_end(f);
	}
	fields_object_end(f);
}

static void print_nodes(struct fields *f, const struct load_report *r,
			const struct exchange_state *state)
{
	fields_object_begin(f, "nodes");
	for (uint32_t i = 0; i < state->n_nodes; i++) {
		fields_object_begin(f, numbers[i]);
		fields_text(f, "address", exchange_address(r->exchange, i)->text);
		fields_u64(f, "connections", state->connected[i]);
		fields_u64(f, "failures", r->figures->nodes[i].failed);
		print_times(f, &r->figures->nodes[i]);
		if (r->observe)
			print_observation(f, r->observe, i);
		fields_object_end(f);
	}
	fields_object_end(f);
}

static void begin(struct fields *f, FILE *out, const char *type, const struct load_report *r,
		  const struct exchange_state *state)
{
	struct load_times all = { .done = 0 };

	for (uint32_t i = 0; i < state->n_nodes; i++)
		load_times_add(&all, &r->figures->nodes[i]);
	fields_begin(f, out, FIELDS_JSON);
	fields_text(f, "type", type);
	fields_number(f, "t_s", 3, r->t_s);
	fields_number(f, "seconds", 3, r->seconds);
	fields_u64(f, "arrived", r->figures->arrived);
	fields_u64(f, "sent", r->figures->sent);
	fields_u64(f, "repeated", r->figures->repeated);
	fields_u64(f, "queue", state->queue);
	fields_u64(f, "under_way", state->under_way);
	fields_u64(f, "moves", r->moves);
	fields_u64(f, "failures", load_figures_failed(r->figures));
	fields_object_begin(f, "failed");
	for (uint32_t i = 0; i < LOAD_FAILURES; i++)
		fields_u64(f, failures[i], r->figures->failed[i]);
	fields_object_end(f);
	fields_object_begin(f, "all");
	print_times(f, &all);
	fields_object_end(f);
	print_kinds(f, r);
	print_nodes(f, r, state);
}

static int end(struct fields *f, FILE *out)
{
	fields_end(f);
	return bench_is_written(out, "oltp-load: standard output") ? 0 : -EIO;
}

int load_report_second(FILE *out, const struct load_report *report)
{
	struct exchange_state state;
	struct fields f;

	exchange_state(report->exchange, &state);
	begin(&f, out, "second", report, &state);
	return end(&f, out);
}

static void print_verdict(struct fields *f, const char *name,
			  const struct load_counts_verdict *verdict)
{
	fields_object_begin(f, name);
	fields_u64(f, "acknowledged", verdict->acknowledged);
	fields_u64(f, "unknown", verdict->unknown);
	fields_u64(f, "lost", verdict->lost);
	fields_u64(f, "extra", verdict->extra);
	fields_object_end(f);
}

static void print_books(struct fields *f, const struct load_books *books,
			const struct load_books_verdict *verdict)
{
	static const char *const names[LOAD_BOOKS] = {
		[LOAD_BOOK_ORDERS] = "orders", [LOAD_BOOK_PAYMENTS] = "payments",
		[LOAD_BOOK_DELIVERIES] = "deliveries",
	};

	fields_object_begin(f, "tables");
	fields_u64(f, "violations", verdict->violations);
	fields_u64(f, "parts", books->after.parts);
	fields_u64(f, "rolled_back", books->rolled_back);
	for (uint32_t i = 0; i < LOAD_BOOKS; i++)
		print_verdict(f, names[i], &verdict->books[i]);
	fields_object_end(f);
}

int load_report_summary(FILE *out, const struct load_report *report,
			const struct load_counts_verdict *verdict, const struct load_books *books,
			const struct load_books_verdict *books_verdict)
{
	struct exchange_state state;
	struct fields f;

	exchange_state(report->exchange, &state);
	begin(&f, out, "summary", report, &state);
	fields_u64(&f, "pushes", state.pushes);
	fields_u64(&f, "bad_pushes", state.bad_pushes);
	fields_text(&f, "error", exchange_error(report->exchange));
	if (verdict)
		print_verdict(&f, "counters", verdict);
	if (books_verdict)
		print_books(&f, books, books_verdict);
	return end(&f, out);
}
