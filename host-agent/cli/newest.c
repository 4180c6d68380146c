/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See newest.h. */
#include <stdlib.h>
#include "cli/newest.h"
#include "cli/when.h"

#define LIMIT_MAX	100000

error_t newest_parse(int key, char *arg, struct argp_state *state, struct newest *newest)
{
	char *end;

	switch (key) {
	case NEWEST_SINCE:
		if (!when_parse(arg, &newest->since_ts))
			argp_error(state, "--since=%s: allowed: " WHEN_ALLOWED, arg);
		return 0;
	case NEWEST_LIMIT:
		newest->limit = strtol(arg, &end, 10);
		if (end == arg || *end || newest->limit < 1 || newest->limit > LIMIT_MAX)
			argp_error(state, "--limit=%s: allowed: 1 to %d", arg, LIMIT_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void newest_ask(const struct newest *newest, json_t *request)
{
	if (newest->limit)
		json_object_set_new(request, "limit", json_integer(newest->limit));
	if (newest->since_ts > 0)
		json_object_set_new(request, "since", json_real(newest->since_ts));
}
