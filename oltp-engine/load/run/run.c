// SPDX-License-Identifier: GPL-2.0-or-later
/* See run.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "run.h"
#include "oltp-engine/src/base/clock.h"

#define NS_PER_S	1000000000ull
/* To connect all at the start; to load a part of the rows, or to read a few counters. */
#define PATIENCE_NS	(10 * NS_PER_S)
/* Nodes are asked so long before a line is printed; a later answer is none. */
#define OBSERVE_NS	(NS_PER_S / 10)
#define FILL_ROWS	16u
#define QUEUE_MIN	65536.0
#define QUEUE_MAX	4194304.0

enum phase {
	PHASE_FILL,
	PHASE_BEFORE,		/* counters are read */
	PHASE_RUN,
	PHASE_AFTER,		/* counters are read again */
};

struct run {
	const struct load_config *config;
	struct exchange *exchange;
	struct load_count *counts;
	struct load_books books;
	uint32_t *next_o;		/* of each district: see tpcc_check.h */
	uint32_t round;			/* of LOAD_TPCC_CHECK */
	enum phase phase;
	/* Of the phases before and after the run. */
	uint64_t given_up_ns;		/* too long without progress then */
	bool was_refused;		/* by an answer, so it is of no use to go on */

	struct load_figures second, whole;
	uint64_t start_ns, line_ns;	/* of the run; of the time that the next line is about */
	uint64_t next_line_ns;		/* when it is printed */
	uint64_t moves_before;		/* what had moved at line_ns */
	struct observe *observe;	/* NULL: not asked for */
	uint64_t asked_line_ns;		/* the line that nodes were asked for last */
};

static struct load_tpcc_sums *sums_of(struct run *run)
{
	return run->phase == PHASE_BEFORE ? &run->books.before : &run->books.after;
}

static void take_check(struct run *run, const struct load_request *request, const int64_t *numbers)
{
	const struct load_tpcc_part part = load_tpcc_check_part(
		&run->config->tpcc, request->field, run->next_o, request->first);

	load_tpcc_check_add(sums_of(run), run->next_o, &part, numbers);
}

static void on_done(void *ctx, const struct load_request *request, const struct load_answer *answer)
{
	struct run *run = ctx;

	run->given_up_ns = clock_now_ns() + PATIENCE_NS;
	if (request->kind == LOAD_COUNT)
		run->counts[request->first].acknowledged++;
	else if (request->kind == LOAD_READ_COUNTER && run->phase == PHASE_BEFORE)
		run->counts[request->first].before = answer->value;
	else if (request->kind == LOAD_READ_COUNTER)
		run->counts[request->first].after = answer->value;
	else if (request->kind == LOAD_TPCC_CHECK)
		take_check(run, request, answer->numbers);
	else
		load_books_done(&run->books, request->kind, answer->value);
}

static void on_failed(void *ctx, const struct load_request *request, enum load_failure why,
		      bool may_be_executed)
{
	struct load_request again = *request;
	struct run *run = ctx;

	if (run->phase == PHASE_RUN) {
		if (request->kind == LOAD_COUNT && may_be_executed)
			run->counts[request->first].unknown++;
		else if (may_be_executed)
			load_books_unknown(&run->books, request->kind);
		return;
	}
	if (why == LOAD_FAIL_ERROR || why == LOAD_FAIL_WRONG) {
		run->was_refused = true;
		return;
	}
	again.arrived_ns = clock_now_ns();
	exchange_add(run->exchange, &again);
}

static int complain(const struct run *run, const char *what, int rc)
{
	const char *why = exchange_error(run->exchange);

	if (rc == -EINTR)
		fprintf(stderr, "oltp-load: %s: interrupted\n", what);
	else
		fprintf(stderr, "oltp-load: %s: %s%s%s\n", what, strerror(-rc), *why ? "; " : "",
			why);
	return rc;
}

/* A turn that a signal which ends nothing may cut short. */
static int turn(struct run *run, uint64_t until_ns)
{
	int rc = exchange_turn(run->exchange, until_ns);

	return rc == -EINTR && !*run->config->must_stop ? 0 : rc;
}

static int connect_all(struct run *run)
{
	uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
	int rc = 0;

	while (!rc) {
		struct exchange_state state;
		uint32_t n = 0;

		exchange_state(run->exchange, &state);
		for (uint32_t i = 0; i < state.n_nodes; i++)
			n += state.connected[i];
		if (n == run->config->exchange.connections)
			return 0;
		if (state.was_refused)
			rc = -EACCES;
		else if (clock_now_ns() >= end_ns)
			rc = -ETIMEDOUT;
		else
			rc = turn(run, end_ns);
	}
	return complain(run, "connecting", rc);
}

/* Requests of one kind for all of 0..end, two at a time for each connection. */
static int do_all(struct run *run, enum phase phase, enum load_kind kind, uint64_t end,
		  uint32_t rows, const char *what)
{
	uint32_t most = 2 * run->config->exchange.connections;
	int rc = 0;

	run->phase = phase;
	run->given_up_ns = clock_now_ns() + PATIENCE_NS;
	for (uint64_t next = 0; !rc;) {
		uint64_t now_ns = clock_now_ns();

		if (next == end && !exchange_pending(run->exchange))
			return 0;
		while (next < end && exchange_pending(run->exchange) < most) {
			uint64_t left = end - next;
			const struct load_request request = {
				.arrived_ns = now_ns,
				.first = next,
				.n = left < rows ? (uint32_t)left : rows,
				.kind = kind,
				.field = run->round,
			};

			next += request.n;
			exchange_add(run->exchange, &request);
		}
		if (run->was_refused)
			rc = -EREMOTEIO;
		else if (now_ns >= run->given_up_ns)
			rc = -ETIMEDOUT;
		else
			rc = turn(run, run->given_up_ns);
	}
	return complain(run, what, rc);
}

static int check_tables(struct run *run, enum phase phase)
{
	const struct load_tpcc *tpcc = &run->config->tpcc;
	int rc = 0;

	for (run->round = 0; !rc && run->round < 2; run->round++)
		rc = do_all(run, phase, LOAD_TPCC_CHECK,
			    load_tpcc_check_parts(tpcc, run->round, run->next_o), 1,
			    "checking the tables");
	load_tpcc_check_end(sums_of(run));
	return rc;
}

static int read_counters(struct run *run, enum phase phase)
{
	if (!run->config->must_verify)
		return 0;
	if (run->config->tables == LOAD_TABLES_TPCC)
		return check_tables(run, phase);
	return do_all(run, phase, LOAD_READ_COUNTER, run->config->mix.counters, 1,
		      "reading the counters");
}

/* All nodes that are known by now. */
static void ask_nodes(struct run *run)
{
	struct exchange_state state;

	exchange_state(run->exchange, &state);
	for (uint32_t i = 0; i < state.n_nodes; i++)
		observe_node(run->observe, i, exchange_address(run->exchange, i));
	observe_ask(run->observe);
}

static void look_on(struct run *run, uint64_t now_ns)
{
	if (!run->observe)
		return;
	if (run->asked_line_ns != run->next_line_ns && now_ns + OBSERVE_NS >= run->next_line_ns) {
		run->asked_line_ns = run->next_line_ns;
		ask_nodes(run);
	}
	observe_turn(run->observe);
}

/* A line for the time up to now. */
static int end_second(struct run *run, uint64_t now_ns)
{
	struct exchange_state state;
	struct load_report report = {
		.t_s = (double)(now_ns - run->start_ns) / 1e9,
		.seconds = (double)(now_ns - run->line_ns) / 1e9,
		.figures = &run->second,
		.exchange = run->exchange,
		.mix = &run->config->mix,
		.observe = run->observe,
	};

	exchange_figures(run->exchange, &run->second);
	load_figures_add(&run->whole, &run->second);
	exchange_state(run->exchange, &state);
	report.moves = state.moves - run->moves_before;
	run->moves_before = state.moves;
	run->line_ns = now_ns;
	while (run->next_line_ns <= now_ns)
		run->next_line_ns += NS_PER_S;
	return load_report_second(run->config->out, &report);
}

static void add_arrivals(struct run *run, struct load_arrivals *arrivals, struct load_draw *draw,
			 uint64_t until_ns)
{
	while (load_arrivals_next(arrivals) <= until_ns) {
		struct load_request request;

		load_draw_next(draw, load_arrivals_next(arrivals), &request);
		exchange_add(run->exchange, &request);
		load_arrivals_take(arrivals);
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Requests arrive until the end; then those that wait or are under way come to theirs. */
static int run_load(struct run *run)
{
	const struct load_config *config = run->config;
	struct load_arrivals arrivals;
	struct load_draw draw;
	uint64_t end_ns;
	int rc = 0;

	run->phase = PHASE_RUN;
	run->start_ns = run->line_ns = run->next_line_ns = clock_now_ns();
	run->next_line_ns += NS_PER_S;
	end_ns = run->start_ns + (uint64_t)(config->seconds * 1e9);
	load_arrivals_init(&arrivals, config->steps, config->n_steps, config->is_poisson,
			   config->seed, run->start_ns);
	/* Not the same numbers: the distance to a request would say which one it is. */
	load_draw_init(&draw, &config->mix, ~config->seed);
	/* What was counted before is no part of the run. */
	exchange_figures(run->exchange, &run->second);
	while (!rc) {
		uint64_t now_ns = clock_now_ns();
		bool is_over;

		if (*config->must_stop)
			end_ns = least(end_ns, now_ns);
		look_on(run, now_ns);
		add_arrivals(run, &arrivals, &draw, least(now_ns, end_ns));
		is_over = now_ns >= end_ns && !exchange_pending(run->exchange);
		if (is_over || now_ns >= run->next_line_ns)
			rc = end_second(run, now_ns);
		if (is_over)
			break;
		if (!rc)
			rc = turn(run, least(run->next_line_ns, now_ns >= end_ns ? UINT64_MAX :
					     least(end_ns, load_arrivals_next(&arrivals))));
		/* It asks for the end, which the next round sees. */
		if (rc == -EINTR)
			rc = 0;
	}
	return rc && rc != -EIO ? complain(run, "running", rc) : rc;
}

static int summarise(struct run *run)
{
	const struct load_report report = {
		.t_s = (double)(run->line_ns - run->start_ns) / 1e9,
		.seconds = (double)(run->line_ns - run->start_ns) / 1e9,
		.figures = &run->whole,
		.exchange = run->exchange,
		.mix = &run->config->mix,
		.moves = run->moves_before,
	};
	bool is_tpcc = run->config->tables == LOAD_TABLES_TPCC;
	struct load_books_verdict books;
	struct load_counts_verdict verdict;
	int rc;

	if (!run->config->must_verify)
		return load_report_summary(run->config->out, &report, NULL, NULL, NULL);
	load_counts_judge(run->counts, run->config->mix.counters, &verdict);
	load_books_judge(&run->books, &books);
	rc = load_report_summary(run->config->out, &report, is_tpcc ? NULL : &verdict, &run->books,
				 is_tpcc ? &books : NULL);
	if (rc)
		return rc;
	return (is_tpcc ? !load_books_are_good(&books) : verdict.lost || verdict.extra) ||
	       run->whole.failed[LOAD_FAIL_WRONG] ? -EBADMSG : 0;
}

static int fill(struct run *run)
{
	const struct load_config *config = run->config;

	switch (config->tables) {
	case LOAD_TABLES_YCSB:
		return do_all(run, PHASE_FILL, LOAD_YCSB_FILL, config->mix.rows, FILL_ROWS,
			      "loading the records");
	case LOAD_TABLES_TPCC:
		return do_all(run, PHASE_FILL, LOAD_TPCC_FILL, load_tpcc_parts(&config->tpcc), 1,
			      "loading the tables");
	default:
		return do_all(run, PHASE_FILL, LOAD_FILL, config->mix.rows, FILL_ROWS,
			      "loading the rows");
	}
}

static int all_phases(struct run *run)
{
	const struct load_config *config = run->config;
	struct exchange_state state;
	int rc = connect_all(run);

	/* Connects, while no node has been told that the database moves. */
	if (!rc && run->observe)
		ask_nodes(run);
	if (!rc && config->must_fill)
		rc = fill(run);
	if (rc || config->seconds <= 0)
		return rc;
	rc = read_counters(run, PHASE_BEFORE);
	exchange_state(run->exchange, &state);
	run->moves_before = state.moves;
	if (!rc)
		rc = run_load(run);
	if (!rc)
		rc = read_counters(run, PHASE_AFTER);
	return rc ? rc : summarise(run);
}

/* What can wait at most, twice over: at the highest rate, as long as it may. */
static uint32_t queue_room(const struct load_config *config)
{
	double most = 0, room;

	for (uint32_t i = 0; i < config->n_steps; i++) {
		if (config->steps[i].per_s > most)
			most = config->steps[i].per_s;
	}
	room = 2 * most * (double)config->exchange.wait_ns / 1e9;
	return (uint32_t)(room < QUEUE_MIN ? QUEUE_MIN : room > QUEUE_MAX ? QUEUE_MAX : room);
}

int load_run(const struct load_config *config)
{
	struct exchange_config exchange = config->exchange;
	struct run *run = calloc(1, sizeof(*run));
	int rc = -ENOMEM;

	if (run) {
		run->counts = calloc(config->mix.counters, sizeof(*run->counts));
		run->next_o = calloc(config->tpcc.warehouses * TPCC_DISTRICTS, sizeof(uint32_t));
	}
	if (run && run->counts && run->next_o) {
		run->config = config;
		exchange.queue_room = queue_room(config);
		exchange.on_done = on_done;
		exchange.on_failed = on_failed;
		exchange.ctx = run;
		exchange.shape.tpcc = &config->tpcc;
		exchange.shape.next_o = run->next_o;
		rc = exchange_create(&exchange, &run->exchange);
	}
	if (!rc && config->must_observe) {
		run->observe = observe_create(exchange.password);
		rc = run->observe ? 0 : -ENOMEM;
	}
	if (rc)
		fprintf(stderr, "oltp-load: %s\n", strerror(-rc));
	else
		rc = all_phases(run);
	if (run) {
		observe_destroy(run->observe);
		exchange_destroy(run->exchange);
		free(run->counts);
		free(run->next_o);
	}
	free(run);
	return rc;
}
