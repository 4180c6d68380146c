// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of the log: see options_log.h. */
#include "options.h"
#include "options_log.h"

enum option_key {
	OPT_DURABILITY = 0x600,
	OPT_LOG_DIR,
	OPT_GROUP,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Durability:", 6 },
	{ "durability", OPT_DURABILITY, "MODE", 0,
	  "'off' (default); 'async': transactions count when they commit, the newest may be lost; "
	  "'commit': they count, and their latency ends, when they are on disk", 6 },
	{ "log-dir", OPT_LOG_DIR, "DIR", 0, "an empty folder, for the log", 6 },
	{ "group-us", OPT_GROUP, "US", 0, "time between two groups of the log (1000)", 6 },
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
	case ARGP_KEY_END:
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
}
