// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * UNIFORM as a workload of oltp-bench: any record of a part of the data, the working set, is as
 * likely as any other, so that how many are not in memory follows from sizes alone. The working set
 * may grow, shrink and wander while the workload runs.
 */
#include <errno.h>
#include <math.h>

#include "oltp-engine/bench/options.h"
#include "ycsb_workload.h"

#define RECORDS_PER_MIB	1024u
#define DATA_MIB_MAX	(1u << 21)

enum option_key {
	OPT_DATA = 0x500,
	OPT_WORKING_SET,
	OPT_WORKING_SETS,
	OPT_STARTS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "UNIFORM (also --operations, --update, --mix, --read-all):", 11 },
	{ "data-mib", OPT_DATA, "MIB", 0, "data in all (100); a record is 1 KiB", 11 },
	{ "working-set-mib", OPT_WORKING_SET, "MIB", 0, "how much of it is accessed (all)", 11 },
	{ "working-set-schedule", OPT_WORKING_SETS, "T:MIB,...", 0,
	  "change that after T seconds", 11 },
	{ "working-set-start-schedule", OPT_STARTS, "T:MIB,...", 0,
	  "let the working set begin MIB into the data after T seconds (0); beyond the end it "
	  "goes on at the begin", 11 },
	{ 0 },
};

static void parse_steps(struct argp_state *state, const char *name, const char *arg,
			enum bench_knob knob)
{
	struct bench_options *o = state->input;

	bench_parse_schedule(state, name, arg, DATA_MIB_MAX, "0:64,10:256", &o->schedules[knob]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_DATA:
		o->uniform.data_mib = bench_parse_number(state, "data-mib", arg, 1, DATA_MIB_MAX);
		break;
	case OPT_WORKING_SET:
		o->uniform.working_set_mib = bench_parse_number(state, "working-set-mib", arg, 1,
								DATA_MIB_MAX);
		break;
	case OPT_WORKING_SETS:
		parse_steps(state, "working-set-schedule", arg, BENCH_KNOB_WORKING_SET_MIB);
		break;
	case OPT_STARTS:
		parse_steps(state, "working-set-start-schedule", arg,
			    BENCH_KNOB_WORKING_SET_START_MIB);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	bench_options_use(o, BENCH_FAMILY_UNIFORM);
	return 0;
}

const struct argp uniform_argp = { .options = options, .parser = parse };

/* What the options say. */
static void configure_rows(const struct bench_workload *workload, const struct bench_options *o,
			   struct ycsb_config *ret_config)
{
	(void)workload;
	*ret_config = o->ycsb;
	ret_config->keys = YCSB_KEYS_WINDOW;
	ret_config->records = o->uniform.data_mib * RECORDS_PER_MIB;
}

static const char *check(const struct bench_workload *workload, const struct bench_options *o)
{
	const struct bench_steps *sizes = &o->schedules[BENCH_KNOB_WORKING_SET_MIB];

	(void)workload;
	if (o->ycsb_given & (YCSB_GIVEN_THETA | YCSB_GIVEN_RECORDS))
		return "its size is --data-mib, and it has no skew";
	if (o->ycsb.cold_access > 0)
		return "--cold-access needs keys by Zipf";
	if (o->uniform.working_set_mib > o->uniform.data_mib)
		return "--working-set-mib is more than --data-mib";
	for (uint32_t i = 0; i < sizes->n; i++) {
		if (!(sizes->steps[i].value * RECORDS_PER_MIB >= 1) ||
		    sizes->steps[i].value > (double)o->uniform.data_mib)
			return "--working-set-schedule has sizes that are 0 or above --data-mib";
	}
	return ycsb_check_given(NULL, o);
}

static void created(struct ycsb *ycsb, const struct bench_options *o)
{
	if (o->uniform.working_set_mib)
		ycsb_set_window(ycsb, 0, o->uniform.working_set_mib * RECORDS_PER_MIB);
}

static void describe(void *state, struct fields *fields)
{
	const struct ycsb_config *config = ycsb_config(state);
	uint64_t first, records;

	ycsb_window(state, &first, &records);
	fields_u64(fields, "records", config->records);
	fields_u64(fields, "data_mib", config->records / RECORDS_PER_MIB);
	fields_number(fields, "working_set_mib", 3, (double)records / RECORDS_PER_MIB);
	fields_number(fields, "working_set_start_mib", 3, (double)first / RECORDS_PER_MIB);
	fields_u64(fields, "operations", config->operations);
	fields_short(fields, "update_share", config->update_share);
	fields_text(fields, "mix", config->mix_by_transaction ? "transaction" : "operation");
	fields_bool(fields, "read_all", config->read_all_fields);
	fields_bool(fields, "scrambled", config->is_scrambled);
}

static int knob_set(void *state, enum bench_knob knob, double mib)
{
	uint64_t value = (uint64_t)(mib * RECORDS_PER_MIB), first, records;

	ycsb_window(state, &first, &records);
	switch (knob) {
	case BENCH_KNOB_WORKING_SET_MIB:
		return ycsb_set_window(state, first, value);
	case BENCH_KNOB_WORKING_SET_START_MIB:
		return ycsb_set_window(state, value, records);
	default:
		return -EOPNOTSUPP;
	}
}

static double knob_get(void *state, enum bench_knob knob)
{
	uint64_t first, records;

	ycsb_window(state, &first, &records);
	switch (knob) {
	case BENCH_KNOB_WORKING_SET_MIB:
		return (double)records / RECORDS_PER_MIB;
	case BENCH_KNOB_WORKING_SET_START_MIB:
		return (double)first / RECORDS_PER_MIB;
	default:
		return (double)NAN;
	}
}

const struct ycsb_family uniform_family = {
	.ops = {
		.family = BENCH_FAMILY_UNIFORM,
		.other_families = 1u << BENCH_FAMILY_YCSB,
		.check = check,
		YCSB_HOOKS,
		.describe = describe,
		.knob_set = knob_set,
		.knob_get = knob_get,
	},
	.configure = configure_rows,
	.created = created,
};
