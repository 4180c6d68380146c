// SPDX-License-Identifier: GPL-2.0-or-later
/* See options.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/load/run/commands.h"
#include "options.h"

#define CONNECTIONS_MAX	10000u
#define RATE_MAX	1e6
#define SECONDS_MAX	1e6
#define ROWS_MAX	(1ull << 31)
#define COUNTERS_MAX	1000000u
#define MS_MAX		600000u
#define NS_PER_MS	1000000ull

enum option_key {
	OPT_CONNECT = 'a',
	OPT_CONNECTIONS = 'c',
	OPT_RATE = 'r',
	OPT_SECONDS = 's',
	OPT_MIX = 'm',
	OPT_ROWS = 'n',
	OPT_SCHEDULE = 0x100,
	OPT_RESP,
	OPT_PASSWORD,
	OPT_POISSON,
	OPT_SEED,
	OPT_WAIT,
	OPT_OPEN,
	OPT_ANSWER,
	OPT_VALUE_BYTES,
	OPT_COUNTERS,
	OPT_FILL,
	OPT_VERIFY,
	OPT_OBSERVE,
	OPT_WAREHOUSES,
	OPT_CUSTOMERS,
	OPT_ITEMS,
	OPT_WORKLOAD = 'w',
};

/* The workloads, each with the mix that it has without --mix. */
static const struct workload {
	const char *name, *mix;
	enum load_tables tables;
} workloads[] = {
	{ "crud", "80/20/0/0", LOAD_TABLES_ROWS },
	{ "ycsb-a", "ycsb_read=50,ycsb_update=50", LOAD_TABLES_YCSB },
	{ "ycsb-b", "ycsb_read=95,ycsb_update=5", LOAD_TABLES_YCSB },
	{ "ycsb-c", "ycsb_read=100", LOAD_TABLES_YCSB },
	{ "tpcc", "new_order=45,payment=43,order_status=4,delivery=4,stock_level=4",
	  LOAD_TABLES_TPCC },
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Server:", 1 },
	{ "connect", OPT_CONNECT, "ADDRESS,...", 0,
	  "HOST:PORT or unix:PATH of each node, in the order in which they are tried "
	  "(127.0.0.1:6379)", 1 },
	{ "connections", OPT_CONNECTIONS, "N", 0, "connections of the pool (50)", 1 },
	{ "resp", OPT_RESP, "2|3", 0,
	  "version of the protocol (3); with 2 servers cannot tell of relocations", 1 },
	{ "password-file", OPT_PASSWORD, "FILE", 0, "its first line is the password", 1 },
	{ "observe", OPT_OBSERVE, NULL, 0,
	  "look on at each node once per second: CPU time, records in memory and on disk, traffic "
	  "between nodes", 1 },
	{ "open-ms", OPT_OPEN, "MS", 0, "longest time to connect and be greeted (1000)", 1 },
	{ "answer-ms", OPT_ANSWER, "MS", 0, "longest time from a request to its answer (10000)",
	  1 },
	{ NULL, 0, NULL, 0, "Arrivals:", 2 },
	{ "rate", OPT_RATE, "RATE", 0, "requests per second (1000)", 2 },
	{ "rate-schedule", OPT_SCHEDULE, "T:RATE,...", 0, "RATE per second from second T on", 2 },
	{ "poisson", OPT_POISSON, NULL, 0, "a Poisson process, not evenly spaced", 2 },
	{ "seed", OPT_SEED, "N", 0, "seed of arrivals and rows (1)", 2 },
	{ "seconds", OPT_SECONDS, "S", 0, "how long requests arrive (10); 0: only load", 2 },
	{ "wait-ms", OPT_WAIT, "MS", 0,
	  "a request that has waited so long for a connection has failed (1000)", 2 },
	{ NULL, 0, NULL, 0, "Workload:", 3 },
	{ "workload", OPT_WORKLOAD, "NAME", 0,
	  "crud (default), ycsb-a, ycsb-b, ycsb-c or tpcc: what --load stores, and a mix", 3 },
	{ "mix", OPT_MIX, "KIND=WEIGHT,...|S/U/I/D", 0,
	  "select, update, insert, delete (5 rows each, in MULTI), get, set, count; "
	  "ycsb_read, ycsb_update; new_order, payment, order_status, delivery, stock_level; or the "
	  "shares of the first four (of crud 80/20/0/0)", 3 },
	{ "rows", OPT_ROWS, "N", 0, "rows, or records of YCSB, of the loading phase (100000)", 3 },
	{ "value-bytes", OPT_VALUE_BYTES, "N", 0, "bytes of a row (1024)", 3 },
	{ "counters", OPT_COUNTERS, "N", 0, "counters that 'count' increments (1000)", 3 },
	{ "warehouses", OPT_WAREHOUSES, "N", 0, "of tpcc (1)", 3 },
	{ "customers", OPT_CUSTOMERS, "N", 0,
	  "of tpcc: customers of a district, and orders that it begins with (3000)", 3 },
	{ "items", OPT_ITEMS, "N", 0, "of tpcc (100000)", 3 },
	{ "load", OPT_FILL, NULL, 0, "store all rows first", 3 },
	{ "verify", OPT_VERIFY, NULL, 0,
	  "hold the counters, or the tables of tpcc, against what was acknowledged; a wrong "
	  "answer, a lost update or an inconsistency gives exit status 1", 3 },
	{ 0 },
};

void load_options_init(struct load_options *o)
{
	*o = (struct load_options){
		.config = {
			.exchange = {
				.nodes = o->nodes,
				.connections = 50,
				.version = 3,
				.shape.value_bytes = 1024,
				.wait_ns = 1000 * NS_PER_MS,
				.bounds = { .open_ns = 1000 * NS_PER_MS,
					    .answer_ns = 10000 * NS_PER_MS },
			},
			.mix = {
				.rows = 100000,
				.counters = 1000,
			},
			.tpcc = { .warehouses = 1, .customers = TPCC_CUSTOMERS,
				  .items = TPCC_ITEMS, .seed = 1 },
			.seed = 1,
			.seconds = 10,
		},
		.workload = workloads[0].name,
		.rates = { .n = 1, .steps = { { .value = 1000 } } },
	};
}

static void parse_nodes(struct argp_state *state, struct load_options *o, const char *arg)
{
	char list[LOAD_NODES_MAX * PUSH_ADDRESS_BYTES], *rest = list, *text;
	uint32_t n = 0;

	if (strlen(arg) >= sizeof(list))
		argp_error(state, "--connect: too long");
	strcpy(list, arg);
	while ((text = strsep(&rest, ","))) {
		int rc = n < LOAD_NODES_MAX ? wire_address_parse(text, false, &o->nodes[n]) :
			 -E2BIG;

		if (rc == -EADDRNOTAVAIL)
			argp_failure(state, EXIT_FAILURE, 0, "--connect: there is no host of '%s'",
				     text);
		if (rc)
			argp_error(state, "--connect: '%s' is not HOST:PORT or unix:PATH, or there "
				   "are more than %u", text, LOAD_NODES_MAX);
		n++;
	}
	o->config.exchange.n_nodes = n;
}

static void read_password(struct argp_state *state, struct load_options *o, const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file || !fgets(o->password, sizeof(o->password), file))
		argp_failure(state, EXIT_FAILURE, file ? 0 : errno, "--password-file: %s", path);
	if (file)
		fclose(file);
	o->password[strcspn(o->password, "\n")] = 0;
	o->config.exchange.password = o->password;
}

/* Steps in ns; before the first one nothing arrives. */
static void set_steps(struct load_options *o)
{
	uint32_t n = 0;

	if (o->rates.steps[0].t_s > 0)
		o->steps[n++] = (struct load_step){ 0 };
	for (uint32_t i = 0; i < o->rates.n; i++) {
		o->steps[n++] = (struct load_step){
			.at_ns = (uint64_t)(o->rates.steps[i].t_s * 1e9),
			.per_s = o->rates.steps[i].value,
		};
	}
	o->config.steps = o->steps;
	o->config.n_steps = n;
}

static uint64_t parse_ms(struct argp_state *state, const char *option, const char *arg)
{
	return bench_parse_number(state, option, arg, 1, MS_MAX) * NS_PER_MS;
}

static error_t parse_server(int key, char *arg, struct argp_state *state)
{
	struct load_options *o = state->input;
	struct exchange_config *x = &o->config.exchange;

	switch (key) {
	case OPT_CONNECT:
		parse_nodes(state, o, arg);
		break;
	case OPT_CONNECTIONS:
		x->connections = (uint32_t)bench_parse_number(state, "connections", arg, 1,
							      CONNECTIONS_MAX);
		break;
	case OPT_RESP:
		x->version = (uint32_t)bench_parse_number(state, "resp", arg, 2, 3);
		break;
	case OPT_PASSWORD:
		read_password(state, o, arg);
		break;
	case OPT_OPEN:
		x->bounds.open_ns = parse_ms(state, "open-ms", arg);
		break;
	case OPT_ANSWER:
		x->bounds.answer_ns = parse_ms(state, "answer-ms", arg);
		break;
	case OPT_WAIT:
		x->wait_ns = parse_ms(state, "wait-ms", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct workload *find_workload(struct argp_state *state, const char *name)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++) {
		if (!strcmp(workloads[i].name, name))
			return &workloads[i];
	}
	argp_error(state, "--workload: there is no '%s'", name);
	return NULL;
}

static void check(struct argp_state *state, struct load_options *o)
{
	const struct workload *workload = find_workload(state, o->workload);

	if (!o->has_mix)
		load_mix_parse(workload->mix, o->config.mix.weights);
	o->config.tables = workload->tables;
	if (!o->config.exchange.n_nodes)
		parse_nodes(state, o, "127.0.0.1:6379");
	set_steps(o);
}

static error_t parse_tpcc(int key, char *arg, struct argp_state *state)
{
	struct load_tpcc *tpcc = &((struct load_options *)state->input)->config.tpcc;

	switch (key) {
	case OPT_WAREHOUSES:
		tpcc->warehouses = (uint32_t)bench_parse_number(state, "warehouses", arg, 1,
								TPCC_WAREHOUSES_MAX);
		break;
	case OPT_CUSTOMERS:
		tpcc->customers = (uint32_t)bench_parse_number(state, "customers", arg, 30,
							       TPCC_CUSTOMERS);
		break;
	case OPT_ITEMS:
		tpcc->items = (uint32_t)bench_parse_number(state, "items", arg, 20, TPCC_ITEMS);
		break;
	default:
		return parse_server(key, arg, state);
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct load_options *o = state->input;
	struct load_config *config = &o->config;

	switch (key) {
	case OPT_RATE:
		o->rates = (struct bench_steps){ .n = 1 };
		o->rates.steps[0].value = bench_parse_double(state, "rate", arg, 0, RATE_MAX);
		break;
	case OPT_SCHEDULE:
		bench_parse_schedule(state, "rate-schedule", arg, RATE_MAX, "0:500,60:1000",
				     &o->rates);
		break;
	case OPT_POISSON:
		config->is_poisson = true;
		break;
	case OPT_SEED:
		config->seed = bench_parse_number(state, "seed", arg, 0, UINT64_MAX);
		break;
	case OPT_SECONDS:
		config->seconds = bench_parse_double(state, "seconds", arg, 0, SECONDS_MAX);
		break;
	case OPT_MIX:
		if (load_mix_parse(arg, config->mix.weights))
			argp_error(state, "--mix: '%s' is not a mix such as select=80,update=20 or "
				   "80/20/0/0", arg);
		o->has_mix = true;
		break;
	case OPT_WORKLOAD:
		find_workload(state, arg);
		o->workload = arg;
		break;
	case OPT_ROWS:
		config->mix.rows = bench_parse_number(state, "rows", arg, LOAD_CRUD_ROWS, ROWS_MAX);
		break;
	case OPT_VALUE_BYTES:
		config->exchange.shape.value_bytes = (uint32_t)bench_parse_number(
			state, "value-bytes", arg, LOAD_VALUE_MIN, LOAD_VALUE_MAX);
		break;
	case OPT_COUNTERS:
		config->mix.counters = (uint32_t)bench_parse_number(state, "counters", arg, 1,
								    COUNTERS_MAX);
		break;
	case OPT_FILL:
		config->must_fill = true;
		break;
	case OPT_OBSERVE:
		config->must_observe = true;
		break;
	case OPT_VERIFY:
		config->must_verify = true;
		break;
	case ARGP_KEY_END:
		check(state, o);
		break;
	default:
		return parse_tpcc(key, arg, state);
	}
	return 0;
}

const struct argp load_argp = {
	.options = options,
	.parser = parse,
	.doc = "Loads RESP servers in an open loop: requests arrive at a rate, whatever the server "
	       "does, and wait for a connection of a pool that follows relocations.",
};
