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
	OPT_VOLUME,
	OPT_VOLUME_FORMAT,
	OPT_FORCE,
	OPT_LAZY,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Durability:", 6 },
	{ "durability", OPT_DURABILITY, "MODE", 0,
	  "'off' (default); 'async': transactions count when they commit, the newest may be lost; "
	  "'commit': they count, and their latency ends, when they are on disk", 6 },
	{ "log-dir", OPT_LOG_DIR, "DIR", 0,
	  "a folder for the log and checkpoints; empty, or see --recover", 6 },
	{ "volume", OPT_VOLUME, "PATH", 0,
	  "instead of --log-dir: a block device or file with a volume, which another node can "
	  "read; empty, or see --recover; oltp-volume lists what is in it", 6 },
	{ "volume-format", OPT_VOLUME_FORMAT, NULL, 0,
	  "first make --volume an empty volume, unless it may hold something", 6 },
	{ "force", OPT_FORCE, NULL, 0, "with --volume-format: whatever it holds", 6 },
	{ "group-us", OPT_GROUP, "US", 0, "time between two groups of the log (1000)", 6 },
	{ "checkpoint-mib", OPT_CHECKPOINT, "MIB", 0,
	  "of log between two checkpoints (1024, or as much as a checkpoint)", 6 },
	{ "checkpoint-mib-s", OPT_CHECKPOINT_RATE, "MIB", 0,
	  "of a checkpoint in a second, at most, unless the log grows too fast (as many as make it "
	  "while the log grows by half of --checkpoint-mib)", 6 },
	{ "recover", OPT_RECOVER, NULL, 0,
	  "go on with the database in --log-dir or --volume, of a run with the same workload and "
	  "table sizes: recover it, look it over, then run; without one, load as usual", 6 },
	{ "lazy-recovery", OPT_LAZY, NULL, 0,
	  "with --recover and --cold-dir: begin at once, and read records when they are used; not "
	  "looked over unless --verify or inserts need it", 6 },
	{ 0 },
};

const char *bench_log_place(const struct bench_log_options *o)
{
	return o->volume ?: o->dir;
}

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
	case OPT_VOLUME:
		o->volume = arg;
		break;
	case OPT_VOLUME_FORMAT:
		o->volume_format = true;
		break;
	case OPT_FORCE:
		o->is_forced = true;
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
	case OPT_LAZY:
		o->is_lazy = true;
		break;
	case ARGP_KEY_END:
		if (o->dir && o->volume)
			argp_error(state, "--log-dir and --volume exclude each other");
		if (o->recover && !bench_log_place(o))
			argp_error(state, "--recover needs --log-dir or --volume");
		if (o->is_lazy && !o->recover)
			argp_error(state, "--lazy-recovery needs --recover");
		if ((o->durability != OLTP_DURABILITY_OFF) != !!bench_log_place(o))
			argp_error(state, "--durability async or commit and --log-dir or --volume "
					  "need each other");
		if (o->volume_format && !o->volume)
			argp_error(state, "--volume-format needs --volume");
		if (o->volume_format && o->recover)
			argp_error(state, "--volume-format and --recover exclude each other");
		if (o->is_forced && !o->volume_format)
			argp_error(state, "--force needs --volume-format");
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
	config->volume = o->volume;
	config->group_interval_us = o->group_us;
	config->checkpoint_mib = o->checkpoint_mib;
	config->checkpoint_mib_s = o->checkpoint_mib_s;
}
