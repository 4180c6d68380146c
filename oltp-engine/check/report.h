/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the checker found, for people and for programs. */
#ifndef OLTP_CHECK_REPORT_H
#define OLTP_CHECK_REPORT_H

#include <stdio.h>

#include "check.h"

struct report {
	const struct history *history;
	const struct check_result *result;
	enum check_model model;
	char *const *files;	/* names, by history_txn.file */
	double seconds;		/* that it took */
};

/* Lines, as oltp-check.1 shows them. */
void report_text(const struct report *report, FILE *out);

/* One object on one line, as oltp-check.1 describes it. */
void report_json(const struct report *report, FILE *out);

#endif
