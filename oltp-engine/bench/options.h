/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command-line options that oltp-bench and oltp-server have in common. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"
#include "ycsb/ycsb.h"

struct bench_options {
	enum oltp_cc cc;
	struct ycsb_config ycsb;
	uint32_t load_threads;	/* 0: one per CPU online */
	double seconds;		/* 0: until told to stop */
	uint32_t interval_ms;
	bool verify;
	bool json;
	bool quiet;		/* no line per interval */
	const char *stats_path;	/* NULL: no file */
};

/* Defaults as in the paper, but for the number of records. */
extern const struct bench_options bench_options_default;

/* A child for the program's own parser; its input is a struct bench_options. */
extern const struct argp bench_argp;

/* For the programs' parsers: a number within bounds, or argp_error with option and value. */
double bench_parse_double(struct argp_state *state, const char *option, const char *arg,
			  double min, double max);
uint64_t bench_parse_number(struct argp_state *state, const char *option, const char *arg,
			    uint64_t min, uint64_t max);

/*
 * "0-3,8" into ret_cpus[max]; returns how many, or -EINVAL (syntax, a CPU twice, none, too many).
 */
int bench_parse_cpus(const char *list, uint32_t *ret_cpus, uint32_t max);

#endif
