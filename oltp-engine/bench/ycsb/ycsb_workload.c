// SPDX-License-Identifier: GPL-2.0-or-later
/* YCSB as one of the workloads of oltp-bench: see workload.h. */
#include <errno.h>
#include <math.h>

#include "oltp-engine/bench/options.h"
#include "ycsb_workload.h"

/* What a record takes besides its bytes: its head and the slot of the hash index, half full. */
#define RECORD_OVERHEAD_BYTES	64u

static int create(const struct bench_workload *workload, struct oltp_engine *engine,
		  const struct bench_options *options, void **ret_state)
{
	struct ycsb *ycsb;
	int rc = ycsb_create(engine, &options->ycsb, &ycsb);

	(void)workload;
	if (!rc)
		*ret_state = ycsb;
	return rc;
}

static void destroy(void *state)
{
	ycsb_destroy(state);
}

static int load(void *state, uint32_t n_threads, struct bench_progress *progress)
{
	return ycsb_load_with(state, n_threads, progress);
}

static struct oltp_workload pool(void *state)
{
	return ycsb_workload(state);
}

static void audit(void *state, struct bench_audit *ret_audit)
{
	struct ycsb_audit found;

	ycsb_audit(state, &found);
	*ret_audit = (struct bench_audit){
		.rc = found.rc,
		.is_complete = found.is_complete,
		.records = found.records,
		.damaged_records = found.damaged_records,
		.updates = found.updates,
		.content = found.content,
	};
}

static bool verify(void *state, struct fields *fields)
{
	struct ycsb_verdict v;

	ycsb_verify(state, &v);
	fields_u64(fields, "records_found", v.records);
	fields_u64(fields, "records_missing", v.records_missing);
	fields_i64(fields, "scan_rc", v.scan_rc);
	fields_u64(fields, "updates_committed", v.updates_committed);
	fields_u64(fields, "updates_found", v.updates_found);
	fields_bool(fields, "checksum_equal", v.is_checksum_equal);
	fields_u64(fields, "damaged_records", v.damaged_records);
	fields_u64(fields, "inconsistent_reads", v.inconsistent_reads);
	fields_u64(fields, "lost_updates", v.lost_updates);
	return !v.lost_updates && !v.inconsistent_reads;
}

static void describe(void *state, struct fields *fields)
{
	const struct ycsb_config *config = ycsb_config(state);

	fields_u64(fields, "records", config->records);
	fields_u64(fields, "operations", config->operations);
	fields_short(fields, "update_share", config->update_share);
	fields_text(fields, "mix", config->mix_by_transaction ? "transaction" : "operation");
	fields_bool(fields, "read_all", config->read_all_fields);
	fields_short(fields, "theta", config->theta);
	fields_bool(fields, "scrambled", config->is_scrambled);
	fields_short(fields, "cold_access", config->cold_access);
	fields_short(fields, "cold_part", config->cold_part);
}

static uint64_t memory_bytes(const struct bench_workload *workload,
			     const struct bench_options *options)
{
	(void)workload;
	return options->ycsb.records * (sizeof(struct ycsb_record) + RECORD_OVERHEAD_BYTES);
}

static int knob_set(void *state, enum bench_knob knob, double value)
{
	return knob == BENCH_KNOB_THETA ? ycsb_set_theta(state, value) : -EOPNOTSUPP;
}

static double knob_get(void *state, enum bench_knob knob)
{
	return knob == BENCH_KNOB_THETA ? ycsb_theta(state) : (double)NAN;
}

const struct bench_workload_ops ycsb_workload_ops = {
	.family = BENCH_FAMILY_YCSB,
	.create = create,
	.destroy = destroy,
	.load = load,
	.pool = pool,
	.verify = verify,
	.describe = describe,
	.memory_bytes = memory_bytes,
	.audit = audit,
	.knob_set = knob_set,
	.knob_get = knob_get,
};
