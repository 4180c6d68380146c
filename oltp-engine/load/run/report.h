/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What oltp-load prints: lines of JSON, whose fields are in oltp-load.1. */
#ifndef LOAD_REPORT_H
#define LOAD_REPORT_H

#include <stdio.h>

#include "exchange.h"
#include "observe.h"
#include "oltp-engine/load/decide/books.h"
#include "oltp-engine/load/decide/mix.h"

/* What both kinds of lines say. */
struct load_report {
	double t_s;			/* since the start of the run */
	double seconds;			/* that figures are about */
	const struct load_figures *figures;
	const struct exchange *exchange;
	const struct load_mix *mix;
	const struct observe *observe;	/* NULL: nobody looks on */
	uint64_t moves;			/* connections that moved in these seconds */
};

/* Both flush. Errors: -EIO, with a message on stderr. */
int load_report_second(FILE *out, const struct load_report *report);

/*
 * verdict: of the counters, NULL if they were not verified; books_verdict: of the tables of TPC-C,
 * whose books are books.
 */
int load_report_summary(FILE *out, const struct load_report *report,
			const struct load_counts_verdict *verdict, const struct load_books *books,
			const struct load_books_verdict *books_verdict);

#endif
