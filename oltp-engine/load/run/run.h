/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run of the load generator, from the first connection to the summary:
 * connect, fill (if asked for), read the counters (verify), the run itself, wait for what is under
 * way, read the counters again.
 */
#ifndef LOAD_RUN_H
#define LOAD_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "exchange.h"
#include "oltp-engine/load/decide/arrivals.h"
#include "oltp-engine/load/decide/mix.h"

/* The tables that the requests of a run use. */
enum load_tables {
	LOAD_TABLES_ROWS,
	LOAD_TABLES_YCSB,
	LOAD_TABLES_TPCC,
};

struct load_config {
	/* All but the callbacks, queue_room, and in shape tpcc and next_o. */
	struct exchange_config exchange;
	struct load_mix mix;
	const struct load_step *steps;		/* see arrivals.h */
	uint32_t n_steps;
	bool is_poisson;
	uint64_t seed;
	double seconds;		/* 0: no run, only what comes before */
	struct load_tpcc tpcc;
	enum load_tables tables;
	bool must_fill;		/* store all that first */
	bool must_observe;	/* look on at each node, once per second */
	/* Hold the counters, or the tables of TPC-C, against what was acknowledged. */
	bool must_verify;
	FILE *out;
	const volatile sig_atomic_t *must_stop;	/* set: end the run now */
};

/*
 * Errors: -errno, with a message on stderr: nobody could be connected to, a row could not be
 * stored, no memory, out could not be written to. -EBADMSG: the run was done, and the database
 * lost updates, made some up, or gave wrong answers while must_verify was set.
 */
int load_run(const struct load_config *config);

#endif
