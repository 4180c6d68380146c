/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histories made by hand for tests of the checker. */
#ifndef CHECK_SCRIPT_H
#define CHECK_SCRIPT_H

#include "oltp-engine/check/check.h"

struct script {
	char *text;
	size_t n, room;
};

void script_begin(struct script *script);
void script_finish(struct script *script);

/*
 * A transaction of a process of its own; the first one is 0. outcome: "ok", "fail", "info", or ""
 * (there is no end). Those without an end are not to have read anything.
 */
void script_txn(struct script *script, uint64_t process, uint64_t invoke_time, uint64_t end_time,
		const char *outcome, const char *ops);

/* Parses, which has to work, and checks; what it returned. result as for check_history. */
int script_check(const struct script *script, enum check_model model, struct check_result *result);

/* Checks one that must work, and compares: exactly n anomalies of the kind, and no other ones. */
void script_expect(const struct script *script, enum check_model model, enum check_kind kind,
		   uint64_t n);
void script_expect_clean(const struct script *script, enum check_model model);

#endif
