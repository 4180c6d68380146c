// SPDX-License-Identifier: GPL-2.0-or-later
/* The TPC-C-like workload as one of those of oltp-bench: see workload.h. */
#include <stdio.h>

#include "oltp-engine/bench/options.h"
#include "tpcc_private.h"
#include "tpcc_workload.h"

/* What a warehouse takes with all its rows, heads, padding and indexes. */
#define WAREHOUSE_BYTES		(110ull << 20)
/* A new order with ten lines, and the hash indexes for it; there are fewer payments than orders. */
#define ORDER_INDEX_BYTES	200u

static const char *check(const struct bench_workload *workload, const struct bench_options *options)
{
	const struct tpcc_config *tpcc = &options->tpcc;
	uint64_t lines = ((uint64_t)tpcc->warehouses * TPCC_DISTRICTS *
			  (tpcc->keep_orders ?: TPCC_CUSTOMERS) + tpcc->orders) * 10;

	(void)workload;
	return lines > 1ull << 32 ? "there are more order lines than a table can have" : NULL;
}

static void configure(const struct bench_workload *workload, const struct bench_options *options,
		      struct oltp_config *config)
{
	(void)workload;
	(void)options;
	config->txn_records_max = TPCC_RECORDS_MAX;
}

static int create(const struct bench_workload *workload, struct oltp_engine *engine,
		  const struct bench_options *options, void **ret_state)
{
	struct tpcc_config config = options->tpcc;
	struct tpcc *tpcc;
	int rc;

	(void)workload;
	config.seed = options->ycsb.seed;
	rc = tpcc_create(engine, &config, &tpcc);
	if (!rc)
		*ret_state = tpcc;
	return rc;
}

static void destroy(void *state)
{
	tpcc_destroy(state);
}

static int load(void *state, uint32_t n_threads, struct bench_progress *progress)
{
	return tpcc_load(state, n_threads, progress);
}

static int adopt(void *state, struct bench_audit *ret_found)
{
	struct oltp_memory_stats memory;
	struct tpcc_verdict v = { 0 };
	struct tpcc *tpcc = state;

	*ret_found = (struct bench_audit){ .rc = tpcc_begin(tpcc) };
	if (ret_found->rc)
		return 0;
	tpcc_verify(tpcc, &v);
	oltp_memory_stats_read(tpcc->engine, &memory);
	ret_found->rc = v.scan_rc;
	ret_found->is_complete = !v.scan_rc && !v.missing_rows;
	ret_found->records = memory.resident_records + memory.cold_records;
	for (uint32_t i = 1; i <= TPCC_CONDITIONS; i++)
		ret_found->damaged_records += v.violations[i];
	return 0;
}

static struct oltp_workload pool(void *state)
{
	return tpcc_workload(state);
}

static bool verify(void *state, struct fields *fields)
{
	static const char *const names[TPCC_CONDITIONS + 1] = {
		"", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "", "12",
	};
	struct tpcc_verdict v;
	uint64_t n_lost;

	tpcc_verify(state, &v);
	n_lost = v.lost_orders + v.lost_payments + v.lost_deliveries + v.missing_rows;
	fields_i64(fields, "scan_rc", v.scan_rc);
	fields_object_begin(fields, "consistency_violations");
	for (uint32_t i = 1; i <= TPCC_CONDITIONS; i++) {
		if (*names[i])
			fields_u64(fields, names[i], v.violations[i]);
		n_lost += v.violations[i];
	}
	fields_object_end(fields);
	fields_u64(fields, "rolled_back", v.rollbacks);
	fields_u64(fields, "missing_rows", v.missing_rows);
	fields_u64(fields, "lost_orders", v.lost_orders);
	fields_u64(fields, "lost_payments", v.lost_payments);
	fields_u64(fields, "lost_deliveries", v.lost_deliveries);
	/* With tables that could not be read, nobody knows: not none. */
	fields_u64(fields, "lost_updates", n_lost ?: !v.is_good);
	return v.is_good;
}

static void describe(void *state, struct fields *fields)
{
	const struct tpcc_config *config = tpcc_config(state);
	const uint32_t *mix = config->mix;
	char text[64];

	snprintf(text, sizeof(text), "%u,%u,%u,%u,%u", mix[0], mix[1], mix[2], mix[3], mix[4]);
	fields_u64(fields, "warehouses", config->warehouses);
	fields_text(fields, "mix", text);
	fields_text(fields, "home", config->home_of_worker ? "worker" : "any");
	fields_u64(fields, "orders", config->orders);
	fields_u64(fields, "keep_orders", config->keep_orders);
}

static uint64_t memory_bytes(const struct bench_workload *workload,
			     const struct bench_options *options)
{
	(void)workload;
	return options->tpcc.warehouses * WAREHOUSE_BYTES +
	       options->tpcc.orders * ORDER_INDEX_BYTES;
}

static struct classes *classes(void *state)
{
	return tpcc_classes(state);
}

const struct bench_workload_ops tpcc_workload_ops = {
	.family = BENCH_FAMILY_TPCC,
	.check = check,
	.configure = configure,
	.create = create,
	.destroy = destroy,
	.load = load,
	.adopt = adopt,
	.pool = pool,
	.verify = verify,
	.verifies_always = true,
	.describe = describe,
	.memory_bytes = memory_bytes,
	.classes = classes,
};
