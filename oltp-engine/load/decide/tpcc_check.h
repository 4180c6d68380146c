/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the tables of the TPC-C-like workload fit together, and have what was acknowledged: adds
 * up what tpcc_check answers for each part. Pure but for memory.
 */
#ifndef LOAD_TPCC_CHECK_H
#define LOAD_TPCC_CHECK_H

#include "counts.h"
#include "tpcc.h"

#define LOAD_TPCC_ANSWER	5u	/* numbers that tpcc_check answers */

/* Of one look at the tables. */
struct load_tpcc_sums {
	uint64_t violations;	/* found by the server, and of the sums below */
	uint64_t parts;		/* that were answered */
	int64_t ytd, customers_ytd;		/* all W_YTD; all C_YTD_PAYMENT: the same */
	int64_t balances, delivered;	/* of C_BALANCE + C_YTD_PAYMENT; of lines: the same */
	int64_t orders, payments, deliveries;	/* since the tables were loaded, and before */
};

/*
 * First all parts of round 0, which say how many orders there are, then those of round 1. next_o:
 * of each district, by (w - 1) * TPCC_DISTRICTS + d - 1; written in round 0, read in round 1.
 */
uint64_t load_tpcc_check_parts(const struct load_tpcc *tpcc, uint32_t round,
			       const uint32_t *next_o);
struct load_tpcc_part load_tpcc_check_part(const struct load_tpcc *tpcc, uint32_t round,
					   const uint32_t *next_o, uint64_t i);

void load_tpcc_check_add(struct load_tpcc_sums *sums, uint32_t *next_o,
			 const struct load_tpcc_part *part,
			 const int64_t numbers[LOAD_TPCC_ANSWER]);

/* After all parts: adds what the sums violate. */
void load_tpcc_check_end(struct load_tpcc_sums *sums);

#endif
