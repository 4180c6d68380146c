/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options by which commands choose rows by their time: --since and --limit. */
#ifndef EBB_CLI_NEWEST_H
#define EBB_CLI_NEWEST_H

#include <argp.h>
#include <jansson.h>

#define NEWEST_SINCE	'S'
#define NEWEST_LIMIT	'n'

struct newest {
	double since_ts;	/* Unix seconds; 0: not given */
	long limit;		/* 0: as ebbd likes */
};

/* As an argp parser, for these two keys; a value that is not allowed ends the program. */
error_t newest_parse(int key, char *arg, struct argp_state *state, struct newest *newest);

/* Adds what was given to a request. */
void newest_ask(const struct newest *newest, json_t *request);

#endif
