// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-index-bench: what ordered indexes cost and bring, beside the hash index. Fills tables with
 * none, one and two ordered indexes, then looks up, scans and deletes, each on all threads at once.
 * Exit status: 0, 1 (could not run, or a row was not where it should be), 64 (usage).
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"
#include "report.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/random.h"

#define THREADS_MAX		64u
#define BYTES_DEFAULT		100u
#define ROWS_DEFAULT		1000000u
#define OPERATIONS		10u	/* in a transaction */
#define SCAN_ROWS		100u
/* Each thread has more rows than a scan. */
#define ROWS_MIN		(2 * SCAN_ROWS * THREADS_MAX)

const char *argp_program_version = "oltp-index-bench 1 (Ebb)";

struct arguments {
	uint64_t rows;
	uint32_t threads, record_bytes;
	double seconds;
	bool is_json;
};

static const struct argp_option options[] = {
	{ "rows", 'n', "N", 0, "in each table, 12800 at least (1000000)", 0 },
	{ "threads", 't', "N", 0, "one per CPU, from CPU 0 on, 1 to 64 (1)", 0 },
	{ "record-bytes", 'b', "N", 0, "of a row, 16 to 1048576 (100)", 0 },
	{ "seconds", 's', "S", 0, "for each of look-ups and scans (2)", 0 },
	{ "json", 'j', NULL, 0, "one object instead of the table", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'n':
		a->rows = bench_parse_number(state, "rows", arg, ROWS_MIN, 1ull << 32);
		break;
	case 't':
		a->threads = (uint32_t)bench_parse_number(state, "threads", arg, 1, THREADS_MAX);
		break;
	case 'b':
		a->record_bytes = (uint32_t)bench_parse_number(state, "record-bytes", arg, 16,
							       1u << 20);
		break;
	case 's':
		a->seconds = bench_parse_double(state, "seconds", arg, 0.001, 3600);
		break;
	case 'j':
		a->is_json = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

struct bench {
	struct arguments args;
	struct oltp_engine *engine;
	/* With none, one (by primary key) and two (by primary and sort key) ordered indexes. */
	struct oltp_table *tables[3];
	struct oltp_index *by_key, *by_sort;
	_Atomic bool quit, has_failed;
};

struct thread {
	struct bench *bench;
	const struct phase *phase;
	struct oltp_worker *worker;
	uint32_t number;
	struct random64 random;
	uint8_t *bytes;
	uint64_t n;		/* operations, or rows */
	double seconds;
};

/* One transaction of a phase. False: there is nothing left to do. */
struct phase {
	const char *name;
	bool (*run)(struct thread *t, uint32_t arg, enum oltp_rc *ret_rc);
	uint32_t arg;
	bool is_timed;		/* until the time is up */
};

static double now_s(void)
{
	return (double)clock_now_ns() / 1e9;
}

/* A permutation of the 64-bit numbers, so that a secondary index is filled in another order. */
static uint64_t sort_key_of(void *ctx, uint64_t primary_key, const void *record)
{
	(void)ctx;
	(void)record;
	return primary_key * 0x9e3779b97f4a7c15ull;
}

/* Keys of the thread: every so-many-th, in a mixed order or in their own. */
static uint64_t own_key(const struct thread *t, uint64_t i, bool is_mixed)
{
	const struct arguments *a = &t->bench->args;
	uint64_t n = a->rows / a->threads;

	if (is_mixed)
		i = i * 2654435761u % n;
	return i * a->threads + t->number;
}

static uint64_t own_rows(const struct thread *t)
{
	return t->bench->args.rows / t->bench->args.threads;
}

/* arg: the table, and whether keys come mixed (4). */
static bool run_insert(struct thread *t, uint32_t arg, enum oltp_rc *ret_rc)
{
	struct oltp_table *table = t->bench->tables[arg & 3];
	uint64_t end = own_rows(t), n = t->n;

	for (uint32_t i = 0; !*ret_rc && i < OPERATIONS && n < end; i++, n++)
		*ret_rc = oltp_txn_insert(t->worker, table, own_key(t, n, arg & 4), t->bytes);
	t->n = *ret_rc ? t->n : n;
	return t->n < end;
}

static bool run_delete(struct thread *t, uint32_t arg, enum oltp_rc *ret_rc)
{
	struct oltp_table *table = t->bench->tables[arg & 3];
	uint64_t end = own_rows(t), n = t->n;

	for (uint32_t i = 0; !*ret_rc && i < OPERATIONS && n < end; i++, n++)
		*ret_rc = oltp_txn_delete(t->worker, table, own_key(t, n, arg & 4));
	t->n = *ret_rc ? t->n : n;
	return t->n < end;
}

static bool run_read(struct thread *t, uint32_t arg, enum oltp_rc *ret_rc)
{
	struct oltp_table *table = t->bench->tables[arg];
	uint64_t rows = own_rows(t) * t->bench->args.threads;

	for (uint32_t i = 0; !*ret_rc && i < OPERATIONS; i++) {
		const void *record;

		*ret_rc = oltp_txn_read(t->worker, table, random64_below(&t->random, rows),
					&record);
	}
	t->n += *ret_rc ? 0 : OPERATIONS;
	return true;
}

static int count_row(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	(void)sort_key;
	(void)primary_key;
	(void)record;
	++*(uint64_t *)ctx;
	return 0;
}

/* Says so once. */
static void miss_row(struct thread *t)
{
	if (!atomic_exchange(&t->bench->has_failed, true))
		fprintf(stderr, "oltp-index-bench: %s: a row is missing\n", t->phase->name);
}

static bool run_look_up(struct thread *t, uint32_t arg, enum oltp_rc *ret_rc)
{
	uint64_t rows = own_rows(t) * t->bench->args.threads, n = 0;

	for (uint32_t i = 0; !*ret_rc && i < OPERATIONS; i++) {
		uint64_t key = random64_below(&t->random, rows);
		uint64_t sort = arg ? sort_key_of(NULL, key, NULL) : key;
		struct oltp_range range = { .from = sort, .to = sort, .limit = 1 };

		*ret_rc = oltp_txn_scan(t->worker, arg ? t->bench->by_sort : t->bench->by_key,
					&range, count_row, &n);
	}
	if (!*ret_rc && n != OPERATIONS)
		miss_row(t);
	t->n += *ret_rc ? 0 : OPERATIONS;
	return true;
}

/* arg: rows at once, and whether downwards (1). */
static bool run_scan(struct thread *t, uint32_t arg, enum oltp_rc *ret_rc)
{
	uint64_t rows = own_rows(t) * t->bench->args.threads - SCAN_ROWS, n = 0;
	uint64_t from = random64_below(&t->random, rows);
	struct oltp_range range = { .from = from, .to = from + SCAN_ROWS - 1,
				    .descending = arg & 1 };

	*ret_rc = oltp_txn_scan(t->worker, t->bench->by_key, &range, count_row, &n);
	if (!*ret_rc && n != SCAN_ROWS)
		miss_row(t);
	t->n += *ret_rc ? 0 : n;
	return true;
}

static const struct phase phases[] = {
	{ "insert, hash only", run_insert, 0, false },
	{ "insert, +primary, in order", run_insert, 1, false },
	{ "delete, +primary, in order", run_delete, 1, false },
	{ "insert, +primary, mixed", run_insert, 1 | 4, false },
	{ "insert, +primary +secondary", run_insert, 2, false },
	{ "look-up, hash", run_read, 0, true },
	{ "look-up, ordered", run_look_up, 0, true },
	{ "look-up, secondary", run_look_up, 1, true },
	{ "scan of 100, rows", run_scan, 0, true },
	{ "scan of 100 down, rows", run_scan, 1, true },
	{ "delete, +primary, mixed", run_delete, 1 | 4, false },
	{ "delete, +primary +secondary", run_delete, 2, false },
};

#define PHASES	(sizeof(phases) / sizeof(phases[0]))

static void pin(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* Without, it is only less even. */
	sched_setaffinity(0, sizeof(set), &set);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	double start_s = now_s();
	bool goes_on = true;

	pin(t->number);
	while (goes_on && !atomic_load_explicit(&t->bench->quit, memory_order_relaxed)) {
		enum oltp_rc rc = oltp_txn_begin(t->worker);

		goes_on = t->phase->run(t, t->phase->arg, &rc);
		if (!rc)
			rc = oltp_txn_commit(t->worker);
		if (rc)
			oltp_txn_abort(t->worker);
		if (rc && rc != OLTP_CONFLICT) {
			fprintf(stderr, "oltp-index-bench: %s: %s\n", t->phase->name,
				oltp_strerror(rc));
			atomic_store(&t->bench->has_failed, true);
			break;
		}
	}
	t->seconds = now_s() - start_s;
	return NULL;
}

/* Per second. */
static double run_phase(struct bench *bench, struct thread *threads, const struct phase *phase)
{
	uint32_t n = bench->args.threads;
	double rate = 0;
	pthread_t ids[THREADS_MAX];

	atomic_store(&bench->quit, false);
	for (uint32_t i = 0; i < n; i++) {
		threads[i].phase = phase;
		threads[i].n = 0;
		if (pthread_create(&ids[i], NULL, thread_main, &threads[i])) {
			atomic_store(&bench->quit, true);
			atomic_store(&bench->has_failed, true);
			n = i;
		}
	}
	if (phase->is_timed) {
		nanosleep(&(struct timespec){ (time_t)bench->args.seconds,
					      (long)(bench->args.seconds * 1e9) % 1000000000 },
			  NULL);
		atomic_store(&bench->quit, true);
	}
	for (uint32_t i = 0; i < n; i++) {
		pthread_join(ids[i], NULL);
		rate += (double)threads[i].n / threads[i].seconds;
	}
	return rate;
}

static int set_up(struct bench *bench, struct thread *threads)
{
	const struct oltp_index_config by_sort = { .key_of = sort_key_of, .n_key_spans = 1 };
	const struct arguments *a = &bench->args;
	struct oltp_index *unused;
	int rc = oltp_engine_open(NULL, &bench->engine);

	for (uint32_t i = 0; !rc && i < 3; i++)
		rc = oltp_table_create(bench->engine, a->record_bytes, a->rows,
				       &bench->tables[i]);
	if (!rc)
		rc = oltp_index_create(bench->tables[1], NULL, &bench->by_key);
	if (!rc)
		rc = oltp_index_create(bench->tables[2], NULL, &unused);
	if (!rc)
		rc = oltp_index_create(bench->tables[2], &by_sort, &bench->by_sort);
	for (uint32_t i = 0; !rc && i < a->threads; i++) {
		threads[i] = (struct thread){ .bench = bench, .number = i, .random = { i + 1 } };
		threads[i].bytes = calloc(1, a->record_bytes);
		rc = threads[i].bytes ? oltp_worker_create(bench->engine, &threads[i].worker) :
					-ENOMEM;
	}
	return rc;
}

static void report(const struct arguments *a, const double *rates)
{
	if (!a->is_json) {
		printf("%llu rows of %u bytes, %u thread(s)\n", (unsigned long long)a->rows,
		       a->record_bytes, a->threads);
		for (size_t i = 0; i < PHASES; i++)
			printf("%-30s %12.0f/s\n", phases[i].name, rates[i]);
		return;
	}
	printf("{\"rows\":%llu,\"record_bytes\":%u,\"threads\":%u,\"per_second\":{",
	       (unsigned long long)a->rows, a->record_bytes, a->threads);
	for (size_t i = 0; i < PHASES; i++)
		printf("%s\"%s\":%.0f", i ? "," : "", phases[i].name, rates[i]);
	printf("}}\n");
}

int main(int argc, char **argv)
{
	const struct argp argp = { options, parse_option, NULL,
				   "Measures ordered indexes beside the hash index.", NULL, NULL,
				   NULL };
	struct bench bench = { .args = { .rows = ROWS_DEFAULT, .threads = 1,
					 .record_bytes = BYTES_DEFAULT, .seconds = 2 } };
	struct thread threads[THREADS_MAX] = { 0 };
	double rates[PHASES] = { 0 };
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &bench.args);
	rc = set_up(&bench, threads);
	if (rc) {
		fprintf(stderr, "oltp-index-bench: making the tables: %s\n", strerror(-rc));
		atomic_store(&bench.has_failed, true);
	}
	for (size_t i = 0; i < PHASES && !atomic_load(&bench.has_failed); i++)
		rates[i] = run_phase(&bench, threads, &phases[i]);
	if (!atomic_load(&bench.has_failed))
		report(&bench.args, rates);
	for (uint32_t i = 0; i < bench.args.threads; i++) {
		oltp_worker_destroy(threads[i].worker);
		free(threads[i].bytes);
	}
	oltp_engine_close(bench.engine);
	if (!bench_is_written(stdout, "oltp-index-bench: standard output"))
		return EXIT_FAILURE;
	return atomic_load(&bench.has_failed) ? EXIT_FAILURE : EXIT_SUCCESS;
}
