// SPDX-License-Identifier: GPL-2.0-or-later
/* Command-line options in common: see options.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define CPU_MAX		65535u
#define MIB_MAX		(1ull << 30)
#define RATE_MAX	1e9
#define SECONDS_MAX	1e9

const struct bench_options bench_options_default = {
	.cc = OLTP_CC_NO_WAIT,
	.workload = &bench_workloads[0],
	.ycsb = {
		.records = 100000,
		.operations = 10,
		.update_share = 0.2,
		.theta = 0.5,
		.is_scrambled = true,
		.seed = 1,
		.cold_part = 0.5,
		.scan_rows = 100,
	},
	.tpcc = TPCC_CONFIG_DEFAULT,
	.uniform = { .data_mib = 100 },
	.cdb = { .weights = { 1, 1, 1 }, .cpu_work = 100 },
	.mem_deadline_ms = 2000,
	.interval_ms = 1000,
};

enum option_key {
	OPT_WORKLOAD = 'w',
	OPT_CC = 'c',
	OPT_SECONDS = 's',
	OPT_INTERVAL = 'i',
	OPT_STATS = 'o',
	OPT_QUIET = 'q',
	OPT_SEED = 0x100,
	OPT_LOAD_THREADS,
	OPT_VERIFY,
	OPT_JSON,
	OPT_STEP_SECONDS,
	OPT_MEMORY,
	OPT_WARM,
	OPT_SCHEDULE,
	OPT_DEADLINE,
	OPT_COLD_DIR,
	OPT_COLD_VOLUME,
	OPT_COLD_MIB,
	OPT_IDLE_HALF,
	OPT_PROMISE,
	OPT_AUDIT,
	OPT_ELASTIC,
	OPT_RATES,
	OPT_CALIBRATE,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Workload:", 1 },
	{ "workload", OPT_WORKLOAD, "NAME", 0, "what to run; 'help' lists what there is (ycsb-10)",
	  1 },
	{ "seed", OPT_SEED, "N", 0, "seed of what the transactions draw (1)", 1 },
	{ "cc", OPT_CC, "SCHEME", 0, "no_wait (default), wait_die or wound_wait", 1 },
	{ "load-threads", OPT_LOAD_THREADS, "N", 0, "threads to fill the tables (one per CPU)", 1 },
	{ "rate-schedule", OPT_RATES, "T:RATE,...", 0,
	  "let transactions arrive at RATE per second from second T on, whether or not workers are "
	  "free; latency is from the arrival (each worker runs one after the other)", 1 },
	{ "calibrate-seconds", OPT_CALIBRATE, "S", 0,
	  "run S seconds with unlimited work first; each RATE is then a part of the throughput "
	  "with the CPUs of the start", 1 },
	{ NULL, 0, NULL, 0, "Run and results:", 2 },
	{ "seconds", OPT_SECONDS, "S", 0, "how long to run", 2 },
	{ "interval-ms", OPT_INTERVAL, "MS", 0, "time between two samples (1000)", 2 },
	{ "stats", OPT_STATS, "FILE", 0, "write the samples to FILE as CSV", 2 },
	{ "verify", OPT_VERIFY, NULL, 0, "compare the table with the committed work", 2 },
	{ "audit-seconds", OPT_AUDIT, "S", 0,
	  "look over the whole table every S seconds while the run goes on", 2 },
	{ "step-seconds", OPT_STEP_SECONDS, "S", 0,
	  "take one CPU every S seconds, then give one back every S seconds, and end", 2 },
	{ "elastic", OPT_ELASTIC, "MODE", 0,
	  "what to take of the CPUs offered: 'follow' (default) all, 'adapt' what pays and what "
	  "arrivals need, found by trying, 'none' nothing", 2 },
	{ "json", OPT_JSON, NULL, 0, "print the result as one JSON object and nothing else", 2 },
	{ "quiet", OPT_QUIET, NULL, 0,
	  "no line per sample, and none that says how far things are", 2 },
	{ NULL, 0, NULL, 0, "Memory:", 5 },
	{ "memory-mib", OPT_MEMORY, "MIB", 0, "the most memory for records (no bound)", 5 },
	{ "warm-memory", OPT_WARM, NULL, 0,
	  "write to the memory that the tables will need before they are loaded, so that loading "
	  "does not wait for the system; without --memory-mib", 5 },
	{ "mem-schedule", OPT_SCHEDULE, "T:MIB,...", 0,
	  "change that after T seconds of the run; less is a demand", 5 },
	{ "mem-deadline-ms", OPT_DEADLINE, "MS", 0, "time to meet such a demand (2000)", 5 },
	{ "cold-dir", OPT_COLD_DIR, "DIR", 0,
	  "put records that are not used on disk here when memory is short", 5 },
	{ "cold-volume", OPT_COLD_VOLUME, NULL, 0, "put them into --volume instead", 5 },
	{ "cold-mib", OPT_COLD_MIB, "MIB", 0,
	  "the most disk space for them (no bound; half of the volume)", 5 },
	{ "idle-half-ms", OPT_IDLE_HALF, "MS", 0,
	  "when there was nothing to do for this long, count on half as much use of what memory "
	  "holds (120000, which suits a host that brokers memory once a minute)", 5 },
	{ "mem-promise", OPT_PROMISE, "MIB", 0,
	  "count what an engine with a dedicated memory of this size would read from disk beside "
	  "what this one reads (nothing); needs --cold-dir or --cold-volume", 5 },
	{ 0 },
};

double bench_parse_double(struct argp_state *state, const char *option, const char *arg,
			  double min, double max)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !isfinite(value) || value < min || value > max)
		argp_error(state, "--%s: '%s' is not a number from %g to %g", option, arg, min,
			   max);
	return value;
}

uint64_t bench_parse_number(struct argp_state *state, const char *option, const char *arg,
			    uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || value < min || value > max)
		argp_error(state, "--%s: '%s' is not a whole number from %llu to %llu", option, arg,
			   (unsigned long long)min, (unsigned long long)max);
	return value;
}

static int add_range(unsigned long first, unsigned long last, uint32_t *ret_cpus, uint32_t max,
		     uint32_t *n)
{
	for (unsigned long cpu = first; cpu <= last; cpu++) {
		for (uint32_t i = 0; i < *n; i++) {
			if (ret_cpus[i] == cpu)
				return -EINVAL;
		}
		if (*n == max)
			return -EINVAL;
		ret_cpus[(*n)++] = (uint32_t)cpu;
	}
	return 0;
}

int bench_parse_cpus(const char *list, uint32_t *ret_cpus, uint32_t max)
{
	uint32_t n = 0;

	for (;;) {
		unsigned long first, last;
		char *end;

		if (*list < '0' || *list > '9')
			return -EINVAL;
		first = last = strtoul(list, &end, 10);
		if (*end == '-') {
			list = end + 1;
			if (*list < '0' || *list > '9')
				return -EINVAL;
			last = strtoul(list, &end, 10);
		}
		if (last < first || last > CPU_MAX || add_range(first, last, ret_cpus, max, &n))
			return -EINVAL;
		if (!*end)
			return (int)n;
		if (*end != ',')
			return -EINVAL;
		list = end + 1;
	}
}

int bench_parse_steps(const char *list, double max, struct bench_steps *ret_steps)
{
	struct bench_steps steps = { 0 };

	for (;; list++) {
		struct bench_step *step = &steps.steps[steps.n];
		char *end;

		if (steps.n == BENCH_STEPS_MAX || *list < '0' || *list > '9')
			return -EINVAL;
		step->t_s = strtod(list, &end);
		if (*end != ':' || !(step->t_s <= SECONDS_MAX) ||
		    (steps.n && step->t_s <= step[-1].t_s) || end[1] < '0' || end[1] > '9')
			return -EINVAL;
		step->value = strtod(end + 1, &end);
		if (!(step->value <= max) || (*end && *end != ','))
			return -EINVAL;
		steps.n++;
		list = end;
		if (!*end)
			break;
	}
	*ret_steps = steps;
	return 0;
}

void bench_parse_schedule(struct argp_state *state, const char *option, const char *arg,
			  double max, const char *example, struct bench_steps *ret_steps)
{
	if (bench_parse_steps(arg, max, ret_steps))
		argp_error(state, "--%s: '%s' is not like %s", option, arg, example);
}

bool bench_parse_choice(struct argp_state *state, const char *option, const char *arg,
			const char *first, const char *second)
{
	bool is_second = !strcmp(arg, second);

	if (!is_second && strcmp(arg, first))
		argp_error(state, "--%s: '%s' is neither '%s' nor '%s'", option, arg, first,
			   second);
	return is_second;
}

static enum bench_elastic parse_elastic(struct argp_state *state, const char *arg)
{
	static const char *const names[] = { [BENCH_ELASTIC_FOLLOW] = "follow",
					     [BENCH_ELASTIC_ADAPT] = "adapt",
					     [BENCH_ELASTIC_NONE] = "none" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(arg, names[i]))
			return (enum bench_elastic)i;
	}
	argp_error(state, "--elastic: '%s' is none of follow, adapt, none", arg);
	return BENCH_ELASTIC_FOLLOW;
}

static error_t parse_load(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_ELASTIC:
		o->elastic = parse_elastic(state, arg);
		break;
	case OPT_RATES:
		bench_parse_schedule(state, "rate-schedule", arg, RATE_MAX, "0:1000,5:2000",
				     &o->rates);
		break;
	case OPT_CALIBRATE:
		o->calibrate_seconds = bench_parse_double(state, "calibrate-seconds", arg, 0.1,
							  86400);
		break;
	case ARGP_KEY_END:
		if (o->calibrate_seconds > 0 && !o->rates.n)
			argp_error(state, "--calibrate-seconds needs --rate-schedule");
		if (o->step_seconds > 0 && o->elastic != BENCH_ELASTIC_FOLLOW)
			argp_error(state, "--step-seconds and --elastic exclude each other");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void parse_workload(struct argp_state *state, struct bench_options *o, const char *arg)
{
	const struct bench_workload *found = bench_workload_find(arg);

	if (found) {
		o->workload = found;
		return;
	}
	if (strcmp(arg, "help"))
		argp_error(state, "--workload: '%s' is unknown; see --workload help", arg);
	for (const struct bench_workload *w = bench_workloads; w->name; w++)
		printf("%-12s %s\n", w->name, w->help);
	exit(EXIT_SUCCESS);
}

void bench_options_use(struct bench_options *options, enum bench_family family)
{
	options->families_used |= 1u << family;
}

static void check_workload(struct argp_state *state, const struct bench_options *o)
{
	const struct bench_workload *w = o->workload;
	const char *wrong = NULL;

	if (o->families_used & ~(1u << w->ops->family | w->ops->other_families))
		argp_error(state, "options of another workload than %s are given", w->name);
	if (o->audit_seconds > 0 && !w->ops->audit)
		argp_error(state, "--audit-seconds: %s cannot be looked over while it runs",
			   w->name);
	if (w->ops->check)
		wrong = w->ops->check(w, o);
	if (wrong)
		argp_error(state, "%s: %s", w->name, wrong);
}

static error_t parse_memory(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_MEMORY:
		o->memory_mib = bench_parse_number(state, "memory-mib", arg, 2, MIB_MAX);
		break;
	case OPT_WARM:
		o->warm = true;
		break;
	case OPT_SCHEDULE:
		bench_parse_schedule(state, "mem-schedule", arg, (double)MIB_MAX, "5:512,10:1024",
				     &o->mem_limits);
		break;
	case OPT_DEADLINE:
		o->mem_deadline_ms = (uint32_t)bench_parse_number(state, "mem-deadline-ms", arg, 1,
								  600000);
		break;
	case OPT_COLD_DIR:
		o->cold_dir = arg;
		break;
	case OPT_COLD_VOLUME:
		o->cold_volume = true;
		break;
	case OPT_COLD_MIB:
		o->cold_mib = bench_parse_number(state, "cold-mib", arg, 1, MIB_MAX);
		break;
	case OPT_IDLE_HALF:
		o->idle_half_ms = (uint32_t)bench_parse_number(state, "idle-half-ms", arg, 1,
							       86400000);
		break;
	case OPT_PROMISE:
		o->promise_mib = (uint32_t)bench_parse_number(state, "mem-promise", arg, 1,
							      UINT32_MAX);
		break;
	case ARGP_KEY_END:
		if (o->cold_volume && o->cold_dir)
			argp_error(state, "--cold-dir and --cold-volume exclude each other");
		if (o->cold_volume && !o->log.volume)
			argp_error(state, "--cold-volume needs --volume");
		if (o->promise_mib && !bench_has_cold(o))
			argp_error(state, "--mem-promise needs --cold-dir or --cold-volume");
		if (o->mem_limits.n && !o->memory_mib)
			argp_error(state, "--mem-schedule needs --memory-mib");
		if (o->warm && o->memory_mib)
			argp_error(state, "--warm-memory and --memory-mib exclude each other");
		check_workload(state, o);
		return parse_load(key, arg, state);
	default:
		return parse_load(key, arg, state);
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_WORKLOAD:
		parse_workload(state, o, arg);
		break;
	case OPT_SEED:
		o->ycsb.seed = bench_parse_number(state, "seed", arg, 0, UINT64_MAX);
		break;
	case OPT_CC:
		if (oltp_cc_parse(arg, &o->cc))
			argp_error(state, "--cc: '%s' is not no_wait, wait_die or wound_wait", arg);
		break;
	case OPT_LOAD_THREADS:
		o->load_threads = (uint32_t)bench_parse_number(state, "load-threads", arg, 1, 256);
		break;
	case OPT_SECONDS:
		o->seconds = bench_parse_double(state, "seconds", arg, 0, SECONDS_MAX);
		break;
	case OPT_INTERVAL:
		o->interval_ms = (uint32_t)bench_parse_number(state, "interval-ms", arg, 10,
							      3600000);
		break;
	case OPT_STATS:
		o->stats_path = arg;
		break;
	case OPT_VERIFY:
		o->verify = true;
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_QUIET:
		o->quiet = true;
		break;
	case OPT_AUDIT:
		o->audit_seconds = bench_parse_double(state, "audit-seconds", arg, 0.01, 86400);
		break;
	case OPT_STEP_SECONDS:
		o->step_seconds = bench_parse_double(state, "step-seconds", arg, 0.01, 86400);
		break;
	case ARGP_KEY_INIT:
		state->child_inputs[0] = o;
		state->child_inputs[1] = &o->log;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		break;
	default:
		return parse_memory(key, arg, state);
	}
	return 0;
}

static error_t parse_families(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	for (uint32_t i = 0; i < BENCH_FAMILIES; i++)
		state->child_inputs[i] = state->input;
	return 0;
}

static const struct argp families_argp = {
	.parser = parse_families,
	.children = bench_workload_children,
};

static const struct argp_child children[] = {
	{ &families_argp, 0, NULL, 0 },
	{ &bench_log_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp bench_argp = { .options = options, .parser = parse, .children = children };
