// SPDX-License-Identifier: GPL-2.0-or-later
/* Command-line options of the TPC-C-like workload. */
#include "oltp-engine/bench/options.h"
#include "tpcc_workload.h"

enum option_key {
	OPT_WAREHOUSES = 'W',
	OPT_MIX = 0x500,
	OPT_HOME,
	OPT_ORDERS,
	OPT_KEEP,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "TPC-C-like:", 20 },
	{ "warehouses", OPT_WAREHOUSES, "N", 0, "warehouses (1); some 100 MiB each", 20 },
	{ "tpcc-mix", OPT_MIX, "N,P,O,D,S", 0,
	  "percent of NewOrder, Payment, OrderStatus, Delivery, StockLevel (45,43,4,4,4)", 20 },
	{ "home", OPT_HOME, "WHAT", 0,
	  "the warehouse of a transaction is 'any' (default), or that of its 'worker'", 20 },
	{ "orders", OPT_ORDERS, "N", 0,
	  "room for so many new orders in the hash indexes (1000000), 200 bytes each; more work, "
	  "but slower", 20 },
	{ "keep-orders", OPT_KEEP, "N", 0,
	  "for long runs, not in the specification: a new order deletes the one N before it, a "
	  "payment the customer's oldest history (0: nothing is deleted; else 3000 at least)", 20 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;
	struct tpcc_config *tpcc = &o->tpcc;

	switch (key) {
	case OPT_WAREHOUSES:
		tpcc->warehouses = (uint32_t)bench_parse_number(state, "warehouses", arg, 1,
								TPCC_WAREHOUSES_MAX);
		break;
	case OPT_MIX:
		if (tpcc_mix_parse(arg, tpcc->mix))
			argp_error(state, "--tpcc-mix: '%s' is not like 45,43,4,4,4, 100 in all",
				   arg);
		break;
	case OPT_HOME:
		tpcc->home_of_worker = bench_parse_choice(state, "home", arg, "any", "worker");
		break;
	case OPT_ORDERS:
		tpcc->orders = bench_parse_number(state, "orders", arg, 0, 1ull << 28);
		break;
	case OPT_KEEP:
		tpcc->keep_orders = (uint32_t)bench_parse_number(state, "keep-orders", arg, 0,
								 1u << 28);
		if (tpcc->keep_orders && tpcc->keep_orders < TPCC_CUSTOMERS)
			argp_error(state, "--keep-orders: %u is below %u, which there are to begin "
				   "with", tpcc->keep_orders, TPCC_CUSTOMERS);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	bench_options_use(o, BENCH_FAMILY_TPCC);
	return 0;
}

const struct argp tpcc_argp = { .options = options, .parser = parse };
