/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * YCSB as in section 4 of "A system design for elastically scaling transaction processing engines
 * in virtualized servers", PVLDB 13(12): one table, a 64-bit key, ten fields of 100 bytes; a
 * transaction reads or updates ten records picked by a Zipfian distribution.
 *
 * Each record also carries a counter, which makes lost updates visible: an update adds one to the
 * counter and writes it, with a pattern that follows from it, into the field that it changes. What
 * must hold when no transaction runs (the verification checks it):
 *
 *   V1  The sum of the counters is the number of updates in committed transactions.
 *   V2  So is the sum weighted with a hash of the key: the right records were counted up.
 *   V3  Every field holds the pattern of its stamp, no stamp is above the record's counter, and the
 *       newest stamp equals it: nothing torn, nothing half undone.
 */
#ifndef BENCH_YCSB_H
#define BENCH_YCSB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

#define YCSB_FIELDS		10u
#define YCSB_FIELD_BYTES	100u
#define YCSB_OPERATIONS_MAX	64u
#define YCSB_THETAS_MAX		128u	/* values that theta may have in a run */

struct ycsb_record {
	uint64_t updates;
	uint8_t fields[YCSB_FIELDS][YCSB_FIELD_BYTES];
};

struct ycsb_config {
	uint64_t records;
	uint32_t operations;	/* per transaction, 1 to YCSB_OPERATIONS_MAX */
	double update_share;	/* 0 to 1 */
	bool mix_by_transaction;	/* the share is one of transactions, not of operations */
	bool read_all_fields;	/* reads copy the whole record, not one field */
	double theta;
	bool is_scrambled;
	uint64_t seed;
	/*
	 * A share of the accesses goes to a part of the table (the cold one) that all others leave
	 * alone, to any of its records alike. 0: there is no such part.
	 */
	double cold_access;	/* 0 to 1 */
	double cold_part;	/* share of the table, above 0 and below 1 */
};

struct ycsb;

/* Creates the empty table. Errors: -EINVAL, -ENOMEM, -ENOSPC. */
int ycsb_create(struct oltp_engine *engine, const struct ycsb_config *config,
		struct ycsb **ret_ycsb);

/*
 * Changes the skew for transactions that workers make up from now on; one thread at a time. Errors:
 * -EINVAL (theta), -ENOSPC (YCSB_THETAS_MAX).
 */
int ycsb_set_theta(struct ycsb *ycsb, double theta);

/* Before the engine is closed, after all workers have gone. Accepts NULL. */
void ycsb_destroy(struct ycsb *ycsb);

/* Inserts all records with n_threads threads. Errors: -ENOMEM, -EIO. */
int ycsb_load(struct ycsb *ycsb, uint32_t n_threads);

/* The same, and says how far it is; progress may be NULL. */
struct bench_progress;
int ycsb_load_with(struct ycsb *ycsb, uint32_t n_threads, struct bench_progress *progress);

/* Valid as long as ycsb is. */
const struct ycsb_config *ycsb_config(const struct ycsb *ycsb);

/* As it is now. */
double ycsb_theta(const struct ycsb *ycsb);

/* What the pool's workers run; valid as long as ycsb is. */
struct oltp_workload ycsb_workload(struct ycsb *ycsb);

/*
 * What a look over the whole table finds, wherever the records are; may be taken at any time, also
 * while transactions run and records move. Each record is seen once, at some moment.
 */
struct ycsb_audit {
	int rc;				/* that of oltp_table_scan */
	bool is_complete;		/* rc is 0, every key was seen, and nothing else */
	uint64_t records;
	uint64_t keys;			/* sum over the keys */
	uint64_t updates;		/* sum of the counters: never falls between looks */
	uint64_t weighted_updates;
	uint64_t damaged_records;	/* that contradict their counter (V3) */
	uint64_t content;		/* sum over the records: changes with updates only */
};

void ycsb_audit(struct ycsb *ycsb, struct ycsb_audit *ret_audit);

struct ycsb_verdict {
	uint64_t records;		/* found */
	uint64_t records_missing;
	int scan_rc;			/* that of oltp_table_scan */
	uint64_t updates_committed;	/* by the workers' books */
	uint64_t updates_found;		/* by the records' counters (V1) */
	bool is_checksum_equal;		/* V2 */
	uint64_t damaged_records;	/* V3 */
	uint64_t inconsistent_reads;	/* reads that saw a field newer than its record */
	uint64_t lost_updates;		/* 0 only if all of V1 to V3 hold, for every record */
};

/* Reads the whole table. No worker may be attached. */
void ycsb_verify(struct ycsb *ycsb, struct ycsb_verdict *ret_verdict);

/* The table, for tests that go behind the books. */
struct oltp_table *ycsb_table(struct ycsb *ycsb);

#endif
