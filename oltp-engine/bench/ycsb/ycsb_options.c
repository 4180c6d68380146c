// SPDX-License-Identifier: GPL-2.0-or-later
/* Command-line options of YCSB. */
#include "oltp-engine/bench/options.h"
#include "ycsb_workload.h"

enum option_key {
	OPT_RECORDS = 'n',
	OPT_UPDATE = 'u',
	OPT_THETA = 'z',
	OPT_OPERATIONS = 0x400,
	OPT_MIX,
	OPT_READ_ALL,
	OPT_UNSCRAMBLED,
	OPT_COLD_ACCESS,
	OPT_COLD_PART,
	OPT_THETAS,
	OPT_RECORDS_MAX,
	OPT_SCAN_ROWS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "YCSB:", 10 },
	{ "records", OPT_RECORDS, "N", 0, "records in the table (100000); 1 KiB each", 10 },
	{ "records-max", OPT_RECORDS_MAX, "N", 0,
	  "insert no more once there are N (no bound); an insert then becomes a read", 10 },
	{ "operations", OPT_OPERATIONS, "N", 0,
	  "operations per transaction (10; ycsb-a to ycsb-f: 1)", 10 },
	{ "update", OPT_UPDATE, "SHARE", 0, "share of updates, 0 to 1 (0.2)", 10 },
	{ "mix", OPT_MIX, "WHAT", 0,
	  "the share is one of each 'operation' (default) or of each 'transaction'", 10 },
	{ "read-all", OPT_READ_ALL, NULL, 0, "reads copy all ten fields instead of one", 10 },
	{ "theta", OPT_THETA, "T", 0,
	  "Zipf parameter, 0 (uniform) to below 1 (0.5; ycsb-a to ycsb-f: 0.99)", 10 },
	{ "unscrambled", OPT_UNSCRAMBLED, NULL, 0, "key = rank: hot keys are neighbours", 10 },
	{ "scan-rows", OPT_SCAN_ROWS, "N", 0, "records that a scan reads at most (100)", 10 },
	{ "cold-access", OPT_COLD_ACCESS, "SHARE", 0,
	  "share of accesses that go to the cold part of the table (0: there is none)", 10 },
	{ "cold-part", OPT_COLD_PART, "SHARE", 0, "share of the table that is cold (0.5)", 10 },
	{ "theta-schedule", OPT_THETAS, "T:THETA,...", 0,
	  "change theta T seconds after the run began (or was calibrated)", 10 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;
	struct ycsb_config *ycsb = &o->ycsb;

	switch (key) {
	case OPT_RECORDS:
		ycsb->records = bench_parse_number(state, "records", arg, 1, 1ull << 31);
		o->ycsb_given |= YCSB_GIVEN_RECORDS;
		break;
	case OPT_OPERATIONS:
		ycsb->operations = (uint32_t)bench_parse_number(state, "operations", arg, 1,
								YCSB_OPERATIONS_MAX);
		o->ycsb_given |= YCSB_GIVEN_OPERATIONS;
		break;
	case OPT_UPDATE:
		ycsb->update_share = bench_parse_double(state, "update", arg, 0, 1);
		o->ycsb_given |= YCSB_GIVEN_MIX;
		break;
	case OPT_MIX:
		ycsb->mix_by_transaction = bench_parse_choice(state, "mix", arg, "operation",
							      "transaction");
		o->ycsb_given |= YCSB_GIVEN_MIX;
		break;
	case OPT_READ_ALL:
		ycsb->read_all_fields = true;
		o->ycsb_given |= YCSB_GIVEN_MIX;
		break;
	case OPT_THETA:
		ycsb->theta = bench_parse_double(state, "theta", arg, 0, BENCH_THETA_MAX);
		o->ycsb_given |= YCSB_GIVEN_THETA;
		break;
	case OPT_UNSCRAMBLED:
		ycsb->is_scrambled = false;
		break;
	case OPT_COLD_ACCESS:
		ycsb->cold_access = bench_parse_double(state, "cold-access", arg, 0, 1);
		break;
	case OPT_COLD_PART:
		ycsb->cold_part = bench_parse_double(state, "cold-part", arg, 0.000001, 0.999999);
		break;
	case OPT_RECORDS_MAX:
		ycsb->records_max = bench_parse_number(state, "records-max", arg, 1, 1ull << 32);
		o->ycsb_given |= YCSB_GIVEN_RECORDS_MAX;
		break;
	case OPT_SCAN_ROWS:
		ycsb->scan_rows = (uint32_t)bench_parse_number(state, "scan-rows", arg, 1,
							       YCSB_SCAN_ROWS_MAX);
		o->ycsb_given |= YCSB_GIVEN_SCAN_ROWS;
		break;
	case OPT_THETAS:
		o->ycsb_given |= YCSB_GIVEN_THETA;
		bench_parse_schedule(state, "theta-schedule", arg, BENCH_THETA_MAX,
				     "0:0.5,10:0.99", &o->schedules[BENCH_KNOB_THETA]);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	bench_options_use(o, BENCH_FAMILY_YCSB);
	return 0;
}

const struct argp ycsb_argp = { .options = options, .parser = parse };
