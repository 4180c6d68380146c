/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp_memory.h - what the memory that records take is worth. Included by oltp.h.
 *
 * The value of the memory of a record is what it costs to read it again times how often it is used
 * (flexible-resource-allocation, section 4.1: VoM = STS * lambda). Both are measured:
 *
 *  - how often: some hundred records are watched. Which ones says the hash of their keys alone, so
 *    they are a uniform sample of every table at any time, whatever comes, goes or moves. Of each
 *    the times of its last two uses are kept (LRU-K with K = 2). The engine looks at them every 20
 *    ms; uses between two looks count as one (the correlated reference period), so a rate is at
 *    most 50 per second. While the engine meets a demand it does not look: what is used then counts
 *    as one use. Of a pause of the whole engine only its first 10 s (a part of idle_half_ms) count
 *    in ages: once it is over, what was used much before will be. While it lasts, less use is
 *    expected of all alike, the less the longer it has lasted: half as much after
 *    oltp_config.idle_half_ms, a quarter after five times that.
 *  - what it costs: the time from when a transaction asked for a cold record until it was in
 *    memory, of reads that were made. As long as there were none, some records that went to disk
 *    are read for that alone; before that, nothing is known (0).
 *
 * Only of engines whose memory may come and go (oltp_config.blocks or cold_dir); others have an
 * empty sample. It takes at most 1.5 MiB of memory, however much is in the engine. Of tables
 * with thousands of records to a bucket (many more than the capacity that was asked for) there is
 * none either.
 *
 * Watching means that the engine's own thread touches blocks also while nobody runs transactions:
 * see oltp_memory_catch_revokes for what happens if the host has taken one.
 */
#ifndef OLTP_MEMORY_H
#define OLTP_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oltp_engine;
struct oltp_table;
struct oltp_worker;

#define OLTP_MEMORY_SAMPLES_MAX	4096u
#define OLTP_NOT_KNOWN		UINT64_MAX

struct oltp_memory_sample {
	const struct oltp_table *table;
	/* Head and padding included; of a cold record, what it would take. */
	uint32_t bytes;
	uint16_t node;		/* of its memory, if it is resident */
	bool is_resident;	/* in a block; else on disk, or used from a read buffer */
	/*
	 * How long ago the last use was, and the one before, ns, or OLTP_NOT_KNOWN. Of the time
	 * before the record was watched only the last use is known, to one part in fifteen.
	 */
	uint64_t last_ns, before_ns;
	uint64_t watched_ns;	/* for so long */
	/* Of the uses that are expected while transactions run: 1 then, in a pause less. */
	double expected;
	/*
	 * What reading it from disk takes of its worker's time: moving mean of its table; else of
	 * another, or what was measured for the purpose (see oltp_memory_sample_value); 0: not
	 * known yet.
	 */
	uint64_t reread_ns;
	/*
	 * Bytes, of memory or for a cold record that it would take, that it stands for. Over the
	 * resident ones of a table the sum is what the table's records take.
	 */
	uint64_t stands_for_bytes;
};

/*
 * Copies the sample, in no order, up to max of them; returns how many there are, at most
 * OLTP_MEMORY_SAMPLES_MAX. Those of the first max alone would not be uniform. Any thread.
 */
uint32_t oltp_memory_sample_read(struct oltp_engine *engine, struct oltp_memory_sample *ret_samples,
				 uint32_t max);

/*
 * Expected uses per second (lambda), at most 50: 1 / (age of the use before the last one), which is
 * unbiased if uses are independent of each other; in a pause the expected value of that. If only
 * the last use is known, the one before is taken to lie as long before it as it lies back; if none
 * is, the last is taken to be as old as the watch. Rates below one use in the time watched come out
 * too high, by up to a factor of two or so at a hundredth of that. Pure.
 */
double oltp_memory_sample_rate(const struct oltp_memory_sample *sample);

/*
 * Resident memory by the age of the last use, by which eviction goes, too: to give up all memory
 * below some value, give up the classes with lower values.
 */
struct oltp_memory_class {
	uint64_t last_ns_max;	/* last used so long ago at most; OLTP_NOT_KNOWN in the last one */
	uint64_t bytes;
	uint32_t samples;	/* that this is known from */
	double uses_ps;		/* of all its records together, per second */
	/* Reading time saved, ns per second and MiB; where the cost is not known it counts as 0. */
	double value;
};

/*
 * Makes up to max classes of about the same bytes, youngest first, out of a sample, which it
 * sorts. Samples with the same age are in one class. Returns how many; 0: nothing is resident.
 * Pure.
 */
uint32_t oltp_memory_classes_make(struct oltp_memory_sample *samples, uint32_t n,
				  struct oltp_memory_class *ret_classes, uint32_t max);

/*
 * What the host says: of a node's memory, what is worth less than this (ns of reading time saved
 * per second and MiB; 0: nothing) goes first to meet a demand, the least valuable first. It is
 * written to disk wherever it lies, and then the records that stay are moved together. If that is
 * not enough, or not known yet, the others go by age as without it. Holds until it is set again.
 * Any thread.
 */
void oltp_memory_cutoff(struct oltp_engine *engine, uint32_t node, uint64_t value);

/* A node's blocks. */
struct oltp_memory_node {
	uint64_t held_bytes;
	uint64_t resident_bytes;	/* of these, what records take; the others are free */
};

/* Any thread. Error: -ENXIO, no such node. */
int oltp_memory_node_read(struct oltp_engine *engine, uint32_t node,
			  struct oltp_memory_node *ret_node);

/*
 * What a sample is worth: ns of reading time saved per second and MiB. OLTP_NOT_KNOWN: what reading
 * costs is not known. If that is so because nothing was ever on disk, the first call has the
 * engine's own thread write some bytes there and read them back, so that it is known soon. Of an
 * engine without a disk, whose records cannot be given up, OLTP_WORTH_ALL. Any thread.
 */
#define OLTP_WORTH_ALL	(UINT64_MAX - 1)
uint64_t oltp_memory_sample_value(struct oltp_engine *engine,
				  const struct oltp_memory_sample *sample);

/*
 * Does memory that nothing is in yet fill with records from disk: are there any, and do
 * transactions run? Any thread.
 */
bool oltp_memory_fills(struct oltp_engine *engine);

/*
 * Whether records are watched at all; at first they are. Switching it off forgets all samples. Any
 * thread.
 */
void oltp_memory_watch(struct oltp_engine *engine, bool is_on);

/*
 * The engine's clients are promised as few reads from disk as with a dedicated memory of so many
 * MiB (blocks of records), whatever memory the engine really has (SQLVM, section 2.3). From now on
 * the engine simulates that memory beside its own, and oltp_memory_stats counts
 *
 *	baseline_ios	records that an engine with the promised memory would have read, and
 *	actual_ios	records that this one has read, for transactions
 *
 * both only while something is promised, and cumulatively since the engine was opened. Relative I/O
 * = (actual_ios - baseline_ios) / baseline_ios over an interval; the promise is kept while it is 0
 * or less. The unit is the record and not the disk's request: a request brings all records of its
 * sectors and may serve several transactions, so the number of requests depends on where records
 * happen to lie, which no simulation of another memory can know.
 *
 * Of the records a sample is simulated: 262144 to 524287, or all if there are fewer. That takes 2
 * KiB, and one more for each worker. The error of baseline_ios is below 2% once tens of thousands
 * were counted. While transactions use more than some hundred thousand records per second and
 * worker, which they do not while they read much from disk, fewer are sampled, so that watching
 * takes little of the time; the error grows with that. Up to 64 uses of sampled records in each
 * worker are counted late, those of a worker that runs nothing with its next transaction.
 *
 * The simulated memory is one for all tables and gives up the records not used for longest, of
 * whatever table. A real engine does so, too, but a block of 2 MiB is of one table. So of the
 * promised memory is not simulated what an engine that has it cannot use for records: the slots
 * that it keeps free, and half a block for each table but one. Of a memory of few blocks that is a
 * large part.
 *
 * A new size does not start empty: it is taken to hold what was used last, as far as the engine's
 * sample of ages tells (see above; so not where that was switched off by oltp_memory_watch), and
 * counts nothing for that. The same size again changes nothing. 0: nothing is promised, which costs
 * nothing, and is so at first.
 *
 * The paper's promise is of two parts, the buffer pool and working memory for sorts and hash joins.
 * The engine has no sort or hash operators: there is no working memory, and nothing is promised of
 * it.
 *
 * Any thread. Errors: -EOPNOTSUPP (the engine has no cold_dir, so it never reads records from
 * disk), -ENOMEM; what was promised before then still is.
 */
int oltp_set_mem_promise(struct oltp_engine *engine, uint32_t mib);

/*
 * Calls fn, on the caller's thread, for every record of the table that is there throughout, once
 * and in no order. use: 0 if the record is on disk; else a number that is the larger the later the
 * record was used last. Numbers of one engine can be compared, and are no times: they grow when the
 * engine moves memory or looks at its sample, so in an engine without blocks they may all be equal.
 *
 * Waits first until all transactions have ended that were running when it was called. Then it reads
 * no record, waits for nothing, and leaves recency alone. Records that come or go meanwhile may be
 * shown or not. worker: the caller's, without a running transaction. fn must not call the engine.
 * Errors: -ETIMEDOUT, a transaction ran for 10 s; -EOWNERDEAD, records were lost with their memory
 * and are not back yet; all others have been shown.
 */
int oltp_table_uses(struct oltp_table *table, struct oltp_worker *worker,
		    void (*fn)(void *ctx, uint64_t key, uint64_t use), void *ctx);

struct oltp_memory_recency {
	uint32_t samples;		/* watched now */
	uint32_t resident_samples;
	/*
	 * Of the resident bytes: not used for 1, 10, 60 s in which transactions ran; NAN with
	 * nothing resident.
	 */
	double unused_1s, unused_10s, unused_60s;
	/* Since the engine was opened. 0: none. */
	uint64_t looks;			/* at the whole sample */
	uint64_t look_ns;		/* time that all of them took */
	uint64_t rereads;		/* cold records whose reading was timed */
	/* Time of the worker for one: on the CPU, and waiting with nothing else to do. */
	double reread_p50_ns, reread_p99_ns;
	/* CPU time alone; in neither is running the transaction again. */
	double reread_cpu_ns;
};

/* Any thread. Error: -ENOMEM (it takes 300 KiB while it runs). */
int oltp_memory_recency_read(struct oltp_engine *engine, struct oltp_memory_recency *ret_recency);

#ifdef __cplusplus
}
#endif

#endif
