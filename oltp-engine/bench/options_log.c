// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of the log: see options_log.h. */
#include "options.h"
#include "options_log.h"

enum option_key {
	OPT_DURABILITY = 0x600,
	OPT_LOG_DIR,
	OPT_GROUP,
	OPT_CHECKPOINT,
	OPT_CHECKPOINT_RATE,
	OPT_RECOVER,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Durability:", 6 },
	{ "durability", OPT_DURABILITY, "MODE", 0,
	  "'off' (default); 'async': transactions count when they commit, the newest may be lost; "
	  "'commit': they count, and their latency ends, when they are on disk", 6 },
	{ "log-dir", OPT_LOG_DIR, "DIR", 0,
	  "a folder for the log and checkpoints; empty, or see --recover", 6 },
	{ "group-us", OPT_GROUP, "US", 0, "time between two groups of the log (1000)", 6 },
	{ "checkpoint-mib", OPT_CHECKPOINT, "MIB", 0,
	  "of log between two checkpoints (1024, or as much as a checkpoint)", 6 },
	{ "checkpoint-mib-s", OPT_CHECKPOINT_RATE, "MIB", 0,
	  "of a checkpoint in a second, at most, unless the log grows too fast (as many as make it "
	  "while the log grows by half of --checkpoint-mib)", 6 },
	{ "recover", OPT_RECOVER, NULL, 0,
	  "go on with the database in --log-dir, of a run with the same workload and table sizes: "
	  "recover it, look it over, then run; without one, load as usual", 6 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_log_options *o = state->input;

	switch (key) {
	case OPT_DURABILITY:
		if (oltp_durability_parse(arg, &o->durability))
			argp_error(state, "--durability: '%s' is none of off, async, commit", arg);
		break;
	case OPT_LOG_DIR:
		o->dir = arg;
		break;
	case OPT_GROUP:
		o->group_us = (uint32_t)bench_parse_number(state, "group-us", arg, 1, 1000000);
		break;
	case OPT_CHECKPOINT:
		o->checkpoint_mib = (uint32_t)bench_parse_number(state, "checkpoint-mib", arg, 1,
								 UINT32_MAX);
		break;
	case OPT_CHECKPOINT_RATE:
		o->checkpoint_mib_s = (uint32_t)bench_parse_number(state, "checkpoint-mib-s", arg,
								   1, UINT32_MAX);
		break;
	case OPT_RECOVER:
		o->recover = true;
		break;
	case ARGP_KEY_END:
		if (o->recover && !o->dir)
			argp_error(state, "--recover needs --log-dir");
		if ((o->durability != OLTP_DURABILITY_OFF) != !!o->dir)
			argp_error(state, "--durability async or commit and --log-dir need each "
					  "other");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp bench_log_argp = { .options = options, .parser = parse };

void bench_log_configure(const struct bench_log_options *o, struct oltp_config *config)
{
	config->durability = o->durability;
	config->log_dir = o->dir;
	config->group_interval_us = o->group_us;
	config->checkpoint_mib = o->checkpoint_mib;
	config->checkpoint_mib_s = o->checkpoint_mib_s;
}
