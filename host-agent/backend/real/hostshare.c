/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See hostshare.h. */
#include <errno.h>
#include <string.h>

#include "backend/real/hostshare.h"
#include "util/ranges.h"

#define LIST	"cores "

static int fail(const struct ebb_host *host, const char *text, struct ebb_err *err)
{
	return ebb_err_set(err, -EINVAL,
			   "shared_cores=%.64s: allowed: a number of cores of each node, or "
			   "\"" LIST "\" and a list as 0-3,8 of cores 0 to %u", text,
			   host->num_cores - 1u);
}

static int set_list(struct ebb_host *host, const char *list)
{
	unsigned long first, last;
	int rc;

	if (!*list)
		return -EINVAL;
	while ((rc = ebb_ranges_next(&list, &first, &last)) > 0) {
		if (last >= host->num_cores)
			return -EINVAL;
		for (unsigned long c = first; c <= last; c++)
			host->cores[c].is_shared = true;
	}
	return rc;
}

int ebb_hostshare_set(struct ebb_host *host, const char *text, struct ebb_err *err)
{
	unsigned long count;
	const char *p = text;

	for (uint16_t c = 0; c < host->num_cores; c++)
		host->cores[c].is_shared = false;
	if (!*text)
		return 0;
	if (strncmp(text, LIST, strlen(LIST)) == 0)
		return set_list(host, text + strlen(LIST)) < 0 ? fail(host, text, err) : 0;
	if (ebb_ranges_number(&p, &count) < 0 || count > host->num_cores || *p)
		return fail(host, text, err);
	for (uint16_t node = 0; node < host->num_nodes; node++) {
		unsigned long left = count;

		for (uint16_t c = host->num_cores; c-- > 0 && left > 0;)
			if (host->cores[c].node == node) {
				host->cores[c].is_shared = true;
				left--;
			}
		if (left > 0)
			return ebb_err_set(err, -EINVAL, "shared_cores=%s: node %u has %lu cores",
					   text, node, count - left);
	}
	return 0;
}
