// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A CDB-like workload of oltp-bench: transactions that are heavy on the processor, on reading or on
 * writing, each kind as active as is wanted, and as it changes over time. Kinds and activities are
 * those of the experiments in "Flexible Resource Allocation for Relational Database-as-a-Service",
 * PVLDB 16(13); what the transactions do is not in there, and is made up here: no figure of it can
 * be compared with one of CDB.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "oltp-engine/bench/options.h"
#include "ycsb_workload.h"

#define WEIGHT_MAX	1e6
#define CDB_SCAN_ROWS	20u

enum cdb_class {
	CDB_CPU_HEAVY,
	CDB_READ_HEAVY,
	CDB_WRITE_HEAVY,
	CDB_CLASSES,
};

enum option_key {
	OPT_MIX = 0x600,
	OPT_CPU_WORK,
	OPT_CPU_HEAVY,
	OPT_READ_HEAVY,
	OPT_WRITE_HEAVY,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "CDB-like (also --records, --theta):", 12 },
	{ "cdb-mix", OPT_MIX, "CPU:READ:WRITE", 0,
	  "how active cpu_heavy, read_heavy and write_heavy transactions are, as weights (1:1:1)",
	  12 },
	{ "cpu-work", OPT_CPU_WORK, "N", 0,
	  "thousands of steps that cpu_heavy computes (100: some tenths of a millisecond)", 12 },
	{ "cpu-heavy-schedule", OPT_CPU_HEAVY, "T:WEIGHT,...", 0,
	  "change the weight of cpu_heavy after T seconds; rates, if --rate-schedule is their sum",
	  12 },
	{ "read-heavy-schedule", OPT_READ_HEAVY, "T:WEIGHT,...", 0, "that of read_heavy", 12 },
	{ "write-heavy-schedule", OPT_WRITE_HEAVY, "T:WEIGHT,...", 0, "that of write_heavy", 12 },
	{ 0 },
};

static void parse_mix(struct argp_state *state, const char *arg, double ret_weights[CDB_CLASSES])
{
	const char *at = arg;

	for (uint32_t i = 0; i < CDB_CLASSES; i++) {
		char *end;

		ret_weights[i] = strtod(at, &end);
		if (end == at || !(ret_weights[i] >= 0 && ret_weights[i] <= WEIGHT_MAX) ||
		    *end != (i + 1 < CDB_CLASSES ? ':' : 0)) {
			argp_error(state, "--cdb-mix: '%s' is not like 3:1:0.5", arg);
			return;
		}
		at = end + 1;
	}
	if (!(ret_weights[0] + ret_weights[1] + ret_weights[2] > 0))
		argp_error(state, "--cdb-mix: one weight at least must be above 0");
}

static void parse_steps(struct argp_state *state, const char *name, const char *arg,
			enum bench_knob knob)
{
	struct bench_options *o = state->input;

	bench_parse_schedule(state, name, arg, WEIGHT_MAX, "0:1,10:3.5", &o->schedules[knob]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case OPT_MIX:
		parse_mix(state, arg, o->cdb.weights);
		break;
	case OPT_CPU_WORK:
		o->cdb.cpu_work = (uint32_t)bench_parse_number(state, "cpu-work", arg, 0, 10000000);
		break;
	case OPT_CPU_HEAVY:
		parse_steps(state, "cpu-heavy-schedule", arg, BENCH_KNOB_CPU_HEAVY);
		break;
	case OPT_READ_HEAVY:
		parse_steps(state, "read-heavy-schedule", arg, BENCH_KNOB_READ_HEAVY);
		break;
	case OPT_WRITE_HEAVY:
		parse_steps(state, "write-heavy-schedule", arg, BENCH_KNOB_WRITE_HEAVY);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	bench_options_use(o, BENCH_FAMILY_CDB);
	return 0;
}

const struct argp cdb_argp = { .options = options, .parser = parse };

/* What the options say. */
static void configure_rows(const struct bench_workload *workload, const struct bench_options *o,
			   struct ycsb_config *ret_config)
{
	const struct ycsb_class classes[CDB_CLASSES] = {
		[CDB_CPU_HEAVY] = { .name = "cpu_heavy", .operations = 4,
				    .read_all_fields = true, .work = o->cdb.cpu_work },
		[CDB_READ_HEAVY] = { .name = "read_heavy", .operations = 16,
				     .shares = { [YCSB_SCAN] = 0.125 }, .read_all_fields = true },
		[CDB_WRITE_HEAVY] = { .name = "write_heavy", .operations = 12,
				      .shares = { [YCSB_UPDATE] = 0.5, [YCSB_MODIFY] = 0.25 } },
	};

	(void)workload;
	*ret_config = o->ycsb;
	ret_config->scan_rows = CDB_SCAN_ROWS;
	ret_config->n_classes = CDB_CLASSES;
	for (uint32_t i = 0; i < CDB_CLASSES; i++)
		ret_config->classes[i] = classes[i];
}

static const char *check(const struct bench_workload *workload, const struct bench_options *o)
{
	(void)workload;
	if (o->ycsb_given & (YCSB_GIVEN_MIX | YCSB_GIVEN_OPERATIONS))
		return "its transactions are given; only their weights are not, see --cdb-mix";
	return ycsb_check_given(NULL, o);
}

static void configure(const struct bench_workload *workload, const struct bench_options *o,
		      struct oltp_config *config)
{
	struct ycsb_config ycsb;

	configure_rows(workload, o, &ycsb);
	config->txn_records_max = ycsb_accesses_max(&ycsb);
}

static void created(struct ycsb *ycsb, const struct bench_options *o)
{
	for (uint32_t i = 0; i < CDB_CLASSES; i++)
		ycsb_set_weight(ycsb, i, o->cdb.weights[i]);
}

static void describe(void *state, struct fields *fields)
{
	const struct ycsb_config *config = ycsb_config(state);

	fields_u64(fields, "records", config->records);
	fields_short(fields, "theta", config->theta);
	fields_bool(fields, "scrambled", config->is_scrambled);
	fields_u64(fields, "cpu_work", config->classes[CDB_CPU_HEAVY].work);
	fields_object_begin(fields, "weights");
	for (uint32_t i = 0; i < CDB_CLASSES; i++)
		fields_short(fields, config->classes[i].name, ycsb_weight(state, i));
	fields_object_end(fields);
}

static bool is_weight(enum bench_knob knob)
{
	return knob >= BENCH_KNOB_CPU_HEAVY && knob <= BENCH_KNOB_WRITE_HEAVY;
}

static int knob_set(void *state, enum bench_knob knob, double value)
{
	if (knob == BENCH_KNOB_THETA)
		return ycsb_set_theta(state, value);
	return is_weight(knob) ? ycsb_set_weight(state, knob - BENCH_KNOB_CPU_HEAVY, value) :
				 -EOPNOTSUPP;
}

static double knob_get(void *state, enum bench_knob knob)
{
	if (knob == BENCH_KNOB_THETA)
		return ycsb_theta(state);
	return is_weight(knob) ? ycsb_weight(state, knob - BENCH_KNOB_CPU_HEAVY) : (double)NAN;
}

static struct classes *get_classes(void *state)
{
	return ycsb_classes(state);
}

const struct ycsb_family cdb_family = {
	.ops = {
		.family = BENCH_FAMILY_CDB,
		.other_families = 1u << BENCH_FAMILY_YCSB,
		.check = check,
		.configure = configure,
		YCSB_HOOKS,
		.describe = describe,
		.knob_set = knob_set,
		.knob_get = knob_get,
		.classes = get_classes,
	},
	.configure = configure_rows,
	.created = created,
};
