/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transactions on one table of records with a 64-bit key and ten fields of 100 bytes. With its
 * defaults it is YCSB as in section 4 of "A system design for elastically scaling transaction
 * processing engines in virtualized servers", PVLDB 13(12): a transaction reads or updates ten
 * records picked by a Zipfian distribution. Other distributions, mixes of operations and classes of
 * transactions make the core workloads of YCSB, UNIFORM and CDB out of it.
 *
 * Each record also carries a counter, which makes lost updates visible: an update adds one to the
 * counter and writes it, with a pattern that follows from it, into the field that it changes. What
 * must hold when no transaction runs (the verification checks it):
 *
 *   V1  The sum of the counters is the number of updates in committed transactions.
 *   V2  So is the sum weighted with a hash of the key: the right records were counted up.
 *   V3  Every field holds the pattern of its stamp, no stamp is above the record's counter, and the
 *       newest stamp equals it: nothing torn, nothing half undone.
 *   V4  The records are exactly those that were loaded or whose inserts committed; an ordered index
 *       has all of them, in order.
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
#define YCSB_SCAN_ROWS_MAX	1000u
#define YCSB_THETAS_MAX		128u	/* values that theta may have in a run */

struct ycsb_record {
	uint64_t updates;
	uint8_t fields[YCSB_FIELDS][YCSB_FIELD_BYTES];
};

enum ycsb_op {
	YCSB_UPDATE,	/* writes one field */
	YCSB_MODIFY,	/* reads all fields and writes one: a read-modify-write */
	YCSB_INSERT,
	YCSB_SCAN,	/* reads all fields of the next records in order, 1 to scan_rows of them */
	YCSB_READ,	/* the rest */
	YCSB_OPS,
};

/* A kind of transactions. */
struct ycsb_class {
	const char *name;
	uint32_t operations;		/* 1 to YCSB_OPERATIONS_MAX */
	double shares[YCSB_READ];	/* of operations; what is missing to 1 are reads */
	bool by_transaction;		/* the shares are those of whole transactions */
	bool read_all_fields;		/* reads copy the whole record, not one field */
	uint32_t work;			/* thousands of steps to compute over what was read */
};

#define YCSB_CLASSES_MAX	4u

enum ycsb_keys {
	YCSB_KEYS_ZIPF,		/* by theta among the records that were loaded */
	YCSB_KEYS_LATEST,	/* by theta, the youngest record is the hottest */
	YCSB_KEYS_WINDOW,	/* any of a part of the records that moves (ycsb_set_window) */
};

struct ycsb_config {
	uint64_t records;
	uint64_t records_max;	/* no inserts beyond; 0: no bound */
	enum ycsb_keys keys;
	bool is_hashed;		/* keys are hashes, so that new records come between old ones */
	uint32_t scan_rows;	/* 1 to YCSB_SCAN_ROWS_MAX, if there are scans */
	/* Kinds of transactions; none: the one made of the next four. */
	uint32_t n_classes;
	struct ycsb_class classes[YCSB_CLASSES_MAX];
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

/* Of transactions with the most of them: what oltp_config.txn_records_max must be at least. */
uint32_t ycsb_accesses_max(const struct ycsb_config *config);

/*
 * Creates the empty table, with an ordered index if there are scans. Errors: -EINVAL, -ENOMEM,
 * -ENOSPC.
 */
int ycsb_create(struct oltp_engine *engine, const struct ycsb_config *config,
		struct ycsb **ret_ycsb);

/*
 * Changes the skew for transactions that workers make up from now on; one thread at a time. Errors:
 * -EINVAL (theta), -ENOSPC (YCSB_THETAS_MAX).
 */
int ycsb_set_theta(struct ycsb *ycsb, double theta);

/*
 * Where and how large the window of YCSB_KEYS_WINDOW is from now on, in records; it goes on at the
 * begin of the table where its end is reached. Any thread. Errors: -EINVAL (no records).
 */
int ycsb_set_window(struct ycsb *ycsb, uint64_t first, uint64_t records);
void ycsb_window(const struct ycsb *ycsb, uint64_t *ret_first, uint64_t *ret_records);

/*
 * How often the class is run, in relation to the others' weights; 1 at first. All 0: as if they
 * were 1. Any thread. Errors: -EINVAL (no such class; negative, or above 1e6).
 */
int ycsb_set_weight(struct ycsb *ycsb, uint32_t class, double weight);
double ycsb_weight(const struct ycsb *ycsb, uint32_t class);

/* Figures by class; NULL if there is only one. */
struct classes;
struct classes *ycsb_classes(struct ycsb *ycsb);

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
	/* rc is 0, and every key was seen, and nothing else that was not inserted. */
	bool is_complete;
	uint64_t records;
	uint64_t keys;			/* sum over the keys */
	uint64_t updates;		/* sum of the counters: never falls between looks */
	uint64_t weighted_updates;
	uint64_t damaged_records;	/* that contradict their counter (V3) */
	uint64_t content;		/* sum over the records: changes with updates only */
};

void ycsb_audit(struct ycsb *ycsb, struct ycsb_audit *ret_audit);

/*
 * The table has rows already, of a run with the same configuration that may have been broken off:
 * what they hold is what the books begin with. With inserts, also takes numbers up where they were
 * left, and inserts those that are missing in between. Before workers attach. Errors: -ENOMEM,
 * -EIO.
 */
int ycsb_adopt(struct ycsb *ycsb, struct ycsb_audit *ret_audit);

/* Whether the books of a run that is not verified can do without ycsb_adopt. */
bool ycsb_needs_no_adopt(const struct ycsb *ycsb);

/*
 * Reads ten rows from all over the table in one transaction, those that are there. Before workers
 * attach. Errors: -EIO, -ENOMEM, -ENOSPC (no worker is free).
 */
int ycsb_first(struct ycsb *ycsb);

struct ycsb_verdict {
	uint64_t records;		/* found */
	uint64_t records_missing;
	uint64_t inserts_committed;	/* by the workers' books */
	bool are_keys_equal;		/* V4: no other records, nor others instead */
	bool is_index_equal;		/* V4: as is the ordered index; true without one */
	int scan_rc;			/* that of oltp_table_scan */
	uint64_t updates_committed;	/* by the workers' books */
	uint64_t updates_found;		/* by the records' counters (V1) */
	bool is_checksum_equal;		/* V2 */
	uint64_t damaged_records;	/* V3 */
	/* Reads that saw a field newer than its record, or records out of order. */
	uint64_t inconsistent_reads;
	uint64_t lost_updates;		/* 0 only if all of V1 to V4 hold, for every record */
};

/* Reads the whole table. No worker may be attached. */
void ycsb_verify(struct ycsb *ycsb, struct ycsb_verdict *ret_verdict);

/* The table, for tests that go behind the books. */
struct oltp_table *ycsb_table(struct ycsb *ycsb);

#endif
