// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-server: the engine in a VM under Ebb. One worker per startup CPU, more as the host offers
 * CPUs, fewer as it demands them back; with --cpus on CPUs of this machine instead. Runs a workload
 * that it makes up, or, with --listen or --unix, what clients ask for (serve_kv.h). Ends on
 * SIGTERM, after --seconds, or on "stop" (control.h), and then prints one line "oltp-result {...}".
 * Exit status: 0, 1 (could not run, or something was lost), 64 (usage).
 */
#include <stdlib.h>
#include <string.h>

#include "blocks_ebb.h"
#include "control.h"
#include "serve_kv.h"
#include "source_ebb.h"

/* How long the host may take to say what memory there is. */
#define POOL_WAIT_MS	5000u

const char *argp_program_version = "oltp-server 1 (Ebb)";

struct arguments {
	struct bench_options bench;
	struct serve_options serve;
	struct ebb_options ebb;
	uint32_t cpus[OLTP_WORKERS_MAX];
	uint32_t n_cpus;	/* 0: the Ebb device says which */
	const char *control_path;
	uint32_t max_cpus;
	enum oltp_tier tier;
	bool no_ht;
	bool pool;
};

enum option_key {
	OPT_MAX_CPUS = 'm',
	OPT_NO_HT = 0x200,
	OPT_CONTROL,
	OPT_APP_NAME,
	OPT_DEVICE,
	OPT_MONITOR,
	OPT_NO_VERIFY,
	OPT_POOL,
	OPT_TIER,
	OPT_CPUS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "CPUs:", 3 },
	{ "max-cpus", OPT_MAX_CPUS, "N", 0, "hold at most N, startup CPUs included (no bound)", 3 },
	{ "cpus", OPT_CPUS, "LIST", 0,
	  "run on these CPUs of this machine, such as 0-3,8, without an Ebb device", 3 },
	{ "no-ht", OPT_NO_HT, NULL, 0, "take no hardware thread whose sibling is in use", 3 },
	{ "tier", OPT_TIER, "TIER", 0,
	  "give CPUs back by lend, park or unplug (as the host likes; else lend, if it can)", 3 },
	{ NULL, 0, NULL, 0, "Memory:", 5 },
	{ "pool", OPT_POOL, NULL, 0,
	  "records in memory that the host offers and demands; --memory-mib bounds it", 5 },
	{ NULL, 0, NULL, 0, "Server:", 4 },
	{ "control", OPT_CONTROL, "PATH", 0,
	  "unix socket that takes 'stop', 'audit', 'rate R', 'relocate', 'relocate-cancel', "
	  "'relocate-status' and 'take-over'; - is stdin", 4 },
	{ "app-name", OPT_APP_NAME, "NAME", 0, "name shown to the monitor (oltp-server-PID)", 4 },
	{ "device", OPT_DEVICE, "PATH", 0, "Ebb device ($EBB_DEVICE or /dev/ebb)", 4 },
	{ "monitor", OPT_MONITOR, "PATH", 0,
	  "monitor's socket ($EBB_MONITOR or /run/ebb/monitor.sock)", 4 },
	{ "no-verify", OPT_NO_VERIFY, NULL, 0, "do not verify the table at the end", 4 },
	{ 0 },
};

static void parse_cpus(struct argp_state *state, struct arguments *a, const char *arg)
{
	int n = bench_parse_cpus(arg, a->cpus, OLTP_WORKERS_MAX);

	if (n < 0)
		argp_error(state, "--cpus: '%s' is not a list of CPUs such as 0-3,8", arg);
	else
		a->n_cpus = (uint32_t)n;
}

static void check(struct argp_state *state, const struct arguments *a)
{
	if (a->pool && a->bench.mem_limits.n)
		argp_error(state, "--pool and --mem-schedule exclude each other");
	if (a->pool && a->bench.promise_mib)
		argp_error(state, "--pool and --mem-promise exclude each other");
	if (a->pool && a->n_cpus)
		argp_error(state, "--pool and --cpus exclude each other");
	if (serve_is_wanted(&a->serve) && !serve_accepts(&a->bench))
		argp_error(state, "--listen and --unix exclude options of a workload");
	if (a->serve.fence.address && !a->bench.log.volume)
		argp_error(state, "--fence needs --volume");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->bench;
		state->child_inputs[1] = &a->serve;
		break;
	case OPT_CPUS:
		parse_cpus(state, a, arg);
		break;
	case OPT_MAX_CPUS:
		a->max_cpus = (uint32_t)bench_parse_number(state, "max-cpus", arg, 1,
							   OLTP_WORKERS_MAX);
		break;
	case OPT_NO_HT:
		a->no_ht = true;
		break;
	case OPT_TIER:
		if (oltp_tier_parse(arg, &a->tier))
			argp_error(state, "--tier: '%s' is not lend, park or unplug", arg);
		break;
	case OPT_CONTROL:
		a->control_path = arg;
		break;
	case OPT_APP_NAME:
		a->ebb.app_name = arg;
		break;
	case OPT_DEVICE:
		a->ebb.device = arg;
		break;
	case OPT_MONITOR:
		a->ebb.monitor_socket = arg;
		break;
	case OPT_POOL:
		a->pool = true;
		break;
	case OPT_NO_VERIFY:
		a->bench.verify = false;
		break;
	case ARGP_KEY_END:
		check(state, a);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int open_ebb(const struct ebb_options *options, unsigned int flags, struct ebb **ret_ebb)
{
	struct ebb_options with_flags = *options;
	int rc;

	with_flags.flags = flags;
	rc = ebb_open(&with_flags, ret_ebb);
	if (!rc)
		return 0;
	fprintf(stderr, "oltp-server: opening the Ebb device%s%s: %s%s\n",
		options->device ? " " : "", options->device ?: "", strerror(-rc),
		rc == -ENOENT ? " (is ebb.ko loaded, and has the VM a virtio-ebb device?)" : "");
	return rc;
}

static void say_gone(void *ctx, int rc)
{
	(void)ctx;
	fprintf(stderr, "oltp-server: the Ebb device: %s; carrying on with the CPUs there are\n",
		strerror(-rc));
}

/* Opens the memory of the host's pools and waits until the host has offered some. */
static int open_memory(const struct arguments *a, struct ebb *ebb, struct blocks_ebb **ret_blocks)
{
	struct blocks_ebb *blocks;
	int rc = blocks_ebb_create(ebb, a->bench.memory_mib << 20, &blocks);

	if (!rc) {
		rc = blocks_ebb_wait(blocks, POOL_WAIT_MS);
		/*
		 * Without an offer by then it goes on: a table that does not fit is reported later.
		 */
		if (rc && rc != -ETIME)
			blocks_ebb_destroy(blocks);
		else
			rc = 0;
	}
	if (rc)
		fprintf(stderr, "oltp-server: memory of the host: %s\n", strerror(-rc));
	else
		*ret_blocks = blocks;
	return rc;
}

/* Where CPUs come from. Errors are -errno. */
static int open_source(const struct arguments *a, struct ebb *ebb, struct blocks_ebb *blocks,
		       void **ret_source)
{
	struct source_ebb_config config = { .ebb = ebb, .blocks = blocks, .no_ht = a->no_ht,
					    .tier = a->tier,
					    .on_gone = say_gone,
					    .interval_ms = a->bench.interval_ms };

	if (a->n_cpus)
		return oltp_source_fixed_create(a->cpus, a->n_cpus, a->n_cpus, ret_source);
	return source_ebb_create(&config, ret_source);
}

static void close_source(const struct arguments *a, void *source)
{
	if (a->n_cpus)
		oltp_source_fixed_destroy(source);
	else
		source_ebb_destroy(source);
}

/* Everything after the table is loaded. */
static bool run(const struct arguments *a, struct session *session, struct serve *serve,
		struct ebb *ebb, struct blocks_ebb *blocks)
{
	struct control *control = NULL;
	bool is_good = false;
	void *source = NULL;
	int rc;

	rc = open_source(a, ebb, blocks, &source);
	if (rc) {
		fprintf(stderr, "oltp-server: %s\n", strerror(-rc));
		return false;
	}
	if (a->control_path)
		rc = control_open(a->control_path, session, &control);
	if (rc) {
		fprintf(stderr, "oltp-server: control channel %s: %s\n", a->control_path,
			strerror(-rc));
		goto out;
	}
	if (control && serve)
		control_set_relocation(control, serve_relocation(serve));
	if (serve)
		rc = serve_watch(serve, session);
	if (rc) {
		fprintf(stderr, "oltp-server: clients: %s\n", strerror(-rc));
		goto out;
	}
	session_set_source(session, a->n_cpus ? &oltp_source_fixed_ops : &source_ebb_ops, source);
	rc = session_run(session);
	/* Verifying the table may take longer than the host waits for memory. */
	if (blocks)
		blocks_ebb_pump_start(blocks);
	is_good = session_finish(session, stdout, "oltp-result ") && !rc;
	if (blocks)
		blocks_ebb_pump_stop(blocks);
out:
	control_close(control);
	session_stop(session);
	close_source(a, source);
	return is_good;
}

/*
 * Without a pool the engine registers with the host after the table is loaded: before that it has
 * nothing to report.
 */
static bool load_and_run(const struct arguments *a, struct serve *serve)
{
	struct session_config config = { .options = a->bench, .max_cpus = a->max_cpus,
					 .takes_rates = a->control_path && !serve };
	struct blocks_ebb *blocks = NULL;
	struct session *session = NULL;
	struct ebb *ebb = NULL;
	bool is_good = false;

	if (a->pool) {
		if (open_ebb(&a->ebb, 0, &ebb) || open_memory(a, ebb, &blocks))
			goto out;
		config.blocks = &blocks_ebb_ops;
		config.blocks_ctx = blocks;
		config.attach = blocks_ebb_attach;
	}
	if (session_open(&config, &session))
		goto out;
	if (blocks)
		blocks_ebb_pump_stop(blocks);
	else if (!a->n_cpus && open_ebb(&a->ebb, 0, &ebb))
		goto out;
	is_good = run(a, session, serve, ebb, blocks);
out:
	session_close(session);
	blocks_ebb_destroy(blocks);
	ebb_close(ebb);
	return is_good;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &bench_argp, 0, NULL, 0 },
						      { &serve_options_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.doc = "Runs transactions on Ebb's OLTP engine in a VM whose CPUs come and go.",
	};
	static struct arguments a;
	struct serve *serve = NULL;
	struct ebb *ebb = NULL;
	bool is_good;

	a.bench = bench_options_default;
	a.bench.verify = true;
	a.serve = serve_options_default;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	/* Before the table is loaded, which may take long. */
	if (!a.n_cpus && open_ebb(&a.ebb, EBB_OPEN_NO_MONITOR, &ebb))
		return EXIT_FAILURE;
	ebb_close(ebb);
	if (serve_is_wanted(&a.serve)) {
		if (serve_open(&a.serve, &a.bench, &serve))
			return EXIT_FAILURE;
		a.bench.workload = serve_workload(serve);
		a.bench.verify = false;
		/* Clients, and perhaps the other node, wait for this server to be back. */
		a.bench.log.no_disk_probe = true;
	}
	is_good = load_and_run(&a, serve);
	serve_close(serve);
	return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
