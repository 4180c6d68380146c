/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command-line options that oltp-bench and oltp-server have in common. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"
#include "options_log.h"
#include "tpcc/tpcc.h"
#include "workload.h"
#include "ycsb/ycsb.h"

/* From t_s on (seconds of the run), a value. */
struct bench_step {
	double t_s;
	double value;
};

#define BENCH_THETA_MAX		0.999999

#define BENCH_STEPS_MAX		100u

struct bench_steps {
	uint32_t n;
	struct bench_step steps[BENCH_STEPS_MAX];	/* in order of t_s */
};

enum bench_elastic {
	BENCH_ELASTIC_FOLLOW,
	BENCH_ELASTIC_ADAPT,
	BENCH_ELASTIC_NONE,
};

/* Options whose defaults depend on the workload, or that some have no use for. */
#define YCSB_GIVEN_RECORDS	0x1u
#define YCSB_GIVEN_OPERATIONS	0x2u
#define YCSB_GIVEN_THETA	0x4u
#define YCSB_GIVEN_MIX		0x8u	/* --update, --mix, --read-all */
#define YCSB_GIVEN_RECORDS_MAX	0x10u
#define YCSB_GIVEN_SCAN_ROWS	0x20u

struct bench_options {
	enum oltp_cc cc;
	const struct bench_workload *workload;
	uint32_t families_used;		/* by enum bench_family: its options were given */
	struct ycsb_config ycsb;	/* its seed is that of every workload */
	struct tpcc_config tpcc;
	uint32_t ycsb_given;		/* YCSB_GIVEN_*: not the defaults of ycsb-10 */
	struct {
		uint64_t data_mib;
		uint64_t working_set_mib;	/* 0: all */
	} uniform;
	struct {
		double weights[3];	/* of cpu_heavy, read_heavy, write_heavy */
		uint32_t cpu_work;	/* thousands of steps */
	} cdb;
	uint32_t load_threads;	/* 0: one per CPU online */
	double seconds;		/* 0: until told to stop */
	uint32_t interval_ms;
	bool verify;
	bool json;
	bool quiet;		/* no line per interval */
	const char *stats_path;	/* NULL: no file */
	double step_seconds;	/* 0: CPUs are not taken and given by steps */
	uint64_t memory_mib;	/* for records, at the start; 0: no bound */
	bool warm;		/* memory is written to before tables are loaded (warm.h) */
	struct bench_steps mem_limits;	/* MiB that may be held */
	uint32_t mem_deadline_ms;
	const char *cold_dir;	/* NULL, and no cold_volume: no records on disk */
	bool cold_volume;	/* they are in log.volume */
	uint64_t cold_mib;	/* bound of the file; 0: none */
	uint32_t idle_half_ms;	/* see oltp_config; 0: the default */
	uint32_t promise_mib;	/* oltp_set_mem_promise; 0: nothing */
	struct bench_log_options log;
	enum bench_elastic elastic;
	struct bench_steps rates;	/* arrivals per second; none: work is unlimited */
	struct bench_steps schedules[BENCH_KNOBS];
	double calibrate_seconds;	/* above 0: rates are parts of what is measured in them */
	double audit_seconds;	/* look over the table so often; 0: not */
};

/* The default workload, its defaults as in the paper, but for the number of records. */
extern const struct bench_options bench_options_default;

/* A child for the program's own parser; its input is a struct bench_options. */
extern const struct argp bench_argp;

/* Do records go to disk when memory is short? */
static inline bool bench_has_cold(const struct bench_options *options)
{
	return options->cold_dir || options->cold_volume;
}

/* An option of a workload family was given: one that the workload must then be of. */
void bench_options_use(struct bench_options *options, enum bench_family family);

/* For the programs' parsers: a number within bounds, or argp_error with option and value. */
double bench_parse_double(struct argp_state *state, const char *option, const char *arg,
			  double min, double max);
uint64_t bench_parse_number(struct argp_state *state, const char *option, const char *arg,
			    uint64_t min, uint64_t max);

/*
 * "0:0.5,10:0.99", values from 0 to max, into ret_steps. Returns 0 or -EINVAL (syntax, times that
 * do not rise, too many).
 */
int bench_parse_steps(const char *list, double max, struct bench_steps *ret_steps);

/* The same for an option, or argp_error with option and value, and with a good one as example. */
void bench_parse_schedule(struct argp_state *state, const char *option, const char *arg,
			  double max, const char *example, struct bench_steps *ret_steps);

/* Returns whether arg is the second of two words; argp_error if it is neither. */
bool bench_parse_choice(struct argp_state *state, const char *option, const char *arg,
			const char *first, const char *second);

/*
 * "0-3,8" into ret_cpus[max]; returns how many, or -EINVAL (syntax, a CPU twice, none, too many).
 */
int bench_parse_cpus(const char *list, uint32_t *ret_cpus, uint32_t max);

#endif
