// SPDX-License-Identifier: GPL-2.0-or-later
/* YCSB as some of the workloads of oltp-bench: see workload.h. */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "oltp-engine/bench/options.h"
#include "ycsb_workload.h"

/* What a record takes besides its bytes: its head and the slot of the hash index, half full. */
#define RECORD_OVERHEAD_BYTES	32u
/* In an ordered index, rows having come in no order. */
#define INDEX_ENTRY_BYTES	32u

#define CORE_THETA		0.99

/* Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010, table 2. */
const struct ycsb_core ycsb_core_a = { .shares = { [YCSB_UPDATE] = 0.5 } };
const struct ycsb_core ycsb_core_b = { .shares = { [YCSB_UPDATE] = 0.05 } };
const struct ycsb_core ycsb_core_c = { .shares = { 0 } };
const struct ycsb_core ycsb_core_d = { .shares = { [YCSB_INSERT] = 0.05 },
				       .keys = YCSB_KEYS_LATEST };
const struct ycsb_core ycsb_core_e = { .shares = { [YCSB_INSERT] = 0.05, [YCSB_SCAN] = 0.95 } };
const struct ycsb_core ycsb_core_f = { .shares = { [YCSB_MODIFY] = 0.5 } };

/* What the options say. */
static void configure_rows(const struct bench_workload *workload,
			   const struct bench_options *options, struct ycsb_config *ret_config)
{
	const struct ycsb_core *core = workload->variant;
	struct ycsb_config *config = ret_config;

	*config = options->ycsb;
	if (!core)
		return;
	config->keys = core->keys;
	config->is_hashed = core->shares[YCSB_SCAN] > 0;
	if (!(options->ycsb_given & YCSB_GIVEN_THETA))
		config->theta = CORE_THETA;
	config->n_classes = 1;
	config->classes[0] = (struct ycsb_class){
		.name = workload->name,
		.operations = options->ycsb_given & YCSB_GIVEN_OPERATIONS ? config->operations : 1,
		.read_all_fields = true,
	};
	for (uint32_t kind = 0; kind < YCSB_READ; kind++)
		config->classes[0].shares[kind] = core->shares[kind];
}

const char *ycsb_check_given(const struct ycsb_core *core, const struct bench_options *options)
{
	if (options->ycsb_given & YCSB_GIVEN_RECORDS_MAX &&
	    !(core && core->shares[YCSB_INSERT] > 0))
		return "it inserts nothing: --records-max does not apply";
	if (options->ycsb_given & YCSB_GIVEN_SCAN_ROWS && !(core && core->shares[YCSB_SCAN] > 0))
		return "--scan-rows does not apply";
	return NULL;
}

static const char *check(const struct bench_workload *workload, const struct bench_options *options)
{
	struct ycsb_config config;

	configure_rows(workload, options, &config);
	if (workload->variant && options->ycsb_given & YCSB_GIVEN_MIX)
		return "it has a mix of its own: --update, --mix and --read-all do not apply";
	if (config.keys != YCSB_KEYS_ZIPF && config.cold_access > 0)
		return "--cold-access needs keys by Zipf";
	if (config.records_max && config.records_max < config.records)
		return "--records-max is less than --records";
	return ycsb_check_given(workload->variant, options);
}

static void configure(const struct bench_workload *workload, const struct bench_options *options,
		      struct oltp_config *config)
{
	struct ycsb_config ycsb;
	uint32_t accesses;

	configure_rows(workload, options, &ycsb);
	accesses = ycsb_accesses_max(&ycsb);
	if (accesses > YCSB_OPERATIONS_MAX)
		config->txn_records_max = accesses;
}

_Static_assert(offsetof(struct ycsb_family, ops) == 0, "family_of() relies on it");

static const struct ycsb_family *family_of(const struct bench_workload *workload)
{
	return (const struct ycsb_family *)workload->ops;
}

int ycsb_hook_create(const struct bench_workload *workload, struct oltp_engine *engine,
		     const struct bench_options *options, void **ret_state)
{
	const struct ycsb_family *family = family_of(workload);
	struct ycsb_config config;
	struct ycsb *ycsb;
	int rc;

	family->configure(workload, options, &config);
	rc = ycsb_create(engine, &config, &ycsb);
	if (rc)
		return rc;
	if (family->created)
		family->created(ycsb, options);
	*ret_state = ycsb;
	return 0;
}

uint64_t ycsb_hook_memory_bytes(const struct bench_workload *workload,
				const struct bench_options *options)
{
	uint64_t bytes = sizeof(struct ycsb_record) + RECORD_OVERHEAD_BYTES;
	struct ycsb_config config;

	family_of(workload)->configure(workload, options, &config);
	for (uint32_t i = 0; i < config.n_classes; i++) {
		if (config.classes[i].shares[YCSB_SCAN] > 0) {
			bytes += INDEX_ENTRY_BYTES;
			break;
		}
	}
	return config.records * bytes;
}

void ycsb_hook_destroy(void *state)
{
	ycsb_destroy(state);
}

int ycsb_hook_load(void *state, uint32_t n_threads, struct bench_progress *progress)
{
	return ycsb_load_with(state, n_threads, progress);
}

struct oltp_workload ycsb_hook_pool(void *state)
{
	return ycsb_workload(state);
}

static struct bench_audit audit_of(const struct ycsb_audit *found)
{
	return (struct bench_audit){
		.rc = found->rc,
		.is_complete = found->is_complete,
		.records = found->records,
		.damaged_records = found->damaged_records,
		.updates = found->updates,
		.content = found->content,
	};
}

void ycsb_hook_audit(void *state, struct bench_audit *ret_audit)
{
	struct ycsb_audit found;

	ycsb_audit(state, &found);
	*ret_audit = audit_of(&found);
}

int ycsb_hook_adopt(void *state, struct bench_audit *ret_found)
{
	struct ycsb_audit found;
	int rc = ycsb_adopt(state, &found);

	if (!rc)
		*ret_found = audit_of(&found);
	return rc;
}

bool ycsb_hook_needs_no_adopt(void *state)
{
	return ycsb_needs_no_adopt(state);
}

int ycsb_hook_first(void *state)
{
	return ycsb_first(state);
}

bool ycsb_hook_verify(void *state, struct fields *fields)
{
	struct ycsb_verdict v;

	ycsb_verify(state, &v);
	fields_u64(fields, "records_found", v.records);
	fields_u64(fields, "records_missing", v.records_missing);
	fields_u64(fields, "inserts_committed", v.inserts_committed);
	fields_bool(fields, "keys_equal", v.are_keys_equal);
	fields_bool(fields, "index_equal", v.is_index_equal);
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
	const struct ycsb_class *class = &config->classes[0];

	fields_u64(fields, "records", config->records);
	fields_u64(fields, "operations", class->operations);
	fields_short(fields, "update_share", class->shares[YCSB_UPDATE]);
	fields_short(fields, "modify_share", class->shares[YCSB_MODIFY]);
	fields_short(fields, "insert_share", class->shares[YCSB_INSERT]);
	fields_short(fields, "scan_share", class->shares[YCSB_SCAN]);
	fields_text(fields, "mix", class->by_transaction ? "transaction" : "operation");
	fields_bool(fields, "read_all", class->read_all_fields);
	fields_text(fields, "keys", config->keys == YCSB_KEYS_LATEST ? "latest" : "zipf");
	fields_short(fields, "theta", config->theta);
	fields_bool(fields, "scrambled", config->is_scrambled);
	fields_short(fields, "cold_access", config->cold_access);
	fields_short(fields, "cold_part", config->cold_part);
}

static int knob_set(void *state, enum bench_knob knob, double value)
{
	return knob == BENCH_KNOB_THETA ? ycsb_set_theta(state, value) : -EOPNOTSUPP;
}

static double knob_get(void *state, enum bench_knob knob)
{
	return knob == BENCH_KNOB_THETA ? ycsb_theta(state) : (double)NAN;
}

const struct ycsb_family ycsb_family = {
	.ops = {
		.family = BENCH_FAMILY_YCSB,
		.check = check,
		.configure = configure,
		YCSB_HOOKS,
		.describe = describe,
		.knob_set = knob_set,
		.knob_get = knob_get,
	},
	.configure = configure_rows,
};
