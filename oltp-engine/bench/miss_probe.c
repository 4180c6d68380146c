// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-miss-bound: how many transactions per second this machine's memory would allow if an engine
 * cost nothing. Draws as many records as a transaction of oltp-bench's YCSB has operations, and
 * touches the cache lines that the engine has to touch, prefetched in a batch as the engine does:
 *
 *   bucket	one line of an array as large as the hash index, which says where the record is
 *   header	the record's first line (lock word, key, counter); a word of it is written
 *   field	the two or three lines with the field's 100 bytes: a word of each is read, or
 *		written by updates
 *
 * Nothing is hashed, compared, locked, copied or kept for an abort. Records and buckets are in
 * memory with huge pages advised and were all written to before the clock starts; how long that
 * takes is said as well (fill), being what the machine needs to supply memory for a table.
 *
 * Three bounds come out: for headers alone, for whole records, and for all of the above.
 * Exit status: 0, 1 (could not run), 64 (usage).
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "options.h"
#include "report.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/random.h"
#include "ycsb/ycsb.h"

#define THREADS_MAX		64u
#define ACCESSES_MAX		64u
/*
 * The time until the caches hold the memory that is touched now, and not that of the setting
 * before.
 */
#define SETTLE_NS		100000000l
#define LINE_BYTES		64u
#define HUGE_PAGE_BYTES		(2ul << 20)
/* The engine's header before each row, and the records per bucket that its index is sized for. */
#define HEADER_BYTES		16u
#define RECORD_BYTES		1024u
#define RECORDS_PER_BUCKET	4u

_Static_assert(HEADER_BYTES + sizeof(struct ycsb_record) == RECORD_BYTES, "as in the engine");

const char *argp_program_version = "oltp-miss-bound 1 (Ebb)";

enum touch {
	TOUCH_HEADER,	/* one line of each record */
	TOUCH_RECORD,	/* header and field */
	TOUCH_ALL,	/* and the bucket before them */
	TOUCH_MAX,
};

static const char *const touch_names[] = { "header", "record", "all" };

struct bucket {
	_Alignas(LINE_BYTES) uint8_t *records[LINE_BYTES / sizeof(uint8_t *)];
};

struct probe {
	uint64_t n_records;
	uint32_t n_threads, n_accesses;
	double seconds, update_share;
	bool is_json;
	double fill_seconds, tps[TOUCH_MAX];
	double cpu_share;	/* the least that threads had of their CPUs while they measured */
	_Atomic enum touch touch;	/* what is measured now */
	uint8_t *records;
	struct bucket *buckets;
	atomic_bool stop;
	pthread_barrier_t ready;	/* all memory was written to: all threads and main */
};

struct prober {
	_Alignas(128) struct probe *probe;
	_Atomic uint64_t n_txns;	/* written by the thread, read by main */
	uint64_t sum;			/* keeps the compiler from leaving reads out */
	uint32_t number, cpu;
	pthread_t thread;
};

/* A record to touch: lines from first to end are those of the field. */
struct target {
	uint64_t position;
	uint8_t *record;
	uint32_t first, end;
	bool is_update;
};

static void fill(struct probe *probe, uint32_t number)
{
	uint64_t first = probe->n_records * number / probe->n_threads;
	uint64_t end = probe->n_records * (number + 1) / probe->n_threads;

	/* Neighbours in the index are far apart in memory, as after hashing. */
	for (uint64_t p = first; p < end; p++) {
		uint64_t n = (uint64_t)(((unsigned __int128)p * 0x9e3779b1u) % probe->n_records);

		memset(probe->records + p * RECORD_BYTES, (int)p | 1, RECORD_BYTES);
		probe->buckets[p / RECORDS_PER_BUCKET].records[p % RECORDS_PER_BUCKET] =
			probe->records + n * RECORD_BYTES;
	}
}

static void draw(const struct probe *probe, enum touch touch, struct random64 *random,
		 struct target *target)
{
	uint64_t bits = random64_next(random);
	uint32_t field = (uint32_t)(((bits & 0xffffffff) * YCSB_FIELDS) >> 32);
	uint32_t at = HEADER_BYTES + (uint32_t)offsetof(struct ycsb_record, fields) +
		      field * YCSB_FIELD_BYTES;

	target->position = random64_below(random, probe->n_records);
	target->is_update = (double)(bits >> 32) < probe->update_share * 0x1p32;
	target->first = at / LINE_BYTES * LINE_BYTES;
	target->end = touch == TOUCH_HEADER ? target->first : at + YCSB_FIELD_BYTES;
}

static uint64_t *word_at(const struct target *target, uint32_t offset)
{
	return (uint64_t *)(void *)(target->record + offset);
}

static void transaction(struct prober *prober, struct random64 *random, struct target *targets)
{
	const struct probe *probe = prober->probe;
	enum touch touch = atomic_load_explicit(&probe->touch, memory_order_relaxed);
	uint32_t n = probe->n_accesses;

	for (uint32_t i = 0; i < n; i++) {
		draw(probe, touch, random, &targets[i]);
		if (touch == TOUCH_ALL)
			__builtin_prefetch(&probe->buckets[targets[i].position /
							   RECORDS_PER_BUCKET]);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct target *t = &targets[i];

		t->record = touch == TOUCH_ALL ?
				    probe->buckets[t->position / RECORDS_PER_BUCKET]
					    .records[t->position % RECORDS_PER_BUCKET] :
				    probe->records + t->position * RECORD_BYTES;
		__builtin_prefetch(t->record, 1);
		for (uint32_t at = t->first; at < t->end; at += LINE_BYTES)
			__builtin_prefetch(t->record + at, 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct target *t = &targets[i];

		++*word_at(t, 0);
		for (uint32_t at = t->first; at < t->end; at += LINE_BYTES) {
			if (t->is_update)
				*word_at(t, at) = t->position;
			else
				prober->sum += *word_at(t, at);
		}
	}
}

static void *prober_main(void *arg)
{
	struct prober *prober = arg;
	struct probe *probe = prober->probe;
	struct random64 random = { random64_mix(prober->number + 1) };
	struct target targets[ACCESSES_MAX];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(prober->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	fill(probe, prober->number);
	pthread_barrier_wait(&probe->ready);
	while (!atomic_load_explicit(&probe->stop, memory_order_relaxed)) {
		transaction(prober, &random, targets);
		atomic_store_explicit(&prober->n_txns, prober->n_txns + 1, memory_order_relaxed);
	}
	return NULL;
}

static uint64_t sum_txns(struct prober *probers, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += atomic_load_explicit(&probers[i].n_txns, memory_order_relaxed);
	return sum;
}

static double now_s(clockid_t clock)
{
	return (double)clock_ns(clock) / 1e9;
}

static void print(const struct probe *probe)
{
	const char *head = probe->is_json ?
		"{\"program\":\"oltp-miss-bound\",\"records\":%llu,\"record_bytes\":%u,"
		"\"accesses\":%u,\"update_share\":%g,\"threads\":%u,\"fill_seconds\":%.3f,"
		"\"cpu_share\":%.3f,\"tps\":{" :
		"miss-bound: records=%llu record_bytes=%u accesses=%u update_share=%g threads=%u "
		"fill_seconds=%.3f cpu_share=%.3f";

	printf(head, (unsigned long long)probe->n_records, RECORD_BYTES, probe->n_accesses,
	       probe->update_share, probe->n_threads, probe->fill_seconds,
	       probe->cpu_share);
	for (uint32_t i = 0; i < TOUCH_MAX; i++)
		printf(probe->is_json ? "%s\"%s\":%.1f" : "%s tps_%s=%.1f",
		       probe->is_json && i ? "," : "", touch_names[i], probe->tps[i]);
	puts(probe->is_json ? "}}" : "");
}

static void measure(struct probe *probe, enum touch touch, struct prober *probers)
{
	time_t whole = (time_t)probe->seconds;
	struct timespec length = { whole, (long)((probe->seconds - (double)whole) * 1e9) };
	double start_s, cpu_s, seconds, share;
	uint64_t n_txns;

	atomic_store_explicit(&probe->touch, touch, memory_order_relaxed);
	nanosleep(&(struct timespec){ .tv_nsec = SETTLE_NS }, NULL);
	start_s = now_s(CLOCK_MONOTONIC);
	cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
	n_txns = sum_txns(probers, probe->n_threads);
	nanosleep(&length, NULL);
	n_txns = sum_txns(probers, probe->n_threads) - n_txns;
	seconds = now_s(CLOCK_MONOTONIC) - start_s;
	probe->tps[touch] = (double)n_txns / seconds;
	/* This thread sleeps meanwhile. */
	share = (now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s) / seconds / probe->n_threads;
	if (!probe->cpu_share || share < probe->cpu_share)
		probe->cpu_share = share;
}

/* On the first CPUs that the process may use. */
static int run(struct probe *probe)
{
	struct prober *probers = aligned_alloc(128, probe->n_threads * sizeof(*probers));
	double start_s = now_s(CLOCK_MONOTONIC);
	cpu_set_t set;
	uint32_t n = 0;

	if (!probers)
		return -ENOMEM;
	memset(probers, 0, probe->n_threads * sizeof(*probers));
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	pthread_barrier_init(&probe->ready, NULL, probe->n_threads + 1);
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE && n < probe->n_threads; cpu++) {
		struct prober *prober = &probers[n];
		int rc;

		if (!CPU_ISSET(cpu, &set))
			continue;
		*prober = (struct prober){ .probe = probe, .number = n++, .cpu = cpu };
		rc = -pthread_create(&prober->thread, NULL, prober_main, prober);
		if (rc)
			return rc;
	}
	pthread_barrier_wait(&probe->ready);
	probe->fill_seconds = now_s(CLOCK_MONOTONIC) - start_s;
	for (uint32_t i = 0; i < TOUCH_MAX; i++)
		measure(probe, (enum touch)i, probers);
	atomic_store_explicit(&probe->stop, true, memory_order_relaxed);
	for (uint32_t i = 0; i < n; i++)
		pthread_join(probers[i].thread, NULL);
	print(probe);
	free(probers);
	return 0;
}

static void *memory(uint64_t bytes)
{
	uint64_t rounded = (bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
	void *addr = aligned_alloc(HUGE_PAGE_BYTES, rounded);

	/* Advice only, as in the engine. */
	if (addr)
		madvise(addr, rounded, MADV_HUGEPAGE);
	return addr;
}

static const struct argp_option options[] = {
	{ "records", 'n', "N", 0, "records of 1 KiB (4000000)", 0 },
	{ "accesses", 'a', "N", 0, "records in a transaction (10)", 0 },
	{ "update", 'u', "SHARE", 0, "share of accesses that write the field, 0 to 1 (0.5)", 0 },
	{ "threads", 't', "N", 0, "one per CPU (1)", 0 },
	{ "seconds", 's', "S", 0, "how long to measure each of the three bounds (1)", 0 },
	{ "json", 'j', NULL, 0, "one JSON object instead of the line", 0 },
	{ 0 },
};

static void parse_threads(struct argp_state *state, struct probe *probe, const char *arg)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	probe->n_threads = (uint32_t)bench_parse_number(state, "threads", arg, 1, THREADS_MAX);
	if ((int)probe->n_threads > CPU_COUNT(&set))
		argp_error(state, "--threads: %u asked for, but there are %d CPUs",
			   probe->n_threads, CPU_COUNT(&set));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct probe *probe = state->input;

	switch (key) {
	case 'n':
		probe->n_records = bench_parse_number(state, "records", arg, 1, 1ull << 32);
		break;
	case 'a':
		probe->n_accesses = (uint32_t)bench_parse_number(state, "accesses", arg, 1,
								 ACCESSES_MAX);
		break;
	case 'u':
		probe->update_share = bench_parse_double(state, "update", arg, 0, 1);
		break;
	case 't':
		parse_threads(state, probe, arg);
		break;
	case 's':
		probe->seconds = bench_parse_double(state, "seconds", arg, 0.001, 3600);
		break;
	case 'j':
		probe->is_json = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Measures how many transactions per second the misses of the cache alone "
		       "would allow.",
	};
	static struct probe probe = {
		.n_records = 4000000, .n_threads = 1, .n_accesses = 10, .seconds = 1,
		.update_share = 0.5,
	};
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &probe);
	probe.records = memory(probe.n_records * RECORD_BYTES);
	probe.buckets = memory((probe.n_records / RECORDS_PER_BUCKET + 1) * sizeof(struct bucket));
	rc = probe.records && probe.buckets ? run(&probe) : -ENOMEM;
	/* The memory is not freed: if a thread could not be started, others still write to it. */
	if (rc)
		fprintf(stderr, "oltp-miss-bound: memory or threads: %s\n", strerror(-rc));
	if (rc || !bench_is_written(stdout, "oltp-miss-bound: standard output"))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
