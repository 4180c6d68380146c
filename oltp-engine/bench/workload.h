/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a workload is to the programs that run one: tables and their rows, transactions for the
 * worker pool, and a check that nothing got lost. oltp-bench and oltp-server know no workload but
 * through this interface; the table of all of them is in workload.c, where a new one is added with
 * one line for each of its names, and one for its options.
 *
 * Life cycle, S for the state:
 *
 *   create -> S -> load -> pool: workers attach, run, detach ... -> verify -> destroy
 *                            `- audit, knob_set, classes at any time meanwhile
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <argp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "classes.h"
#include "fields.h"
#include "oltp.h"

struct bench_options;
struct bench_workload;

/* Workloads with options in common, those of one argp. */
enum bench_family {
	BENCH_FAMILY_YCSB,
	BENCH_FAMILY_UNIFORM,
	BENCH_FAMILY_CDB,
	BENCH_FAMILY_TPCC,
	BENCH_FAMILIES,
};

/* What schedules (--theta-schedule ...) change while a workload runs. */
enum bench_knob {
	BENCH_KNOB_THETA,
	BENCH_KNOB_WORKING_SET_MIB,
	BENCH_KNOB_WORKING_SET_START_MIB,
	BENCH_KNOB_CPU_HEAVY,		/* weights of classes of transactions */
	BENCH_KNOB_READ_HEAVY,
	BENCH_KNOB_WRITE_HEAVY,
	BENCH_KNOBS,
};

/* How far something is that takes long. The thread that works adds to done, others look. */
struct bench_progress {
	_Atomic uint64_t done;
	_Atomic uint64_t total;		/* 0: not known */
	_Atomic(const char *) unit;	/* "records" */
};

/* A look over all tables, while transactions run and records move. */
struct bench_audit {
	int rc;				/* that of oltp_table_scan */
	bool is_complete;		/* rc is 0, and what must be there is, and nothing else */
	uint64_t records;
	uint64_t damaged_records;	/* that contradict themselves */
	uint64_t updates;		/* found in records: must not fall between looks */
	uint64_t content;		/* a sum over all records that changes with them */
};

struct bench_workload_ops {
	enum bench_family family;
	uint32_t other_families;	/* bit by enum bench_family: whose options apply as well */

	/*
	 * NULL: nothing to say. What is wrong with the options, as a sentence without full stop, or
	 * NULL; called once they have all been parsed.
	 */
	const char *(*check)(const struct bench_workload *workload,
			     const struct bench_options *options);

	/* NULL: the defaults will do. What the engine needs, such as txn_records_max. */
	void (*configure)(const struct bench_workload *workload,
			  const struct bench_options *options, struct oltp_config *config);

	/* Empty tables, and indexes. Errors: -EINVAL, -ENOMEM, -ENOSPC. */
	int (*create)(const struct bench_workload *workload, struct oltp_engine *engine,
		      const struct bench_options *options, void **ret_state);

	/* After all workers have gone, before the engine is closed. Accepts NULL. */
	void (*destroy)(void *state);

	/*
	 * Fills the tables with n_threads threads (at least 1). Sets total and unit of progress
	 * first, and adds to done. Errors: -ENOMEM, -EIO.
	 */
	int (*load)(void *state, uint32_t n_threads, struct bench_progress *progress);

	/*
	 * Instead of load, where the tables have the rows of an earlier run that was broken off
	 * (--recover): looks them over, and takes them for the beginning, so that verify will ask
	 * for them as well. Errors: -ENOMEM, -EIO. What it found says whether all is in order.
	 */
	int (*adopt)(void *state, struct bench_audit *ret_found);

	/*
	 * NULL: it always needs adopt. May it go on with the rows of an earlier run without having
	 * looked them over? Verify must not be asked for then.
	 */
	bool (*needs_no_adopt)(void *state);

	/*
	 * NULL: none. After a recovery, before adopt: a transaction that reads some rows, however
	 * often it has to be run. Errors: -EIO, -ENOMEM, -ENOSPC.
	 */
	int (*first)(void *state);

	/* What the pool's workers run; valid until destroy. */
	struct oltp_workload (*pool)(void *state);

	/* NULL: transactions are made up, not brought from outside. */
	const struct oltp_feed *feed;

	/*
	 * The end, when no worker is attached: looks whether the tables are what the committed
	 * transactions must have made of them. Adds what it found to fields, lost_updates last of
	 * all: how many are not there. Returns whether nothing at all is wrong.
	 */
	bool (*verify)(void *state, struct fields *fields);

	/* The options that it runs with, as fields. */
	void (*describe)(void *state, struct fields *fields);

	/* oltp-bench verifies without being told to. */
	bool verifies_always;

	/* Bytes of memory that tables and indexes take once they are loaded, roughly. */
	uint64_t (*memory_bytes)(const struct bench_workload *workload,
				 const struct bench_options *options);

	/* NULL: the workload cannot be looked over while it runs. Any thread, one at a time. */
	void (*audit)(void *state, struct bench_audit *ret_audit);

	/*
	 * NULL: it has none. One thread at a time; takes effect with the transactions made up from
	 * then on. Errors: -EOPNOTSUPP (it has not that one), -EINVAL (out of range), -ENOSPC.
	 */
	int (*knob_set)(void *state, enum bench_knob knob, double value);

	/* NaN: it has not that one. NULL as above. */
	double (*knob_get)(void *state, enum bench_knob knob);

	/* NULL: all its transactions are alike. Valid until destroy. */
	struct classes *(*classes)(void *state);
};

/* One value of --workload. */
struct bench_workload {
	const char *name;
	const char *help;	/* for --help, one line, lower case */
	const struct bench_workload_ops *ops;
	const void *variant;	/* for ops: what tells this one from others of its family */
};

/* NULL: there is none of that name. */
const struct bench_workload *bench_workload_find(const char *name);

/* All, up to one without a name. The first is the default. */
extern const struct bench_workload bench_workloads[];

/*
 * The options of all families, in order, for the parser's children; the input of each is the
 * struct bench_options. Whenever an option of its own is given, a family's parser says so with
 * bench_options_use (options.h).
 */
extern const struct argp_child bench_workload_children[BENCH_FAMILIES + 1];

/* "theta". */
const char *bench_knob_name(enum bench_knob knob);

#endif
