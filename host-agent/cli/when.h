/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times as people write and read them. */
#ifndef EBB_CLI_WHEN_H
#define EBB_CLI_WHEN_H

#include <stdbool.h>

#define WHEN_SIZE	48

/* Help of an option --since=WHEN, and what is allowed. */
#define WHEN_SINCE_HELP \
	"Only what is newer: 90s, 10m, 2h or 1d ago, @UNIX-SECONDS, or \"YYYY-MM-DD HH:MM[:SS]\""
#define WHEN_ALLOWED	"90s, 10m, 2h, 1d, @UNIX-SECONDS, \"YYYY-MM-DD HH:MM\""

/* Unix seconds; false: the text is no time. */
bool when_parse(const char *text, double *ret_ts);

/* Local time to the millisecond, without the year; text: WHEN_SIZE bytes. */
void when_print(double ts, char *text);

#endif
