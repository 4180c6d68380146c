/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of numbers as people and the kernel write them: "0-3,8". */
#ifndef EBB_UTIL_RANGES_H
#define EBB_UTIL_RANGES_H

#include <errno.h>
#include <stdlib.h>

static inline int ebb_ranges_number(const char **p, unsigned long *ret)
{
	char *end;

	/* strtoul() takes blanks and signs, too.  A number that is too large becomes ULONG_MAX. */
	if (**p < '0' || **p > '9')
		return -EINVAL;
	*ret = strtoul(*p, &end, 10);
	*p = end;
	return 0;
}

/*
 * Takes the next range off the text that *p points to.  1: first to last, first <= last; 0: the
 * text is at its end; -EINVAL: it is no list.
 */
static inline int ebb_ranges_next(const char **p, unsigned long *ret_first, unsigned long *ret_last)
{
	if (!**p)
		return 0;
	if (ebb_ranges_number(p, ret_first) < 0)
		return -EINVAL;
	*ret_last = *ret_first;
	if (**p == '-') {
		(*p)++;
		if (ebb_ranges_number(p, ret_last) < 0 || *ret_last < *ret_first)
			return -EINVAL;
	}
	if (!**p)
		return 1;
	/* A comma must be followed by another range. */
	if (**p != ',' || !(*p)[1])
		return -EINVAL;
	(*p)++;
	return 1;
}

#endif
