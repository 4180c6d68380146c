/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of a long test is run: all of it in `make check-full`, which sets EBB_TEST_FULL=1, and
 * else what `make check` has the time for. docs/testing.md lists what is run less often.
 */
#ifndef EBB_TEST_FULL_H
#define EBB_TEST_FULL_H

#include <stdlib.h>
#include <string.h>

static inline unsigned int test_full(unsigned int all, unsigned int quick)
{
	const char *full = getenv("EBB_TEST_FULL");

	return full && strcmp(full, "1") == 0 ? all : quick;
}

/* How often something is done that may be done any number of times: the variable, if it is set. */
static inline unsigned int test_count(const char *variable, unsigned int otherwise)
{
	const char *count = getenv(variable);

	return count ? (unsigned int)strtoul(count, NULL, 10) : otherwise;
}

#endif
