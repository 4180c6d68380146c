// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vom-cost: what it costs an engine to know what its memory is worth. One engine runs the same
 * transactions all the time; in turns its records are watched, and once in each such run the
 * question of the host is answered (sample copied, values made and sorted), or nothing of that
 * happens. Runs of the two kinds make pairs, which begin with the one and with the other by turns.
 * Runs are short and pairs many: what else the machine does then meets both kinds alike, and the
 * median of many pairs is known better than that of a few, however noisy each one is.
 * With --promise it is the simulation of a promised memory that is on and off by turns. Each run
 * begins with a second in which the rate of its sample settles, and what counts is CPU time of the
 * workers for each transaction, which other programs disturb less than throughput.
 * Prints the medians of both, that of the pairs' ratios, and between what it is with a probability
 * of 95 % (order statistics: nothing is assumed of how ratios are distributed). Dearer than in
 * earnest: the host asks once a minute at most, here it does in each second that is watched, and
 * every watched run starts with nothing known.
 * Exit status: 0, 1 (could not run), 64 (usage).
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"
#include "report.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/random.h"

#define RECORD_BYTES	1008u
#define ACCESSES	10u
#define UPDATE_BYTES	100u
#define BLOCKS_BYTES	(1ull << 40)
#define REREAD_NS	100000.0
#define PAIRS_MAX	10000u
#define SETTLE_MS	2000u
#define RATE_SETTLES_NS	1000000000ull
#define ANSWERS_NS	1000000000ull	/* watched time between two answers */
#define THREADS_MAX	64u

const char *argp_program_version = "vom-cost 1 (Ebb)";

struct arguments {
	uint64_t threads, millis, pairs, records;
	uint64_t promise_mib;		/* 0: watching is measured */
	const char *cold_dir;
};

struct thread {
	pthread_t id;
	struct oltp_engine *engine;
	struct oltp_table *table;
	uint64_t records;
	struct random64 random;
	const _Atomic bool *quit;
	_Alignas(128) _Atomic uint64_t commits;
};

static struct oltp_memory_sample samples[OLTP_MEMORY_SAMPLES_MAX];

static void sleep_until(uint64_t ns)
{
	const struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Low keys more often: the density falls as the square root. */
static uint64_t next_key(struct thread *t)
{
	const double x = random64_unit(&t->random);

	return (uint64_t)(x * x * (double)t->records) % t->records;
}

static enum oltp_rc transaction(struct thread *t, struct oltp_worker *w)
{
	const struct oltp_span span = { 0, UPDATE_BYTES };
	enum oltp_rc rc = OLTP_OK;

	oltp_txn_begin(w);
	for (uint32_t i = 0; !rc && i < ACCESSES; i++) {
		uint64_t key = next_key(t);
		const void *found;
		void *record;

		if (i % 2) {
			rc = oltp_txn_update(w, t->table, key, &span, 1, &record);
			if (!rc)
				memset(record, (int)i, UPDATE_BYTES);
		} else {
			rc = oltp_txn_read(w, t->table, key, &found);
		}
	}
	if (!rc)
		return oltp_txn_commit(w);
	oltp_txn_abort(w);
	return rc;
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct oltp_worker *w;

	if (oltp_worker_create(t->engine, &w)) {
		fprintf(stderr, "vom-cost: no memory for a worker\n");
		exit(EXIT_FAILURE);
	}
	while (!atomic_load_explicit(t->quit, memory_order_relaxed)) {
		if (transaction(t, w) == OLTP_OK)
			atomic_fetch_add_explicit(&t->commits, 1, memory_order_relaxed);
	}
	oltp_worker_destroy(w);
	return NULL;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct median {
	double value, low, high;	/* low to high: with a probability of 95 % */
};

/* Sorts them. The ranks of low and high: normal approximation of the binomial distribution. */
static struct median median_of(double *values, uint64_t n)
{
	uint64_t off = 1;

	while ((double)(off * off) < 0.98 * 0.98 * (double)n)
		off++;
	qsort(values, n, sizeof(*values), compare_doubles);
	return (struct median){
		.value = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2,
		.low = values[n / 2 > off ? n / 2 - off : 0],
		.high = values[n / 2 + off < n ? n / 2 + off : n - 1],
	};
}

/* The work of one answer to the host: copies the sample, makes values of it and sorts them. */
static uint32_t answer(struct oltp_engine *engine)
{
	static double values[OLTP_MEMORY_SAMPLES_MAX];
	uint32_t n = oltp_memory_sample_read(engine, samples, OLTP_MEMORY_SAMPLES_MAX);

	for (uint32_t i = 0; i < n; i++)
		values[i] = REREAD_NS * oltp_memory_sample_rate(&samples[i]) * (1 << 20) /
			    samples[i].bytes;
	qsort(values, n, sizeof(*values), compare_doubles);
	return n;
}

struct runs {
	struct oltp_engine *engine;
	struct thread *threads;
	const struct arguments *args;
	uint64_t unanswered_ns;		/* watched since the last answer */
	uint32_t n_samples, answers;
};

/* What the workers have done since the engine was opened, or in a run. */
struct done {
	uint64_t commits, cpu_ns;
};

static struct done done_by_now(const struct runs *r)
{
	struct done done = { 0 };

	for (uint64_t i = 0; i < r->args->threads; i++) {
		struct timespec ts = { 0 };
		clockid_t clock;

		done.commits += atomic_load(&r->threads[i].commits);
		if (!pthread_getcpuclockid(r->threads[i].id, &clock) && !clock_gettime(clock, &ts))
			done.cpu_ns += (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	return done;
}

/* Transactions per second of the clock, or of the workers' CPU time if a memory is promised. */
static double run(struct runs *r, bool is_watched)
{
	const bool is_promise = r->args->promise_mib;
	uint64_t start_ns, end_ns, took_ns;
	struct done before, after;

	if (is_promise)
		oltp_set_mem_promise(r->engine,
				     is_watched ? (uint32_t)r->args->promise_mib : 0);
	else
		oltp_memory_watch(r->engine, is_watched);
	if (is_promise)
		sleep_until(clock_now_ns() + RATE_SETTLES_NS);
	start_ns = clock_now_ns();
	end_ns = start_ns + r->args->millis * 1000000ull;
	before = done_by_now(r);
	sleep_until(start_ns + (end_ns - start_ns) / 2);
	r->unanswered_ns += is_watched && !is_promise ? end_ns - start_ns : 0;
	if (r->unanswered_ns >= ANSWERS_NS) {
		r->n_samples = answer(r->engine);
		r->answers++;
		r->unanswered_ns = 0;
	}
	sleep_until(end_ns);
	after = done_by_now(r);
	took_ns = is_promise ? after.cpu_ns - before.cpu_ns : clock_now_ns() - start_ns;
	return (double)(after.commits - before.commits) * 1e9 / (double)took_ns;
}

static void measure(struct runs *r)
{
	static double with[PAIRS_MAX], without[PAIRS_MAX], ratios[PAIRS_MAX];
	uint64_t n = r->args->pairs;
	struct median ratio;

	/* Caches and clocks settle. */
	for (uint64_t ms = 0; ms < SETTLE_MS; ms += r->args->millis)
		run(r, true);
	for (uint64_t i = 0; i < n; i++) {
		if (i % 2)
			with[i] = run(r, true);
		without[i] = run(r, false);
		if (i % 2 == 0)
			with[i] = run(r, true);
		ratios[i] = with[i] / without[i];
	}
	ratio = median_of(ratios, n);
	printf("threads %lu, records %lu, runs of %lu ms, %lu pairs, %u answers, the last of "
	       "%u samples\n", (unsigned long)r->args->threads, (unsigned long)r->args->records,
	       (unsigned long)r->args->millis, (unsigned long)n, r->answers, r->n_samples);
	printf("median watched %.0f/s, not watched %.0f/s, of ratios %.4f: cost %.2f %% "
	       "(95 %%: %.2f to %.2f %%)\n", median_of(with, n).value,
	       median_of(without, n).value, ratio.value, 100 * (1 - ratio.value),
	       100 * (1 - ratio.high), 100 * (1 - ratio.low));
}

static int load(struct oltp_engine *engine, struct oltp_table *table, uint64_t records)
{
	static const uint8_t record[RECORD_BYTES];
	struct oltp_worker *w;
	int rc = oltp_worker_create(engine, &w);

	if (rc)
		return rc;
	for (uint64_t key = 0; !rc && key < records;) {
		enum oltp_rc txn_rc;

		oltp_txn_begin(w);
		txn_rc = oltp_txn_insert(w, table, key, record);
		if (!txn_rc)
			txn_rc = oltp_txn_commit(w);
		if (txn_rc)
			oltp_txn_abort(w);
		if (txn_rc && txn_rc != OLTP_CONFLICT)
			rc = -EIO;
		key += !txn_rc;
	}
	oltp_worker_destroy(w);
	return rc;
}

static int measure_all(struct oltp_engine *engine, const struct arguments *args)
{
	static struct thread threads[THREADS_MAX];
	static _Atomic bool quit;
	struct oltp_table *table;
	uint64_t n = 0;
	int rc = oltp_table_create(engine, RECORD_BYTES, args->records, &table);

	if (!rc)
		rc = load(engine, table, args->records);
	for (; !rc && n < args->threads; n++) {
		threads[n] = (struct thread){ .engine = engine, .table = table, .quit = &quit,
					      .records = args->records, .random = { n + 1 } };
		rc = -pthread_create(&threads[n].id, NULL, thread_main, &threads[n]);
		if (rc)
			break;
	}
	if (!rc)
		measure(&(struct runs){ .engine = engine, .threads = threads, .args = args });
	atomic_store(&quit, true);
	for (uint64_t i = 0; i < n; i++)
		pthread_join(threads[i].id, NULL);
	return rc;
}

static const struct argp_option options[] = {
	{ "threads", 't', "N", 0, "threads that run transactions, 1 to 64 (default 2)", 0 },
	{ "milliseconds", 'm', "N", 0, "length of a run, 50 to 60000 (default 250)", 0 },
	{ "pairs", 'p', "N", 0, "pairs of runs, 10 to 10000 (default 200)", 0 },
	{ "records", 'n', "N", 0, "records of 1 KiB, 1000 to 100000000 (default 200000)", 0 },
	{ "promise", 'P', "MIB", 0,
	  "measure what simulating a promised memory costs, in place of watching; needs --cold-dir",
	  0 },
	{ "cold-dir", 'd', "DIR", 0, "where records would go if memory were short", 0 },
	{ 0 },
};

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;

	switch (key) {
	case 't':
		args->threads = bench_parse_number(state, "threads", arg, 1, THREADS_MAX);
		return 0;
	case 'm':
		args->millis = bench_parse_number(state, "milliseconds", arg, 50, 60000);
		return 0;
	case 'p':
		args->pairs = bench_parse_number(state, "pairs", arg, 10, PAIRS_MAX);
		return 0;
	case 'n':
		args->records = bench_parse_number(state, "records", arg, 1000, 100000000);
		return 0;
	case 'P':
		args->promise_mib = bench_parse_number(state, "promise", arg, 1, UINT32_MAX);
		return 0;
	case 'd':
		args->cold_dir = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->promise_mib && !args->cold_dir)
			argp_error(state, "--promise needs --cold-dir");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = option_parse,
		.doc = "Measures what watching records, to know what memory is worth, costs.",
	};
	struct arguments args = { .threads = 2, .millis = 250, .pairs = 200, .records = 200000 };
	struct oltp_blocks_native *blocks;
	struct oltp_engine *engine;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	rc = oltp_blocks_native_create(BLOCKS_BYTES, 0, &blocks);
	if (rc) {
		fprintf(stderr, "vom-cost: no memory: %s\n", strerror(-rc));
		return EXIT_FAILURE;
	}
	rc = oltp_engine_open(&(struct oltp_config){ .node = -1, .blocks = &oltp_blocks_native_ops,
						     .blocks_ctx = blocks,
						     .cold_dir = args.cold_dir }, &engine);
	if (!rc) {
		oltp_blocks_native_attach(blocks, engine);
		rc = measure_all(engine, &args);
		oltp_engine_close(engine);
	}
	oltp_blocks_native_destroy(blocks);
	if (rc)
		fprintf(stderr, "vom-cost: could not run: %s\n", strerror(-rc));
	if (rc || !bench_is_written(stdout, "vom-cost: standard output"))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
