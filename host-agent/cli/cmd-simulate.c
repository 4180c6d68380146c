/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl simulate: what policies make of the same VMs; needs no ebbd. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/simulate-print.h"
#include "simulate/brokered.h"
#include "simulate/placed-decide.h"

#define DEFAULT_TOPOLOGY	"4x18x1"
/* Of --shared, where threads count. */
#define SHARED_TOPOLOGY		"4x36x2"
#define SHARED_SECONDS		900u
#define SHARED_VCPUS		8u
#define SHARED_WINDOW_S		15u
#define RESERVE_SECONDS		60u
/* Each second of it takes milliseconds, and a minute shows all there is to see. */
#define RESERVE_MAX_SECONDS	3600u
#define PLACE_UPGRADE_DOMAINS	10u
#define PLACE_FAULT_DOMAINS	5u

enum { KEY_VMS = 256, KEY_SECONDS, KEY_SEED, KEY_SPOT, KEY_SLOTS, KEY_COUNT_THREADS,
       KEY_BROKER, KEY_IDLE, KEY_PROMISE, KEY_SHARED, KEY_VCPUS, KEY_DEMAND,
       KEY_WINDOW, KEY_RESERVE_PERCENT, KEY_RESERVE,
       KEY_PLACE, KEY_HOSTS, KEY_WEEKS, KEY_RATIO, KEY_SEEDS, KEY_PLACER, KEY_BALANCE, KEY_AHEAD,
       KEY_SAMPLES, KEY_CANDIDATES };

static const struct argp_option options[] = {
	{ "topology", 't', "SxCxT", 0, "Sockets, cores of each, threads of each core (default "
	  DEFAULT_TOPOLOGY ")", 0 },
	{ "count-threads", KEY_COUNT_THREADS, NULL, 0,
	  "Give out hardware threads, not cores, as count_threads of ebbd.conf", 0 },
	{ "policy", 'p', "NAME", 0, "A policy to try; several are printed side by side (default: "
	  "fair)", 0 },
	{ "history", 'H', "FILE", 0, "Replay this history.db of ebbd", 0 },
	{ "vms", KEY_VMS, "N", 0, "Make up N VMs, 1 to 1024 (default 40)", 0 },
	{ "seconds", KEY_SECONDS, "N", 0, "Time for which VMs are made up, 1 to 1000000 (default "
	  "600)", 0 },
	{ "spot", KEY_SPOT, "PERCENT", 0, "Percentage of the made-up VMs that are of class spot, "
	  "0 to 100 (default 50)", 0 },
	{ "seed", KEY_SEED, "N", 0, "Seed of made-up VMs and of latencies (default 1)", 0 },
	{ "slots", KEY_SLOTS, "N", 0, "Parts of the time for each of which the CPUs held are "
	  "printed, 1 to 1000 (default 10)", 0 },
	{ "broker", KEY_BROKER, NULL, 0, "How memory goes from cold databases to warm ones, under "
	  "the policies that broker it; --vms (default 200), --topology and --seed apply", 0 },
	{ "idle-half", KEY_IDLE, "SECONDS", 0, "With --broker: time without use after which a "
	  "database expects half as much use of its memory, 1 to 1000000 (default 120)", 0 },
	{ "promise", KEY_PROMISE, NULL, 0, "Whether a promised cache (reserve-mem) is kept beside "
	  "databases that want all memory, and what becomes of it if it is only metered; --vms "
	  "(2 to 17, default 8) and --seed apply", 0 },
	{ "shared", KEY_SHARED, NULL, 0, "What moving VMs between shared cores is worth, on five "
	  "seeds from --seed on; --vms (default 200), --seconds (default 900) and --topology "
	  "(default " SHARED_TOPOLOGY ", threads count) apply", 0 },
	{ "vcpus", KEY_VCPUS, "N", 0, "With --shared: vCPUs of a VM, 1 to 64 (default 8); a third "
	  "of the VMs have half as many, a third twice", 0 },
	{ "window", KEY_WINDOW, "SECONDS", 0, "With --shared: from one look at where VMs should be "
	  "to the next, 1 to 300 (default 15)", 0 },
	{ "demand", KEY_DEMAND, "PATH", 0, "With --shared: CPU use of real VMs, in percent each 5 "
	  "minutes: a file with a row for each VM and commas, or one value per line, or a folder "
	  "of such files, also of .gz; with --place: rows of a day at 5 minutes, or of days at 10 "
	  "minutes (default: made up)", 0 },
	{ "reserve-percent", KEY_RESERVE_PERCENT, "PERCENT", 0, "With --shared: every fourth VM "
	  "is promised this part of a core for each of its vCPUs, 0 to 100 (default 0)", 0 },
	{ "reserve", KEY_RESERVE, NULL, 0, "What promises of I/O to tenants of the volume server "
	  "are worth, in four cases on five seeds from --seed on; --seconds (at most 3600, "
	  "default 60) applies", 0 },
	{ "place", KEY_PLACE, NULL, 0, "What placers make of a cluster of hosts whose databases "
	  "grow; --seed and --demand apply", 0 },
	{ "placer", KEY_PLACER, "NAME", 0, "With --place: a placer to try, prv or plb, each also "
	  "with +mc, +aru or +mc+aru, first-fit, best-fit or worst-fit, or oracle+mc+aru, which "
	  "knows what VMs will use; several are printed side by side (default: plb and "
	  "prv+mc+aru)", 0 },
	{ "hosts", KEY_HOSTS, "N", 0, "With --place: hosts of 64 CPUs, 10 to 1000 (default 40)",
	  0 },
	{ "weeks", KEY_WEEKS, "N", 0, "With --place: 1 to 52 (default 1)", 0 },
	{ "ratio", KEY_RATIO, "RATIO", 0, "With --place: over-subscription, maxima of all VMs "
	  "over what hosts have, 0.1 to 10 (default 1.8)", 0 },
	{ "seeds", KEY_SEEDS, "N", 0, "With --place: seeds from --seed on, 1 to 100 (default 3)",
	  0 },
	{ "balance", KEY_BALANCE, "HOURS", 0, "With --place: time between two balancings without "
	  "a violation, 0 to 168 (default 0: never)", 0 },
	{ "ahead", KEY_AHEAD, "DAYS", 0, "With --place: how far ahead violations count, 1 to 28 "
	  "(default 1)", 0 },
	{ "samples", KEY_SAMPLES, "N", 0, "With --place: of the Monte Carlo simulation, 10 to "
	  "10000 (default 100)", 0 },
	{ "candidates", KEY_CANDIDATES, "N", 0, "With --place: that a search looks at, 1 to "
	  "1000000 (default 1000)", 0 },
	{ 0 },
};

static unsigned long number(const char *name, const char *arg, unsigned long min,
			    unsigned long max, struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || arg[0] == '-' || n < min || n > max)
		argp_error(state, "--%s=%s: allowed: %lu to %lu", name, arg, min, max);
	return n;
}

static double real(const char *name, const char *arg, double min, double max,
		   struct argp_state *state)
{
	char *end;
	const double x = strtod(arg, &end);

	if (end == arg || *end || !(x >= min && x <= max))
		argp_error(state, "--%s=%s: allowed: %g to %g", name, arg, min, max);
	return x;
}

static void add_placer(struct simulate_place *p, const char *name, struct argp_state *state)
{
	const struct sim_place_placer *placer = sim_place_placer_find(name);
	char known[256] = "";

	for (uint32_t i = 0; !placer && sim_place_placer_at(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", sim_place_placer_at(i)->name);
	if (!placer)
		argp_error(state, "--placer=%s: allowed: %s", name, known);
	if (p->num_placers == SIMULATE_MAX_PLACERS)
		argp_error(state, "--placer is there more than %u times", SIMULATE_MAX_PLACERS);
	p->placers[p->num_placers++] = placer;
}

static void add_policy(struct simulate *s, const char *name, struct argp_state *state)
{
	const struct ebb_policy_ops *policy = ebb_policy_find(name);
	char known[256] = "";

	for (size_t i = 0; !policy && ebb_policy_at(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", ebb_policy_at(i)->name);
	if (!policy)
		argp_error(state, "--policy=%s: allowed: %s", name, known);
	if (s->num_policies == SIMULATE_MAX_POLICIES)
		argp_error(state, "--policy is there more than %u times", SIMULATE_MAX_POLICIES);
	s->policies[s->num_policies++] = policy;
}

static int set_topology(struct simulate *s, const char *text)
{
	unsigned sockets, cores, threads;
	int len = 0;

	if (sscanf(text, "%ux%ux%u%n", &sockets, &cores, &threads, &len) != 3 || text[len] ||
	    strpbrk(text, "+- ") || sockets > 4096 || cores > 4096 || threads > 4096)
		return -EINVAL;
	s->topology = text;
	return ebb_host_emulate(sockets, cores, threads, 1000, &s->options.host);
}

/* Options of --place alone. */
static error_t parse_place(int key, char *arg, struct argp_state *state)
{
	struct simulate *s = state->hook;
	struct simulate_place *p = &s->place;

	switch (key) {
	case KEY_PLACER:
		add_placer(p, arg, state);
		break;
	case KEY_HOSTS:
		p->num_hosts = number("hosts", arg, PLACE_UPGRADE_DOMAINS, 1000, state);
		break;
	case KEY_WEEKS:
		p->weeks = number("weeks", arg, 1, 52, state);
		break;
	case KEY_RATIO:
		p->ratio = real("ratio", arg, 0.1, 10, state);
		break;
	case KEY_SEEDS:
		p->num_seeds = number("seeds", arg, 1, 100, state);
		break;
	case KEY_BALANCE:
		p->balance_hours = number("balance", arg, 0, 168, state);
		break;
	case KEY_AHEAD:
		p->ahead_days = number("ahead", arg, 1, 28, state);
		break;
	case KEY_SAMPLES:
		p->samples = number("samples", arg, 10, 10000, state);
		break;
	case KEY_CANDIDATES:
		p->candidates = number("candidates", arg, 1, 1000000, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	s->is_place_tuned = true;
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct simulate *s = state->hook;

	switch (key) {
	case KEY_PLACE:
		s->is_place = true;
		return 0;
	case 't':
		s->has_topology = true;
		s->is_vms = true;
		if (set_topology(s, arg) < 0)
			argp_error(state,
				   "--topology=%s: write SxCxT with 1 to %u sockets, 1 to %u "
				   "threads of a core, and at most %u threads in all, for example "
				   DEFAULT_TOPOLOGY, arg, EBB_MAX_NODES, EBB_MAX_SMT,
				   EBB_MAX_THREADS);
		return 0;
	case KEY_COUNT_THREADS:
		s->is_vms = true;
		s->options.count_threads = true;
		return 0;
	case 'p':
		s->is_vms = true;
		add_policy(s, arg, state);
		return 0;
	case 'H':
		s->history = arg;
		s->options.is_even = true;
		return 0;
	case KEY_VMS:
		s->plan.num_vms = number("vms", arg, 1, EBB_MAX_VMS, state);
		s->has_vms = true;
		s->is_vms = true;
		s->is_planned = true;
		return 0;
	case KEY_SECONDS:
		s->plan.seconds = number("seconds", arg, 1, 1000000, state);
		s->has_seconds = true;
		s->is_planned = true;
		return 0;
	case KEY_SPOT:
		s->is_vms = true;
		s->plan.spot_percent = number("spot", arg, 0, 100, state);
		s->is_planned = true;
		return 0;
	case KEY_SEED:
		s->plan.seed = s->options.seed = number("seed", arg, 0, UINT32_MAX, state);
		return 0;
	case KEY_BROKER:
		s->is_broker = true;
		return 0;
	case KEY_PROMISE:
		s->is_promise = true;
		return 0;
	case KEY_IDLE:
		s->is_broker_tuned = true;
		s->idle_half_s = number("idle-half", arg, 1, 1000000, state);
		return 0;
	case KEY_SHARED:
		s->is_shared = true;
		return 0;
	case KEY_VCPUS:
		s->is_shared_tuned = true;
		s->vcpus = number("vcpus", arg, 1, 64, state);
		return 0;
	case KEY_WINDOW:
		s->is_shared_tuned = true;
		s->window_s = number("window", arg, 1, 300, state);
		return 0;
	case KEY_DEMAND:
		s->demand = arg;
		return 0;
	case KEY_RESERVE_PERCENT:
		s->is_shared_tuned = true;
		s->reserve_percent = number("reserve-percent", arg, 0, 100, state);
		return 0;
	case KEY_RESERVE:
		s->is_reserve = true;
		return 0;
	case KEY_SLOTS:
		s->is_vms = true;
		s->options.num_slots = number("slots", arg, 1, 1000, state);
		return 0;
	default:
		return parse_place(key, arg, state);
	}
}

static int run(struct simulate *s, struct ebb_err *err)
{
	int rc = s->history ? sim_trace_load(s->history, &s->options.host, &s->trace, err) :
			      sim_trace_generate(&s->plan, &s->options.host, &s->trace);

	if (rc == -ENOMEM)
		ebb_err_set(err, rc, "out of memory");
	while (rc == 0 && s->num_results < s->num_policies) {
		rc = sim_run(&s->trace, &s->options, s->policies[s->num_results],
			     &s->results[s->num_results], err);
		s->num_results += rc == 0;
	}
	return rc;
}

static int run_broker(struct simulate *s, bool is_json, struct ebb_err *err)
{
	return simulate_broker(s, is_json, err);
}

static int run_promise(struct simulate *s, bool is_json, struct ebb_err *err)
{
	return simulate_promise(s, is_json, err);
}

static int run_shared(struct simulate *s, bool is_json, struct ebb_err *err)
{
	if (!s->has_topology)
		set_topology(s, SHARED_TOPOLOGY);
	if (!s->has_seconds)
		s->plan.seconds = SHARED_SECONDS;
	return simulate_shared(s, is_json, err);
}

static int run_reserve(struct simulate *s, bool is_json, struct ebb_err *err)
{
	if (!s->has_seconds)
		s->plan.seconds = RESERVE_SECONDS;
	return simulate_reserve(s, is_json, err);
}

static int run_place(struct simulate *s, bool is_json, struct ebb_err *err)
{
	return simulate_place(s, is_json, err);
}

typedef int experiment(struct simulate *s, bool is_json, struct ebb_err *err);

/* An experiment in place of a trace; NULL: none. */
static experiment *experiment_of(const struct simulate *s)
{
	return s->is_broker  ? run_broker :
	       s->is_promise ? run_promise :
	       s->is_shared  ? run_shared :
	       s->is_reserve ? run_reserve :
	       s->is_place   ? run_place : NULL;
}

/* Options that have no effect together; NULL: there are none. */
static const char *contradiction(const struct simulate *s)
{
	if (s->history && s->is_planned)
		return "--vms, --seconds and --spot are for made-up VMs, --history replays others";
	if (s->is_shared + s->is_broker + s->is_promise + s->is_reserve + s->is_place > 1)
		return "--broker, --promise, --shared, --reserve or --place, not several";
	if (s->history && experiment_of(s))
		return "--broker, --promise, --shared, --reserve and --place have VMs of their "
		       "own, they replay no --history";
	if (s->is_place && (s->is_vms || s->has_seconds))
		return "--place takes no options of VMs, and weeks, not seconds";
	if (s->is_place_tuned && !s->is_place)
		return "--placer, --hosts, --weeks, --ratio, --seeds, --balance, --ahead, "
		       "--samples and --candidates are for --place";
	if (s->demand && !s->is_shared && !s->is_place)
		return "--demand is for --shared and --place";
	if (s->is_reserve && s->is_vms)
		return "--reserve takes no other options than --seconds and --seed";
	if (s->is_reserve && s->has_seconds && s->plan.seconds > RESERVE_MAX_SECONDS)
		return "--reserve takes at most 3600 seconds";
	if (s->is_broker_tuned && !s->is_broker)
		return "--idle-half is for --broker";
	if (s->is_shared_tuned && !s->is_shared)
		return "--vcpus, --window and --reserve-percent are for --shared";
	return NULL;
}

int cmd_simulate(struct ctl *ctl, int argc, char **argv)
{
	struct simulate *s = calloc(1, sizeof(*s));
	struct ebb_err err = { "" };
	const char *wrong;
	int rc;

	if (!s)
		return EXIT_REFUSED;
	s->plan = (struct sim_plan){ .seed = 1, .num_vms = 40, .seconds = 600, .spot_percent = 50 };
	s->idle_half_s = BROKERED_IDLE_HALF_S;
	s->vcpus = SHARED_VCPUS;
	s->window_s = SHARED_WINDOW_S;
	s->place = (struct simulate_place){
		.num_hosts = 40, .upgrade_domains = PLACE_UPGRADE_DOMAINS,
		.fault_domains = PLACE_FAULT_DOMAINS,
		.weeks = 1, .num_seeds = 3, .ahead_days = 1,
		.samples = 100, .candidates = 1000, .ratio = 1.8,
	};
	s->options.seed = 1;
	s->options.num_slots = 10;
	set_topology(s, DEFAULT_TOPOLOGY);
	ctl_parse(ctl, argc, argv, options, parse_option, s, "", 0, 0);
	wrong = contradiction(s);
	if (wrong) {
		fprintf(stderr, "ebbctl simulate: %s\n", wrong);
		free(s);
		return EXIT_USAGE;
	}
	if (experiment_of(s)) {
		rc = experiment_of(s)(s, ctl->is_json, &err);
		if (rc < 0)
			fprintf(stderr, "ebbctl: %s\n", err.text);
		free(s);
		return rc < 0 ? EXIT_REFUSED : EXIT_DONE;
	}
	if (s->num_policies == 0)
		s->policies[s->num_policies++] = ebb_policy_at(0);
	rc = run(s, &err);
	if (rc < 0)
		fprintf(stderr, "ebbctl: %s\n", err.text);
	else if (ctl->is_json)
		simulate_print_json(s);
	else
		simulate_print(s);
	for (size_t i = 0; i < s->num_results; i++)
		sim_result_finish(&s->results[i]);
	sim_trace_finish(&s->trace);
	free(s);
	return rc < 0 ? EXIT_REFUSED : EXIT_DONE;
}
