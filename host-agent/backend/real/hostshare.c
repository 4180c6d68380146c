/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See hostshare.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/real/hostshare.h"

#define LIST	"cores "

static int fail(const struct ebb_host *host, const char *text, struct ebb_err *err)
{
	return ebb_err_set(err, -EINVAL,
			   "shared_cores=%.64s: allowed: a number of cores of each node, or "
			   "\"" LIST "\" and a list as 0-3,8 of cores 0 to %u", text,
			   host->num_cores - 1u);
}

/* -1: no number here. */
static long number(const char **p)
{
	char *end;
	long n;

	if (**p < '0' || **p > '9')
		return -1;
	n = strtol(*p, &end, 10);
	*p = end;
	return n;
}

static int set_list(struct ebb_host *host, const char *list)
{
	for (const char *p = list;; p++) {
		const long first = number(&p);
		long last = first;

		if (*p == '-') {
			p++;
			last = number(&p);
		}
		if (first < 0 || last < first || last >= host->num_cores)
			return -EINVAL;
		for (long c = first; c <= last; c++)
			host->cores[c].is_shared = true;
		if (!*p)
			return 0;
		if (*p != ',')
			return -EINVAL;
	}
}

int ebb_hostshare_set(struct ebb_host *host, const char *text, struct ebb_err *err)
{
	const char *p = text;
	long count;

	for (uint16_t c = 0; c < host->num_cores; c++)
		host->cores[c].is_shared = false;
	if (!*text)
		return 0;
	if (strncmp(text, LIST, strlen(LIST)) == 0)
		return set_list(host, text + strlen(LIST)) < 0 ? fail(host, text, err) : 0;
	count = number(&p);
	if (count < 0 || count > host->num_cores || *p)
		return fail(host, text, err);
	for (uint16_t node = 0; node < host->num_nodes; node++) {
		long left = count;

		for (uint16_t c = host->num_cores; c-- > 0 && left > 0;)
			if (host->cores[c].node == node) {
				host->cores[c].is_shared = true;
				left--;
			}
		if (left > 0)
			return ebb_err_set(err, -EINVAL, "shared_cores=%s: node %u has %ld cores",
					   text, node, count - left);
	}
	return 0;
}
