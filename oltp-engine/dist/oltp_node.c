// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-node: the engine under YCSB as one of two nodes of a scale-out engine, as one engine with
 * two partitions, or as one engine with a partition per tenant. Obeys lines on standard input,
 * answers each with one line (see the manual page).
 * Exit status: 0, 1 (could not run, or the node's log failed), 64 (usage).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "dist.h"
#include "node_ycsb.h"
#include "oltp-engine/bench/options.h"
#include "oltp-engine/bench/report.h"
#include "tenants.h"
#include "oltp-engine/src/base/clock.h"

#define PROGRESS_MS	50u
#define RUN_SECONDS_MAX	3600.0

const char *argp_program_version = "oltp-node 1 (Ebb)";

struct arguments {
	struct node_ycsb_config work;
	struct dist_node_config node;
	uint32_t tenants;
	uint32_t cpus[CPU_SETSIZE];
	uint32_t n_cpus;
	bool is_pinned;
	bool progress;
};

enum option_key {
	OPT_ID = 0x100,
	OPT_LISTEN,
	OPT_PEER,
	OPT_LOG,
	OPT_TIMEOUT,
	OPT_TWO,
	OPT_SECOND_CPU,
	OPT_TENANTS,
	OPT_RECORDS,
	OPT_OPERATIONS,
	OPT_UPDATE,
	OPT_THETA,
	OPT_SEED,
	OPT_CPUS,
	OPT_THREADS,
	OPT_PROGRESS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "One of two nodes (all four are needed):", 1 },
	{ "id", OPT_ID, "N", 0, "number of this node, other than the peer's", 1 },
	{ "listen", OPT_LISTEN, "ADDRESS", 0, "unix:PATH or tcp:A.B.C.D:PORT", 1 },
	{ "peer", OPT_PEER, "ADDRESS", 0, "where the other node listens", 1 },
	{ "log", OPT_LOG, "FILE", 0, "its log; recovered from if it is there", 1 },
	{ "timeout-ms", OPT_TIMEOUT, "MS", 0,
	  "longest wait for a vote (1000); in doubt, ask after half of that", 1 },
	{ NULL, 0, NULL, 0, "One engine:", 2 },
	{ "two-tables", OPT_TWO, NULL, 0, "with a second partition, as if it were a peer's", 2 },
	{ "second-cpu", OPT_SECOND_CPU, "CPU", 0,
	  "load the second partition there, so into the memory of that NUMA node", 2 },
	{ "tenants", OPT_TENANTS, "N", 0,
	  "with a table and a share of the workers for each of N tenants", 2 },
	{ NULL, 0, NULL, 0, "Workload:", 3 },
	{ "records", OPT_RECORDS, "N", 0, "records per table (100000); 1 KiB each", 3 },
	{ "operations", OPT_OPERATIONS, "N", 0, "operations per transaction (10)", 3 },
	{ "update", OPT_UPDATE, "SHARE", 0, "share of updates, 0 to 1 (0)", 3 },
	{ "theta", OPT_THETA, "T", 0, "Zipf parameter, 0 to below 1 (0.5)", 3 },
	{ "seed", OPT_SEED, "N", 0, "seed of the key sequences (1)", 3 },
	{ NULL, 0, NULL, 0, "Workers:", 4 },
	{ "cpus", OPT_CPUS, "LIST", 0,
	  "one worker pinned on each of these CPUs, such as 0-3; all else stays on them, too", 4 },
	{ "threads", OPT_THREADS, "N", 0, "so many workers, not pinned (1)", 4 },
	{ "progress", OPT_PROGRESS, NULL, 0, "a line with the commits so far, 20 a second", 4 },
	{ 0 },
};

static void parse_cpus(struct argp_state *state, struct arguments *a, const char *arg)
{
	int n = bench_parse_cpus(arg, a->cpus, CPU_SETSIZE);

	if (n < 0)
		argp_error(state, "--cpus: '%s' is not a list of CPUs such as 0-3,8", arg);
	a->n_cpus = (uint32_t)n;
	a->is_pinned = true;
}

static void set_timeout(struct arguments *a, uint64_t ms)
{
	a->node.times = (struct dist_times){
		.vote_ns = ms * 1000000,
		.ask_ns = ms * 500000,
		.repeat_ns = ms * 500000,
	};
}

/* NULL: it was not given. */
static void check_address(struct argp_state *state, const char *option, const char *address)
{
	if (address && dist_address_check(address))
		argp_error(state, "--%s: '%s' is not unix:PATH or tcp:A.B.C.D:PORT", option,
			   address);
}

static void check(struct argp_state *state, struct arguments *a)
{
	const struct dist_node_config *n = &a->node;
	uint32_t given = !!n->id + !!n->listen + !!n->peer + !!n->log_path;

	if (given && given < 4)
		argp_error(state, "a node needs --id, --listen, --peer and --log");
	check_address(state, "listen", n->listen);
	check_address(state, "peer", n->peer);
	if (a->work.is_second_placed && !a->work.has_second)
		argp_error(state, "--second-cpu needs --two-tables");
	if (!!given + a->work.has_second + !!a->tenants > 1)
		argp_error(state, "--peer, --two-tables and --tenants exclude each other");
	if (a->n_cpus == 0)
		a->n_cpus = 1;
	for (uint32_t i = 0; !a->is_pinned && i < a->n_cpus; i++)
		a->cpus[i] = i;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct ycsb_config *ycsb = &a->work.ycsb;

	switch (key) {
	case OPT_ID:
		a->node.id = (uint32_t)bench_parse_number(state, "id", arg, 1, UINT32_MAX);
		break;
	case OPT_LISTEN:
		a->node.listen = arg;
		break;
	case OPT_PEER:
		a->node.peer = arg;
		break;
	case OPT_LOG:
		a->node.log_path = arg;
		break;
	case OPT_TIMEOUT:
		set_timeout(a, bench_parse_number(state, "timeout-ms", arg, 10, 60000));
		break;
	case OPT_TWO:
		a->work.has_second = true;
		break;
	case OPT_SECOND_CPU:
		a->work.second_cpu = (uint32_t)bench_parse_number(state, "second-cpu", arg, 0,
								  CPU_SETSIZE - 1);
		a->work.is_second_placed = true;
		break;
	case OPT_TENANTS:
		a->tenants = (uint32_t)bench_parse_number(state, "tenants", arg, 1, TENANTS_MAX);
		break;
	case OPT_RECORDS:
		ycsb->records = bench_parse_number(state, "records", arg, 1, 1ull << 31);
		break;
	case OPT_OPERATIONS:
		ycsb->operations = (uint32_t)bench_parse_number(state, "operations", arg, 1,
								YCSB_OPERATIONS_MAX);
		break;
	case OPT_UPDATE:
		ycsb->update_share = bench_parse_double(state, "update", arg, 0, 1);
		break;
	case OPT_THETA:
		ycsb->theta = bench_parse_double(state, "theta", arg, 0, 0.9999);
		break;
	case OPT_SEED:
		ycsb->seed = bench_parse_number(state, "seed", arg, 0, UINT64_MAX);
		break;
	case OPT_CPUS:
		parse_cpus(state, a, arg);
		break;
	case OPT_THREADS:
		a->n_cpus = (uint32_t)bench_parse_number(state, "threads", arg, 1,
							 OLTP_WORKERS_MAX / 2);
		a->is_pinned = false;
		break;
	case OPT_PROGRESS:
		a->progress = true;
		break;
	case ARGP_KEY_END:
		check(state, a);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

struct program {
	const struct arguments *a;
	struct oltp_engine *engine;
	struct node_ycsb *work;		/* or tenants, the other is NULL */
	struct tenants *tenants;
	struct dist_node *node;		/* NULL: everything is here */
};

static int fail(const char *what, int rc)
{
	fprintf(stderr, "oltp-node: %s: %s\n", what, strerror(-rc));
	return rc;
}

/* The threads that serve the peer run on this node's CPUs and no others. */
static int stay_on_cpus(const struct arguments *a)
{
	cpu_set_t set;

	if (!a->is_pinned)
		return 0;
	CPU_ZERO(&set);
	for (uint32_t i = 0; i < a->n_cpus; i++) {
		if (a->cpus[i] < CPU_SETSIZE)
			CPU_SET(a->cpus[i], &set);
	}
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static int program_open(struct program *p)
{
	const struct arguments *a = p->a;
	struct dist_node_config config = a->node;
	int rc = stay_on_cpus(a);

	if (rc)
		return fail("--cpus", rc);
	/* NULL: NO_WAIT, which two nodes need. */
	rc = oltp_engine_open(NULL, &p->engine);
	if (rc)
		return fail("opening the engine", rc);
	if (a->tenants)
		rc = tenants_create(p->engine, &a->work.ycsb, a->tenants, &p->tenants);
	else
		rc = node_ycsb_create(p->engine, &a->work, &p->work);
	if (rc)
		return fail("loading the tables", rc);
	if (!config.peer)
		return 0;
	config.engine = p->engine;
	config.app = node_ycsb_app(p->work);
	rc = dist_node_open(&config, &p->node);
	if (rc)
		fprintf(stderr, "oltp-node: starting the node, --listen %s, --log %s: %s\n",
			config.listen, config.log_path, strerror(-rc));
	return rc;
}

static void program_close(struct program *p)
{
	dist_node_close(p->node);
	node_ycsb_destroy(p->work);
	tenants_destroy(p->tenants);
	oltp_engine_close(p->engine);
}

static void print_progress(struct oltp_pool *pool)
{
	struct oltp_sample sample;

	oltp_pool_sample(pool, clock_now_ns(), &sample);
	printf("oltp-node: committed=%" PRIu64 " failed=%" PRIu64 "\n", sample.totals.committed,
	       sample.totals.failed);
	fflush(stdout);
}

static void run_for(struct program *p, struct oltp_pool *pool, double seconds)
{
	uint64_t end_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);

	for (;;) {
		uint64_t now = clock_now_ns();

		if (now >= end_ns || (p->node && dist_node_error(p->node)))
			return;
		if (p->a->progress) {
			print_progress(pool);
			usleep(PROGRESS_MS * 1000);
		} else {
			usleep((useconds_t)((end_ns - now) / 1000 < 100000 ?
						    (end_ns - now) / 1000 + 1 : 100000));
		}
	}
}

static void print_result(struct program *p, const struct oltp_sample *s, double seconds,
			 uint32_t remote)
{
	printf("oltp-node-result {\"seconds\":%.6f,\"remote\":%u,\"workers\":%u,\"committed\":%"
	       PRIu64 ",\"conflicts\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"tps\":%.1f,"
	       "\"p50_us\":%.1f,\"p95_us\":%.1f,\"p99_us\":%.1f",
	       seconds, remote, p->a->n_cpus, s->totals.committed, s->totals.conflicts,
	       s->totals.failed, (double)s->totals.committed / seconds, s->p50_us, s->p95_us,
	       s->p99_us);
	if (p->work) {
		struct node_ycsb_books books;

		node_ycsb_books_read(p->work, &books);
		printf(",\"own_updates\":%" PRIu64 ",\"other_updates\":%" PRIu64
		       ",\"inconsistent_reads\":%" PRIu64, books.own_updates, books.other_updates,
		       books.inconsistent_reads);
	}
	puts("}");
}

static int start_workers(struct program *p, struct oltp_pool *pool)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->a->n_cpus; i++)
		rc = oltp_pool_add(pool, p->a->cpus[i]);
	return rc;
}

static int run(struct program *p, double seconds, uint32_t remote)
{
	struct oltp_workload workload = p->tenants ? tenants_workload(p->tenants) :
					node_ycsb_workload(p->work, p->node, remote);
	const struct oltp_pool_config config = {
		.engine = p->engine,
		.workload = &workload,
		/* Distributed transactions are few. */
		.latency_every = remote && p->node ? 1 : 64,
		.no_pin = !p->a->is_pinned,
	};
	struct oltp_sample first, last;
	struct oltp_pool *pool;
	uint64_t start_ns, end_ns;
	int rc = oltp_pool_create(&config, &pool);

	if (rc)
		return rc;
	rc = start_workers(p, pool);
	start_ns = clock_now_ns();
	oltp_pool_sample(pool, start_ns, &first);
	if (!rc)
		run_for(p, pool, seconds);
	for (uint32_t i = 0; i < p->a->n_cpus; i++)
		oltp_pool_remove(pool, p->a->cpus[i], NULL);
	end_ns = clock_now_ns();
	oltp_pool_sample(pool, end_ns, &last);
	oltp_pool_whole(pool, &last);
	oltp_pool_destroy(pool);
	if (!rc)
		print_result(p, &last, (double)(end_ns - start_ns) / 1e9, remote);
	return rc;
}

static void print_audit(const struct program *p)
{
	struct ycsb_audit audit = { .is_complete = true }, second = { .is_complete = true };

	if (p->tenants) {
		struct ycsb_verdict v;

		tenants_verify(p->tenants, &v);
		printf("oltp-node-audit {\"records\":%" PRIu64 ",\"lost_updates\":%" PRIu64
		       ",\"inconsistent_reads\":%" PRIu64 ",\"damaged\":%" PRIu64 "}\n", v.records,
		       v.lost_updates, v.inconsistent_reads, v.damaged_records);
		return;
	}
	node_ycsb_audit(p->work, false, &audit);
	if (p->a->work.has_second)
		node_ycsb_audit(p->work, true, &second);
	printf("oltp-node-audit {\"complete\":%s,\"updates\":%" PRIu64 ",\"second_updates\":%"
	       PRIu64 ",\"damaged\":%" PRIu64 "}\n",
	       audit.is_complete && second.is_complete ? "true" : "false", audit.updates,
	       second.updates, audit.damaged_records + second.damaged_records);
}

static void print_stats(const struct program *p)
{
	struct dist_node_stats s = { 0 };

	if (p->node)
		dist_node_stats_read(p->node, &s);
	printf("oltp-node-stats {\"served\":%" PRIu64 ",\"recovered\":%" PRIu64
	       ",\"recovered_in_doubt\":%" PRIu64 ",\"in_doubt\":%" PRIu64 ",\"asked_commits\":%"
	       PRIu64 ",\"asked_aborts\":%" PRIu64 ",\"unconfirmed\":%" PRIu64 "}\n", s.served,
	       s.recovered, s.recovered_in_doubt, s.in_doubt, s.asked_commits, s.asked_aborts,
	       s.unconfirmed);
}

static bool run_is_possible(const struct program *p, double seconds, uint32_t remote)
{
	return isfinite(seconds) && seconds > 0 && seconds <= RUN_SECONDS_MAX &&
	       remote <= p->a->work.ycsb.operations &&
	       (!remote || p->node || p->a->work.has_second);
}

/* "run SECONDS [REMOTE]" and nothing behind it. */
static bool parse_run(const char *line, double *ret_seconds, uint32_t *ret_remote)
{
	char behind;

	*ret_remote = 0;
	if (sscanf(line, "run %lf %c", ret_seconds, &behind) == 1)
		return true;
	return sscanf(line, "run %lf %u %c", ret_seconds, ret_remote, &behind) == 2;
}

/* 0: go on, 1: end, or -errno. */
static int obey(struct program *p, const char *line)
{
	uint32_t remote;
	double seconds;

	if (!strcmp(line, "quit"))
		return 1;
	if (!strcmp(line, "audit")) {
		print_audit(p);
		return 0;
	}
	if (!strcmp(line, "stats")) {
		print_stats(p);
		return 0;
	}
	if (parse_run(line, &seconds, &remote) && run_is_possible(p, seconds, remote))
		return run(p, seconds, remote);
	printf("oltp-node-error not possible here: %s\n", line);
	return 0;
}

static int obey_all(struct program *p)
{
	char line[128];

	puts("oltp-node: ready");
	if (!bench_is_written(stdout, "oltp-node: standard output"))
		return -EPIPE;
	while (fgets(line, sizeof(line), stdin)) {
		int rc;

		line[strcspn(line, "\n")] = '\0';
		rc = obey(p, line);
		if (rc < 0)
			return fail(line, rc);
		if (!bench_is_written(stdout, "oltp-node: standard output"))
			return -EPIPE;
		if (p->node && dist_node_error(p->node))
			return fail("the node's log", dist_node_error(p->node));
		if (rc)
			break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Runs YCSB over two engines with two-phase commit, or its counterparts in "
		       "one engine.\vLines on standard input: run SECONDS [REMOTE], audit, stats, "
		       "quit.",
	};
	static struct arguments a = {
		.work.ycsb = {
			.records = 100000,
			.operations = 10,
			.theta = 0.5,
			.is_scrambled = true,
			.seed = 1,
		},
	};
	struct program p = { .a = &a };
	int rc;

	a.node.times = dist_times_default;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	/* A reader of the results that has gone is seen at the next write. */
	signal(SIGPIPE, SIG_IGN);
	rc = program_open(&p);
	if (!rc)
		rc = obey_all(&p);
	program_close(&p);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
