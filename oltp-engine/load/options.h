/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command line of oltp-load. */
#ifndef LOAD_OPTIONS_H
#define LOAD_OPTIONS_H

#include <argp.h>

#include "oltp-engine/bench/options.h"
#include "oltp-engine/load/run/run.h"

struct load_options {
	struct load_config config;	/* all but out and must_stop */
	const char *workload;
	bool has_mix;		/* --mix was given */
	struct wire_address nodes[LOAD_NODES_MAX];
	struct bench_steps rates;
	struct load_step steps[BENCH_STEPS_MAX + 1];
	char password[256];
};

extern const struct argp load_argp;	/* its input is a struct load_options */

/* To be called first, for an object that stays where it is. */
void load_options_init(struct load_options *options);

#endif
