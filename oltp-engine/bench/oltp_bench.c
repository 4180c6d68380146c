// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-bench: the engine under a workload on a fixed list of CPUs, without host, driver or monitor.
 * Exit status: 0, 1 (could not run, the verification failed, or the result could not be
 * written), 64 (usage).
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define CPUS_MAX	OLTP_WORKERS_MAX
#define SECONDS_DEFAULT	10.0

const char *argp_program_version = "oltp-bench 1 (Ebb)";

struct arguments {
	struct bench_options bench;	/* first: the child's input */
	uint32_t threads;
	uint32_t cpus[CPUS_MAX];
	uint32_t n_cpus;
	uint32_t startup;
	bool no_pin;
};

enum option_key {
	OPT_THREADS = 't',
	OPT_CPUS = 0x200,
	OPT_NO_PIN,
	OPT_STARTUP,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Workers:", 3 },
	{ "threads", OPT_THREADS, "N", 0, "workers, one per CPU (1)", 3 },
	{ "cpus", OPT_CPUS, "LIST", 0, "the CPUs to use, such as 0-3,8, instead of --threads", 3 },
	{ "no-pin", OPT_NO_PIN, NULL, 0, "do not pin: allows more workers than CPUs", 3 },
	{ "startup", OPT_STARTUP, "N", 0, "start with N workers and add the others (all)", 3 },
	{ 0 },
};

static void parse_cpus(struct argp_state *state, struct arguments *a, const char *arg)
{
	int n = bench_parse_cpus(arg, a->cpus, CPUS_MAX);

	if (n < 0)
		argp_error(state, "--cpus: '%s' is not a list of CPUs such as 0-3,8", arg);
	else
		a->n_cpus = (uint32_t)n;
}

/* CPUs this process may run on; with no_pin they are only names, any numbers will do. */
static void default_cpus(struct argp_state *state, struct arguments *a)
{
	uint32_t threads = a->threads ?: 1;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (!a->no_pin && sched_getaffinity(0, sizeof(set), &set))
		argp_failure(state, 1, errno, "sched_getaffinity");
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE && a->n_cpus < threads; cpu++) {
		if (a->no_pin || CPU_ISSET(cpu, &set))
			a->cpus[a->n_cpus++] = cpu;
	}
	if (a->n_cpus < threads)
		argp_error(state, "--threads: %u asked for, but there are %u CPUs; see --no-pin",
			   threads, a->n_cpus);
}

static void check(struct argp_state *state, struct arguments *a)
{
	if (a->threads && a->n_cpus)
		argp_error(state, "--threads and --cpus exclude each other");
	if (!a->n_cpus)
		default_cpus(state, a);
	if (!a->startup)
		a->startup = a->bench.step_seconds > 0 ? 1 : a->n_cpus;
	if (a->startup > a->n_cpus)
		argp_error(state, "--startup: %u is more than the %u CPUs", a->startup, a->n_cpus);
	if (a->bench.seconds == 0 && a->bench.step_seconds == 0)
		a->bench.seconds = SECONDS_DEFAULT;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->bench;
		break;
	case OPT_THREADS:
		a->threads = (uint32_t)bench_parse_number(state, "threads", arg, 1, CPUS_MAX);
		break;
	case OPT_CPUS:
		parse_cpus(state, a, arg);
		break;
	case OPT_NO_PIN:
		a->no_pin = true;
		break;
	case OPT_STARTUP:
		a->startup = (uint32_t)bench_parse_number(state, "startup", arg, 1, CPUS_MAX);
		break;
	case ARGP_KEY_END:
		check(state, a);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &bench_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.doc = "Runs transactions on Ebb's OLTP engine and reports throughput and latency.",
	};
	static struct arguments a;
	struct session_config config;
	struct session *session;
	bool is_good;
	void *source;
	int rc;

	a.bench = bench_options_default;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	rc = oltp_source_fixed_create(a.cpus, a.n_cpus, a.startup, &source);
	if (rc) {
		fprintf(stderr, "oltp: list of CPUs: %s\n", strerror(-rc));
		return EXIT_FAILURE;
	}
	a.bench.verify |= a.bench.workload->ops->verifies_always;
	config = (struct session_config){
		.options = a.bench,
		.no_pin = a.no_pin,
	};
	is_good = false;
	if (!session_open(&config, &session)) {
		session_set_source(session, &oltp_source_fixed_ops, source);
		rc = session_run(session);
		is_good = session_finish(session, stdout, a.bench.json ? "" : NULL);
		is_good = is_good && !rc;
		session_close(session);
	}
	oltp_source_fixed_destroy(source);
	return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
